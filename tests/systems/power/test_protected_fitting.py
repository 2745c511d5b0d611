"""Releases with free attributes, fitted and answered as a user does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reticent import PowerEncoder
from reticent.systems import VectorTraining, train_server
from reticent.systems.power.clear_query import ProtectedQuery
from reticent.systems.power.mechanism_choice import compared
from reticent.systems.power.query import PROTECTED, PowerSetting
from reticent.tables import Categorical, Numeric, TabularSchema

SCHEMA = TabularSchema((Numeric("age", 0, 100), Categorical("sex", ("f", "m"))))


def table(count: int, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The old among the women and the young among the men."""
    random = np.random.default_rng(seed)
    rows = np.empty((count, 2), dtype=object)
    rows[:, 0] = random.uniform(0, 100, count)
    rows[:, 1] = random.choice(["f", "m"], count)
    labels = ((rows[:, 0].astype(float) > 50) == (rows[:, 1] == "f")).astype(int)
    return rows, labels


def training(*, hidden: tuple[int, ...] = (16, 16), epochs: int = 6) -> VectorTraining:
    return VectorTraining(hidden=hidden, epochs=epochs)


def encoder(radius: object, **fields: object) -> PowerEncoder:
    """Small and fast."""
    settings = {"epsilon": 1.0, "delta": 0.0, "training": training(), "random_state": 0}
    settings["schema"] = SCHEMA
    return PowerEncoder(radius=radius, **{**settings, **fields})  # type: ignore[arg-type]


def test_free_attributes_are_used_and_protected_ones_hidden() -> None:
    rows, labels = table(800, seed=0)
    fitted = encoder({"age": 10, "sex": 0}, mechanism="clear-noise").fit(rows, labels)
    assert isinstance(fitted.query_, ProtectedQuery)
    private, wanted = table(1_500, seed=1)
    released = fitted.simulate(private, seed=0).values
    # Noise of a tenth of the range: about 0.9 are right; without the other column half.
    assert ((released[:, 0] > 0) == wanted).mean() > 0.8
    server = train_server("boosted", released[:1_000], wanted[:1_000], seed=0)
    assert (server.predict(released[1_000:]) == wanted[1_000:]).mean() > 0.8


@pytest.mark.parametrize("radius", [0.1, {**dict.fromkeys("abcd", 0.1), "sex": 0.0}])
def test_noise_is_put_on_the_columns_that_say_something(radius: object) -> None:
    """Of four numbers the third alone decides, and its noise is the least when it is alone."""
    schema = TabularSchema((*(Numeric(name, 0, 1) for name in "abcd"), SCHEMA.attributes[1]))
    random = np.random.default_rng(0)
    table = np.empty((1_500, 5), dtype=object)
    table[:, :4] = random.random((1_500, 4))
    table[:, 4] = random.choice(["f", "m"], 1_500)
    labels = (table[:, 2].astype(float) > 0.5).astype(np.int64)
    fitted = PowerEncoder(
        epsilon=1.0,
        delta=0.0,
        radius=radius,
        schema=schema,
        mechanism="clear-noise",
        random_state=0,
        training=VectorTraining(epochs=4),
    ).fit(table, labels)
    assert fitted.query_.plan.columns == (2,)
    assert [plan.columns for plan in fitted.considered_] == [(2,), ()]


@pytest.mark.parametrize("radius", [0.1, 0.5, 0.9])
def test_a_code_for_any_two_is_compared_within_every_radius(radius: float) -> None:
    plan = PowerSetting(mechanism="code", epsilon=1.0, delta=0.0, radius=radius)
    assert "code" in compared(plan, SCHEMA)
    assert ("k-norm-l2" in compared(plan, SCHEMA)) is (radius == 0.9)
    only = TabularSchema.numbers(3, 0, 1)
    everything = set(compared(replace(plan, radius=0.1), only))
    assert {"code", "k-norm-l2", "clear-noise"} <= everything
    assert "clear-code" not in everything  # that would be a code of fewer outputs


def test_few_rows_are_compared_across_folds() -> None:
    """What is free decides in the first table. In the second it is many numbers, which noise drowns
    and a code does not. Chance alone would not separate them: .6 nats and .4. In the third most of
    that is lost: the code is ahead by 1.3 standard errors, and the simplest is taken.
    """
    random = np.random.default_rng(0)
    schema = TabularSchema(
        (*(Numeric(f"x{i}", 0, 1) for i in range(8)), Categorical("sex", ("f", "m")))
    )
    rows = np.empty((240, 9), dtype=object)
    rows[:, :8] = random.uniform(size=(240, 8))
    rows[:, 8] = random.choice(["f", "m"], 240)
    free, hidden = rows[:, 8] == "f", rows[:, :8].astype(float).sum(axis=1) > 4.0
    doubtful = hidden ^ (random.random(240) < 0.4)
    cases = ((free, "clear-code", "clear-code"), (hidden, "code", "code"))
    for labels, best, expected in (*cases, (doubtful, "code", "clear-noise")):
        made = encoder(0.4, schema=schema, epsilon=4.0, training=training(epochs=2))
        made.fit(rows, labels)
        assert made.mechanism_ == expected
        assert {plan.mechanism for plan in made.considered_} == {"code", *PROTECTED}
        assert made.considered_[0].mechanism == best
        assert made.considered_[0].utility == max(plan.utility for plan in made.considered_)
