"""Releases within a radius: what is sent along, how the server is chosen, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.code_splits import Split
from papers.power.within import (
    free_columns,
    rung,
    sided,
)
from reticent.tables import Categorical, Numeric, TabularSchema

LABELS = np.random.default_rng(0).integers(0, 2, size=900)


def mixed() -> Split:
    """A category that is the label nine times in ten, and a number that is noise."""
    random = np.random.default_rng(1)
    told = np.where(random.random(900) < 0.9, LABELS, 1 - LABELS)
    rows = np.empty((900, 2), dtype=object)
    rows[:, 0], rows[:, 1] = np.array(["a", "b"])[told], random.random(900)
    schema = TabularSchema((Categorical("kind", ("a", "b")), Numeric("size", 0, 1)))
    parts = [(rows[part], LABELS[part]) for part in np.split(np.arange(900), 3)]
    return Split(schema, *parts, 0)


def test_what_neighbours_share_is_sent_as_it_is_and_nothing_else() -> None:
    part = mixed()
    rows = part.test[0]
    seen = free_columns(part, rows)
    assert seen.shape == (300, 3)
    np.testing.assert_array_equal(seen[:, 1] > 0, rows[:, 0] == "a")
    moved = rows.copy()
    moved[:, 1] = 0.5  # a neighbour's, or not even that
    np.testing.assert_array_equal(free_columns(part, moved), seen)
    np.testing.assert_array_equal(rung(part, 1.0, name="clear alone").tested, seen)


def test_one_bit_about_two_labels_is_answered_as_often_rightly_as_it_should() -> None:
    """The number is the label here, and the category says nothing of it: randomised response on
    what is nearly always right.
    """
    part = mixed()
    random = np.random.default_rng(3)
    parts = []
    for table, labels in (part.public, part.private, part.test):
        rows = table.copy()
        rows[:, 0] = random.choice(["a", "b"], len(rows))
        rows[:, 1] = 0.5 * labels + 0.5 * random.random(len(rows))
        parts.append((rows, labels))
    found = sided(Split(part.schema, *parts, 0), 2.0)
    named, labels = found.private[:, -2:].argmax(axis=1), parts[1][1]
    assert found.private.shape == (300, 1 + 2 + 2 + 2)
    right = np.exp(2.0) / (1.0 + np.exp(2.0))
    assert (named == labels).mean() == pytest.approx(right, abs=0.07)
    sure = sided(Split(part.schema, *parts, 0), 12.0).private[:, -2:].argmax(axis=1)
    assert (sure == labels).mean() > 0.97
