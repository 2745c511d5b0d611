"""Names of clients, subjects and bundles, which the ledger compares as a person reads them.

Two names that look alike and differ in their characters would have two budgets. So a name is in the
composed normal form and has no character that is invisible or stands for another one. It mixes no
scripts, by the "highly restrictive" level of Unicode Technical Standard 39: one script, or Latin
together with the scripts of Japanese, Chinese or Korean. Letters, marks and digits of every script
and printable ASCII are legal. Other symbols are not.

``scripts.txt`` lists the property Script_Extensions of the Unicode Character Database, version
14.0.0, as ``Unicode::UCD`` of Perl 5.36 reports it, for the letters, marks and digits that a name
may hold. A Common or Inherited character goes with every script.

These confusions are left: names in one script that look like names in another ("раураl" in Cyrillic
letters alone), capitals and small letters. A policy that requires a budget on the subject
(``Policy``) refuses those too, because no budget names them.

Reference:
    M. Davis, M. Suignard. Unicode Technical Standard 39: Unicode Security Mechanisms. Section
    5.2.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import cache, lru_cache
from importlib.resources import files

from reticent.core.errors import InvalidInput

LONGEST_NAME = 200
"""Largest number of characters in a name."""

_IGNORABLE = (
    *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF)),
)
"""The Default_Ignorable_Code_Point characters that ``str.isprintable`` lets through: fillers,
joiners and variation selectors.
"""

_WRITING_SYSTEMS = {
    "Japanese": frozenset({"Han", "Hiragana", "Katakana"}),
    "Chinese": frozenset({"Han", "Bopomofo"}),
    "Korean": frozenset({"Han", "Hangul"}),
}
"""Scripts that one language writes together, and with Latin."""


@lru_cache(maxsize=65536)
def checked_name(value: str, *, name: str) -> str:
    """Return ``value`` if it is a name that cannot be mistaken for another.

    Args:
        value: up to 200 characters. "" is legal and stands for no name.
        name: the caller's name for it in messages.

    Raises:
        InvalidInput: too long, or with a character or a mixture of scripts that is not legal. The
            message says which.

    Example:
        >>> checked_name("Zoë-7", name="subject")
        'Zoë-7'
        >>> checked_name("pаypal", name="principal")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reticent.core.errors.InvalidInput: principal='pаypal': expected letters of one script, ...
    """
    if len(value) > LONGEST_NAME or not value.isprintable() or value != " ".join(value.split()):
        raise InvalidInput(
            f"{name}: expected up to {LONGEST_NAME} printable characters, without spaces at "
            "the ends and without two in a row, "
            f"got {value!a:.60}"
        )
    if value.isascii():
        return value
    if unicodedata.normalize("NFC", value) != value:
        raise InvalidInput(
            f"{name}={value!a:.60}: expected the composed normal form; use "
            "unicodedata.normalize('NFC', name) on every name"
        )
    for character in value:
        _check_character(character, name)
    _check_scripts(value, name)
    return value


def _check_character(character: str, name: str) -> None:
    code = ord(character)
    told = f"{name}: expected letters, marks, digits and ASCII punctuation, got U+{code:04X}"
    if any(first <= code <= last for first, last in _IGNORABLE):
        raise InvalidInput(f"{told}, which is invisible; leave it out")
    if code < 128:
        return
    category = unicodedata.category(character)
    if category[0] not in "LM" and category != "Nd":
        raise InvalidInput(f"{told} ({unicodedata.name(character, 'a symbol')}); write it in ASCII")
    plain = unicodedata.normalize("NFKC", character)
    if plain != character:
        raise InvalidInput(f"{told}, which looks like {plain!r}; write that instead")
    if _extensions(code) is None:
        raise InvalidInput(f"{told}, which is newer than the table of scripts; leave it out")


def _check_scripts(value: str, name: str) -> None:
    found = {extensions for extensions in map(_extensions, map(ord, value)) if extensions}
    written = [_with_writing_systems(extensions) for extensions in found]
    beside_latin = [
        _with_writing_systems(extensions) for extensions in found if "Latin" not in extensions
    ]
    one = frozenset.intersection(*written) if written else True
    together = (
        frozenset.intersection(*beside_latin) & _WRITING_SYSTEMS.keys() if beside_latin else True
    )
    if not one and not together:
        scripts = ", ".join(sorted({"/".join(sorted(extensions)) for extensions in found}))
        raise InvalidInput(
            f"{name}={value!r:.60}: expected letters of one script, got {scripts}; names that "
            "look alike are refused"
        )
    zeros = {
        ord(character) - unicodedata.decimal(character)
        for character in value
        if character.isdecimal()
    }
    if len(zeros) > 1:
        raise InvalidInput(
            f"{name}={value!r:.60}: expected the digits of one script; names that look alike "
            "are refused"
        )


def _with_writing_systems(scripts: frozenset[str]) -> frozenset[str]:
    return scripts | {system for system, members in _WRITING_SYSTEMS.items() if scripts & members}


def _extensions(code: int) -> frozenset[str] | None:
    """Return the scripts that a character is used in: none if it goes with every script, None if
    the table does not know it.
    """
    if code < 128:
        return frozenset({"Latin"}) if chr(code).isalpha() else frozenset()
    starts, ranges = _table()
    at = bisect_right(starts, code) - 1
    if at < 0 or code > ranges[at][0]:
        return None
    return ranges[at][1]


@cache
def _table() -> tuple[list[int], list[tuple[int, frozenset[str]]]]:
    """Return the first characters of all ranges, ascending, and each range's last character and
    scripts.
    """
    rows: list[tuple[int, int, frozenset[str]]] = []
    for line in (files("reticent.core") / "scripts.txt").read_text(encoding="ascii").splitlines():
        scripts, *ranges = line.split()
        for span in ranges:
            first, _, last = span.partition("-")
            rows.append(
                (int(first, 16), int(last or first, 16), frozenset(scripts.split("+")) - {"Common"})
            )
    rows.sort(key=lambda row: row[0])
    return [first for first, _, _ in rows], [(last, scripts) for _, last, scripts in rows]
