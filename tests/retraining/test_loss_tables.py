"""Tables of sigmoid and softmax: sound against scipy and mpmath, monotone to the last bit."""

from __future__ import annotations

import mpmath
import numpy as np
from scipy.special import expit, softmax

from reticent.retraining.loss_tables import sigmoid_range, softmax_range


def test_the_sigmoid_is_enclosed_tightly() -> None:
    points = np.concatenate(
        [np.random.default_rng(0).uniform(-40, 40, 200_000), [-1e300, -32.0, 0.0, 32.0, 1e300]]
    )
    low, high = sigmoid_range(points, points)
    assert (low <= expit(points)).all()
    assert (expit(points) <= high).all()
    assert (high - low).max() < 2**-23
    assert low.min() >= 0
    assert high.max() <= 1


def test_the_sigmoid_is_enclosed_at_high_precision() -> None:
    with mpmath.workdps(40):
        for point in np.random.default_rng(1).uniform(-34, 34, 300):
            low, high = sigmoid_range(np.array([point]), np.array([point]))
            assert (
                mpmath.mpf(low[0])
                <= 1 / (1 + mpmath.exp(-mpmath.mpf(point)))
                <= mpmath.mpf(high[0])
            )


def test_the_sigmoid_never_falls_between_neighbouring_floats() -> None:
    """Runs of consecutive doubles over cell borders and through cells: none is above its
    successor.
    """
    random = np.random.default_rng(2)
    starts = np.concatenate(
        [
            np.arange(-32, 32) + 1.0,
            random.integers(-32 * 1024, 32 * 1024, 300) / 1024,
            random.uniform(-33, 33, 300),
        ]
    )
    for start in starts:
        run = start + np.arange(-50, 51) * np.spacing(abs(start))
        low, high = sigmoid_range(run, run)
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) >= 0).all()


def test_softmax_of_points_is_enclosed_tightly() -> None:
    random = np.random.default_rng(3)
    logits = random.normal(size=(5, 2000)) * random.choice([1.0, 5.0, 30.0], 2000)
    least = logits[:, None] - logits[None]
    low, high = softmax_range(least)
    truth = softmax(logits, axis=0)
    assert (low <= truth).all()
    assert (truth <= high).all()
    assert (high - low).max() < 2**-20


def test_softmax_of_boxes_is_enclosed_and_nests() -> None:
    random = np.random.default_rng(4)
    center = random.normal(size=(4, 500)) * 3
    wide, narrow = np.abs(random.normal(size=(4, 500))), random.uniform(0, 1, (4, 500))
    outer, inner = (center - wide, center + wide), (center - narrow * wide, center + narrow * wide)
    ranges = [softmax_range(low[:, None] - high[None]) for low, high in (outer, inner)]
    assert (ranges[0][0] <= ranges[1][0]).all()
    assert (ranges[1][1] <= ranges[0][1]).all()
    for _ in range(20):
        inside = softmax(random.uniform(*outer), axis=0)
        assert (ranges[0][0] <= inside).all()
        assert (inside <= ranges[0][1]).all()
