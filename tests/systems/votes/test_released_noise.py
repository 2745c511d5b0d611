"""The noise of released models as they see it: pairs of exact and released sums, caught inside a
fit, against the variance and the tails of the discrete Gaussian that is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent.mechanisms import NoisySums
from reticent.systems import Features
from reticent.systems.votes.cells import CellsClassifier
from reticent.systems.votes.cells_regressor import CellsRegressor
from reticent.systems.votes.gradient_regressor import NoisyGradientRegressor
from reticent.systems.votes.moment import MomentClassifier, MomentRegressor
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier

DRAWS = 1_000_000
"""Of each model: the standard error of a variance is .0014 of it, and a right one is further than
.01 off once in 10^11 runs."""

FAR = 1e-9
"""Chance that a right sampler has another number of draws beyond 4 deviations."""


def recorded(model: type) -> type:
    """The same model, of which ``pairs`` are the sums that it asked for and those that it got, and
    ``mechanism`` what they are charged as.
    """

    class Session:
        """A session that remembers."""

        def __init__(self, inner: Any, pairs: list[tuple[Any, Any]]) -> None:
            self.inner, self.pairs = inner, pairs

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def release(self, totals: Sequence[Any]) -> tuple[np.ndarray, ...]:
            exact = [np.array(total) for total in totals]
            released: tuple[np.ndarray, ...] = self.inner.release(totals)
            self.pairs.append((exact, [np.array(each) for each in released]))
            return released

    class Recorded(model):  # type: ignore[misc]
        """A model that learns from such a session."""

        def learn(self, voters: Any, public: Any, session: Any) -> None:
            self.pairs: list[tuple[Any, Any]] = []
            self.mechanism: NoisySums = session.mechanism
            super().learn(voters, public, Session(session, self.pairs))

    Recorded.__name__ = model.__name__
    return Recorded


CLASSES = tuple(range(400))
TOTAL: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
LABELS: dict[str, Any] = {**TOTAL, "classes": CLASSES}
TARGETS: dict[str, Any] = {**TOTAL, "target_range": (0.0, (1.0,) * 200)}
RANGE = {"features": Features(range=(-1.0, 1.0))}

MODELS: dict[str, tuple[type, dict[str, Any], int]] = {
    "cells": (CellsClassifier, {**LABELS, "cells": 200}, 2),
    "moments": (MomentClassifier, {**LABELS, **RANGE}, 500),
    "descent": (NoisyGradientClassifier, {**LABELS, **RANGE, "steps": 5}, 200),
    "targets, cells": (CellsRegressor, {**TARGETS, "cells": 200}, 2),
    "targets, moments": (MomentRegressor, {**TARGETS, **RANGE}, 500),
    "targets, descent": (NoisyGradientRegressor, {**TARGETS, **RANGE, "steps": 5}, 200),
}
"""Estimator, arguments and number of features, chosen so that one fit draws many numbers."""


def noises(name: str, fit: Callable[..., Any] | None = None) -> np.ndarray:
    """At least ``DRAWS`` differences of released and exact sums, over their charged deviation."""
    kind, arguments, features = MODELS[name]
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, (30, features))
    y = (
        random.uniform(0, 1, (30, 200))
        if name.startswith("targets")
        else random.integers(0, len(CLASSES), 30)
    )
    public = {} if "features" in arguments else {"public_X": random.uniform(-1, 1, (250, features))}
    found: list[np.ndarray] = []
    while sum(map(len, found)) < DRAWS:
        model = recorded(kind)(**arguments)
        if fit is None:
            model.fit(X, y, **public)
            assert not model.receipt_.seeded
        else:
            fit(model, X, y, **public)
        # what is charged is what the pairs are compared with
        assert model.mechanism.guarantee == model.receipt_.guarantee
        assert len(model.pairs) == model.mechanism.sums
        for exact, released in model.pairs:
            for mine, theirs, sigma in zip(exact, released, model.mechanism.sigmas, strict=True):
                found.append(((theirs - mine) / sigma).ravel())
    return np.concatenate(found)


def assert_standard(noise: np.ndarray, scale: float = 1.0) -> None:
    """Deviations of 2^12 steps and more, where the discrete law's variance is sigma^2 to 10^-9."""
    assert abs(np.mean(np.square(noise)) / scale**2 - 1) < 0.01
    expected = 2 * stats.norm.sf(4) * len(noise)
    low, high = stats.poisson.interval(1 - FAR, expected)
    assert low <= (np.abs(noise) > 4 * scale).sum() <= high
    assert low > 0


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_made_of_sums_with_the_noise_that_is_charged(name: str) -> None:
    assert_standard(noises(name))


@pytest.mark.parametrize("noise_scale", [1.0, 0.25])
def test_a_simulated_model_has_the_noise_that_was_asked_for(noise_scale: float) -> None:
    seeds = iter(range(10**6))

    def simulate(model: Any, X: Any, y: Any, **public: Any) -> None:
        model.simulate_fit(X, y, seed=next(seeds), noise_scale=noise_scale, **public)

    assert_standard(noises("moments", simulate), noise_scale)


@pytest.mark.parametrize("fault", [0.5, 0.9, 0.98])
def test_less_noise_is_noticed(fault: float) -> None:
    """As a fault between the sampler and the model would have it."""
    with pytest.raises(AssertionError):
        assert_standard(fault * noises("moments"))
