"""Synthetic rows beside ours: what is coded, and what is learnt from it. MST itself is replaced."""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.code_splits import Split
from papers.power.synthetic import LABEL, PARTS, coded, scored
from reticent.tables import Categorical, Numeric, TabularSchema

SCHEMA = TabularSchema((Categorical("kind", ("a", "b", "c")), Numeric("size", 0, 12)))


def cut() -> Split:
    """The kind is the label; three parts of 100 rows."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, size=300)
    rows = np.empty((300, 2), dtype=object)
    rows[:, 0], rows[:, 1] = np.array(["a", "c"])[labels], 12 * random.random(300)
    parts = [(rows[part], labels[part]) for part in np.split(np.arange(300), 3)]
    return Split(SCHEMA, *parts, 0)


def test_codes_are_of_the_public_description_alone() -> None:
    rows = np.array([["b", 0.0], ["c", 12.0], ["a", 6.1]], dtype=object)
    table, sizes = coded(SCHEMA, (rows, np.array([0, 3, 1])), labels=5)
    assert table["a0"].tolist() == [1, 2, 0]
    assert table["a1"].tolist() == [0, PARTS - 1, int(6.1 / 12 * PARTS)]
    assert table[LABEL].tolist() == [0, 3, 1]
    assert sizes == {"a0": 3, "a1": PARTS, LABEL: 5}
    one, _ = coded(SCHEMA, (rows[1:2], np.array([3])), labels=5)
    assert one.iloc[0].tolist() == table.iloc[1].tolist()


def test_a_booster_learns_from_the_synthetic_rows_and_no_others() -> None:
    part = cut()
    private, _ = coded(SCHEMA, part.private, labels=2)
    tested, _ = coded(SCHEMA, part.test, labels=2)
    assert scored(part, private, tested)["accuracy"] == pytest.approx(1.0)
    turned = private.assign(**{LABEL: 1 - private[LABEL]})
    assert scored(part, turned, tested)["accuracy"] == pytest.approx(0.0)
