"""Answers with free attributes: what they are, what they cost, and that bundles keep them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.noise import SeededSampler
from reticent.systems.power.cards import power_card
from reticent.systems.power.clear_query import ProtectedQuery
from reticent.systems.power.encoder import stored_query
from reticent.systems.power.query import PowerSetting
from tests.systems.power.made import RADII, SCHEMA, made_query, rows


def test_noise_has_the_scale_of_one_radius() -> None:
    query = made_query(RADII, epsilon=2.0, seed=6, columns=(0,))
    row = SCHEMA.encode(rows(1, seed=5))
    answers = query.private_answer(np.repeat(row, 4_000, axis=0), sampler=SeededSampler(1))[:, 0]
    noise = answers - query.steps(row)[0, 0] / 4096
    assert stats.kstest(noise, stats.laplace(scale=4097 / 4096 / 2.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize("radius", [0.1, RADII])
def test_noise_on_some_columns_is_that_of_as_many(radius: float | dict[str, float]) -> None:
    """An oracle for the mean magnitude of K-norm noise: m / epsilon radii in the norm, of m
    coordinates; in l-infinity too, where the magnitude is a Gamma(m) variable.
    """
    query = made_query(radius, epsilon=2.0, columns=(0, 2))
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
    settings, arrays = made_query(0.1, columns=(0, 2)).describe()
    for columns in ([0, 99], [2, 0], [0, 0]):
        settings["plan"]["columns"] = columns
        with pytest.raises(CorruptBundle):
            stored_query(settings, arrays)[0]
    with pytest.raises(InvalidParameter, match="other than clear-noise"):
        PowerSetting(mechanism="clear-code", epsilon=1.0, delta=0.0, radius=0.1, columns=(0,))


def test_a_row_has_one_answer_in_any_batch() -> None:
    query = made_query(RADII, seed=2)
    encoded = SCHEMA.encode(rows(300, seed=9))
    alone = np.concatenate([query.exact(encoded[index : index + 1]) for index in range(300)])
    assert np.array_equal(alone, query.exact(encoded))
    assert np.array_equal(query.exact(encoded[::-1])[::-1], alone)


def test_what_a_bundle_states_as_protected_gets_noise() -> None:
    """Nothing in a bundle says what is free but its statement: what it adds is answered about."""
    settings, arrays = made_query(RADII).describe()
    settings["plan"]["radius"]["sex"] = "any"
    loaded = stored_query(settings, arrays)[0]
    assert isinstance(loaded, ProtectedQuery)
    table = rows(1, seed=0).repeat(2, axis=0)
    table[:, 2] = ["f", "m"]
    first, second = loaded.read(SCHEMA.encode(table), np.zeros((2, loaded.values)))
    assert np.array_equal(first, second)
    assert loaded.adjacency == loaded.mechanism.adjacency != made_query(RADII).adjacency


def test_the_card_promises_nothing_beyond_the_radius_where_categories_are_free() -> None:
    query = made_query(0.1)
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
