"""Private-kNN from the records to the labels under audit: sampling, neighbours, screening, votes
and their total.

Two sets of private records, one of which has one record more. The query sees many records of
class 1; the further one is nearest to it and of class 0, so it displaces a vote whenever it is
sampled. A run is a whole plan of many queries, scored by the sum of its answers' log-likelihood
ratios, which other runs have estimated. False-alarm rate 1e-3 for each case, seeded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from reticent.accounting import PrivateKnnSteps, private_knn_total
from reticent.audit import SequentialTest, refute_recorded
from reticent.neighbours import NeighbourSearch, Records, SampledNeighbours
from reticent.noise import AuditSampler
from reticent.systems.private_knn.plan import KnnNoise

DELTA, ALPHA = 0.15, 1e-3  # a large delta, at which few runs tell much
OUTCOMES = 3

OFTEN = PrivateKnnSteps(
    queries=20,
    answers=20,
    neighbours=2,
    sampling_probability=0.5,
    sigma_votes=4.0,
    threshold=2.0,
    sigma_screening=4.0,
)


def _records(*, one_more: bool) -> Records:
    places = [[index + 10, 0] for index in range(60)]
    votes = [1] * 60
    if one_more:
        places, votes = [[1, 0], *places], [0, *votes]
    return Records.of(places, votes, None)


@lru_cache(maxsize=32)
def _answers(steps: PrivateKnnSteps, runs: int, one_more: bool, seed: int) -> np.ndarray:
    """Outcomes of whole plans, shape (runs, queries): 0, 1, or 2 where withheld."""
    many = replace(steps, queries=runs * steps.queries, answers=runs * steps.queries)
    search = NeighbourSearch(_records(one_more=one_more))
    voters = SampledNeighbours(
        search, neighbours=steps.neighbours, probability=steps.sampling_probability
    )
    labels = KnnNoise(many, DELTA, 2).answer(
        np.zeros((many.queries, 2)), voters, sampler=AuditSampler(seed)
    )
    return np.where(labels < 0, 2, labels).reshape(runs, steps.queries)


def _audit(steps: PrivateKnnSteps, *, runs: int, seed: int) -> SequentialTest:
    # Whether neighbours differ in one direction or the other is up to the audit, which looks at
    # both.
    frequencies = [
        np.bincount(
            _answers(steps, 1000, one_more, seed + 2 + one_more).ravel(), minlength=OUTCOMES
        )
        + 1.0
        for one_more in (False, True)
    ]
    ratio = np.log(frequencies[1] / frequencies[1].sum()) - np.log(
        frequencies[0] / frequencies[0].sum()
    )
    scores = [
        ratio[_answers(steps, runs, one_more, seed + one_more)].sum(axis=1)
        for one_more in (True, False)
    ]
    return refute_recorded(*scores, epsilon=_claim(OFTEN), delta=DELTA, alpha=ALPHA, seed=0)


def _claim(steps: PrivateKnnSteps) -> float:
    return private_knn_total(steps, delta=DELTA).epsilon


@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_claim_is_refuted(shared: bool) -> None:
    """A fresh sample for either step, or one for both."""
    steps = replace(OFTEN, shared_subsample=shared)
    assert not _audit(steps, runs=1500, seed=100).refuted


FAULTS = {
    "half the noise": replace(OFTEN, sigma_votes=2.0, sigma_screening=2.0),
    "every record sampled": replace(OFTEN, sampling_probability=1.0),
    # What eight children of one process released while each counted by itself.
    "a budget forked eight times": replace(
        OFTEN, queries=8 * OFTEN.queries, answers=8 * OFTEN.answers
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["half the noise", *(pytest.param(name, marks=pytest.mark.soak) for name in list(FAULTS)[1:])],
)
def test_planted_faults_are_caught(name: str) -> None:
    """What is run is not what is claimed."""
    assert _audit(FAULTS[name], runs=4000, seed=200).refuted


@pytest.mark.soak
def test_many_runs_see_the_record() -> None:
    """The claim is for the worst votes and any event; this pair and 20,000 runs establish a part
    of it, and not nothing.
    """
    steps = replace(OFTEN, threshold=None, sigma_screening=None)
    found = _audit(steps, runs=20_000, seed=300)
    assert 0.08 < found.excluded(delta=DELTA) < _claim(steps)
