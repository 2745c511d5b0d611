"""Rows that belong to different people, on the command line: granted, released and charged one
by one, all or none.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.ledger import Ledger
from reticent.systems import PowerEncoder

COLUMNS = ("sepal length", "sepal width", "petal length", "petal width", "garden")
NOISE = 1e-4
"""Radius 0.2 at epsilon 1e5 is a scale of 2e-6: less than 1e-19 of the noise lies beyond 50."""
Command = Callable[..., Any]


@dataclass(frozen=True)
class Clinic:
    """A ledger, a file of rows with a column of people, a place for the answers, and who the
    rows belong to.
    """

    book: Path
    rows: Path
    output: Path
    people: list[str]

    def spent(self) -> dict[str, tuple[int, int, str]]:
        """For each subject: answers, commits and who asked."""
        book = Ledger.open(self.book)
        try:
            assert book.verify().problems == ()
            return {
                a.scope.subject: (a.answers, a.commits, a.scope.principal)
                for a in book.report().accounts
            }
        finally:
            book.close()


@pytest.fixture
def clinic(flowers: tuple[np.ndarray[Any, Any], ...], tmp_path: Path) -> Clinic:
    """Twenty rows of seven people; the schema knows no column of people."""
    people = [f"person {number % 7}" for number in range(19)] + ["O'Neill, Zoë"]
    with (tmp_path / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["garden", "person", *COLUMNS[:4], "note"])
        for row, name in zip(flowers[0][:20], people, strict=True):
            writer.writerow([row[4], f" {name}", *row[:4], "two\nlines"])
    Ledger.create(tmp_path / "book.db").close()
    return Clinic(
        tmp_path / "book.db", tmp_path / "rows.csv", tmp_path / "answers" / "out.npz", people
    )


def grant(bundle: Path, clinic: Clinic, answers: float, *more: object) -> list[object]:
    """The command line that gives everybody in the file room for so many answers."""
    cost = PowerEncoder.load(bundle).guarantee
    how = ["--neighbours", f"bundle:{bundle}"]
    amount = ["--epsilon", answers * cost.epsilon, "--delta", 0]
    return ["ledger", "grant", "--ledger", clinic.book, *amount, *how, *more]


def everybody(clinic: Clinic) -> list[object]:
    return ["--subjects-from", clinic.rows, "--subject-column", "person"]


def release(bundle: Path, clinic: Clinic, *more: object) -> list[object]:
    line = [
        "release",
        bundle,
        "--input",
        clinic.rows,
        "--output",
        clinic.output,
        "--ignore-column",
        "note",
    ]
    return [*line, "--ledger", clinic.book, "--principal", "clinic", *more]


def test_everybody_pays_for_their_own_rows(power_bundle, flowers, clinic, command: Command) -> None:
    granted = command(*grant(power_bundle, clinic, 3, *everybody(clinic)))
    assert granted.status == 0, granted.err
    assert granted.out.startswith(
        "granted to each of 8 subject(s); the least is left to subject=person 0: granted"
    )
    answered = command(*release(power_bundle, clinic, "--subject-column", "person"))
    assert answered.status == 0, answered.err
    assert "; charged to 8 subject(s); 0 withheld; written to" in answered.out
    assert clinic.spent() == {
        name: (rows, 1, "clinic") for name, rows in Counter(clinic.people).items()
    }
    with np.load(clinic.output, allow_pickle=False) as answers:
        np.testing.assert_allclose(
            answers["values"],
            PowerEncoder.load(power_bundle).exact(flowers[0][:20]),
            rtol=0,
            atol=NOISE,
        )
        receipt = json.loads(bytes(answers["receipt"]))
    assert receipt["booked"].endswith("/9-16")
    assert receipt["answers"] == 20
    assert not any(name in json.dumps(receipt) for name in clinic.people)


def test_one_person_without_room_stops_everybody(power_bundle, clinic, command: Command) -> None:
    """Five people have three rows each, and room for two."""
    assert command(*grant(power_bundle, clinic, 2, *everybody(clinic))).status == 0
    refused = command(*release(power_bundle, clinic, "--subject-column", "person"))
    assert refused.status == 12
    assert "5 of the scopes lack budget: subject=person 0: granted" in refused.err
    assert "and 3 more" in refused.err
    assert refused.err.count("\n") == 1
    assert clinic.spent() == {}
    assert list(clinic.output.parent.iterdir()) == []
    for name in [f"person {number}" for number in range(5)]:
        assert command(*grant(power_bundle, clinic, 1, "--subject", name)).status == 0
    assert command(*release(power_bundle, clinic, "--subject-column", "person")).status == 0
    assert len(clinic.spent()) == 8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--subject-column", "person", "--subject", "ward"], "subject_column"),
        (["--subject-column", "persons"], "'persons'"),
        (["--subject-column", "garden"], "'garden'"),
        (["--subject", "ward"], "'person'"),
    ],
)
def test_columns_that_do_not_name_people_cost_nothing(
    power_bundle, clinic, command: Command, more, message
) -> None:
    assert command(*grant(power_bundle, clinic, 3, *everybody(clinic))).status == 0
    refused = command(*release(power_bundle, clinic, *more))
    assert refused.status == 2
    assert message in refused.err
    assert "person 0" not in refused.err
    assert clinic.spent() == {}
    assert not clinic.output.exists()
