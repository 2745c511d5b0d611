"""The page of literature, and how works are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from guide import bibliography

ROOT = Path(__file__).parents[2]


def test_every_entry_has_a_heading_and_its_title() -> None:
    keys = re.findall(r"^@\w+\{(\w+),$", (ROOT / "docs/bibliography.bib").read_text(), re.M)
    page = bibliography.page()
    assert re.findall(r"^## (.+)$", page, re.M) == keys
    assert all(fields["title"] in page for fields in bibliography.works().values())


def test_names_are_last_names() -> None:
    assert bibliography.authors("Dwork, Cynthia and Roth, Aaron") == "Dwork and Roth"
    assert bibliography.authors("A, B and C, D and others") == "A, C and others"
    assert bibliography.authors("Mironov, Ilya") == "Mironov"


@pytest.mark.parametrize(
    ("authors", "year", "title"),
    [
        ("Mironov", "2018", "Rényi differential privacy"),
        ("Miranov", "2017", "Rényi differential privacy"),
        ("Mironov", "2017", "Renyi differential privacy"),
    ],
)
def test_a_work_that_is_not_quite_one_of_ours_is_not_found(
    authors: str, year: str, title: str
) -> None:
    assert bibliography.key_of(authors, year, title) is None
    assert bibliography.key_of("Mironov", "2017", "Rényi differential privacy") == "mironov2017"


def test_what_is_no_bibtex_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "@article{one2000,\n  author = {One, A},\n},\n"
    (tmp_path / "bibliography.bib").write_text(entry)
    monkeypatch.setattr(bibliography, "DOCS", tmp_path)
    with pytest.raises(ValueError, match="not BibTeX"):
        bibliography.works.__wrapped__()
    (tmp_path / "bibliography.bib").write_text(2 * "@article{one2000,\n  author = {One, A},\n}\n\n")
    with pytest.raises(ValueError, match="twice"):
        bibliography.works.__wrapped__()
