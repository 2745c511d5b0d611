"""Schemas: public units, what is clipped and what is refused, and that one row's code never
depends on another row.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from reticent.core.errors import InvalidInput, InvalidParameter, ReticentError, UnknownName
from reticent.tables.attributes import HALF_ROOT, Categorical, Numeric, OneHot
from reticent.tables.cells import word_of
from reticent.tables.schema import TabularSchema

SCHEMA = TabularSchema(
    (
        Numeric("age", 0, 100),
        Numeric("gain", 0, 1000, scale="log", missing=-1),
        Categorical("work", ("farm", "office", "?")),
        OneHot("zone", ("zone1", "zone2", "zone3")),
    )
)
ROW = st.tuples(
    st.floats(-50, 150),
    st.one_of(st.just(-1.0), st.floats(0, 2000)),
    st.sampled_from(["farm", "office", "?"]),
    st.integers(0, 2),
)


def record(drawn):
    return [*drawn[:3], *np.eye(3)[drawn[3]].tolist()]


@given(ROW, ROW, st.lists(ROW, max_size=3))
def test_one_attribute_is_at_most_one_whatever_the_other_rows(first, second, others) -> None:
    rows = SCHEMA.encode([record(first), record(second), *map(record, others)])
    alone = SCHEMA.encode([record(first)])
    np.testing.assert_array_equal(rows[:1], alone)
    assert SCHEMA.domain.contains(rows).all()
    moved = 0.0
    for _, part, _ in SCHEMA.groups:
        distance = float(np.square(rows[0, part] - rows[1, part]).sum())
        assert distance <= 1 + 1e-12
        moved += distance
    assert np.sqrt(moved) <= SCHEMA.diameter + 1e-12


def test_no_change_of_one_attribute_is_longer_than_one_in_exact_arithmetic() -> None:
    corners = SCHEMA.encode(
        [[0, -1, "farm", 1, 0, 0], [100, 0, "office", 0, 1, 0], [50, 1000, "?", 0, 0, 1]]
    )
    for _, part, _ in SCHEMA.groups:
        for one, other in itertools.combinations(corners[:, part].tolist(), 2):
            distance = sum(
                (Fraction(a) - Fraction(b)) ** 2 for a, b in zip(one, other, strict=True)
            )
            assert distance <= 1
    assert Fraction(SCHEMA.domain.upper[-1]) ** 2 * 2 > 1 - Fraction(1, 10**15)


def test_encoded_values() -> None:
    encoded = SCHEMA.encode([[25, -1, "office", 0, 1, 0], [120, 999, "?", 1, 0, 0]])
    root = np.sqrt(0.5)
    np.testing.assert_allclose(encoded[0], [0.25, 0.5, np.sqrt(0.75), 0, root, 0, 0, root, 0])
    np.testing.assert_allclose(
        encoded[1], [1.0, np.log(1000) / np.log(1001), 0, 0, 0, root, root, 0, 0]
    )
    assert SCHEMA.dimension == 9
    assert SCHEMA.columns == 6
    assert SCHEMA.column_names == ("age", "gain", "work", "zone1", "zone2", "zone3")


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (-1e308, 7.9e307),
        (0.0, 1.79e308),
        (1.0, np.nextafter(1.0, 2.0)),
        (0.0, 2.3e-308),
        (-1e300, -1e299),
    ],
)
def test_every_number_lands_in_the_box_however_wide_or_narrow_the_range(
    lower: float, upper: float, scale: str
) -> None:
    schema = TabularSchema((Numeric("x", lower, upper, scale=scale),))
    values = np.array([lower, 0.5 * lower + 0.5 * upper, upper, -1.7e308, 1.7e308, -0.0, 5e-324])
    encoded = schema.encode(values[:, None])[:, 0]
    assert encoded[[0, 2]].tolist() == [0.0, 1.0]
    assert ((encoded >= 0) & (encoded <= 1)).all()


def test_rows_that_leave_the_box_are_refused_before_anything_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wrong in (np.nan, 1.0 + 2.0**-52, -1e-300):
        monkeypatch.setattr(
            Numeric, "encode", lambda self, rows, wrong=wrong: np.full((len(rows), 1), wrong)
        )
        with pytest.raises(InvalidInput, match="2 of 2 encoded rows left the public box"):
            TabularSchema.numbers(1, 0, 1).encode([[0.5], [0.5]])


def test_numbers_and_words_are_the_same_category() -> None:
    column = TabularSchema((Categorical("grade", (1, 2, 3)),))
    expected = column.encode([[2]])
    for same in (2.0, "2", np.float32(2), np.int8(2)):
        np.testing.assert_array_equal(column.encode([[same]]), expected)
    with_other = TabularSchema((Categorical("grade", ("a", "rest"), other="rest"),))
    assert with_other.encode([["z"]]).argmax() == 1


def one_hot(schema: TabularSchema, rows: list[list[object]]) -> np.ndarray:
    """What ``encode`` has to give, cell by cell."""
    encoded = []
    for row in rows:
        cells, values = iter(row), []
        for attribute in schema.attributes:
            if isinstance(attribute, Numeric):
                values += attribute.encode(np.array([[next(cells)]], dtype=object))[0].tolist()
            elif isinstance(attribute, Categorical):
                cell, words = word_of(next(cells)), [word_of(word) for word in attribute.categories]
                chosen = words.index(cell if cell in words else word_of(attribute.other))
                values += [HALF_ROOT * (place == chosen) for place in range(len(words))]
            else:
                values += [HALF_ROOT * float(next(cells)) for _ in attribute.names]
        encoded.append(values)
    return np.array(encoded)


WIDE = TabularSchema(
    (
        *SCHEMA.attributes,
        Categorical("grade", (1, 2.5, "many"), other="many"),
        Numeric("last", -1, 1),
    )
)


@given(
    st.lists(
        st.tuples(
            ROW,
            st.sampled_from([1, 1.0, "1", 2.5, np.float32(2.5), True, None, "many", 7]),
            st.floats(-2, 2),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_codes_are_the_one_hot_rows(drawn) -> None:
    rows = [[*record(first), grade, last] for first, grade, last in drawn]
    coded = WIDE.code(rows)
    np.testing.assert_array_equal(coded.dense(), one_hot(WIDE, rows))
    np.testing.assert_array_equal(WIDE.encode(rows), one_hot(WIDE, rows))
    assert coded.codes.shape == (len(rows), 3)
    assert WIDE.domain.contains(coded.dense()).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float64, object])
def test_a_table_of_numbers_is_coded_the_same_in_every_format(dtype) -> None:
    schema = TabularSchema(
        (
            Numeric("n", 0, 9),
            Categorical("grade", (1, 2, 3, "?"), other="?"),
            OneHot("zone", ("a", "b", "c")),
        )
    )
    random = np.random.default_rng(0)
    rows = np.column_stack(
        [
            random.integers(0, 10, 20_000),
            random.integers(0, 6, 20_000),
            np.eye(3)[random.integers(0, 3, 20_000)],
        ]
    )
    expected = one_hot(schema, rows[:50].tolist())
    found = schema.encode(rows.astype(dtype))
    np.testing.assert_array_equal(found[:50], expected)
    np.testing.assert_array_equal(found, schema.encode(rows))
    rows[[3, 19_999], 2:] = 0.0  # in the first and the last block
    with pytest.raises(
        InvalidInput, match="expected exactly one 1 per row, 2 of 20000 rows differ"
    ):
        schema.code(rows.astype(dtype))


def test_one_long_word_costs_no_more_than_itself_and_words_keep_their_ends() -> None:
    rows = np.full((20_000, 1), "a", dtype=object)
    rows[7, 0] = "w" * 3_000_000  # as a fixed width, 224 GiB
    column = TabularSchema((Categorical("word", ("a", "b", "?"), other="?"),))
    found = column.encode(rows).argmax(axis=1)
    assert (found[7], np.delete(found, 7).max()) == (2, 0)
    ends = TabularSchema((Categorical("word", ("a", "a\0", "a ")),))
    assert ends.encode([["a\0"], ["a"], ["a "]]).argmax(axis=1).tolist() == [1, 0, 2]


def bad(**changes):
    row = {"age": 30, "gain": 5, "work": "farm", "z1": 1, "z2": 0, "z3": 0, **changes}
    return [list(row.values())]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (bad(work="mine"), "column 'work'"),
        (bad(work=10**5000), "column 'work'"),
        (bad(age=float("nan")), "column 'age'"),
        (bad(age=float("inf")), "column 'age'"),
        (bad(age="old"), "column 'age'"),
        (bad(age=10**400), "column 'age'"),
        (bad(z2=1), "attribute 'zone'"),
        (bad(z1=0.5), "attribute 'zone'"),
        ([[1, 2]], "6 columns"),
        ([], "shape"),
        (np.ones((2, 6), dtype=complex), "Complex"),
        ([np.ma.array(np.ones(6), mask=np.eye(6)[2])], "masked"),
        (csr_array(np.ones((2, 6))), "sparse"),
    ],
)
def test_refuses_without_showing_values(rows, message) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        SCHEMA.encode(rows)
    assert "mine" not in str(caught.value)
    assert "old" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Numeric("x", 1, 1), InvalidParameter, "lower"),
        (lambda: Numeric("x", 0, float("nan")), InvalidParameter, "lower"),
        (lambda: Numeric("x", -1e308, 1e308), InvalidParameter, "upper"),
        (lambda: Numeric("x", 0, 5e-324, scale="log"), InvalidParameter, "upper"),
        (lambda: Numeric("x", 0, 10**400), InvalidParameter, "upper"),
        (lambda: Numeric("x", "0", 1), InvalidParameter, "lower='0'"),
        (lambda: Numeric("x", 0, 1, scale="root"), UnknownName, "scale='root'"),
        (lambda: Numeric("x", 0, 1, missing=float("nan")), InvalidParameter, "missing"),
        (lambda: Categorical("x", ("1", 1)), InvalidParameter, "categories"),
        (lambda: Categorical("x", (3, 3.0)), InvalidParameter, "categories"),
        (lambda: Categorical("x", "abc"), InvalidParameter, "categories"),
        (lambda: Categorical("x", (1, "b"), other=True), InvalidParameter, "other=True"),
        (lambda: OneHot("x", ("a",)), InvalidParameter, "two columns"),
        (lambda: TabularSchema(()), InvalidParameter, "attribute"),
        (lambda: TabularSchema((Numeric("x", 0, 1),) * 2), InvalidParameter, "name"),
        (lambda: TabularSchema.from_dict({"attributes": [{"kind": "date"}]}), InvalidInput, "date"),
    ],
)
def test_schemas_that_are_not(make, error: type[ReticentError], message) -> None:
    with pytest.raises(error, match=message):
        make()
