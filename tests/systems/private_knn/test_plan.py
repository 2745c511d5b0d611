"""Plans and sessions: what is promised, when queries run out, and that fresh samples are fresh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent.accounting import PrivateKnnSteps, private_knn_total
from reticent.core import AddRemove
from reticent.neighbours import NeighbourSearch, Records, SampledNeighbours
from reticent.neighbours.search import NeighbourLists
from reticent.noise import SecureSampler, SeededSampler
from reticent.systems.private_knn.plan import UNANSWERED, KnnNoise

SETTINGS: dict[str, Any] = {
    "epsilon": 2.0,
    "delta": 1e-5,
    "queries": 20,
    "answers": None,
    "neighbours": 10,
    "sampling_probability": 0.3,
    "threshold": None,
    "classes": 2,
}


def _plan(**changes: Any) -> KnnNoise:
    return KnnNoise.of(**{**SETTINGS, **changes})


def _given(*, queries: int = 20, **noise: Any) -> KnnNoise:
    """A plan of given noise, whatever it costs."""
    steps = PrivateKnnSteps(
        **{
            "queries": queries,
            "answers": queries,
            "neighbours": 10,
            "sampling_probability": 0.3,
            "threshold": None,
            "sigma_screening": None,
            "shared_subsample": False,
            **noise,
        }
    )
    return KnnNoise(steps, 1e-5, 2)


def _voters(plan: KnnNoise, records: int = 200) -> SampledNeighbours:
    """All records on a line, the labels of the two halves differ."""
    places = np.arange(float(records))[:, None]
    held = Records.of(places, (places[:, 0] >= records / 2).astype(int), None)
    steps = plan.steps
    return SampledNeighbours(
        NeighbourSearch(held), neighbours=steps.neighbours, probability=steps.sampling_probability
    )


def test_chosen_noise_meets_the_total_from_below() -> None:
    for changes in ({}, {"threshold": 6.0}, {"threshold": 6.0, "answers": 5}):
        plan = _plan(**changes)
        assert 1.9 < plan.guarantee.epsilon <= 2.0
        assert plan.guarantee.adjacency == AddRemove(1)
        assert plan.total == private_knn_total(plan.steps, delta=1e-5)
        assert plan.event.guarantee == plan.guarantee
        assert (plan.screening is None) == ("threshold" not in changes)


def test_queries_that_fail_their_screening_are_withheld() -> None:
    """As often as ten votes of ten and discrete Gaussian noise fail eleven: 1e-6 by chance."""
    plan = _given(queries=4000, threshold=11.0, sigma_votes=1.0, sigma_screening=3.0)
    labels = plan.answer(np.full((4000, 1), 20.0), _voters(plan), sampler=SecureSampler())
    chances = np.exp(-(np.arange(-60, 61) ** 2) / (2 * 3.0**2))
    passed = labels != UNANSWERED
    assert (labels[passed] == 0).all()
    right = chances[61:].sum() / chances.sum()
    assert stats.binomtest(int(passed.sum()), 4000, right).pvalue > 1e-6


class _Watched(SampledNeighbours):
    """Counts how many samples are drawn of how many queries."""

    def draw(self, lists: NeighbourLists, *, sampler: Any) -> Any:
        self.drawn = [*getattr(self, "drawn", []), len(lists)]
        return super().draw(lists, sampler=sampler)


@pytest.mark.parametrize(
    ("changes", "samples"),
    [({}, [4]), ({"threshold": 1.0}, [4, 4]), ({"threshold": 1.0, "shared_subsample": True}, [4])],
)
def test_every_step_draws_its_own_sample_unless_it_is_shared(
    changes: dict[str, Any], samples: list[int]
) -> None:
    plan = _given(sigma_votes=2.0, sigma_screening=0.3 if changes else None, **changes)
    plain = _voters(plan)
    voters = _Watched(plain.search, neighbours=plain.neighbours, probability=plain.probability)
    plan.answer(np.array([[20.0]] * 4), voters, sampler=SecureSampler())
    assert voters.drawn == samples


def test_blocks_change_nothing_but_memory() -> None:
    plan = _given(queries=600, sigma_votes=1.0)
    queries = np.random.default_rng(0).integers(0, 200, size=(600, 1)).astype(float)
    labels = plan.answer(queries, _voters(plan), sampler=SeededSampler(0))
    sure = np.abs(queries[:, 0] - 99.5) > 50
    assert (labels[sure] == (queries[sure, 0] > 99.5)).all()
