"""Fitted systems under audit: honest ones are not refuted, faulty ones are, and what cannot be
audited is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from reticent.audit import audit_fitted, epsilon_lower_bound
from reticent.audit.fitted import stated_guarantee
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.mechanisms import FiniteChannel, StabilityResponse
from reticent.systems import (
    Calibration,
    CertifiedClassifier,
    ClippedDescent,
    LabelAware,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
    PowerEncoder,
    VectorTraining,
)

X, Y = load_iris(return_X_y=True)
RUNS, CONFIDENCE = 20_000, 0.999
POSTHOC: dict[str, Any] = {
    "radius": 0.2,
    "embedder": "identity",
    "random_state": 0,
}
OBFUSCATOR = NoiseAware(outputs=2, hidden=(8,), epochs=2)


def _power(mechanism: str, delta: float = 0.0) -> PowerEncoder:
    return PowerEncoder(
        epsilon=1.0,
        delta=delta,
        radius=None,
        schema=(0.0, 8.0),
        mechanism=mechanism,
        random_state=0,
        training=VectorTraining(epochs=2),
    )


def _certified(mechanism: str, delta: float = 0.0) -> CertifiedClassifier:
    return CertifiedClassifier(
        epsilon=1.0,
        delta=delta,
        mechanism=mechanism,
        k_max=5,
        classes=range(3),
        training=ClippedDescent(epochs=1, input_bound=8.0),
    )


SYSTEMS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: PosthocEncoder(
        epsilon=1.0, delta=0.0, mechanism="laplace", obfuscator=OBFUSCATOR, **POSTHOC
    ),
    "local path": lambda: PosthocEncoder(
        epsilon=2.0,
        delta=1e-2,
        mechanism="laplace",
        calibration=Calibration(path="local"),
        obfuscator=OBFUSCATOR,
        **POSTHOC,
    ),
    "gaussian": lambda: PosthocEncoder(
        epsilon=1.0,
        delta=1e-2,
        mechanism="gaussian",
        calibration=Calibration(path="global"),
        obfuscator=OBFUSCATOR,
        **POSTHOC,
    ),
    "softmax": lambda: PosthocClassifier(
        epsilon=1.0,
        delta=0.0,
        mechanism="softmax",
        classifier=LabelAware(hidden=(8,), epochs=2),
        **POSTHOC,
    ),
    "codes": lambda: _power("code"),
    "k-norm": lambda: _power("k-norm-l2"),
    "certified": lambda: _certified("stability"),
    "certified distance": lambda: _certified("distance", 1e-2),
}


@cache
def fitted(name: str) -> Any:
    return SYSTEMS[name]().fit(X, Y)


def audited(system: Any, seed: int = 0, runs: int = RUNS) -> Any:
    return audit_fitted(system, X, runs=runs, confidence=CONFIDENCE, seed=seed)


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_honest_system_is_not_refuted(name: str) -> None:
    """False-alarm rate of one case 1e-3; seeded, so that a passing test stays passing."""
    found = audited(fitted(name))
    assert not found.refuted
    assert found.claim == fitted(name).guarantee or found.claim.epsilon >= 1.0
    assert found.claim == stated_guarantee(fitted(name)._fitted())
    assert found.epsilon_lower == max(pair.result.epsilon_lower for pair in found.pairs)
    assert found.largest_bound > found.claim.epsilon
    assert found.verdict.startswith("not refuted")


@pytest.mark.parametrize("name", ["laplace", "gaussian", "codes", "k-norm", "certified"])
def test_the_bound_is_near_the_claim_where_a_worst_pair_is_known(name: str) -> None:
    found = audited(fitted(name), runs=100_000)
    assert found.epsilon_lower > (0.6 if name == "gaussian" else 0.85) * found.claim.epsilon


def _halved(system: Any) -> Any:
    """The same system, whose mechanism adds noise as if half as much could change."""
    query = system._fitted()
    mechanism = query.mechanism
    if hasattr(mechanism, "inner"):
        faulty: Any = replace(
            mechanism, inner=replace(mechanism.inner, sensitivity=mechanism.inner.sensitivity / 2)
        )
    elif isinstance(mechanism, FiniteChannel):
        faulty = FiniteChannel.response(
            mechanism.nodes.size, epsilon=2 * mechanism.epsilon, adjacency=mechanism.adjacency
        )
    elif isinstance(mechanism, StabilityResponse):
        faulty = replace(mechanism, epsilon=2 * mechanism.epsilon)
    else:
        faulty = replace(mechanism, sensitivity=mechanism.sensitivity / 2)
    query.__dict__["mechanism"] = faulty  # over what ``cached_property`` has stored
    return query


@pytest.mark.parametrize("name", ["laplace", "gaussian", "codes", "k-norm"])
def test_halved_noise_is_caught(name: str) -> None:
    system = SYSTEMS[name]().fit(X, Y)
    _halved(system)
    found = audited(system, runs=60_000)
    assert found.refuted
    assert found.verdict.startswith("refuted: the claim is epsilon=1")


def test_a_certified_response_of_twice_the_epsilon_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = fitted("certified")
    query = _halved(system)
    monkeypatch.setattr(CertifiedClassifier, "query_", query)
    found = audited(system)
    assert found.claim.epsilon == 1.0  # the settings state it, the faulty mechanism does not
    assert found.refuted


def test_a_wrong_network_is_caught_by_the_rows_alone() -> None:
    """An encoder that is steeper than its certificate says: only neighbours around rows show it."""
    system = SYSTEMS["laplace"]().fit(X, Y)
    query = system.query_
    steep = replace(query, network=_scaled(query.network, 40.0))
    steep.__dict__["mechanism"] = query.mechanism
    system.query_ = steep
    found = audited(system)
    assert found.refuted
    assert "your rows" in found.pairs[0].name


def _scaled(network: Any, factor: float) -> Any:
    last = network.layers[-1]
    steeper = replace(last, weight=last.weight * factor, bias=last.bias * factor)
    return replace(network, layers=(*network.layers[:-1], steeper))


def test_one_seed_gives_one_audit_and_another_differs() -> None:
    system = fitted("softmax")
    assert audited(system, seed=1) == audited(system, seed=1)
    assert audited(system, seed=1).pairs != audited(system, seed=2).pairs


def test_all_bounds_hold_together() -> None:
    found = audited(fitted("laplace"))
    errors = [1.0 - pair.result.confidence for pair in found.pairs]
    assert len(errors) > 1
    assert sum(errors) == pytest.approx(1.0 - CONFIDENCE)


def test_too_few_runs_are_said_to_decide_nothing() -> None:
    system = PosthocClassifier(epsilon=12.0, delta=0.0, mechanism="softmax", **POSTHOC).fit(X, Y)
    found = audited(system, runs=2_000)
    assert found.largest_bound < 12.0
    assert found.verdict.startswith("undecided: 2000 runs show at most")
    # The closed form is the bound of answers that never agree.
    apart = epsilon_lower_bound(
        np.ones(2_000), np.zeros(2_000), delta=0.0, confidence=found.pairs[0].result.confidence
    )
    assert found.largest_bound == pytest.approx(apart.epsilon_lower)


def test_what_cannot_be_audited_is_refused() -> None:
    from reticent.systems import MomentClassifier, PrivateKNNClassifier

    votes = PrivateKNNClassifier(epsilon=1.0, delta=1e-5, queries=5, classes=range(3))
    moments = MomentClassifier(epsilon=1.0, delta=1e-5, classes=range(3))
    for system, runs in (
        (votes, RUNS),
        (moments, RUNS),
        (object(), RUNS),
        (fitted("softmax"), 1999),
    ):
        with pytest.raises(InvalidInput):
            audited(system, runs=runs)
    with pytest.raises(InvalidParameter, match="confidence"):
        audit_fitted(fitted("softmax"), X, runs=2_000, confidence=1.5, seed=0)
