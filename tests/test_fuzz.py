"""Whatever is handed in, an error is one of ours: wrong types and values for every argument of
every estimator and mechanism.

A foreign error (an ``AttributeError`` out of numpy, a ``RuntimeError`` out of torch) says
nothing to its reader, may show values, and after a charge it would tell something about a row.
"""

from __future__ import annotations

import datetime
import inspect
import resource
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

from reticent import mechanisms
from reticent.core import AddRemove, Neighborhood, Norm
from reticent.core.errors import ReticentError
from reticent.mechanisms import (
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    NoisyArgmax,
    NoisyMaxRelease,
    NoisyScreening,
    ProposeTestRelease,
    StabilityRelease,
    StabilityResponse,
)
from reticent.neighbours import PointGrid, Records
from reticent.noise import SeededSampler
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy
from reticent.systems import (
    Features,
    Neighbours,
    PrivateKNNClassifier,
    PublicRanges,
)
from reticent.tables import Categorical, Numeric, OneHot, TabularSchema
from tests.systems.test_contract import CASES
from tests.systems.votes.test_contract import cases

RANDOM = np.random.default_rng(0)
X = RANDOM.random((24, 4))
Y = np.arange(24) % 2
MOST_MEMORY = 2**30
"""Bytes that the whole fuzz may add to the process."""


class Broken:
    """An array-like that cannot be read."""

    columns = ("a", "b")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("out of order")

    def __len__(self) -> int:
        raise RuntimeError("out of order")

    def __str__(self) -> str:
        raise RuntimeError("out of order")

    __iter__ = __len__  # type: ignore[assignment]


class BrokenNumber:
    """An entry that is no number, and no text either."""

    def __float__(self) -> float:
        raise RuntimeError("out of order")

    __str__ = __repr__ = __float__  # type: ignore[assignment]


def wrong() -> list[Any]:
    """Values that are right almost nowhere; made afresh, since generators are used up."""
    return [
        None,
        True,
        -1,
        0,
        1.5,
        -(10**5000),
        1e-320,
        float("nan"),
        float("inf"),
        -float("inf"),
        1j,
        "",
        "private",
        "\ud800",
        b"private",
        [],
        (),
        {},
        set(),
        {"a": 1},
        [None],
        [[]],
        [[1.0, 2.0], [3.0]],
        ["a", 1],
        ((0.0, 1.0), "x"),
        range(3),
        iter([1.0, 2.0]),
        object(),
        Broken(),
        Broken,
        len,
        Decimal("0.5"),
        Fraction(1, 3),
        datetime.date(2026, 1, 1),
        np.array([]),
        np.array(3),
        np.float32("nan"),
        np.int64(3),
        np.bool_(True),
        np.array(["a", "b"]),
        np.array([1, "a", None], dtype=object),
        np.array([BrokenNumber(), 1.0], dtype=object),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
        np.array([1 + 2j]),
        np.zeros((2, 0)),
        np.zeros((0, 4)),
        np.full((3, 4), np.nan),
        np.full((3, 4), 1.7e308),
        np.zeros((2, 3, 4, 5, 6)),
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        np.zeros(3, dtype=[("a", float)]),
        sparse.eye_array(4),
        torch.ones(3, 4, requires_grad=True),
        torch.ones(3, 4).to_sparse(),
        nn.Linear(2, 2),
        np.random,
    ]


@dataclass(frozen=True)
class Target:
    """Something to call, with arguments that it takes."""

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Any]


KNN = {
    "epsilon": 20.0,
    "delta": 1e-5,
    "neighbours": Neighbours(number=3, sampling_probability=0.5),
    "classes": [0, 1],
}
ESTIMATORS: dict[type, tuple[dict[str, Any], dict[str, Any]]] = {
    **{
        type(case.estimator): (
            case.estimator.get_params(deep=False),
            {"X": case.X, "y": case.y, **case.fit},
        )
        for case in {**CASES, **cases()}.values()
    },
    PrivateKNNClassifier: (
        {**KNN, "queries": 5, "features": Features(range=(0.0, 1.0))},
        {"X": X, "y": Y, "persons": None},
    ),
    PublicRanges: ({"ranges": (0.0, 1.0)}, {"X": X}),
}


def fit(estimator: type, settings: dict[str, Any], data: dict[str, Any]) -> Any:
    return estimator(**settings).fit(**data)


@cache
def fitted(estimator: type) -> Any:
    return fit(estimator, *ESTIMATORS[estimator])


NEAR = Neighborhood(Norm.L1, 0.1, "test")
RECORDS = AddRemove(1)
SAMPLER = SeededSampler(0)
VOTES = {"neighbours": 5, "sampling_probability": 0.5, "delta": 1e-5}
ADDITIVE = {"sensitivity": 1.0, "epsilon": 1.0, "dimension": 2, "adjacency": NEAR}
LABELS = {"classes": 3, "sensitivity": 1.0, "epsilon": 1.0, "adjacency": NEAR}
VALUES, LOGITS = {"values": np.zeros((2, 2))}, {"logits": np.zeros((2, 3))}
LEVELS = {"labels": np.array([0, 1]), "levels": np.array([0, 3])}
MECHANISMS: dict[type, tuple[dict[str, Any], dict[str, Any]]] = {
    LaplaceMechanism: (ADDITIVE, VALUES),
    KNormMechanism: ({**ADDITIVE, "output_norm": Norm.LINF}, VALUES),
    GaussianMechanism: ({**ADDITIVE, "delta": 1e-5}, VALUES),
    NoisyMaxRelease: (LABELS, LOGITS),
    StabilityRelease: (LABELS, LOGITS),
    StabilityResponse: ({"classes": 3, "epsilon": 1.0, "adjacency": RECORDS}, LEVELS),
    SmoothCauchy: (
        {"epsilon": 1.0, "adjacency": RECORDS, "certified_at": (1, 2), "credit": "index"},
        LEVELS,
    ),
    GlobalSensitivityResponse: ({"epsilon": 1.0, "adjacency": RECORDS}, LEVELS),
    NoisyArgmax: ({**VOTES, "classes": 3, "sigma": 2.0}, {"votes": np.zeros((2, 3), dtype=int)}),
    NoisyScreening: (
        {**VOTES, "threshold": 3.0, "sigma": 2.0},
        {"largest_votes": np.zeros(2, dtype=int)},
    ),
    ProposeTestRelease: (
        {
            "radius": 0.1,
            "proposal": 1.0,
            "epsilon_test": 1.0,
            "delta_test": 1e-3,
            "inner": LaplaceMechanism(sensitivity=0.1, epsilon=1.0, dimension=2, adjacency=NEAR),
        },
        {**VALUES, "levels": np.array([0, 5])},
    ),
}


def answer(mechanism: type, settings: dict[str, Any], asked: dict[str, Any]) -> Any:
    made = mechanism(**settings)
    _ = made.guarantee
    return made.release(**asked, sampler=SAMPLER)


def _ask(estimator: type, method: str, **given: Any) -> Any:
    return getattr(fitted(estimator), method)(**given)


def targets() -> list[Target]:
    found = []
    for estimator, (settings, data) in ESTIMATORS.items():
        spare = {
            name: parameter.default
            for name, parameter in inspect.signature(estimator).parameters.items()
        }
        full = {
            **{
                name: value for name, value in spare.items() if value is not inspect.Parameter.empty
            },
            **settings,
        }
        name = estimator.__name__
        found += [
            Target(
                f"{name}.fit, settings:",
                lambda estimator=estimator, data=data, **given: fit(estimator, given, data),
                full,
            ),
            Target(
                f"{name}.fit",
                lambda estimator=estimator, own=settings, **given: fit(estimator, own, given),
                data,
            ),
        ]
        for method in (
            "release",
            "simulate",
            "predict",
            "predict_proba",
            "transform",
            "exact",
            "embed",
            "stable_distances",
        ):
            if hasattr(estimator, method):
                asked = {"X": data["X"][:2], **({"seed": 0} if method == "simulate" else {})}
                asked |= {"ledger": None, "scope": None} if method == "release" else {}
                ask = partial(_ask, estimator, method)
                found.append(Target(f"{name}.{method}", ask, asked))
    for mechanism, (settings, asked) in MECHANISMS.items():
        name = mechanism.__name__
        found += [
            Target(
                name,
                lambda mechanism=mechanism, asked=asked, **given: answer(mechanism, given, asked),
                settings,
            ),
            Target(
                f"{name}.release",
                lambda mechanism=mechanism, own=settings, **given: answer(mechanism, own, given),
                asked,
            ),
        ]
    schema = TabularSchema(
        (Numeric("age", 0, 100), Categorical("sex", ("f", "m")), OneHot("house", ("own", "rent")))
    )
    found += [
        Target(
            "Numeric",
            Numeric,
            {"name": "age", "lower": 0.0, "upper": 1.0, "scale": "log", "missing": None},
        ),
        Target(
            "Categorical", Categorical, {"name": "sex", "categories": ("f", "m"), "other": None}
        ),
        Target("OneHot", OneHot, {"name": "house", "names": ("own", "rent")}),
        Target("TabularSchema", TabularSchema, {"attributes": schema.attributes}),
        Target(
            "TabularSchema.numbers",
            TabularSchema.numbers,
            {"columns": 3, "lower": 0.0, "upper": 1.0},
        ),
        Target("schema.encode", schema.encode, {"rows": [[3, "f", 1, 0]]}),
        Target(
            "PointGrid.of_range", PointGrid.of_range, {"lower": 0.0, "upper": 1.0, "features": 3}
        ),
        Target("PointGrid.in_ball", PointGrid.in_ball, {"center": np.zeros(3), "radius": 1.0}),
        Target("PointGrid.around", PointGrid.around, {"public_features": X}),
        Target("PointGrid.points", PointGrid(np.zeros(4), 1.0).points, {"features": X}),
        Target(
            "Records.of",
            Records.of,
            {"points": np.zeros((3, 2)), "votes": np.zeros(3, dtype=int), "persons": None},
        ),
    ]
    return found


def foreign_errors(calls: int, seed: int) -> dict[str, str]:
    """What was raised that is none of ours, by where."""
    random = np.random.default_rng(seed)
    places, found = targets(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(calls):
            target = places[random.integers(len(places))]
            changed = str(random.choice(list(target.arguments)))
            values = wrong()
            number = int(random.integers(len(values)))
            try:
                target.call(**{**target.arguments, changed: values[number]})
            except ReticentError:
                pass
            except Exception as error:
                name = (
                    f"{target.name}({changed}=<{type(values[number]).__name__}, number {number}>)"
                )
                found[name] = f"{type(error).__name__}: {error!s:.80}"
    return found


def _fuzz(calls: int, seed: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert foreign_errors(calls, seed) == {}
    assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) < MOST_MEMORY


@pytest.mark.parametrize(
    "calls", [200, pytest.param(20_000, marks=[pytest.mark.soak, pytest.mark.timeout(0)])]
)
def test_calls_raise_nothing_foreign(calls: int) -> None:
    _fuzz(calls, seed=0)


NUMBERS = (-1.0, float("nan"), float("inf"), "private")
SENSELESS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("epsilon", "epsilon_test", "sensitivity", "sigma", "proposal"), (0, *NUMBERS)),
    **dict.fromkeys(("delta", "delta_test"), (1.0, *NUMBERS)),
    **dict.fromkeys(("radius", "sampling_probability"), NUMBERS),
    **dict.fromkeys(("queries", "answers", "steps", "members", "tau"), (0, 1.5, *NUMBERS)),
    **dict.fromkeys(("neighbours", "attributes", "classes", "dimension"), (0, -1, 1.5)),
    "k_max": (1.5, *NUMBERS),
}
"""Settings that would void a guarantee, whoever has them."""


@pytest.mark.parametrize("owner", [*ESTIMATORS, *MECHANISMS], ids=lambda owner: owner.__name__)
def test_settings_that_would_void_a_guarantee_are_refused(owner: type) -> None:
    settings, data = {**ESTIMATORS, **MECHANISMS}[owner]
    for name, values in SENSELESS.items():
        if name not in settings or (owner in ESTIMATORS and name == "neighbours"):
            continue
        for value in values:
            with pytest.raises(ReticentError):
                (fit if owner in ESTIMATORS else answer)(owner, {**settings, name: value}, data)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.__name__)
def test_a_mechanism_refuses_values_that_are_none_of_its_own(mechanism: type) -> None:
    settings, asked = MECHANISMS[mechanism]
    for name, value in asked.items():
        if name == "answers":  # of any kind: they come out as they are, or not at all
            continue
        for spoilt in (np.full(value.shape, np.nan), value[..., None, None], ["a"], None):
            with pytest.raises(ReticentError):
                answer(mechanism, settings, {**asked, name: spoilt})


def test_every_mechanism_is_called() -> None:
    named = {getattr(mechanisms, name) for name in mechanisms.__all__}
    releasing = {
        mechanism
        for mechanism in named
        if inspect.isclass(mechanism) and hasattr(mechanism, "release")
    }
    left_out = {
        mechanism.__name__
        for mechanism in releasing - set(MECHANISMS)
        if not inspect.isabstract(mechanism)
    }
    # Their arguments are checked tables, sums and distances; their own tests spoil these.
    of_tables = {"FiniteChannel", "HopRelease"}
    of_sums = {"SignedDistanceRelease", "SumSession"}
    assert left_out == of_tables | of_sums
    for mechanism, (settings, _) in MECHANISMS.items():
        assert set(settings) <= {field.name for field in fields(mechanism)}
