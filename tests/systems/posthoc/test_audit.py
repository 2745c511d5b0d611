"""The whole release path under audit: a fitted system, its own certificate, and the worst
neighbours found for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from reticent.audit import refute_recorded
from reticent.mechanisms import LaplaceMechanism, ProposeTestRelease
from reticent.noise import AuditSampler, Sampler, SecureSampler
from reticent.systems import Calibration, PosthocEncoder

RUNS, MILLION = 200_000, 1_000_000
# The released code on words of a seed; and, with --soak, ``release`` itself at a false-alarm rate
# of 1e-9.
EXTENTS = [(RUNS, 0.05), pytest.param(MILLION, 1e-9, marks=pytest.mark.soak)]


def in_parts(answer: Callable[[int], np.ndarray], runs: int) -> np.ndarray:
    return np.concatenate([answer(min(2**16, runs - start)) for start in range(0, runs, 2**16)])


@pytest.fixture(scope="module")
def encoder() -> PosthocEncoder:
    """A ramp of slope 100 between two plains of slope 1 in one dimension, on the local path."""
    module = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1))
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[1.0], [1.0], [1.0]]))
        module[0].bias.copy_(torch.tensor([10.0, 0.01, -0.01]))
        module[2].weight.copy_(torch.tensor([[1.0, 99.0, -99.0]]))
        module[2].bias.zero_()
    points = np.random.default_rng(0).uniform(-4, 4, (2000, 1))
    fitted = PosthocEncoder(
        epsilon=2.0,
        delta=1e-2,
        radius=0.1,
        embedder="identity",
        obfuscator=module,
        mechanism="laplace",
        calibration=Calibration(path="local"),
        random_state=0,
    ).fit(points)
    assert fitted.query_.plan.proposal < 5  # the ramp is given up, not paid for
    return fitted


def neighbours(encoder: PosthocEncoder, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    here = random.uniform(-4, 4, (count, 1))
    return here, here + random.choice([-0.1, 0.1, 0.05], (count, 1))


def test_levels_and_outputs_of_neighbours_are_what_the_proof_needs(encoder: PosthocEncoder) -> None:
    here, there = neighbours(encoder, 100_000)
    query = encoder.query_
    assert query.test is not None
    levels, others = query.test.levels(query.points(here)), query.test.levels(query.points(there))
    assert np.abs(levels - others).max() == 1
    moved = np.abs(query.exact(here) - query.exact(there))[:, 0]
    too_far = moved > query.plan.proposal * query.test.effective_radius
    assert too_far.any()
    assert (levels[too_far] == 0).all()
    assert (others[too_far] == 0).all()


@pytest.mark.parametrize(("runs", "alpha"), EXTENTS)
def test_answers_on_the_worst_neighbours_stay_within_the_claim(
    encoder: PosthocEncoder, runs: int, alpha: float
) -> None:
    here, there = neighbours(encoder, 20_000)
    query = encoder.query_
    mechanism = query.mechanism
    assert isinstance(mechanism, ProposeTestRelease)
    inner = mechanism.inner
    assert isinstance(inner, LaplaceMechanism)
    chance = np.stack(
        [mechanism.pass_probabilities[query.test.levels(query.points(x))] for x in (here, there)]
    )
    value = np.stack([query.exact(x)[:, 0] for x in (here, there)])
    # The loss of an answer that passes: of the passing bit, and of a value moved all the way to one
    # side.
    loss = np.abs(np.log(chance[0] / chance[1])) + np.abs(value[0] - value[1]) / inner.scale
    loss[chance.max(axis=0) < 0.05] = 0  # delta covers these
    worst = int(loss.argmax())

    def scores(point: np.ndarray, sampler: Sampler, count: int) -> np.ndarray:
        rows = np.repeat(point[None], count, axis=0)
        if sampler.seeded:
            values, withheld = query.answer(rows, sampler=sampler)
        else:
            released = encoder.release(rows)
            values, withheld = released.values, released.withheld
        passed = np.log(chance[0, worst] / chance[1, worst])
        vector = (
            np.abs(values[:, 0] - value[1, worst]) - np.abs(values[:, 0] - value[0, worst])
        ) / inner.scale
        missed = np.log((1 - chance[0, worst]) / (1 - chance[1, worst]))
        return np.where(withheld, missed, passed + vector)

    sampler = AuditSampler(2) if runs == RUNS else SecureSampler()
    first, second = (
        in_parts(partial(scores, point[worst], sampler), runs) for point in (here, there)
    )
    claim = mechanism.guarantee
    result = refute_recorded(
        first, second, epsilon=claim.epsilon, delta=claim.delta, alpha=alpha, seed=0
    )
    assert not result.refuted
    # The audit is close enough to see a fault.
    assert result.excluded(delta=claim.delta) > 0.6 * claim.epsilon
