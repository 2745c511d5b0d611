from __future__ import annotations

import unicodedata

import hypothesis.strategies as st
import pytest
from hypothesis import given

from reticent.core.errors import InvalidInput
from reticent.core.names import checked_name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ward-7",
        "O'Brien (2)",
        "Zoë Müller",
        "straße_9",
        "Иванова-7",
        "Ελένη 3",
        "日本語 abc カタカナー",
        "한국어 김 Lee",
        "汉字 ㄅㄆ x",
        "محمد ٤",
        "नमस्ते",
        "ʻokina",
        "100%",
    ],
)
def test_names_of_every_script_are_legal(name: str) -> None:
    assert checked_name(name, name="subject") == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Zoe\u0308", "composed normal form"),
        ("\u212bngstrom", "composed normal form"),
        ("ward\u3164", "U\\+3164, which is invisible"),
        ("ward\u115f7", "U\\+115F, which is invisible"),
        ("ward\ufe0f7", "U\\+FE0F, which is invisible"),
        ("wa\u034frd", "U\\+034F, which is invisible"),
        ("ward\u200b7", "printable"),
        ("ward\u00a07", "printable"),
        ("ward\u202e7", "printable"),
        ("ward  7", "two in a row"),
        (" ward", "spaces at the ends"),
        ("p\u0430tient-7", "letters of one script, got Cyrillic, Latin"),
        ("w\u03b1rd", "letters of one script, got Greek, Latin"),
        ("漢字 김 ひ", "letters of one script"),
        ("Юля ひ", "letters of one script"),
        ("\uff37ard", "looks like 'W'"),
        ("\U0001d430ard", "looks like 'w'"),
        ("\ufb01sh", "looks like 'fi'"),
        ("ward\u20107", r"U\+2010 \(HYPHEN\); write it in ASCII"),
        ("O\u2019Brien", "write it in ASCII"),
        ("\u0645\u0664\u0037", "digits of one script"),
        ("ab\u09ea", "letters of one script"),
        ("x" * 201, "up to 200"),
    ],
)
def test_names_that_look_like_others_are_refused(name: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        checked_name(name, name="subject")
    assert str(refused.value).startswith("subject")


@given(st.text(max_size=12))
def test_what_is_legal_is_its_own_normal_form_and_visible(name: str) -> None:
    try:
        checked_name(name, name="subject")
    except InvalidInput:
        return
    assert unicodedata.normalize("NFKC", name) == name
    assert name.isprintable()
    assert not any(
        unicodedata.category(character)[0] in "CZ" for character in name.replace(" ", "")
    )


@given(
    st.text(
        alphabet=st.characters(codec="ascii", categories=("L", "N", "P")), min_size=1, max_size=12
    ),
    st.data(),
)
def test_no_letter_of_another_script_replaces_a_latin_one(name: str, data: st.DataObject) -> None:
    if not any(character.isalpha() for character in name):
        name += "a"
    at = data.draw(st.integers(0, len(name)))
    other = data.draw(st.sampled_from("аеорсухіјԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧаօսցⲟᏒꓢ"))
    with pytest.raises(InvalidInput, match="one script"):
        checked_name(name[:at] + other + name[at:], name="subject")
