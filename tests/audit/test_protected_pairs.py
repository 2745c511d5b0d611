"""Audits of releases that protect some attributes: neighbours that are found, and faults that are
planted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent.audit import ClaimAudit, audit_fitted
from reticent.audit.fitted_pairs import likeliest_pairs, near_rows, protected_pairs
from reticent.core.coded_rows import CodedRows
from reticent.mechanisms import FiniteChannel
from reticent.networks import affine_chain
from reticent.noise import SeededSampler
from reticent.systems.power.clear_query import LikeliestQuery, ProtectedQuery
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.protection import AttributeRadii
from tests.systems.power.made import RADII, SCHEMA, made_likeliest, made_query, rows


@pytest.mark.parametrize("radius", [0.1, RADII])
def test_neighbours_that_are_tried_are_neighbours_and_as_far_as_may_be(
    radius: float | dict[str, float],
) -> None:
    protection = made_query(radius).protection
    encoded, random = SCHEMA.encode(rows(400, seed=0)), np.random.default_rng(0)
    shares = np.array([near for _, _, near in protection.groups])
    starts = [part.start for part, _, _ in protection.groups]
    far = np.zeros(len(shares))
    for _ in range(10):
        near = near_rows(protection, encoded, random=random)
        assert np.array_equal(encoded[:, protection.free], near[:, protection.free])
        if isinstance(radius, float):
            apart = np.linalg.norm(encoded - near, axis=1)
            assert apart.max() <= 0.1 * (1 + 1e-12)
            assert apart.max() > 0.099
            continue
        moved = np.abs(encoded - near)[:, starts]
        assert (moved <= shares * (1 + 1e-12)).all()
        far = np.maximum(far, moved.max(axis=0))
    if not isinstance(radius, float):
        assert (far >= 0.7 * shares).all()  # a category changes by the root of a half


def _encoder(query: ProtectedQuery | LikeliestQuery) -> PowerEncoder:
    radius = query.plan.radius
    encoder = PowerEncoder(
        epsilon=query.plan.epsilon,
        delta=0.0,
        radius=dict(radius.radii) if isinstance(radius, AttributeRadii) else radius,
        schema=SCHEMA,
    )
    encoder.query_, encoder.n_features_in_ = query, 6
    return encoder


def _audit(query: ProtectedQuery | LikeliestQuery) -> ClaimAudit:
    table = rows(200, seed=1)
    return audit_fitted(_encoder(query), table, draws=40_000, alpha=0.01, seed=0)


@pytest.mark.parametrize("radius", [0.1, RADII])
def test_sound_releases_are_not_refuted(radius: float | dict[str, float]) -> None:
    found = _audit(made_query(radius, epsilon=1.0, seed=3))
    assert not found.refuted
    assert found.excluded > 0.3


def _planted(query: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        object.__setattr__(query, name, value)
    return query


def test_an_attribute_of_weight_0_that_is_stated_as_protected_is_refuted() -> None:
    """The release reads "town" without noise, and its plan says that any two towns are alike."""
    query = made_query({**RADII, "town": 0.0}, seed=1)
    assert not _audit(query).refuted
    stated = replace(query.plan, radius=AttributeRadii.of(RADII, SCHEMA))
    free = query.protection
    planted = _planted(query, plan=stated)
    planted.__dict__["protection"] = free
    found = _audit(planted)
    assert found.refuted
    assert "without noise" in found.pairs[0].name


@pytest.mark.parametrize("radius", [0.5, RADII])
@pytest.mark.parametrize("candidates", [2, 3])
def test_a_sound_release_of_a_likeliest_label_is_not_refuted(
    radius: float | dict[str, float], candidates: int
) -> None:
    query = made_likeliest(radius, candidates=candidates, choice="risen")
    found = _audit(query)
    assert not found.refuted
    assert found.excluded > 0.8  # neighbours of which another candidate is named
    assert any("another candidate" in pair.name for pair in found.pairs)


def test_candidates_that_read_what_is_stated_as_protected_are_refuted() -> None:
    """The public model reads the town, and the plan says that any two towns are alike."""
    query = made_likeliest({**RADII, "town": 0.0})
    assert not _audit(query).refuted
    free = query.protection
    planted = _planted(query, plan=replace(query.plan, radius=AttributeRadii.of(RADII, SCHEMA)))
    planted.__dict__["protection"] = free
    found = _audit(planted)
    assert found.refuted
    assert "without noise" in found.pairs[0].name


def test_a_candidate_that_is_told_too_plainly_is_refuted() -> None:
    query = made_likeliest(RADII, epsilon=1.0)
    response = FiniteChannel.response(2, epsilon=2.0, adjacency=query.adjacency)
    query.__dict__["mechanism"] = response
    found = _audit(query)
    assert found.refuted


def test_no_pair_of_a_forest_that_knows_one_label() -> None:
    query = made_likeliest(RADII)
    table = np.tile([1.0, 0.0, 0.0], (len(query.forest.table), 1))
    coded = CodedRows.of(SCHEMA.encode(rows(50, seed=0)))
    still = replace(query, forest=replace(query.forest, table=table))
    assert likeliest_pairs(still, coded, random=_random()) == []


def test_pairs_draw_the_answers_of_the_release() -> None:
    query = made_query(RADII, seed=1)
    encoded = CodedRows.of(SCHEMA.encode(rows(50, seed=0)))
    [pair] = protected_pairs(query, encoded, random=_random())
    assert pair.first(500, SeededSampler(0)).shape == (500, 2)
    reader = affine_chain([[[1.0] * query.model.input_dimension]], [[0.0]])
    assert len(protected_pairs(replace(query, model=reader), encoded, random=_random())) == 1


def _random() -> np.random.Generator:
    return np.random.default_rng(0)
