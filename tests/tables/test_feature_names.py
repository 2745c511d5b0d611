"""Columns by name: a data frame with other columns, or in another order, is refused wherever it
is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from reticent.core.errors import InvalidInput
from reticent.systems import (
    Calibration,
    CertifiedClassifier,
    LabelAware,
    NearestRowClassifier,
    Neighbours,
    NoiseAware,
    PosthocClassifier,
    PosthocEncoder,
    PowerEncoder,
    PrivateKNNClassifier,
    PublicRanges,
    VectorTraining,
)
from reticent.tables import Numeric, TabularSchema
from reticent.tables.frames import names_of


class Frame:
    """What estimators use of a data frame: column names, and an array."""

    def __init__(self, values: Any, columns: Any) -> None:
        self.values, self.columns = np.asarray(values, dtype=float), columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values.astype(dtype or float)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


NAMES = ["age", "height", "weight", "pulse"]
VALUES = np.random.default_rng(0).random((60, 4))
Y = (VALUES[:, 0] > 0.5).astype(int)
FRAME = Frame(VALUES, NAMES)
SMALL: dict[str, Any] = {"epochs": 2, "random_state": 0, "hidden": (8,)}
POSTHOC: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 0.0,
    "radius": 0.2,
    "embedder": "identity",
    "random_state": 0,
}
TRAINING: dict[str, Any] = {"hidden": (8,), "epochs": 2}
POWER: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 0.0,
    "radius": None,
    "mechanism": "code",
    "training": VectorTraining(head_epochs=1, epochs=2, hidden=(8,)),
    "random_state": 0,
}
KNN: dict[str, Any] = {
    "epsilon": 9.0,
    "delta": 1e-5,
    "neighbours": Neighbours(number=3, sampling_probability=0.5),
    "classes": [0, 1],
}
SCHEMA = TabularSchema(tuple(Numeric(name, 0.0, 1.0) for name in NAMES))

Fit = Callable[[Any], Any]
FITS: dict[str, Fit] = {
    "posthoc encoder": lambda X: PosthocEncoder(
        **POSTHOC,
        obfuscator=NoiseAware(outputs=2, **TRAINING),
        mechanism="laplace",
        calibration=Calibration(head_epochs=1),
    ).fit(X, Y),
    "posthoc classifier": lambda X: PosthocClassifier(
        **POSTHOC, classifier=LabelAware(**TRAINING), mechanism="softmax"
    ).fit(X, Y),
    "nearest row": lambda X: NearestRowClassifier(
        epsilon=2.0, nodes=20, neighbours=2, classifier=GaussianNB()
    ).fit(X, Y),
    "certified": lambda X: CertifiedClassifier(epsilon=1.0, classes=[0, 1], k_max=1).fit(X, Y),
    "neighbours": lambda X: PrivateKNNClassifier(**KNN, queries=60, feature_range=(0.0, 1.0)).fit(
        X, Y
    ),
    "power": lambda X: PowerEncoder(**POWER, schema=(0.0, 1.0)).fit(X, Y),
    "power with a schema": lambda X: PowerEncoder(**POWER, schema=SCHEMA).fit(X, Y),
    "ranges": lambda X: PublicRanges((0.0, 1.0)).fit(X),
    "ranges of a schema": lambda X: PublicRanges(SCHEMA).fit(X),
}
on_frame = cache(lambda name: FITS[name](FRAME))


def ask(system: Any, X: Any) -> Any:
    if isinstance(system, PublicRanges):
        return system.transform(X)
    return system.simulate(X, seed=0).values


@pytest.mark.parametrize("name", FITS)
def test_permuted_columns_are_put_in_order_and_others_refused_in_one_line(name: str) -> None:
    system = on_frame(name)
    assert system.feature_names_in_.tolist() == NAMES
    expected = ask(system, FRAME)
    order = [2, 0, 3, 1]
    permuted = Frame(VALUES[:, order], [NAMES[place] for place in order])
    np.testing.assert_array_equal(ask(system, permuted), expected)
    for columns, refused in (
        (["age", "height", "weight", "blood"], "unknown 'blood', missing 'pulse'"),
        (["age", "age", "weight", "pulse"], "more than one column 'age'"),
        (["age", "height", "weight"], "missing 'pulse'"),
        ([*NAMES, "blood"], "unknown 'blood'"),
    ):
        with pytest.raises(InvalidInput, match=refused) as found:
            ask(system, Frame(VALUES[:, [0] * len(columns)], columns))
        assert "\n" not in str(found.value)


@pytest.mark.parametrize("name", FITS)
def test_an_array_and_a_frame_are_not_mixed(name: str) -> None:
    system = on_frame(name)
    if name != "ranges of a schema":  # which knows its columns by position as well
        with pytest.raises(InvalidInput, match="has no column names"):
            ask(system, VALUES)
    positional = FITS[name](VALUES)
    assert not hasattr(positional, "feature_names_in_")
    if "schema" in name:  # which has names, whatever it was fitted on
        np.testing.assert_array_equal(ask(positional, FRAME), ask(positional, VALUES))
        return
    with pytest.raises(InvalidInput, match="has column names"):
        ask(positional, FRAME)


@pytest.mark.parametrize("name", ["posthoc encoder", "certified", "power"])
def test_names_travel_with_the_bundle(name: str, tmp_path: Path) -> None:
    system = on_frame(name)
    loaded = type(system).load(system.save(tmp_path / "bundle"))
    assert loaded.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(
        ask(loaded, Frame(VALUES[:, ::-1], NAMES[::-1])), ask(system, FRAME)
    )


def test_a_schema_refuses_a_frame_with_other_columns() -> None:
    assert SCHEMA.encode(FRAME).shape == (60, 4)
    for refuse in (
        SCHEMA.encode,
        lambda frame: PowerEncoder(**POWER, schema=SCHEMA).fit(frame, Y),
        lambda frame: PublicRanges(SCHEMA).fit(frame),
    ):
        with pytest.raises(InvalidInput, match="X: expected the columns of the schema; missing 'a"):
            refuse(Frame(VALUES[:, 1:], NAMES[1:]))
    permuted = Frame(VALUES[:, ::-1], NAMES[::-1])
    np.testing.assert_array_equal(SCHEMA.encode(permuted), SCHEMA.encode(FRAME))


@pytest.mark.parametrize(
    ("columns", "found"),
    [(None, None), ("age", None), (7, None), ([0, 1], None), (["a", "b"], ["a", "b"])],
)
def test_names_are_texts(columns: Any, found: Any) -> None:
    names = names_of(Frame([[1.0, 2.0]], columns))
    assert (None if names is None else names.tolist()) == found
    with pytest.raises(InvalidInput, match="1 of 2 column names are texts"):
        names_of(Frame([[1.0, 2.0]], ["a", 1]))
