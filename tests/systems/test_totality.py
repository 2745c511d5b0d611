"""Every finite row is answered, and by nothing but itself: what one row holds shows in no other
row's answer, nor in an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from reticent.systems import (
    BetaVAE,
    Calibration,
    CertifiedClassifier,
    ClippedDescent,
    Features,
    LabelAware,
    Neighbours,
    PosthocClassifier,
    PosthocEncoder,
    PowerEncoder,
    PrivateKNNClassifier,
    VectorTraining,
)

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.random((120, 8, 8))
LABELS = (PICTURES[:, :4].mean(axis=(1, 2)) > PICTURES[:, 4:].mean(axis=(1, 2))).astype(int)
SMALL: dict[str, Any] = {"epochs": 2, "hidden": (16,)}
POSTHOC: dict[str, Any] = {
    "delta": 0.0,
    "radius": 0.2,
    "epsilon": 5.0,
    "random_state": 0,
}


def module(*, outputs: int = 6) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 5, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(180, outputs),
    )


def flat_encoder() -> PosthocEncoder:
    torch.manual_seed(0)
    obfuscator = nn.Sequential(
        nn.Linear(64, 12), nn.GELU(), nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 3)
    )
    settings = {**POSTHOC, "mechanism": "laplace", "calibration": Calibration(head_epochs=1)}
    return PosthocEncoder(**settings, embedder="identity", obfuscator=obfuscator).fit(
        PICTURES.reshape(-1, 64), LABELS
    )


def local_encoder() -> PosthocEncoder:
    torch.manual_seed(0)
    obfuscator = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 3))
    settings = {
        **POSTHOC,
        "delta": 1e-3,
        "mechanism": "laplace",
        "embedder": BetaVAE(epochs=1),
        "calibration": Calibration(head_epochs=1, path="local"),
    }
    return PosthocEncoder(**settings, obfuscator=obfuscator).fit(PICTURES, LABELS)


def neighbour_search() -> PrivateKNNClassifier:
    return PrivateKNNClassifier(
        epsilon=3.0,
        delta=1e-5,
        queries=130,
        neighbours=Neighbours(number=5, sampling_probability=0.5),
        classes=(0, 1),
        features=Features(range=(0.0, 1.0)),
    ).fit(PICTURES, LABELS)


MAKERS: dict[str, Callable[[], Any]] = {
    "posthoc, flat": flat_encoder,
    "posthoc, dense": local_encoder,
    "posthoc, convolutional": lambda: PosthocClassifier(
        **POSTHOC,
        embedder=BetaVAE(architecture="convolutional", epochs=1),
        classifier=LabelAware(**SMALL),
        mechanism="stability",
    ).fit(PICTURES, LABELS),
    "certified, extractor": lambda: CertifiedClassifier(
        epsilon=1.0,
        classes=[0, 1, 2],
        k_max=3,
        features=Features(map=module()),
        training=ClippedDescent(hidden=(4,)),
    ).fit(PICTURES, LABELS),
    "power, codes": lambda: PowerEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=None,
        schema=(0.0, 1.0),
        mechanism="code",
        random_state=0,
    ).fit(PICTURES.reshape(-1, 64), LABELS),
    "power, vectors": lambda: PowerEncoder(
        epsilon=4.0,
        delta=0.0,
        radius=0.5,
        schema=(0.0, 1.0),
        mechanism="k-norm-l2",
        random_state=0,
        training=VectorTraining(outputs=2, head_epochs=1, **SMALL),
    ).fit(PICTURES.reshape(-1, 64), LABELS),
    "neighbours": neighbour_search,
}

fitted = cache(lambda name: MAKERS[name]())
"""One fitted system of each kind; nothing below changes it."""


def exact(system: Any, X: np.ndarray) -> np.ndarray:
    """Everything that decides a row's answer, apart from chance, side by side."""
    if isinstance(system, PrivateKNNClassifier):
        points = system.checked(X)
        lists = [block.order for block in system.search_.lists(points, depth=20)]
        return np.concatenate([points, np.concatenate(lists)], axis=1)
    if isinstance(system, CertifiedClassifier):
        parts = [*system.member_distances(X), *map(np.atleast_2d, system.stable_distances(X))]
        return np.concatenate(parts).T
    parts = [system.exact(X)]
    if isinstance(system, PosthocClassifier):
        parts += [system.embed(X), system.probabilities(X)]
    if isinstance(system, PosthocEncoder):
        parts += [system.embed(X)]
        if system.query_.test is not None:
            parts += [system.query_.test.levels(system.embed(X))[:, None]]
    return np.concatenate(parts, axis=1)


def shaped(system: Any, rows: np.ndarray) -> np.ndarray:
    """Rows of 64 numbers in the shape that the system was fitted on."""
    shape = getattr(system, "input_shape_", (64,))
    return rows.reshape(-1, *shape)


def ordinary(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 64))


def extreme(count: int, seed: int) -> np.ndarray:
    """Finite rows of every size: zeros, denormals, the largest doubles, mixed signs, and one
    wild value in a tame row.
    """
    random = np.random.default_rng(seed)
    sizes = np.array(
        [0.0, 5e-324, 1e-310, 1e-30, 1.0, 255.0, 1e30, 3.5e38, 1e39, 1e154, 1e300, 1.7e308]
    )
    rows = random.choice(sizes, (count, 64)) * random.choice([-1.0, 1.0], (count, 64))
    rows[::3] = random.choice(sizes, (len(rows[::3]), 1)) * random.random((len(rows[::3]), 64))
    tame = random.random((len(rows[1::3]), 64))
    tame[np.arange(len(tame)), random.integers(0, 64, len(tame))] = random.choice(sizes, len(tame))
    rows[1::3] = tame
    return rows


@pytest.mark.parametrize("name", MAKERS)
def test_a_row_is_the_same_to_the_last_bit_alone_in_a_batch_and_anywhere_in_it(name: str) -> None:
    system = fitted(name)
    for rows in (ordinary(127), extreme(127, seed=2)):
        X = shaped(system, rows)
        whole = exact(system, X)
        order = np.random.default_rng(3).permutation(len(X))
        np.testing.assert_array_equal(exact(system, X[order]), whole[order])
        for part in (slice(0, 1), slice(126, 127), slice(5, 38), slice(60, None, -7)):
            np.testing.assert_array_equal(exact(system, X[part]), whole[part])
        crowd = np.concatenate([X[40:41], shaped(system, extreme(30, seed=4))])
        np.testing.assert_array_equal(exact(system, crowd)[0], whole[40])
        assert len(system.simulate(X, seed=0)) == len(X)
