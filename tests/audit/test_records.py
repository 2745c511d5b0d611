"""Audits of methods that protect records: sound ones are not refuted, half the noise is, and a
method without noise at once.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from reticent import (
    CertifiedNetwork,
    ConvexCertifiedClassifier,
    HiddenLayer,
    IndividualKNNClassifier,
    LinearVoteClassifier,
    NoisyGradientRegressor,
    PrivateKNNClassifier,
)
from reticent.audit import audit_records
from reticent.core.guarantees import Guarantee, Replace
from reticent.mechanisms import SumSession
from reticent.systems import Ball, Features, Neighbours, PublicReference

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(-0.7, 0.7, size=(40, 2))
y = np.arange(40) % 2
PUBLIC = RANDOM.uniform(-0.7, 0.7, size=(30, 2))
CLAIM = {"epsilon": 2.0, "delta": 1e-5, "classes": [0, 1]}
OPEN = {"public_X": PUBLIC, "public_y": (PUBLIC[:, 0] > 0).astype(int)}
REFERENCE = PublicReference(models=[], rows="embedding", records=40)


def descent(**settings):
    """A model whose one sum every record moves by the whole bound."""
    given = {"epsilon": 2.0, "delta": 1e-5, "target_range": (0.0, 1.0), "records": 40, "steps": 1}
    return NoisyGradientRegressor(
        **{**given, "features": Features(range=(-1, 1), reach=1.0), **settings}
    )


def grid(value):
    """To a public grid, so that the last bits of a double tell nothing."""
    return round(value * 1024) / 1024


def scale_noise(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Sums get so much of the noise that is charged."""
    whole = SumSession.release

    def release(self, totals):
        exact = [np.asarray(total) for total in totals]
        return tuple(
            np.asarray(total + np.rint(factor * (noisy.reshape(total.shape) - total)), np.int64)
            for total, noisy in zip(exact, whole(self, totals), strict=True)
        )

    monkeypatch.setattr(SumSession, "release", release)


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (descent(), {"remove": 3}),
        (descent(counting="replace"), {"remove": 3, "add": ([0.7, 0.7], 1)}),
        (descent(), {"public_X": PUBLIC}),
        (LinearVoteClassifier(**CLAIM, answers=3), {"public_X": PUBLIC, "queries": PUBLIC[:3]}),
        (
            IndividualKNNClassifier(
                **CLAIM, votes=3.0, ball=Ball(radius=0.5), features=Features(range=(-1, 1))
            ),
            {"remove": 0},
        ),
        (
            PrivateKNNClassifier(
                **CLAIM,
                queries=2,
                neighbours=Neighbours(number=3, sampling_probability=0.5),
                features=Features(range=(-1, 1)),
            ),
            {"remove": 0},
        ),
        (LinearVoteClassifier(**CLAIM, answers=3, features=REFERENCE), {**OPEN, "remove": 3}),
        (ConvexCertifiedClassifier(epsilon=1.0, delta=0.0, classes=[0, 1]), {}),
        (ConvexCertifiedClassifier(epsilon=1.0, classes=[0, 1, 2], features=REFERENCE), OPEN),
        (
            CertifiedNetwork(
                epsilon=1.0, classes=[0, 1], training=HiddenLayer(records=50, random_state=0)
            ),
            {},
        ),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_sound_methods_are_not_refuted(estimator, settings):
    """Each is refuted with a chance of at most 1e-6."""
    found = audit_records(estimator, X, y, runs=400, alpha=1e-6, seed=0, **settings)
    assert not found.refuted
    assert 0.98 * estimator.epsilon <= found.epsilon <= estimator.epsilon
    assert found.draws >= 250
    if "remove" in settings or "add" in settings:
        assert found.draws == 400
        assert "chosen among" not in found.pairs[0].name
    assert not hasattr(estimator, "n_features_in_")  # it was cloned


def test_half_the_noise_is_refuted_through_fit(monkeypatch):
    """At level 1e-12 after 1,105 to 1,570 of 3,000 runs, in 3 repetitions: less than one run in a
    thousand should miss level .001.
    """
    scale_noise(monkeypatch, 0.5)
    found = audit_records(descent(), X, y, remove=3, runs=3000, alpha=0.001)
    assert found.refuted
    assert found.noise_refuted


def test_a_searched_neighbour_shows_a_tenth_of_the_noise(monkeypatch):
    """Ten standard deviations where one is stated: any neighbour that is found shows it."""
    scale_noise(monkeypatch, 0.1)
    found = audit_records(descent(), X, y, public_X=PUBLIC, runs=1000, alpha=0.001, seed=1)
    assert "chosen among" in found.pairs[0].name
    assert found.refuted


def test_answers_without_noise_are_refuted(monkeypatch):
    """Without the first record the vote is a tie, and goes to the other label."""
    import reticent.systems.votes.responses as responses

    for kind in vars(responses).values():
        if isinstance(kind, type) and "scores" in vars(kind):
            monkeypatch.setattr(
                kind, "scores", lambda self, table, *, sampler, noise_scale=1.0: table
            )
    rows = np.array([[0.5, 0.5]] * 3)
    found = audit_records(
        LinearVoteClassifier(epsilon=1.0, delta=0.0, classes=[0, 1], answers=1),
        rows,
        np.array([1, 1, 0]),
        public_X=PUBLIC,
        remove=0,
        runs=400,
        alpha=0.001,
        seed=0,
    )
    assert found.pairs[0].refuted
    assert found.excluded > 1


def test_outputs_of_the_callers_own_and_a_stated_noise():
    found = audit_records(
        descent(),
        X,
        y,
        remove=0,
        outputs=lambda model: model.predict(X[:2]),
        mu=5.0,
        runs=300,
        alpha=0.01,
    )
    assert found.draws == 300
    assert "5-GDP" in found.noise


class ScaledInPlace(BaseEstimator):
    """A sound noisy mean whose fit scales the rows that it is given."""

    def fit(self, X, y):
        X *= 0.5
        X += 1.0
        noise = np.random.default_rng().laplace(scale=0.7)
        self.mean_ = grid(X[:, 0].sum() + noise)
        self.guarantee = Guarantee(1.0, 0.0, Replace(1))
        return self


def test_a_fit_may_change_its_rows():
    rows = X.copy()
    found = audit_records(
        ScaledInPlace(),
        rows,
        y,
        remove=3,
        add=([0.7, 0.7], 1),
        outputs=lambda fitted: [fitted.mean_],
        runs=400,
        alpha=1e-6,
        seed=0,
    )
    assert not found.refuted
    assert np.array_equal(rows, X)


def test_the_time_limit_ends_it():
    found = audit_records(descent(), X, y, remove=0, runs=10**6, alpha=0.01, seconds=0.3)
    assert 0 < found.draws < 10**5
    assert math.isfinite(found.seconds)
