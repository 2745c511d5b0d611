"""Embeddings of hundreds of numbers, and the ladder of released functions: what is booked, and
what wins.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from reticent.core import Norm
from reticent.core.errors import InvalidInput, InvalidParameter, UnsupportedNorm
from reticent.datasets import load_digits, load_imdb
from reticent.datasets.imdb import FILE
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
        *(("noise-aware", norm) for norm in ("linf", "l1")),
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


def test_gaussian_noise_serves_all_384_values_where_delta_allows_it() -> None:
    X, y = sentences(384)
    encoder = PosthocEncoder(
        radius=0.02,
        input_norm="l2",
        obfuscator="identity",
        mechanism="gaussian",
        **{**SETTINGS, "delta": 1e-5},
    ).fit(X, y)
    assert encoder.release(X[:2]).values.shape == (2, 384)
    assert encoder.query_.plan.proposal == pytest.approx(1.0, rel=1e-6)


def test_a_mechanism_that_was_asked_for_is_refused_by_name_where_it_does_not_fit() -> None:
    X, y = sentences(384)
    with pytest.raises(UnsupportedNorm, match="at most 64"):
        PosthocEncoder(
            radius=0.02, input_norm="l2", obfuscator="identity", mechanism="k-norm-l2", **SETTINGS
        ).fit(X, y)


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


def test_the_same_function_is_tried_once() -> None:
    X, y = sentences(10)
    rungs = (Identity(), LiveCoordinates(least_share=0.0), Identity())
    encoder = PosthocEncoder(
        radius=0.05,
        obfuscator=Ladder(rungs),
        mechanism="laplace",
        **{**SETTINGS, "calibration": Calibration(path="global", head_epochs=2)},
    ).fit(X, y)
    assert [plan.rung for plan in encoder.considered_] == ["Identity(outputs=10)"]


def test_dead_coordinates_are_noise_that_the_ladder_does_not_release() -> None:
    """Four of seven coordinates carry nothing: K-norm noise without them is smaller by far."""
    random = np.random.default_rng(3)
    labels = np.arange(900) % 3
    X = np.concatenate(
        [
            2.0 * np.eye(3)[labels] + 0.3 * random.normal(size=(900, 3)),
            0.01 * random.normal(size=(900, 4)),
        ],
        axis=1,
    )
    encoder = PosthocEncoder(
        radius=0.5,
        obfuscator=Ladder((Identity(), LiveCoordinates())),
        mechanism="k-norm-linf",
        **{**SETTINGS, "epsilon": 1.5},
    ).fit(X, labels)
    best, other = encoder.considered_
    assert best.rung == "LiveCoordinates(outputs=3)"
    assert best.utility > other.utility + 2 * (0.25 / 180) ** 0.5


def test_without_labels_the_rungs_that_need_them_are_left_out() -> None:
    X, _ = sentences(12)
    rungs = (Identity(), FAST)
    encoder = PosthocEncoder(radius=0.05, obfuscator=Ladder(rungs), **SETTINGS).fit(X)
    assert {plan.rung for plan in encoder.considered_} == {"Identity(outputs=12)"}
    assert encoder.head_ is None
    with pytest.raises(InvalidInput, match="need labels"):
        PosthocEncoder(radius=0.05, obfuscator=Ladder((FAST,)), **SETTINGS).fit(X)


@pytest.mark.parametrize("rungs", [(), "pca", (Ladder(),)])
def test_refuses_what_is_no_ladder(rungs: Any) -> None:
    X, y = sentences(10)
    with pytest.raises(InvalidParameter, match="rungs"):
        PosthocEncoder(radius=0.05, obfuscator=Ladder(rungs), **SETTINGS).fit(X, y)


def test_a_module_of_ones_own_takes_pictures_as_they_are() -> None:
    """Pictures of shape (n, h, w) reach the user's module in that shape, not flattened."""
    random = np.random.default_rng(4)
    labels = np.arange(400) % 2
    pictures = random.uniform(0, 0.5, size=(400, 6, 8))
    pictures[labels == 1, :3] += 0.5

    class Halves(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            assert images.shape[1:] == (6, 8)
            return torch.stack([images[:, :3].mean(dim=(1, 2)), images[:, 3:].mean(dim=(1, 2))], 1)

    encoder = PosthocEncoder(
        radius=0.05, obfuscator="identity", **{**SETTINGS, "embedder": Halves()}
    ).fit(pictures, labels)
    np.testing.assert_allclose(
        encoder.embed(pictures[:5]),
        np.stack([pictures[:5, :3].mean(axis=(1, 2)), pictures[:5, 3:].mean(axis=(1, 2))], 1),
        atol=1e-6,
    )
    released = encoder.release(pictures)
    assert (encoder.head_.predict(released.values) == labels).mean() > 0.9


@pytest.mark.skipif(
    not (Path(os.environ.get("RETICENT_DATA", "")) / FILE).is_file(), reason="needs IMDB embeddings"
)
def test_reviews_are_never_released_below_the_identity_rung() -> None:
    """Sentence embeddings of 384 numbers, l2; the radius is the median distance from a public
    review to its nearest neighbour.
    """
    table = load_imdb()
    public = table.train_rows[:4000]
    distances = np.sqrt(np.maximum(2.0 - 2.0 * public[:500] @ public.T, 0.0))
    radius = float(np.median(np.sort(distances, axis=1)[:, 1]))
    encoder = PosthocEncoder(
        **{**SETTINGS, "epsilon": 16.0},
        radius=radius,
        input_norm="l2",
        obfuscator=Ladder((Identity(), PublicPCA(outputs=8), "discriminants", FAST)),
    ).fit(public, table.train_labels[:4000])
    best = encoder.considered_[0].utility
    identity = max(p.utility for p in encoder.considered_ if p.rung.startswith("Identity"))
    held = round(0.2 * 4000)
    assert best >= identity + 2 * (0.25 / held) ** 0.5  # 384 noisy values say nearly nothing
    # On rows that neither training nor calibration has seen.
    rows, labels = table.train_rows[4000:8000], table.train_labels[4000:8000]
    right = encoder.head_.predict(encoder.simulate(rows, seed=0).values) == labels
    assert right.mean() >= best - 4 * (0.25 / held) ** 0.5
    assert encoder.guarantee.epsilon <= 16.0
    assert encoder.guarantee.adjacency.radius == radius


def test_inputs_that_a_module_of_ones_own_cannot_take_are_refused() -> None:
    data = load_digits()
    pictures, labels = data.train_images[:300].astype(np.float64), data.train_labels[:300]
    module = nn.Sequential(
        nn.Unflatten(1, (1, 8)), nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 6)
    )
    encoder = PosthocEncoder(radius=0.1, obfuscator="identity", **{**SETTINGS, "embedder": module})
    with pytest.raises(InvalidInput, match="embedder: Sequential does not take inputs of shape"):
        encoder.fit(pictures[:, :5], labels)
    encoder.fit(pictures, labels)
    for wrong in (pictures[:2, :5], pictures[:2, :, :5], np.full((2, 8, 8), np.nan)):
        with pytest.raises(InvalidInput, match="X"):
            encoder.release(wrong)


def test_a_bundle_keeps_the_rung(tmp_path: Path) -> None:
    X, y = sentences(30)
    encoder = PosthocEncoder(
        radius=0.05, input_norm="l2", obfuscator=Ladder((FAST,)), **SETTINGS
    ).fit(X, y)
    loaded = PosthocEncoder.load(encoder.save(tmp_path / "bundle"))
    assert loaded.query_.plan == encoder.query_.plan
    assert loaded.query_.bound.kind == "operator-norm"
    np.testing.assert_array_equal(
        loaded.simulate(X[:20], seed=1).values, encoder.simulate(X[:20], seed=1).values
    )
