"""Scores move by at most one radius between neighbours, exactly, whatever the weights are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reticent.core.errors import CorruptBundle
from reticent.networks import affine_chain
from reticent.systems.power.lipschitz_scores import WEIGHT, LipschitzScores
from reticent.systems.power.protection import AttributeRadii, Protection
from reticent.tables import TabularSchema
from tests.systems.power.made import RADII, SCHEMA, made_query, neighbour, rows


@pytest.mark.parametrize("seed", range(4))
def test_scores_of_neighbours_are_within_one_radius(seed: int) -> None:
    query = made_query("score-noise", RADII, outputs=2, seed=seed)
    assert query.scores is not None
    table = rows(3_000, seed=seed)
    first = query.scores.steps(SCHEMA.encode(table))
    changes = [
        np.abs(first - query.scores.steps(SCHEMA.encode(neighbour(table, RADII, seed=one)))).max()
        for one in range(6)
    ]
    assert max(changes) <= query.protection.largest_step
    assert max(changes) > 0.2 * query.protection.largest_step
    assert (first == np.rint(first)).all()


def test_scores_are_exact_integers() -> None:
    """Against Python's integers, which never round."""
    query = made_query("score-noise", RADII, seed=7)
    scores = query.scores
    assert scores is not None
    encoded = SCHEMA.encode(rows(40, seed=8))
    shifts = scores.shifts.forward_each(query.protection.given(encoded))
    found = scores.steps(encoded)
    for row, values, moved in zip(
        found, query.protection.steps(encoded).astype(int).tolist(), shifts, strict=True
    ):
        constants = [round(float(shift) * 4096) for shift in moved]
        start = 0
        for place, matrix in enumerate(scores.weights):
            values = [
                sum(int(weight) * value for weight, value in zip(line, values, strict=True))
                // WEIGHT
                + constants[start + index]
                for index, line in enumerate(matrix)
            ]
            start += len(matrix)
            if place < 2:
                values = [
                    pick(values[index : index + 2])
                    for index in range(0, len(values), 2)
                    for pick in (max, min)
                ]
        assert row.tolist() == values


def test_free_coordinates_move_scores_as_they_like() -> None:
    query = made_query("score-noise", RADII, seed=1)
    assert query.scores is not None
    table = rows(500, seed=2)
    other = table.copy()
    other[:, 2] = np.where(table[:, 2] == "f", "m", "f")
    moved = np.abs(
        query.scores.steps(SCHEMA.encode(table)) - query.scores.steps(SCHEMA.encode(other))
    )
    assert moved.max() > query.protection.largest_step


def test_a_table_without_free_attributes_has_scores() -> None:
    schema = TabularSchema.numbers(2, 0, 1)
    query = made_query("score-noise", 0.1, schema=schema)
    assert len(query.protection.free) == 0
    assert query.exact(np.array([[0.2, 0.4]])).shape == (1, 2)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_row_steeper_than_one_is_refused(layer: int) -> None:
    scores = made_query("score-noise", RADII).scores
    assert scores is not None
    weights = [matrix.copy() for matrix in scores.weights]
    weights[layer][0] = weights[layer][0] * 2
    with pytest.raises(CorruptBundle, match="steeper than 1"):
        replace(scores, weights=tuple(weights))


def test_weights_that_do_not_fit_are_refused() -> None:
    scores = made_query("score-noise", RADII).scores
    assert scores is not None
    for wrong in (
        scores.weights[1:],
        tuple(matrix.astype(np.float64) for matrix in scores.weights),
        (scores.weights[0][:3], scores.weights[1][:, :3], scores.weights[2]),
    ):
        with pytest.raises(CorruptBundle, match="do not fit together"):
            replace(scores, weights=wrong)
    narrow = affine_chain([np.zeros((9, 2))], [np.zeros(9)])
    with pytest.raises(CorruptBundle, match="do not fit together"):
        LipschitzScores(scores.protection, scores.weights, narrow)


def test_entries_that_sums_could_not_hold_are_refused() -> None:
    """All entries of a one-hot code may be raised alike without becoming steeper."""
    schema = SCHEMA
    protection = Protection(schema, AttributeRadii.of(RADII, schema))
    scores = made_query("score-noise", RADII).scores
    assert scores is not None
    first = scores.weights[0].copy()
    first[:, 2:5] += 2**40
    assert protection.weight(first[0]) == protection.weight(scores.weights[0][0])
    with pytest.raises(CorruptBundle, match="do not fit together"):
        replace(scores, weights=(first, *scores.weights[1:]))
