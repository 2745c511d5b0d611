"""Obfuscators as parts compute what the functions behind them do; maps are those of definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from reticent.core.errors import InvalidParameter
from reticent.core.norms import Norm
from reticent.networks import Network
from reticent.networks.serial import same_network
from reticent.training.networks import TrainingConfig
from reticent.training.noise_aware import train_noise_aware
from reticent.training.parts import (
    Ladder,
    NoiseAware,
    PlannedRelease,
    PublicDiscriminants,
    PublicPCA,
)
from reticent.training.power.lipschitz import train_lipschitz_encoder

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)


def release(**changes: Any) -> PlannedRelease:
    settings = {
        "epsilon": 4.0,
        "delta": 0.0,
        "radius": 0.3,
        "input_norm": Norm.L1,
        "mechanism": "laplace",
        "output": Norm.L1,
    }
    return PlannedRelease(**{**settings, **changes})


def _same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def test_ours_is_trained_for_the_release_that_it_is_told_of() -> None:
    state = torch.random.get_rng_state()
    part = NoiseAware(outputs=2, hidden=(5,), epochs=2, random_state=7)
    trained = part.fit(X, Y, release=release()).network()
    assert torch.equal(state, torch.random.get_rng_state())
    # 120 // 24 rows a step are less than 32
    config = TrainingConfig(epochs=2, batch_size=32, learning_rate=1e-2, seed=7)
    expected = train_noise_aware(X, Y, release(), config, outputs=2, hidden=(5,), first_noise=0.4)
    assert _same(trained, expected)
    other = clone(part).fit(X, Y, release=release(epsilon=1.0)).network()
    assert not _same(trained, other)
    with pytest.raises(InvalidParameter, match="first_noise"):
        NoiseAware(outputs=2, first_noise=2.0).fit(X, Y, release=release())


@pytest.mark.parametrize(
    ("norm", "width", "radius"), [(Norm.L2, 3, 0.3), (Norm.L2, 30, 0.3), (Norm.LINF, 25, 1.5)]
)
def test_in_l2_and_above_20_inputs_ours_sorts_pairs_through_l2_noise(
    norm: Norm, width: int, radius: float
) -> None:
    points = np.random.default_rng(2).normal(size=(120, width))
    labels = (points[:, 0] > 0).astype(int)
    part = NoiseAware(outputs=2, hidden=(6,), epochs=2, random_state=7)
    part.fit(
        points, labels, release=release(input_norm=norm, mechanism="k-norm-l2", output=Norm.L2)
    )
    config = TrainingConfig(epochs=2, batch_size=32, learning_rate=1e-2, seed=7)
    expected = train_lipschitz_encoder(
        points,
        labels,
        config,
        sigma=radius / 4.0,  # l-infinity neighbours are sqrt(25) times as far apart in l2
        gaussian=False,
        outputs=2,
        hidden=(6,),
        first_noise=0.4,
    )
    found = part.network()
    assert isinstance(found, Network)
    assert same_network(found, expected)


LABELS = np.arange(900) % 3
ROWS = RANDOM.normal(size=(900, 6)) * [3.0, 1.0, 0.01, 2.0, 0.5, 0.2]
ROWS[:, 1] += 3.0 * LABELS
ROWS[:, 4] += 2.0 * (LABELS == 1)


@pytest.mark.parametrize("outputs", [1, 3, 6])
def test_principal_components_agree_with_scikit_learn(outputs: int) -> None:
    released = PublicPCA(outputs=outputs).fit(ROWS).network().forward(ROWS)
    expected = PCA(n_components=outputs, svd_solver="full").fit_transform(ROWS)
    signs = np.sign((released * expected).sum(axis=0))
    np.testing.assert_allclose(released * signs, expected, atol=1e-9)


def test_discriminants_span_those_of_scikit_learn_and_are_orthonormal() -> None:
    part = PublicDiscriminants(shrinkage=1e-9).fit(ROWS, LABELS)
    assert part.weight_.shape == (2, 6)
    np.testing.assert_allclose(part.weight_ @ part.weight_.T, np.eye(2), atol=1e-12)
    oracle = LinearDiscriminantAnalysis(solver="eigen").fit(ROWS, LABELS).scalings_[:, :2]
    left, sizes, _ = np.linalg.svd(oracle, full_matrices=False)
    cosines = np.linalg.svd(part.weight_ @ left)[1]
    assert sizes.min() > 0
    assert cosines.min() > 1 - 1e-6


def test_directions_of_class_means_are_tried_and_worth_more_under_wide_noise() -> None:
    """Fisher's direction looks away from where rows vary most; under noise that is wider than the
    rows, the direction in which the means are furthest apart is the better one.
    """
    fisher, means = (part for part in Ladder().variants() if isinstance(part, PublicDiscriminants))
    rng = np.random.default_rng(0)
    labels = np.arange(4_000) % 2
    rows = rng.normal(size=(4_000, 2)) * [1.0, 0.05] + labels[:, None] * [1.0, 0.1]
    apart = []
    for part in (fisher, means):
        values = (part.fit(rows, labels).weight_ @ rows.T)[0]
        apart.append(abs(values[labels == 1].mean() - values[labels == 0].mean()))
    assert apart[1] > 2 * apart[0]  # the noise is the same, both are orthonormal
