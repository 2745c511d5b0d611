"""Embeddings of hundreds of numbers, and the ladder of released functions: what is booked, and
what wins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.core import Norm
from reticent.systems import Calibration, NoiseAware, PosthocEncoder
from reticent.training.parts import (
    Identity,
    Ladder,
    LiveCoordinates,
    PublicDiscriminants,
    PublicPCA,
)

FAST = NoiseAware(outputs=2, hidden=(16,), epochs=3)
SETTINGS: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 0.0,
    "embedder": "identity",
    "calibration": Calibration(head_epochs=2),
    "random_state": 0,
}


def sentences(width: int, rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of two classes, a few directions with most of the variance."""
    random = np.random.default_rng(0)
    labels = np.arange(rows) % 2
    basis = np.linalg.qr(random.normal(size=(width, 6)))[0].T
    inner = random.normal(size=(rows, 6)) * np.array([3.0, 2.0, 2.0, 1.0, 1.0, 1.0])
    inner[:, 0] += 6.0 * (labels - 0.5)
    points = inner @ basis + 0.05 * random.normal(size=(rows, width))
    return points / np.linalg.norm(points, axis=1, keepdims=True), labels


@pytest.mark.parametrize(
    ("obfuscator", "norm"),
    [
        *(("identity", norm) for norm in ("l2", "linf", "l1")),
        *(("noise-aware", norm) for norm in ("l2", "linf", "l1")),
        ("pca", "l1"),
        ("discriminants", "linf"),
    ],
)
def test_384_dimensions_are_certified_without_enumeration(norm: str, obfuscator: str) -> None:
    X, y = sentences(384)
    chosen = FAST if obfuscator == "noise-aware" else obfuscator
    encoder = PosthocEncoder(radius=0.02, input_norm=norm, obfuscator=chosen, **SETTINGS).fit(X, y)
    answer = encoder.release(X[:3])
    assert np.isfinite(answer.values).all()
    assert encoder.guarantee.epsilon <= 4.0
    assert encoder.guarantee.delta == 0.0
    if obfuscator != "noise-aware" or norm != "l1":
        assert encoder.query_.bound.kind == "operator-norm"
    # The stated constant holds for pairs of *original* embeddings, in the norm of neighbours.
    random = np.random.default_rng(1)
    steps = random.normal(size=(200, 384))
    steps[::2] = np.sign(steps[::2])
    here = encoder.query_.bound.domain.center + 1e-2 * random.normal(size=(200, 384))
    network, query = encoder.query_.network, encoder.query_
    steps *= (1e-3 / np.abs(steps).max(axis=1))[:, None]
    moved = query.mechanism.norm.of(network.forward(here + steps) - network.forward(here), axis=1)
    allowed = query.plan.proposal * Norm.parse(norm).of(steps, axis=1)
    assert (moved <= allowed * (1 + 1e-9)).all()


def test_the_ladder_lists_every_rung_with_its_score_and_takes_the_best() -> None:
    X, y = sentences(40)
    X = np.concatenate([X, 1e-4 * np.random.default_rng(2).normal(size=(len(X), 2))], axis=1)
    directions = (PublicDiscriminants(), PublicDiscriminants(shrinkage=0.9))
    rungs = (Identity(), LiveCoordinates(), PublicPCA(outputs=(2, 4, 99)), *directions, FAST)
    encoder = PosthocEncoder(radius=0.05, input_norm="l2", obfuscator=Ladder(rungs), **SETTINGS)
    encoder.fit(X, y)
    tried = {plan.rung for plan in encoder.considered_}
    assert tried == {
        "Identity(outputs=42)",
        "LiveCoordinates(outputs=40)",
        "PublicPCA(outputs=2)",
        "PublicPCA(outputs=4)",
        "PublicPCA(outputs=42)",
        "PublicDiscriminants(outputs=1, shrinkage=0.05)",
        "PublicDiscriminants(outputs=1, shrinkage=0.9)",
        "NoiseAware(outputs=2)",
    }
    scores = [plan.utility for plan in encoder.considered_]
    assert scores == sorted(scores, reverse=True)
    assert encoder.query_.plan == encoder.considered_[0]
    chosen = encoder.query_.plan.rung.partition("(")[0]
    assert type(encoder.obfuscator_).__name__ == chosen
    assert encoder.guarantee.epsilon <= 4.0
