"""Which coordinates are free, how far neighbours are apart in steps, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from reticent.core import Neighborhood, Norm
from reticent.core.errors import InvalidParameter
from reticent.systems.power.protection import UNIT, AttributeRadii, Protection, encoded_radius
from reticent.tables import Categorical, Numeric, TabularSchema
from reticent.tables.attributes import Instant, Ordered
from tests.systems.power.made import RADII, SCHEMA, neighbour, rows


def apart(protection: Protection, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """How far rows of steps are apart in the norm of neighbours."""
    order = 2 if protection.norm is Norm.L2 else np.inf
    return np.linalg.norm(first - second, ord=order, axis=1)


def test_what_is_free_is_what_neighbours_agree_in() -> None:
    protection = Protection(SCHEMA, AttributeRadii.of(RADII, SCHEMA))
    first = SCHEMA.encode(rows(500, seed=0))
    for seed in range(20):
        near = SCHEMA.encode(neighbour(rows(500, seed=0), RADII, seed=seed))
        assert np.array_equal(first[:, protection.free], near[:, protection.free])
    # sex (2), the mark of a missing score; age, income, town (3), score, grade are protected
    assert len(protection.free) == 3
    assert len(protection.protected) == 7


def test_steps_of_neighbours_are_within_the_bound_and_reach_it() -> None:
    """Against neighbours made in the table's own units."""
    protection = Protection(SCHEMA, AttributeRadii.of(RADII, SCHEMA))
    table = rows(4_000, seed=1)
    first = protection.steps(SCHEMA.encode(table))
    largest = 0.0
    for seed in range(8):
        near = protection.steps(SCHEMA.encode(neighbour(table, RADII, seed=seed)))
        largest = max(largest, float(apart(protection, first, near).max()))
    assert 0.999 * UNIT < largest <= protection.largest_step


def test_to_any_value_includes_that_a_number_is_missing() -> None:
    protection = Protection(SCHEMA, AttributeRadii.of({**RADII, "score": math.inf}, SCHEMA))
    table = rows(2_000, seed=1)
    near = table.copy()
    near[:, 4] = np.random.default_rng(0).permutation(table[:, 4])
    assert (table[:, 4] == -9.0).any()
    first, second = SCHEMA.encode(table), SCHEMA.encode(near)
    assert np.array_equal(first[:, protection.free], second[:, protection.free])
    steps = [protection.steps(side) for side in (first, second)]
    assert apart(protection, *steps).max() <= protection.largest_step


def test_within_an_l2_radius_categories_are_free() -> None:
    protection = Protection(SCHEMA, 0.1)
    assert protection.norm is Norm.L2
    assert len(protection.protected) == 4  # age, income, score, grade
    table = SCHEMA.encode(rows(2_000, seed=2))
    random = np.random.default_rng(3)
    moves = random.normal(size=(len(table), 4))
    moves *= 0.1 / np.linalg.norm(moves, axis=1, keepdims=True)
    near = table.copy()
    near[:, protection.protected] = np.clip(near[:, protection.protected] + moves, 0, 1)
    moved = apart(protection, protection.steps(table), protection.steps(near)).max()
    assert 0.999 * UNIT < moved <= protection.largest_step


@pytest.mark.parametrize(
    ("attribute", "radius"),
    [
        (Numeric("x", 0, 100), 7.0),
        (Numeric("x", -17, 90), 3.1),
        (Numeric("x", 18, 90), 5.0),
        (Numeric("x", 0, 99_999, scale="log"), 1_000.0),
    ],
)
def test_neighbours_that_rounding_drives_apart_are_within_the_bound(
    attribute: Numeric, radius: float
) -> None:
    """Values whose steps are whole but for rounding: some neighbours are a step further apart than
    a radius has steps, and the bound knows it.
    """
    schema = TabularSchema((attribute,))
    protection = Protection(schema, AttributeRadii.of({"x": radius}, schema))
    start = attribute.lower if attribute.scale == "linear" else 0.0
    near = start + np.arange(40_000) * (radius / UNIT)
    exact = [Fraction(value) + Fraction(radius) for value in near.tolist()]
    other = np.array([float(value) for value in exact])
    over = [Fraction(value) > limit for value, limit in zip(other.tolist(), exact, strict=True)]
    other = np.where(over, np.nextafter(other, -np.inf), other)
    inside = other <= attribute.upper
    near, other = near[inside], other[inside]
    assert all(
        Fraction(second) - Fraction(first) <= Fraction(radius)
        for first, second in zip(near.tolist(), other.tolist(), strict=True)
    )
    first, second = (protection.steps(schema.encode(part[:, None])) for part in (near, other))
    moved = int(np.abs(second - first).max())
    assert moved <= protection.largest_step
    if attribute.scale == "linear":
        assert moved > UNIT


def test_many_coordinates_that_are_rounded_down_are_within_the_bound() -> None:
    """63 coordinates, each a hair more than 516 steps apart and rounded to 517."""
    radius, number = 0.1, 63
    schema = TabularSchema.numbers(number, 0, 1)
    protection = Protection(schema, radius)
    gap = radius / math.sqrt(number) * (1 - 2.0**-40)
    first = np.array([(3000 + place + 0.97) / (UNIT / radius) for place in range(number)])
    second = first + gap
    distance = sum(
        (Fraction(b) - Fraction(a)) ** 2
        for a, b in zip(first.tolist(), second.tolist(), strict=True)
    )
    assert distance <= Fraction(radius) ** 2
    steps = [protection.steps(side[None]) for side in (first, second)]
    assert (steps[1] - steps[0] == 517).all()
    moved = float(apart(protection, *steps)[0])
    # a radius alone would not be enough
    assert UNIT + math.isqrt(number) - 1 < moved <= protection.largest_step


def test_a_one_hot_code_has_whole_steps() -> None:
    schema = TabularSchema((Categorical("town", ("a", "b", "c")),))
    protection = Protection(schema, AttributeRadii.of({"town": math.inf}, schema))
    assert protection.steps(schema.encode([["b"]])).tolist() == [[0, UNIT, 0]]


@pytest.mark.parametrize(
    ("attribute", "radius", "share"),
    [
        (Numeric("x", 10, 20), 2.0, 0.2),
        (Numeric("x", 10, 20), 50.0, 1.0),
        (Numeric("x", 0, math.e - 1, scale="log"), math.sqrt(math.e) - 1, 0.5),
        (Ordered("x", ("a", "b", "c")), 1.5, 0.5),
        (Instant("x", "2020-01-01", "2020-01-11"), 1.0, 0.1),
        (Categorical("x", ("a", "b")), math.inf, 1.0),
        (Categorical("x", ("a", "b")), 0.0, 0.0),
    ],
)
def test_radii_are_in_the_columns_own_units(attribute, radius: float, share: float) -> None:
    assert encoded_radius(attribute, radius) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize(
    ("radii", "words"),
    [
        ({"age": 5.0}, "missing: income, sex"),
        ({**RADII, "shoe": 1.0}, "unknown: shoe"),
        ({**RADII, "sex": 0.5}, "a category has no distances"),
        ({**RADII, "age": math.nan}, "at least 0"),
        ({**RADII, "age": 1e-6}, "1/65536"),
        (dict.fromkeys(RADII, 0.0), "nothing is protected"),
    ],
)
def test_radii_that_make_no_sense_are_refused(radii: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        AttributeRadii.of(radii, SCHEMA)


def test_an_l2_radius_that_reaches_categories_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"radius=0\.9"):
        Protection(SCHEMA, 0.9)


def test_costs_add_up_within_the_same_radii_alone() -> None:
    here = Protection(SCHEMA, AttributeRadii.of(RADII, SCHEMA)).adjacency
    same = Protection(SCHEMA, AttributeRadii.of(dict(reversed(RADII.items())), SCHEMA)).adjacency
    wider = AttributeRadii.of({**RADII, "age": 6.0}, SCHEMA)
    assert isinstance(here, Neighborhood)
    assert here == same
    assert here != Protection(SCHEMA, wider).adjacency
    other = TabularSchema((Numeric("age", 0, 90), *SCHEMA.attributes[1:]))
    assert here != Protection(other, AttributeRadii.of(RADII, other)).adjacency
