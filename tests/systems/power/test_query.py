"""Fitted releases of table rows without training: what neighbours are, what adds up, and what is
refused when it is loaded.
"""

from __future__ import annotations

import copy
import re
import tracemalloc
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core import Guarantee, Neighborhood, Norm, Replace
from reticent.core.errors import CorruptBundle, IncompatibleGuarantees
from reticent.core.scopes import Scope
from reticent.ledger.ledger import Ledger
from reticent.networks import Affine, Network
from reticent.networks.sorting import pair_sort
from reticent.noise import SeededSampler
from reticent.release.bundle import Bundle
from reticent.systems.power.cards import power_card
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.query import PowerQuery, PowerSetting
from reticent.tables.attributes import Categorical, Numeric
from reticent.tables.schema import TabularSchema
from tests.release.asking import asked

SCHEMA = TabularSchema(
    (Numeric("a", 0, 10), Numeric("b", -1, 1), Categorical("c", ("x", "y", "z")))
)


def query(schema: TabularSchema = SCHEMA, **changes: Any) -> PowerQuery:
    plan = PowerSetting(
        **{"mechanism": "k-norm-l2", "epsilon": 3.0, "delta": 0.0, "radius": 0.3, **changes}
    )
    first = np.eye(2, schema.dimension)
    return PowerQuery(
        schema,
        Network(
            (Affine(first, np.zeros(2)), pair_sort(2), Affine(np.eye(2), np.ones(2))),
            (schema.dimension,),
        ),
        plan,
    )


def test_costs_within_a_radius_add_up_within_one_schema_only(tmp_path: Path) -> None:
    wide = TabularSchema(
        (Numeric("a", 0, 1e9), Numeric("b", -1, 1), Categorical("c", ("x", "y", "z")))
    )
    same = TabularSchema(
        (Numeric("a", 0.0, 10.0), Numeric("b", -1, 1), Categorical("c", ("x", "y", "z")))
    )
    one, other = query(), query(wide)
    # Ten apart in "a": neighbours under the wide schema, as far apart as can be under the other.
    rows = [[0, 0, "x"], [10, 0, "x"]]
    assert [np.ptp(schema.encode(rows)[:, 0]) < 0.3 for schema in (SCHEMA, wide)] == [False, True]
    assert one.adjacency == query(same).adjacency
    assert one.adjacency != other.adjacency
    assert SCHEMA.digest[:16] in one.mechanism.guarantee.describe()
    mechanisms = [query(radius=radius).mechanism for radius in (0.3, None)]
    reach = [mechanism.sensitivity for mechanism in mechanisms]
    assert reach == pytest.approx([0.3, np.sqrt(3)], rel=1e-8)
    assert query(radius=None).adjacency == query(wide, radius=None).adjacency == Replace(1)
    scope = Scope(principal="clinic", subject="patients")
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(scope, Guarantee(100.0, 1e-9, one.adjacency))
        books = {"ledger": ledger, "scope": scope}
        assert asked(one, SCHEMA.encode(rows), **books).receipt.booked
        with pytest.raises(IncompatibleGuarantees):
            asked(other, wide.encode(rows), **books)


def test_the_offset_of_the_lipschitz_statement_is_on_the_card() -> None:
    for epsilon in (0.01, 3.0):
        found = query(epsilon=epsilon)
        card = power_card(found)
        shown = re.search(r"e\^\((.*) r / 0.3 \+ (.*)\): Lipschitz", card.protected)
        assert shown is not None
        assert float(shown[1]) == epsilon
        offset = found.mechanism.metric_offset
        assert offset <= float(shown[2]) <= 1.1 * offset
    assert "Lipschitz" not in power_card(query(mechanism="gaussian", delta=1e-5)).protected


def test_the_digest_of_a_schema_is_of_what_it_says() -> None:
    # SHA-256 of the canonical text, by coreutils: printf '%s' '{"attributes":[...],"encoding":1}' |
    # sha256sum.
    short = TabularSchema((Numeric("x0", 0, 1),))
    assert short.to_dict() == {
        "note": "",  # which is for readers, and no part of the digest
        "attributes": [
            {
                "kind": "numeric",
                "name": "x0",
                "lower": 0,
                "upper": 1,
                "scale": "linear",
                "missing": None,
            }
        ],
    }
    assert short.digest == "bf7ccfef5c0744db75352a135db4ba51"
    assert query().adjacency == Neighborhood(
        Norm.L2,
        0.3,
        "encoded record, in public units: a change of any one attribute moves it by at most 1",
        SCHEMA.digest,
    )


def plan(**changes: Any) -> Any:
    return lambda settings, arrays: settings["plan"].update(changes)


def layers(index: int, value: Any) -> Any:
    return lambda settings, arrays: settings["network"]["layers"].__setitem__(index, value)


def attribute(index: int, **changes: Any) -> Any:
    return lambda settings, arrays: settings["schema"]["attributes"][index].update(changes)


def scaled(factor: float) -> Any:
    return lambda settings, arrays: arrays.update(
        {"encoder.0.weight": factor * arrays["encoder.0.weight"]}
    )


SPOILT = {
    "utility in words": plan(utility="high"),
    "a code without a table": plan(mechanism="code"),
    "radius beyond the grid": plan(radius=1e300),
    "epsilon below the noise's resolution": plan(epsilon=1e-9),
    "delta below the grid's resolution": plan(mechanism="gaussian", delta=1e-49, epsilon=1e-9),
    "an unknown activation": layers(1, {"type": "activation", "kind": "sine"}),
    "an empty branch": layers(1, {"type": "residual", "branch": []}),
    "a schema of another width": lambda settings, arrays: settings["schema"]["attributes"].pop(),
    "a range whose width overflows": attribute(0, lower=-1e308, upper=1e308),
    "weights that are too large": scaled(1e200),
    "weights of zeros": scaled(0.0),
    "no labels": lambda settings, arrays: settings.pop("labels"),
    "names of other columns": lambda settings, arrays: settings.update(feature_names=["a"] * 9),
}


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_bundle_that_cannot_answer_is_refused_when_it_is_loaded(
    spoil: Any, tmp_path: Path
) -> None:
    settings, arrays = query().describe()
    settings |= {"labels": ["no", "yes"], "feature_names": None}
    Bundle("PowerEncoder", settings, arrays, "# card").write(tmp_path / "good")
    assert PowerEncoder.load(tmp_path / "good").release([[5, 0, "x"]]).values.shape == (1, 2)
    settings = copy.deepcopy(settings)
    spoil(settings, arrays)
    Bundle("PowerEncoder", settings, arrays, "# card").write(tmp_path / "bad")
    with pytest.raises(CorruptBundle):
        PowerEncoder.load(tmp_path / "bad")


MECHANISMS = (
    {"mechanism": "k-norm-l2"},
    {"mechanism": "gaussian", "delta": 1e-6, "epsilon": 0.9},
)


def rows_of(count: int, *, schema: TabularSchema = SCHEMA) -> np.ndarray:
    random = np.random.default_rng(3)
    rows = np.empty((count, schema.columns), dtype=object)
    for column, attribute in enumerate(schema.attributes):
        if isinstance(attribute, Categorical):
            rows[:, column] = random.choice(
                np.array(attribute.categories, dtype=object), size=count
            )
        else:
            rows[:, column] = random.uniform(-2, 12, size=count)
    return rows


def wide_query(**changes: Any) -> PowerQuery:
    """Eight words of 5 to 40 kinds and six numbers, through 64 and 64 sorted units."""
    words = (
        Categorical(f"w{kinds}", tuple(f"{kinds}-{word}" for word in range(kinds)))
        for kinds in range(5, 45, 5)
    )
    schema = TabularSchema((*words, *(Numeric(f"n{index}", 0, 10) for index in range(6))))
    random = np.random.default_rng(4)
    first = np.linalg.qr(random.normal(size=(schema.dimension, 64)))[0].T
    middle = np.linalg.qr(random.normal(size=(64, 64)))[0]
    layers = (
        Affine(first, random.normal(size=64)),
        pair_sort(64),
        Affine(middle, np.zeros(64)),
        pair_sort(64),
        Affine(middle[:4], np.zeros(4)),
    )
    return PowerQuery(
        schema, Network(layers, (schema.dimension,)), replace(query().plan, **changes)
    )


@pytest.mark.parametrize("changes", MECHANISMS, ids=lambda changes: changes["mechanism"])
def test_codes_are_answered_as_whole_rows_are_and_every_row_alone(changes: dict[str, Any]) -> None:
    asked = wide_query(**changes)
    table = rows_of(1500, schema=asked.schema)  # more than one block
    codes, whole = asked.encode(table), asked.schema.encode(table)
    values = asked.exact(codes)
    for size in (1, 7, 100):
        parts = [
            asked.exact(asked.encode(table[:100][start : start + size]))
            for start in range(0, 100, size)
        ]
        np.testing.assert_array_equal(np.concatenate(parts), values[:100])
    # Whole rows are added in another order: the same to within twice the error that noise is scaled
    # for.
    error = 2 * asked.network.rounding_error(asked.schema.domain)
    for exact in (asked.exact(whole), asked.network.forward(whole)):
        np.testing.assert_allclose(values, exact, rtol=0, atol=error)
    answers = [asked.answer(inputs, sampler=SeededSampler(1)) for inputs in (codes, whole)]
    np.testing.assert_array_equal(
        answers[0][0], answers[1][0]
    )  # the grid of the noise is a million times coarser
    assert not answers[0][1].any()


@pytest.mark.parametrize("changes", MECHANISMS, ids=lambda changes: changes["mechanism"])
def test_no_whole_rows_are_in_memory_at_once(changes: dict[str, Any]) -> None:
    asked = wide_query(**changes)
    table = rows_of(20_000, schema=asked.schema)
    asked.answer(asked.encode(table[:10]), sampler=SeededSampler(0))
    tracemalloc.start()
    asked.answer(asked.encode(table), sampler=SeededSampler(0))
    peak = tracemalloc.get_traced_memory()[1] / len(table)
    tracemalloc.stop()
    assert asked.schema.dimension * 8 > 1400  # what one whole row would take
    assert peak < 500
