"""The page of literature, and how works are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from guide import bibliography

ROOT = Path(__file__).parents[2]


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
