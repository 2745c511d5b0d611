"""Hop release: privacy by brute force over cells and classifiers, faults refused, exact draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from reticent.core import Neighborhood, Norm
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE
from reticent.mechanisms import HopRelease
from reticent.noise import AuditSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
CELLS = Lattice.over([[0.0, 0.0], [3.4, 1.4]], radius=0.5, tail=0.0)


def allowed(labels: int = 4, share: float = 0.3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    marked = rng.random((labels, CELLS.size)) < share
    marked[rng.integers(0, labels, CELLS.size), np.arange(CELLS.size)] = True
    return marked


def patches(labels: int = 4) -> np.ndarray:
    """Each label is allowed in one stripe of cells, the first two together where they meet."""
    stripe = np.minimum((CELLS.center[:, 0] / 3.5 * labels).astype(int), labels - 1)
    marked = np.arange(labels)[:, None] == stripe
    marked[0] |= (stripe == 1) & (CELLS.center[:, 1] < 0.5)
    return marked


def hop(marked: np.ndarray, epsilon: float = 2.0) -> HopRelease:
    return HopRelease.of(marked, lattice=CELLS, epsilon=epsilon, adjacency=NEAR)


def probabilities_of(mechanism: HopRelease) -> list[list[np.ndarray]]:
    """For every cell the shares under every label that the classifier may prefer there."""
    labels, cells = mechanism.allowed.shape
    points = np.zeros((cells, 2))
    points[:] = CELLS.center
    each = [[] for _ in range(cells)]
    for label in range(labels):
        logits = np.zeros((cells, labels))
        logits[:, label] = 1.0
        shares = mechanism.probabilities(points, logits)
        for cell in range(cells):
            if mechanism.allowed[label, cell]:
                each[cell].append(shares[cell])
    return each


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0, 12.0])
@pytest.mark.parametrize("marked", [allowed(), allowed(seed=1, share=0.05), patches()])
def test_loss_is_at_most_epsilon_whatever_the_classifier_prefers(epsilon, marked) -> None:
    mechanism = hop(marked, epsilon)
    index = np.stack(np.unravel_index(np.arange(CELLS.size), CELLS.shape), axis=1)
    each, largest = probabilities_of(mechanism), 0.0
    for first, second in itertools.product(range(CELLS.size), repeat=2):
        if np.abs(index[first] - index[second]).max() <= 1:
            for one, other in itertools.product(each[first], each[second]):
                largest = max(largest, float(np.abs(np.log(one) - np.log(other)).max()))
    assert 0.6 * epsilon < largest <= epsilon * (1 + 1e-12)


def test_shares_fall_with_hops() -> None:
    """In the first stripe's far end the own label is nearly certain, next to the border less so."""
    mechanism = hop(patches(), 3.0)
    logits = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    chances = mechanism.probabilities([[0.1, 1.3], [0.7, 1.3]], logits)
    assert chances[0, 0] > chances[1, 0] > 0.8
    assert (chances[0, 1:3] < chances[1, 1:3]).all()  # both stripes are one hop nearer


def test_the_own_label_is_the_best_that_the_cell_allows() -> None:
    mechanism = hop(patches(), 3.0)
    chances = mechanism.probabilities([[0.1, 1.3]], [[0.0, 5.0, 9.0, 9.0]])
    assert chances[0].argmax() == 0  # nothing else is allowed there


def test_faults_are_refused() -> None:
    mechanism = hop(patches(), 2.0)
    settings = {"lattice": CELLS, "adjacency": NEAR, "epsilon": 2.0}
    with pytest.raises(InvalidInput, match="more than e\\^epsilon"):
        HopRelease(**{**settings, "epsilon": 1.9}, allowed=patches(), weights=mechanism.weights)
    steeper = (mechanism.weights[0], *(w * 4 // 5 for w in mechanism.weights[1:-1]), 1)
    with pytest.raises(InvalidInput, match="more than e\\^epsilon"):
        HopRelease(**settings, allowed=patches(), weights=steeper)
    with pytest.raises(InvalidParameter, match="weights"):
        HopRelease(**settings, allowed=patches(), weights=(5, 6))
    with pytest.raises(InvalidParameter, match="weights"):
        HopRelease(**settings, allowed=patches(), weights=(2**32, 6))
    with pytest.raises(InvalidInput, match="allowed"):
        HopRelease(**settings, allowed=patches()[:, 1:], weights=mechanism.weights)
    with pytest.raises(InvalidInput, match="at least one label"):
        HopRelease(**settings, allowed=np.zeros_like(patches()), weights=mechanism.weights)
    narrow = Lattice(**{**CELLS.to_dict(), "side": CELLS.side - 1})
    with pytest.raises(InvalidParameter, match="does not cover"):
        HopRelease(**{**settings, "lattice": narrow}, allowed=patches(), weights=mechanism.weights)


def test_the_rate_found_is_nearly_the_largest() -> None:
    """A rate one part in a thousand higher is refused."""
    mechanism = hop(patches(), 2.0)
    faster = tuple(
        max(1, round(w * (w / mechanism.weights[0]) ** 0.001)) for w in mechanism.weights
    )
    assert faster[1] < mechanism.weights[1]
    with pytest.raises(InvalidInput, match="more than e"):
        HopRelease(lattice=CELLS, allowed=patches(), weights=faster, epsilon=2.0, adjacency=NEAR)


def test_description_is_read_back_and_checked() -> None:
    mechanism = hop(allowed(), 2.0)
    settings, arrays = mechanism.describe()
    again = HopRelease.from_description(settings, arrays, epsilon=2.0, adjacency=NEAR)
    assert np.array_equal(again.allowed, mechanism.allowed)
    assert again.weights == mechanism.weights
    with pytest.raises(InvalidInput, match="more than e"):
        HopRelease.from_description(settings, arrays, epsilon=0.5, adjacency=NEAR)


def test_labels_have_the_stated_distribution() -> None:
    mechanism = hop(allowed(), 1.0)
    points, logits = np.full((40_000, 2), 0.7), np.tile([0.0, 0.0, 2.0, 1.0], (40_000, 1))
    drawn = mechanism.release(points, logits, sampler=AuditSampler(2))
    expected = 40_000 * mechanism.probabilities(points[:1], logits[:1])[0]
    counts = np.bincount(drawn, minlength=4)
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    wrong = expected * np.array([1.1, 1.0, 1.0, 1.0])
    assert stats.chisquare(counts, wrong * 40_000 / wrong.sum()).pvalue < 1e-3


def test_shares_sum_to_one_exactly() -> None:
    mechanism = hop(allowed(), 4.0)
    rng = np.random.default_rng(0)
    shares = mechanism.at(rng.uniform(-1, 5, (500, 2)), rng.normal(size=(500, 4)))
    assert set(shares.sum(axis=0, dtype=np.uint64).tolist()) == {WHOLE}
