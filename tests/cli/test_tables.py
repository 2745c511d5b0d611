"""release on rows of a table: from a CSV file to booked answers, and every spoiled file that
must cost nothing.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.cli.main import run
from reticent.core import Guarantee, Scope
from reticent.ledger import Ledger
from reticent.systems import PowerEncoder

FLOWERS = ("sepal length", "sepal width", "petal length", "petal width")
HEADER = [*FLOWERS, "garden"]
NOISE = 1e-4
"""Bound on a released value's error: radius 0.2 at epsilon 1e5 gives a scale of 2e-6. The norm
of the noise in two dimensions is Gamma(2): beyond 50 scales lies less than 1e-19 of it, for each
row."""


@dataclass(frozen=True)
class Session:
    """A ledger with a grant, and a place for the answers."""

    book: Path
    output: Path

    def spent(self) -> tuple[float, int]:
        """Epsilon spent under the grant, and entries of the ledger beyond it."""
        book = Ledger.open(self.book)
        try:
            report = book.report()
        finally:
            book.close()
        return sum(account.spent_epsilon for account in report.accounts) / 1e6, report.entries - 1


@pytest.fixture
def session(power_bundle: Path, tmp_path: Path) -> Session:
    cost = PowerEncoder.load(power_bundle).guarantee
    book = Ledger.create(tmp_path / "book.sqlite")
    book.grant(Scope(subject="gardeners"), Guarantee(200 * cost.epsilon, 0.0, cost.adjacency))
    book.close()
    return Session(tmp_path / "book.sqlite", tmp_path / "answers" / "out.npz")


def written(
    path: Path, rows: np.ndarray[Any, Any], *, order: list[str], notes: bool = False
) -> Path:
    """``rows`` as a CSV file with the columns in ``order``."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(order)
        for row in rows:
            cells = dict(zip(HEADER, row, strict=True), note="a, b")
            writer.writerow([cells[name] for name in order])
    return path


def words(bundle: Path, session: Session, rows: Path, *more: object) -> list[str]:
    """The command line of a booked release."""
    line = ["release", bundle, "--input", rows, "--output", session.output]
    return [
        str(word)
        for word in (
            *line,
            "--ledger",
            session.book,
            "--principal",
            "server",
            "--subject",
            "gardeners",
            *more,
        )
    ]


def test_rows_are_released_by_their_columns_names_and_booked(
    power_bundle, flowers, session, tmp_path, capsys
) -> None:
    rows = flowers[0][::2]
    file = written(tmp_path / "rows.csv", rows, order=["garden", "note", *reversed(FLOWERS)])
    assert run(words(power_bundle, session, file, "--ignore-column", "note")) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "75 answer(s)" in said.out
    assert "booked as" in said.out
    encoder = PowerEncoder.load(power_bundle)
    with np.load(session.output, allow_pickle=False) as answers:
        np.testing.assert_allclose(answers["values"], encoder.exact(rows), rtol=0, atol=NOISE)
        assert answers["withheld"].tolist() == [False] * 75
        receipt = json.loads(answers["receipt"].tobytes())
    assert receipt["answers"] == 75
    assert receipt["seeded"] is False
    assert receipt["bundle"] == encoder.bundle_identity_
    assert receipt["booked"] != ""
    epsilon, entries = session.spent()
    assert epsilon == pytest.approx(75 * encoder.guarantee.epsilon)
    assert entries == 2  # reserved, committed
    assert (
        np.ptp(encoder.exact(rows), axis=0).min() > 100 * NOISE
    )  # rows or columns in another order would show
