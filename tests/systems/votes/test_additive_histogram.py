"""Histograms of columns: what a record adds, and what is computed from released counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB

from reticent.release.fits import not_counted
from reticent.systems import AdditiveHistogramClassifier, Features
from reticent.systems.votes.additive_histogram import additive_tables
from reticent.training.public_bins import PublicBins
from tests.systems.votes.tiny import told

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(3000, 3))
CODES = (ROWS[:, 0] - ROWS[:, 1] + RNG.normal(size=3000) > 0.3).astype(int)


def model(**more: Any) -> AdditiveHistogramClassifier:
    return AdditiveHistogramClassifier(**{"epsilon": 4.0, "delta": 1e-5, "classes": (0, 1), **more})


def counts_of(places: np.ndarray, codes: np.ndarray, bins: int, labels: int) -> np.ndarray:
    found = np.zeros((bins + 1, labels))
    for row, code in zip(places, codes, strict=True):
        found[row, code] += 1
        found[-1, code] += 1
    return found


def test_without_noise_and_public_rows_it_is_naive_bayes() -> None:
    """scikit-learn's own, with the same counts of bins and one record more in each."""
    bins = PublicBins.of_range(np.full(3, -2.0), np.full(3, 2.0), bins=4)
    places = bins.points(ROWS).astype(int)
    codes = (ROWS[:, 0] > 0).astype(int) + (ROWS[:, 1] > 0.5)
    tables = additive_tables(counts_of(places, codes, 12, 3), 1e-9, sizes=bins.sizes, public=None)
    found = tables[-1] + sum(tables[column] for column in places.T)
    known = CategoricalNB(alpha=1.0).fit(places - bins.starts, codes)
    other = known.predict_joint_log_proba(places - bins.starts)
    mine, theirs = (each - each.mean(axis=1, keepdims=True) for each in (found, other))
    assert np.corrcoef(mine.ravel(), theirs.ravel())[0, 1] > 0.9999
    assert (mine.argmax(axis=1) == theirs.argmax(axis=1)).mean() > 0.995


def test_public_rows_without_labels_mend_columns_that_say_one_thing_thrice() -> None:
    """Naive Bayes takes three like columns for three witnesses. Chance: see the margin."""
    thrice = np.repeat(ROWS[:, :1], 3, axis=1)
    chances = 1.0 / (1.0 + np.exp(-1.5 * ROWS[:, 0]))
    codes = (np.random.default_rng(1).random(3000) < chances).astype(int)
    errors = {}
    for name, given in (("public", {"public_X": thrice[2500:]}), ("none", {})):
        made = model(features=Features(range=(-2, 2)), bins=10)
        with not_counted("a test: nothing leaves"):
            made.simulate_fit(thrice[:2500], codes[:2500], seed=0, **given)
        errors[name] = np.abs(made.predict_proba(thrice)[:, 1] - chances).mean()
    assert errors["public"] < 0.08
    assert errors["none"] > 0.12


@pytest.mark.parametrize("labelled", [True, False])
def test_records_reach_the_model_by_released_counts_alone(labelled: bool) -> None:
    given = {"public_X": ROWS[2900:]}
    if labelled:
        given["public_y"] = CODES[2900:]
    found = []
    for n in (0, 1, 400):
        made = model()
        told(made, ROWS[:n], 1 - CODES[:n], **given)
        found.append(made.tables_)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_a_record_adds_one_vector_of_the_stated_length_and_a_person_no_longer_one() -> None:
    made = model()
    session = told(made, np.full((1, 3), 1e9), [1], public_X=ROWS[:50])
    [bound] = {block.bound for block in session.mechanism.blocks}
    assert 0.999999 * bound < np.linalg.norm(session.totals[0][0]) <= bound
    voters, _ = made._ready(ROWS[:9], CODES[:9], ROWS[:50], None, ["anna"] * 9)
    [found] = made._histograms(voters)  # type: ignore[arg-type]
    assert 0.99 * bound < np.linalg.norm(found) <= bound


def test_indicators_side_by_side_are_one_column_of_a_record() -> None:
    chosen = np.eye(3)[RNG.integers(0, 3, 60)] * 0.7
    bins = PublicBins.around(np.column_stack([RNG.normal(size=60), chosen]), bins=4)
    assert bins.sizes.tolist() == [4, 4]
    odd = np.array([[0.0, 0.7, 0.0, 0.7], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0]])
    assert (bins.points(odd)[:, 1] - bins.starts[1]).tolist() == [0.0, 3.0, 1.0]


def test_counts_that_leave_no_doubt_do_not_fail_after_the_charge() -> None:
    """Every one of 60 columns tells the label, so that shares of public rows are 0 and 1."""
    sizes = np.full(60, 2)
    counts = np.tile([[1e9, 0.0], [0.0, 1e9]], (60, 1))
    public = np.stack([np.arange(60) * 2 + label for label in (0, 1, 0, 1)])
    found = additive_tables(np.vstack([counts, [[1e9, 1e9]]]), 1.0, sizes=sizes, public=public)
    assert np.isfinite(found).all()
