"""Answers with free attributes: what they are, what they cost, and that bundles keep them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.noise import SeededSampler
from reticent.systems.power.cards import power_card
from reticent.systems.power.mechanism_choice import stored_query
from reticent.systems.power.protected_query import NOISY, ProtectedQuery
from reticent.systems.power.protection import AttributeRadii
from reticent.systems.power.query import PowerSetting
from tests.systems.power.made import RADII, SCHEMA, made_query, neighbour, rows


def test_levels_of_neighbours_have_the_two_properties() -> None:
    query = made_query("score-levels", RADII, seed=3)
    table = rows(4_000, seed=4)
    sides, levels = query.levels(SCHEMA.encode(table))
    assert len(np.unique(sides)) == 2
    changed = 0
    for seed in range(6):
        others = query.levels(SCHEMA.encode(neighbour(table, RADII, seed=seed)))
        assert (np.abs(levels - others[1]) <= 1).all()
        crossed = sides != others[0]
        changed += int(crossed.sum())
        assert (levels[crossed] == 0).all()
        assert (others[1][crossed] == 0).all()
    assert changed > 100


def test_levels_count_whole_radii_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every two scores that neighbours may have, up to the last step: no row need be so steep."""
    query = made_query("score-levels", RADII)
    radius = query.protection.largest_step
    scores = np.arange(-3 * radius, 3 * radius + 1)[:, None]
    monkeypatch.setattr(ProtectedQuery, "steps", lambda *_: scores.astype(np.float64))
    sides, levels = query.levels(np.zeros((len(scores), SCHEMA.dimension)))
    assert levels.max() == 3
    for apart in (1, radius - 1, radius):
        assert (np.abs(levels[apart:] - levels[:-apart]) <= 1).all()
        crossed = sides[apart:] != sides[:-apart]
        assert not levels[apart:][crossed].any()
        assert not levels[:-apart][crossed].any()


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_a_level_response_lies_as_often_as_its_table_says(epsilon: float) -> None:
    query = made_query("score-levels", RADII, epsilon=epsilon, seed=3)
    row = SCHEMA.encode(rows(1, seed=5))
    runs = 4_000
    told = query.private_answer(np.repeat(row, runs, axis=0), sampler=SeededSampler(0))[:, 0]
    (side,), (level,) = query.levels(row)
    right = 1.0 - np.exp(-epsilon * level) / (np.exp(epsilon) + 1.0)
    found = int((told == 2 * side - 1).sum())
    assert stats.binomtest(found, runs, right).pvalue > 1e-4


def test_noise_has_the_scale_of_one_radius() -> None:
    query = made_query("score-noise", RADII, epsilon=2.0, seed=6)
    row = SCHEMA.encode(rows(1, seed=5))
    assert query.scores is not None
    answers = query.private_answer(np.repeat(row, 4_000, axis=0), sampler=SeededSampler(1))[:, 0]
    noise = answers - query.scores.steps(row)[0, 0] / 4096
    assert stats.kstest(noise, stats.laplace(scale=4097 / 4096 / 2.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize("radius", [0.1, RADII])
@pytest.mark.parametrize("mechanism", NOISY)
def test_what_is_stored_answers_alike(mechanism: str, radius: float | dict[str, float]) -> None:
    query = made_query(mechanism, radius, seed=2)
    loaded = stored_query(*query.describe())[0]
    assert isinstance(loaded, ProtectedQuery)
    encoded = SCHEMA.encode(rows(50, seed=9))
    assert np.array_equal(loaded.exact(encoded), query.exact(encoded))
    assert loaded.adjacency == query.adjacency
    assert loaded.plan == query.plan
    first, second = (one.answer(encoded, sampler=SeededSampler(3))[0] for one in (query, loaded))
    assert np.array_equal(first, second)
    assert first.shape == (50, query.outputs)


@pytest.mark.parametrize("radius", [0.1, RADII])
def test_noise_on_some_columns_is_that_of_as_many(radius: float | dict[str, float]) -> None:
    """An oracle for the mean magnitude of K-norm noise: m / epsilon radii in the norm, of m
    coordinates; in l-infinity too, where the magnitude is a Gamma(m) variable.
    """
    query = made_query("clear-noise", radius, epsilon=2.0, columns=(0, 2))
    encoded = np.repeat(SCHEMA.encode(rows(1, seed=5)), 4_000, axis=0)
    told = query.private_answer(encoded, sampler=SeededSampler(1))
    assert told.shape == (4_000, 2)
    whole = query.protection.steps(encoded)[:, [0, 2]] / 4096
    order = 2 if isinstance(radius, float) else np.inf
    size = np.linalg.norm(told - whole, ord=order, axis=1)
    assert size.mean() == pytest.approx(2 / 2.0, rel=0.05)
    loaded = stored_query(*query.describe())[0]
    assert loaded.plan == query.plan
    again = loaded.answer(encoded[:20], sampler=SeededSampler(3))[0]
    assert np.array_equal(again, query.answer(encoded[:20], sampler=SeededSampler(3))[0])


def test_columns_that_are_not_there_are_refused() -> None:
    settings, arrays = made_query("clear-noise", 0.1, columns=(0, 2)).describe()
    for columns in ([0, 99], [2, 0], [0, 0]):
        settings["plan"]["columns"] = columns
        with pytest.raises(CorruptBundle):
            stored_query(settings, arrays)[0]
    with pytest.raises(InvalidParameter, match="other than clear-noise"):
        PowerSetting(mechanism="score-noise", epsilon=1.0, delta=0.0, radius=0.1, columns=(0,))


def test_a_row_has_one_answer_in_any_batch() -> None:
    """Its constants come from doubles; if they depended on the batch, neighbours could differ."""
    query = made_query("score-noise", RADII, seed=2)
    encoded = SCHEMA.encode(rows(300, seed=9))
    alone = np.concatenate([query.steps(encoded[index : index + 1]) for index in range(300)])
    assert np.array_equal(alone, query.steps(encoded))
    assert np.array_equal(query.steps(encoded[::-1])[::-1], alone)


def test_scores_that_protect_something_else_are_refused() -> None:
    """An attribute that the statement protects and the scores take for free, and the reverse."""
    query = made_query("score-noise", RADII)
    for name, radius in (("town", 0.0), ("sex", np.inf)):
        other = made_query("score-noise", {**RADII, name: radius})
        with pytest.raises(CorruptBundle, match="do not fit"):
            replace(query, scores=other.scores)
        stated = AttributeRadii.of({**RADII, name: radius}, SCHEMA)
        with pytest.raises(CorruptBundle, match="do not fit"):
            replace(query, plan=replace(query.plan, radius=stated))


def test_a_stored_statement_that_leaves_out_an_attribute_is_refused() -> None:
    settings, arrays = made_query("score-noise", {**RADII, "sex": np.inf}).describe()
    settings["plan"]["radius"]["sex"] = 0.0
    with pytest.raises(CorruptBundle):
        stored_query(settings, arrays)[0]


def test_plans_that_make_no_sense_are_refused() -> None:
    radii = AttributeRadii.of(RADII, SCHEMA)
    with pytest.raises(InvalidParameter, match="nothing is free"):
        PowerSetting(mechanism="score-noise", epsilon=1.0, delta=0.0, radius=None)
    with pytest.raises(InvalidParameter, match="an l2 radius"):
        PowerSetting(mechanism="k-norm-l2", epsilon=1.0, delta=0.0, radius=radii)


@pytest.mark.parametrize("mechanism", ["score-noise", "clear-noise"])
def test_the_card_promises_nothing_beyond_the_radius_where_categories_are_free(
    mechanism: str,
) -> None:
    query = made_query(mechanism, 0.1)
    table = rows(1, seed=0).repeat(2, axis=0)
    table[:, 2] = ["f", "m"]
    encoded = SCHEMA.encode(table)
    assert np.linalg.norm(encoded[0] - encoded[1]) == pytest.approx(1.0)
    told = query.read(encoded, np.zeros((2, query.values)))
    assert not np.array_equal(told[0], told[1])  # whatever the noise is
    card = power_card(query)
    assert "at any distance" not in card.to_markdown()
    assert "Lipschitz privacy" not in card.to_markdown()
    assert "categories, and several attributes together may be visible" in card.not_protected[0]
