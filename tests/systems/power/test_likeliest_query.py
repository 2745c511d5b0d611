"""One of the likeliest labels: what is released, what it costs and is worth, and bundles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reticent import PowerEncoder
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.noise import SeededSampler
from reticent.systems import VectorTraining
from reticent.systems.power.clear_fitting import fit_likeliest
from reticent.systems.power.clear_query import LikeliestQuery
from reticent.systems.power.encoder import stored_query
from reticent.systems.power.protection import Protection
from reticent.systems.power.query import PowerSetting
from reticent.systems.power.settings import RowFit
from reticent.tables import Categorical, Numeric, TabularSchema
from reticent.training.progress import silent
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


KINDS = TabularSchema(
    (*(Numeric(name, 0, 1) for name in "abc"), Categorical("kind", ("p", "q", "r")))
)


def checkerboard(count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each kind has two labels of its own, and a checkerboard of two numbers says which."""
    random = np.random.default_rng(seed)
    rows = np.empty((count, 4), dtype=object)
    numbers = random.random((count, 3))
    kinds = random.integers(0, 3, count)
    rows[:, :3], rows[:, 3] = numbers, np.array(["p", "q", "r"])[kinds]
    side = np.floor(4 * numbers[:, 0]).astype(int) + np.floor(4 * numbers[:, 1]).astype(int)
    return rows, (kinds + side % 2) % 4


def test_what_is_stated_is_what_a_release_is_worth() -> None:
    """Scores on held-out rows, exactly over the response, against answers that were drawn."""
    rows, labels = checkerboard(3_000, seed=0)
    encoded = KINDS.encode(rows)
    required = PowerSetting(
        mechanism="code", epsilon=1.0, delta=0.0, radius=0.1, scoring="accuracy"
    )
    half = VectorTraining(calibration_share=0.5)
    fit = RowFit(KINDS, required, encoded, labels, half, 0, silent)
    found = list(fit_likeliest(Protection(KINDS, 0.1), fit))
    assert {fitted.query.plan.candidates for fitted in found} == {2, 3, 4}
    best = max(found, key=lambda fitted: fitted.query.plan.utility)
    private, wanted = checkerboard(5_000, seed=1)
    encoded_encoder = PowerEncoder(epsilon=1.0, delta=0.0, radius=0.1, schema=KINDS, random_state=0)
    encoded_encoder.query_, encoded_encoder.n_features_in_ = best.query, 4
    released = encoded_encoder.draw(encoded_encoder.checked(private), SeededSampler(0)).values
    right = (released[:, :4].argmax(axis=1) == wanted).mean()
    assert right == pytest.approx(best.query.plan.utility, abs=0.06)
    assert right > 0.55
