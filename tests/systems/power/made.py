"""Releases with free attributes that were not trained, for tests of what holds for any weights."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

from reticent.networks import Network, affine_chain
from reticent.systems.power.clear_query import LikeliestQuery, ProtectedQuery
from reticent.systems.power.protection import AttributeRadii, Protection
from reticent.systems.power.query import PowerSetting
from reticent.tables import Categorical, Numeric, TabularSchema
from reticent.tables.attributes import Ordered
from reticent.training.public_forest import Forest
from reticent.training.public_models import BoostedTrees

SCHEMA = TabularSchema(
    (
        Numeric("age", 0, 100),
        Numeric("income", 0, 99_999, scale="log"),
        Categorical("sex", ("f", "m")),
        Categorical("town", ("a", "b", "c")),
        Numeric("score", -1, 1, missing=-9.0),
        Ordered("grade", ("low", "middle", "high", "top")),
    )
)
RADII = {
    "age": 5.0,
    "income": 1_000.0,
    "sex": 0.0,
    "town": float("inf"),
    "score": 0.1,
    "grade": 1.0,
}


def rows(count: int, *, seed: int) -> np.ndarray:
    """Rows of ``SCHEMA``, shape (count, 6)."""
    random = np.random.default_rng(seed)
    table = np.empty((count, 6), dtype=object)
    table[:, 0] = random.uniform(0, 100, count)
    table[:, 1] = np.exp(random.uniform(0, 11.5, count)) - 1
    table[:, 2] = random.choice(["f", "m"], count)
    table[:, 3] = random.choice(["a", "b", "c"], count)
    table[:, 4] = np.where(random.random(count) < 0.2, -9.0, random.uniform(-1, 1, count))
    table[:, 5] = random.choice(["low", "middle", "high", "top"], count)
    return table


def made_query(
    radius: float | dict[str, float],
    *,
    epsilon: float = 1.0,
    seed: int = 0,
    schema: TabularSchema = SCHEMA,
    columns: tuple[int, ...] = (),
) -> ProtectedQuery:
    """A release with a model of random weights."""
    shared = AttributeRadii.of(radius, schema) if isinstance(radius, dict) else radius
    protection = Protection(schema, shared)
    plan = PowerSetting(
        mechanism="clear-noise", epsilon=epsilon, delta=0.0, radius=shared, columns=columns
    )
    inputs = 1 + len(protection.free) + (len(columns) or len(protection.protected))
    return ProtectedQuery(schema, _network(np.random.default_rng(seed), inputs, 1), plan)


def made_likeliest(
    radius: float | dict[str, float],
    *,
    epsilon: float = 1.0,
    candidates: int = 2,
    choice: str = "likeliest",
    classes: int = 3,
    seed: int = 0,
) -> LikeliestQuery:
    """A release whose models learnt labels that follow the age, the town, the sex and the grade."""
    shared = AttributeRadii.of(radius, SCHEMA) if isinstance(radius, dict) else radius
    protection = Protection(SCHEMA, shared)
    table = rows(600, seed=seed)
    town = np.searchsorted(["a", "b", "c"], table[:, 3].astype(str))
    old = table[:, 0].astype(float) > np.where(table[:, 2] == "f", 40, 60)
    labels = (town + old + (table[:, 5] == "top")) % classes
    encoded = SCHEMA.encode(table)
    booster = HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=4)
    forest = ExtraTreesClassifier(8, random_state=seed).fit(encoded, labels)
    hits = np.full((candidates + 1, candidates), 1.0) + 2.0 * np.eye(candidates + 1, candidates)
    plan = PowerSetting(
        mechanism="clear-code",
        epsilon=epsilon,
        delta=0.0,
        radius=shared,
        candidates=candidates,
        choice=choice,
    )
    return LikeliestQuery(
        SCHEMA,
        BoostedTrees.from_sklearn(booster.fit(protection.given(encoded), labels)),
        Forest.from_sklearn(forest, classes=classes),
        hits / hits.sum(axis=1, keepdims=True),
        plan,
    )


def _network(random: np.random.Generator, inputs: int, outputs: int) -> Network:
    return affine_chain(
        [random.normal(size=(8, inputs)), random.normal(size=(outputs, 8))],
        [random.normal(size=8), random.normal(size=outputs)],
    )


def neighbour(table: np.ndarray, radii: dict[str, float], *, seed: int) -> np.ndarray:
    """Rows that differ in every protected attribute by its radius, in the table's own units: an
    oracle that knows nothing of encodings.
    """
    random = np.random.default_rng(seed)
    near = table.copy()
    for place, name in enumerate(("age", "income", "sex", "town", "score", "grade")):
        radius = radii[name]
        if not radius:
            continue
        if name in ("sex", "town"):
            words = ("f", "m") if name == "sex" else ("a", "b", "c")
            near[:, place] = random.choice(words, len(table))
        elif name == "grade":
            ranks = np.array([("low", "middle", "high", "top").index(word) for word in table[:, 5]])
            moved = np.clip(ranks + random.integers(-1, 2, len(table)), 0, 3)
            near[:, place] = np.array(["low", "middle", "high", "top"])[moved]
        else:
            values = table[:, place].astype(float)
            moved = values + radius * random.choice([-1.0, 1.0], len(table))
            near[:, place] = np.where(values == -9.0, values, moved)
    return near
