"""Calibration: what it may choose, that it chooses the best, and that nothing costs more than
was asked for.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from reticent.core import Box, Neighborhood, Norm
from reticent.core.errors import CalibrationFailed, InvalidParameter, UnknownName
from reticent.lipschitz import LayeredBound
from reticent.networks import affine_chain
from reticent.noise import SeededSampler
from reticent.systems import Calibration, PosthocEncoder
from reticent.systems.posthoc.calibration import CalibrationData, Candidate, calibrate
from reticent.systems.posthoc.plans import (
    LABEL_MECHANISMS,
    VECTOR_MECHANISMS,
    PosthocSetting,
    Requirement,
    output_of,
    plan_mechanism,
)
from reticent.training.heads import HeadConfig
from reticent.training.parts import Identity, Ladder, PublicDiscriminants

NEAR = Neighborhood(Norm.LINF, 0.1, "plane")
DOMAIN = Box.cube(2, 4.0)
HEAD = HeadConfig(epochs=1, seed=0)


def candidate(name: str, seed: int = 0) -> Candidate:
    random = np.random.default_rng(seed)
    network = affine_chain(
        [random.normal(size=(6, 2)), random.normal(size=(3, 6)) / 3],
        [random.normal(size=6), np.zeros(3)],
    )
    bound = LayeredBound(network, domain=DOMAIN, input_norm=Norm.LINF, output=output_of(name))
    return Candidate(network, name, bound)


def unlabelled(rows: int = 400) -> CalibrationData:
    points = DOMAIN.clip(np.random.default_rng(1).normal(size=(2 * rows, 2)))
    return CalibrationData(points[:rows], points[rows:], None, None)


def labelled() -> CalibrationData:
    data = unlabelled()
    return CalibrationData(
        data.train, data.held, (data.train[:, 0] > 0).astype(int), (data.held[:, 0] > 0).astype(int)
    )


@pytest.mark.parametrize("name", VECTOR_MECHANISMS)
@pytest.mark.parametrize("delta", [1e-5, 0.05])
def test_every_considered_plan_costs_at_most_the_requirement(name: str, delta: float) -> None:
    required = Requirement(epsilon=3.0, delta=delta, adjacency=NEAR)
    chosen = candidate(name)
    choice = calibrate(
        [chosen], required, unlabelled(), paths=("global", "local"), head_config=HEAD
    )
    assert choice.considered[0].utility == max(plan.utility for plan in choice.considered)
    for plan in choice.considered:
        cost = plan_mechanism(chosen.network, chosen.bound, plan, required).guarantee
        assert cost.epsilon <= 3.0 * (1 + 1e-12)
        assert cost.delta <= delta * (1 + 1e-12)
        assert cost.adjacency == NEAR
        assert 0 <= plan.released <= 1


@pytest.mark.parametrize("name", LABEL_MECHANISMS)
def test_label_utility_is_the_expected_accuracy_of_real_answers(name: str) -> None:
    required = Requirement(epsilon=3.0, delta=0.0, adjacency=NEAR)
    random = np.random.default_rng(0)
    network = affine_chain(
        [random.normal(size=(6, 2)), random.normal(size=(2, 6))],
        [random.normal(size=6), np.zeros(2)],
    )
    bound = LayeredBound(network, domain=DOMAIN, input_norm=Norm.LINF, output="spread")
    data = labelled()
    choice = calibrate(
        [Candidate(network, name, bound)], required, data, paths=("global",), head_config=HEAD
    )
    mechanism = plan_mechanism(network, bound, choice.plan, required)
    sampler = SeededSampler(0)
    answers = np.stack(
        [mechanism.release(network.forward(data.held), sampler=sampler) for _ in range(50)]
    )
    assert (answers == data.held_labels).mean() == pytest.approx(choice.plan.utility, abs=0.02)


def crossing(rows: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings whose label is the sign of a product of three coordinates, which takes a head more
    than a few steps, and four times of five that of a fourth one, which does not.
    """
    random = np.random.default_rng(5)
    X = random.choice([-1.0, 1.0], size=(rows, 4)) * random.uniform(0.3, 1.0, size=(rows, 4))
    y = (X[:, :3].prod(axis=1) > 0).astype(int)
    X[:, 3] = (2 * y - 1) * np.abs(X[:, 3]) * random.choice([1, 1, 1, 1, -1], size=rows)
    return X, y


def test_heads_learn_for_as_long_as_they_need_to() -> None:
    """Five passes find the easy coordinate alone, which is right four times of five."""
    X, y = crossing()
    encoder = PosthocEncoder(
        epsilon=10.0,
        delta=0.0,
        radius=0.02,
        embedder="identity",
        obfuscator=Ladder((PublicDiscriminants(), Identity())),
        random_state=0,
    ).fit(X, y)
    assert encoder.query_.plan.rung == "Identity(outputs=4)"
    assert encoder.query_.plan.utility > 0.95
    # One function is looked at with every noise, but with one alone for long.
    assert [plan.rung for plan in encoder.considered_].count("Identity(outputs=4)") == 3
    assert encoder.considered_[0] == encoder.query_.plan
    hasty = clone(encoder).set_params(calibration=Calibration(head_epochs=5)).fit(X, y)
    assert hasty.query_.plan.utility < 0.9


def test_delta_zero_leaves_the_global_path_with_pure_mechanisms() -> None:
    required = Requirement(epsilon=1.0, delta=0.0, adjacency=NEAR)
    candidates = [candidate(name) for name in VECTOR_MECHANISMS]
    choice = calibrate(
        candidates, required, unlabelled(), paths=("global", "local"), head_config=HEAD
    )
    assert {plan.path for plan in choice.considered} == {"global"}
    assert "gaussian" not in {plan.mechanism for plan in choice.considered}
    with pytest.raises(CalibrationFailed, match="raise delta or allow the global path"):
        calibrate(candidates, required, unlabelled(), paths=("local",), head_config=HEAD)


def test_a_plan_that_costs_too_much_or_proves_too_little_is_refused() -> None:
    chosen = candidate("laplace")
    required = Requirement(epsilon=1.0, delta=0.0, adjacency=NEAR)
    honest = PosthocSetting(
        path="global",
        mechanism="laplace",
        proposal=chosen.global_bound,
        epsilon_test=0.0,
        delta_test=0.0,
        epsilon_release=1.0,
        delta_release=0.0,
    )
    plan_mechanism(chosen.network, chosen.bound, honest, required)
    with pytest.raises(InvalidParameter, match="more than is required"):
        plan_mechanism(
            chosen.network,
            chosen.bound,
            PosthocSetting(**{**honest.to_dict(), "epsilon_release": 1.1}),
            required,
        )
    smaller = PosthocSetting(**{**honest.to_dict(), "proposal": 0.9 * chosen.global_bound})
    with pytest.raises(InvalidParameter, match="over the whole domain"):
        plan_mechanism(chosen.network, chosen.bound, smaller, required)
    with pytest.raises(UnknownName, match="mechanism='cauchy'"):
        PosthocSetting(**{**honest.to_dict(), "mechanism": "cauchy"})
