"""Network families that every bound is tested on, and the exact oracles they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.lipschitz import (
    IntervalBound,
    LayeredBound,
    LinearBound,
    LipschitzBound,
)
from reticent.networks import (
    Activation,
    ActivationKind,
    Affine,
    Convolution,
    Layer,
    Network,
    Residual,
    affine_chain,
    average_pool,
    to_torch,
)

HALF_WIDTH = 3.0


def _dense(rng: np.random.Generator, *widths: int, bias: float = 0.5) -> Network:
    pairs = list(pairwise(widths))
    weights = [rng.normal(size=(after, before)) / np.sqrt(before) for before, after in pairs]
    return affine_chain(weights, [bias * rng.normal(size=after) for _, after in pairs])


def _whole_numbers(rng: np.random.Generator) -> Network:
    """Kinks at whole numbers, so that boxes with such edges end exactly on them."""
    return affine_chain(
        [rng.integers(-2, 3, size=(6, 3)), rng.integers(-2, 3, size=(2, 6))],
        [rng.integers(-2, 3, size=6), np.zeros(2)],
    )


def _dead_and_huge(rng: np.random.Generator) -> Network:
    """Units that are off everywhere, on everywhere, without weights, and a wide range of scales."""
    first = rng.normal(size=(7, 4)) * np.array([1.0, 1.0, 1.0, 1.0, 0.0, 1e-9, 1e3])[:, None]
    return affine_chain(
        [first, rng.normal(size=(3, 7))],
        [np.array([-50.0, 50.0, 0.1, 0.2, 1.0, 0.0, -1.0]), np.ones(3)],
    )


def _convolution(rng: np.random.Generator) -> Network:
    first = Convolution(
        rng.normal(size=(4, 1, 2, 2)),
        rng.normal(size=4),
        input_shape=(2, 2, 2),
        stride=(1, 2),
        padding=(1, 0),
        groups=2,
    )
    layers: tuple[Layer, ...] = (
        first,
        Activation(ActivationKind.RELU),
        Affine(rng.normal(size=(3, first.outputs)), np.zeros(3)),
    )
    return Network(layers, (2, 2, 2))


def _smooth(kind: ActivationKind) -> Callable[[np.random.Generator], Network]:
    def build(rng: np.random.Generator) -> Network:
        layers: list[Layer] = [
            Affine(rng.normal(size=(8, 4)), rng.normal(size=8)),
            Activation(kind),
        ]
        return Network((*layers, Affine(rng.normal(size=(3, 8)), np.zeros(3))), (4,))

    return build


def _residual(rng: np.random.Generator) -> Network:
    branch = (Affine(rng.normal(size=(6, 5)), rng.normal(size=6)), Activation(ActivationKind.RELU))
    inner = Residual((*branch, Affine(0.3 * rng.normal(size=(5, 6)), np.zeros(5))))
    return Network(
        (
            Affine(rng.normal(size=(5, 4)), np.zeros(5)),
            inner,
            Activation(ActivationKind.TANH),
            inner,
        ),
        (4,),
    )


def _activation_first_and_last(rng: np.random.Generator) -> Network:
    relu, gelu = Activation(ActivationKind.RELU), Activation(ActivationKind.GELU)
    return Network((relu, Affine(rng.normal(size=(3, 4)), rng.normal(size=3)), gelu, relu), (4,))


def _pool(rng: np.random.Generator) -> Network:
    pool = average_pool((2, 2, 3), (2, 2), (1, 1))
    return Network(
        (
            pool,
            Activation(ActivationKind.SIGMOID),
            Affine(rng.normal(size=(2, pool.outputs)), np.zeros(2)),
        ),
        (2, 2, 3),
    )


RELU_FAMILIES: dict[str, Callable[[np.random.Generator], Network]] = {
    "affine": lambda rng: _dense(rng, 4, 3),
    "one hidden layer": lambda rng: _dense(rng, 4, 9, 3),
    "three hidden layers": lambda rng: _dense(rng, 3, 6, 5, 6, 2),
    "kinks at whole numbers": _whole_numbers,
    "wide hidden layers": lambda rng: _dense(rng, 3, 6, 10, 9, 2),
    "dead and huge units": _dead_and_huge,
    "convolution": _convolution,
}
OTHER_FAMILIES: dict[str, Callable[[np.random.Generator], Network]] = {
    **{
        f"smooth {kind}": _smooth(kind)
        for kind in ActivationKind
        if kind is not ActivationKind.RELU
    },
    "residual": _residual,
    "activation first and last": _activation_first_and_last,
    "average pool": _pool,
}
FAMILIES = {**RELU_FAMILIES, **OTHER_FAMILIES}


BOUNDS: dict[str, type[LipschitzBound]] = {
    "interval": IntervalBound,
    "layered": LayeredBound,
    "linear": LinearBound,
}

PAIRS: list[tuple[str, str]] = [
    *(("interval", family) for family in FAMILIES),
    *(("layered", family) for family in RELU_FAMILIES),
    *(("linear", family) for family in RELU_FAMILIES),
]
NORMS = [
    (kind, norm, output)
    for kind in BOUNDS
    for norm in (("linf", "l2", "l1") if kind in ("interval", "linear") else ("linf", "l1"))
    for output in ("l1", "l2", "linf", "spread")
]


FEW_NORMS = (("linf", "l1"), ("l2", "l2"), ("l1", "linf"), ("linf", "spread"))
"""The pairs of norms for networks that are no worst case of them."""

HARD_FAMILIES = ("three hidden layers", "wide hidden layers", "dead and huge units", "convolution")
"""Networks on which every bound is compared in every pair of norms that it knows."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One row per bound x family (``kind``, ``family``)."""
    if {"kind", "family"} <= set(metafunc.fixturenames):
        metafunc.parametrize(("kind", "family"), PAIRS)


@pytest.fixture
def norms(kind: str, family: str) -> list[tuple[str, str]]:
    """The pairs of norms in which a bound is looked at on a network."""
    return [
        (norm, output)
        for allowed, norm, output in NORMS
        if allowed == kind and (family in HARD_FAMILIES or (norm, output) in FEW_NORMS)
    ]


@cache
def build(kind: str, family: str, input_norm: str = "linf", output: str = "l1") -> LipschitzBound:
    rng = np.random.default_rng(sum(map(ord, family)))
    network = FAMILIES[family](rng)
    domain = Box.cube(network.input_dimension, HALF_WIDTH)
    return BOUNDS[kind](network, domain=domain, input_norm=Norm(input_norm), output=output)  # type: ignore[arg-type]


def jacobians(network: Network, points: np.ndarray) -> np.ndarray:
    """Jacobians by autograd through torch, shape (n, outputs, inputs): independent of every
    bound.
    """
    import torch

    inputs = torch.from_numpy(np.array(points)).requires_grad_()
    outputs = to_torch(network)(inputs)
    columns = [
        torch.autograd.grad(outputs[:, k].sum(), inputs, retain_graph=True)[0]
        for k in range(outputs.shape[1])
    ]
    return torch.stack(columns, dim=1).numpy()


def change(values: np.ndarray, output: str) -> np.ndarray:
    """The output measure of changes, shape (n, outputs) to (n,)."""
    if output == "spread":
        return np.asarray(values.max(axis=1) - values.min(axis=1))
    return Norm(output).of(values)
