"""One of the likeliest labels: what is released, what it costs, and that bundles keep it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.noise import SeededSampler
from reticent.systems.power.clear_query import LikeliestQuery
from reticent.systems.power.encoder import stored_query
from reticent.systems.power.query import PowerSetting
from tests.systems.power.made import RADII, SCHEMA, made_likeliest, neighbour, rows


@pytest.mark.parametrize("choice", ["likeliest", "risen"])
def test_neighbours_have_the_same_candidates_and_log_odds(choice: str) -> None:
    """Whatever is named, so that the response is all that depends on what is protected."""
    query = made_likeliest(RADII, choice=choice)
    table = rows(500, seed=4)
    near = neighbour(table, RADII, seed=1)
    scores = [query.given_scores(SCHEMA.encode(side)) for side in (table, near)]
    shares = [query.forest.shares(CodedRows.of(SCHEMA.encode(side))) for side in (table, near)]
    named = [query.places(*pair) for pair in zip(scores, shares, strict=True)]
    assert (named[0] != named[1]).sum() > 50
    for place in range(2):
        told = [query.read(score, np.full(500, place)) for score in scores]
        assert np.array_equal(*told)
    alone = np.concatenate([query.given_scores(SCHEMA.encode(row[None])) for row in table[:40]])
    assert np.array_equal(alone, scores[0][:40])


@pytest.mark.parametrize("choice", ["likeliest", "risen"])
def test_candidates_and_the_one_that_is_named_are_those_of_their_definition(choice: str) -> None:
    query = made_likeliest(0.1, choice=choice)
    encoded = SCHEMA.encode(rows(200, seed=5))
    scores, shares = query.given_scores(encoded), query.forest.shares(CodedRows.of(encoded))
    given = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    places = query.places(scores, shares)
    for row in range(200):
        first = sorted(range(3), key=lambda label: -given[row, label])[:2]
        assert query.candidates(scores)[row].tolist() == first
        worth = [
            shares[row, label] / (given[row, label] if choice == "risen" else 1.0)
            for label in first
        ]
        assert places[row] == int(worth[1] > worth[0])


def test_log_odds_are_those_of_bayes_rule() -> None:
    """From shares given what is free, and how likely each candidate is named, lies included."""
    query = made_likeliest(0.1, epsilon=1.5)
    encoded = SCHEMA.encode(rows(30, seed=5))
    scores = query.given_scores(encoded)
    given = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    lie = 1.0 / (np.exp(1.5) + 1.0)
    chances = query.hits @ np.array([[1.0 - lie, lie], [lie, 1.0 - lie]])
    for place in range(2):
        released = query.read(scores, np.full(30, place))
        found = np.exp(released[:, :3]) / np.exp(released[:, :3]).sum(axis=1, keepdims=True)
        for row, named in enumerate(query.candidates(scores)):
            where = [list(named).index(label) if label in named else 2 for label in range(3)]
            wanted = given[row] * chances[where, place]
            np.testing.assert_allclose(found[row], wanted / wanted.sum(), atol=1e-9)
            assert released[row, 3:].tolist() == np.eye(3)[named[place]].tolist()


@pytest.mark.parametrize(("candidates", "epsilon"), [(2, 0.5), (3, 2.0)])
def test_a_candidate_is_named_as_often_as_randomised_response_says(
    candidates: int, epsilon: float
) -> None:
    query = made_likeliest(RADII, candidates=candidates, epsilon=epsilon)
    row = SCHEMA.encode(rows(1, seed=5))
    told = query.private_answer(np.repeat(row, 4_000, axis=0), sampler=SeededSampler(0))
    scores = query.given_scores(row)
    place = int(query.places(scores, query.forest.shares(CodedRows.of(row)))[0])
    right = np.exp(epsilon) / (np.exp(epsilon) + candidates - 1)
    assert stats.binomtest(int((told == place).sum()), 4_000, right).pvalue > 1e-6
    assert query.mechanism.guarantee.epsilon == epsilon


def _spoilt(query: LikeliestQuery) -> dict[str, dict[str, Any]]:
    return {
        "hits": {"hits": query.hits * 2},
        "none": {"hits": np.where(query.hits == query.hits.max(), 1.0, 0.0)},
        "shape": {"hits": query.hits[:-1]},
        "given": {"given": replace(query.given, dimension=query.given.dimension + 1)},
        "forest": {"forest": replace(query.forest, dimension=query.forest.dimension + 1)},
        "classes": {"forest": made_likeliest(RADII, classes=2).forest},
        "plan": {"plan": PowerSetting(mechanism="clear-noise", epsilon=1.0, delta=0.0, radius=0.1)},
    }


@pytest.mark.parametrize("part", ["hits", "none", "shape", "given", "forest", "classes", "plan"])
def test_parts_that_do_not_fit_are_refused(part: str) -> None:
    query = made_likeliest(RADII)
    with pytest.raises(CorruptBundle, match="do not fit"):
        replace(query, **_spoilt(query)[part])


def test_a_stored_statement_that_protects_what_is_read_is_refused() -> None:
    settings, arrays = made_likeliest(RADII).describe()
    settings["plan"]["radius"]["sex"] = "any"
    with pytest.raises(CorruptBundle):
        stored_query(settings, arrays)[0]
    settings, arrays = made_likeliest(0.1).describe()
    settings["plan"]["radius"] = None
    with pytest.raises(CorruptBundle):
        stored_query(settings, arrays)[0]
