"""Clusters have the declared sizes and find what is there."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import InvalidParameter
from reticent.planning.pseudo_labels import checked_prevalence, pseudo_labels


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.3, 0.5)])
def test_clusters_have_the_declared_sizes(shares):
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    found = pseudo_labels(rows, shares, seed=1)
    assert np.bincount(found).tolist() == [round(1000 * share) for share in shares]


def test_separate_groups_are_found_again():
    random = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [600, 300, 100])
    rows = random.normal(size=(1000, 2)) + 12.0 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    found = pseudo_labels(rows, [1 / 3, 1 / 3, 1 / 3], seed=0)
    sized = pseudo_labels(rows, [0.6, 0.3, 0.1], seed=0)
    agree = max(
        (np.array(order)[sized] == truth).mean()
        for order in [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    )
    assert agree > 0.95
    assert np.bincount(found).max() <= 334


def test_every_class_has_a_row():
    found = pseudo_labels(np.arange(30.0)[:, None], [0.998, 0.001, 0.001], seed=0)
    assert np.bincount(found, minlength=3).min() == 1
    with pytest.raises(InvalidParameter, match="at least 3"):
        pseudo_labels(np.zeros((2, 1)), [0.4, 0.3, 0.3], seed=0)


def test_one_seed_gives_one_clustering():
    rows = np.random.default_rng(3).normal(size=(200, 4))
    first, again = (pseudo_labels(rows, [0.5, 0.5], seed=4) for _ in range(2))
    assert (first == again).all()


@pytest.mark.parametrize("shares", [[0.5], [0.5, 0.6], [1.0, 0.0], [0.2, 0.3, 0.5]])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(InvalidParameter, match="prevalence"):
        checked_prevalence(shares, 2)
