"""Docstrings as Sphinx gets them."""

from __future__ import annotations

from guide.bibliography import key_of
from guide.docstrings import prepared


def made(*lines: str) -> list[str]:
    return prepared(
        list(lines),
        places={"reticent.Plan": "reticent.planning.Plan"},
        cite=lambda *work: f"#{key_of(*work)}" if key_of(*work) else None,
    )


def test_bars_and_closing_underscores_stand_for_themselves() -> None:
    assert made("exp(-|u|) of ``|u|`` and `a_`, fitted_ (n, *shape)") == [
        r"exp(-\|u\|) of ``|u|`` and `a_`, fitted\_ (n, \*shape)"
    ]


def test_a_reference_over_several_lines_is_one() -> None:
    lines = [
        '    - Mironov (2017), "Rényi differential',
        '      privacy", x.',
        "    - Proofs: docs.",
    ]
    assert made("References:", *lines) == [
        "References:",
        '    - Mironov (2017), `"Rényi differential privacy" <#mironov2017>`__, x.',
        "    - Proofs: docs.",
    ]


def test_works_are_links_to_the_literature_and_unknown_ones_stay() -> None:
    known = '    - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476.'
    unknown = '    - Nobody (2017), "Nothing", arXiv:1702.07476.'
    assert made("References:", known, unknown) == [
        "References:",
        '    - Mironov (2017), `"Rényi differential privacy" <#mironov2017>`__, arXiv:1702.07476.',
        unknown,
    ]
