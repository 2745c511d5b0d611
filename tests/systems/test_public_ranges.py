"""A scaler that no row has a say in."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.systems import CertifiedClassifier, ClippedDescent, PublicRanges
from reticent.tables import Categorical, Numeric, TabularSchema

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 3)) * [1.0, 10.0, 100.0]
Y = (X[:, 0] > 0).astype(int)
RANGES = ([-3.0, -30.0, -300.0], [3.0, 30.0, 300.0])


def test_the_ranges_become_one_range_and_beyond_it_is_its_end() -> None:
    scaler = PublicRanges(([0.0, -10.0], [1.0, 30.0]), to=(0.0, 2.0)).fit([[0.0, 0.0]])
    assert scaler.transform([[0.0, -10.0], [0.5, 10.0], [7.0, -1.7e308]]).tolist() == [
        [0.0, 0.0],
        [1.0, 1.0],
        [2.0, 0.0],
    ]
    assert scaler.get_feature_names_out().tolist() == ["x0", "x1"]


def test_one_record_moves_no_other_record_as_a_fitted_scaler_lets_it() -> None:
    neighbour = np.concatenate([X, [[1e4, 1e4, 1e4]]])
    ours = [PublicRanges(RANGES).fit_transform(records)[:300] for records in (X, neighbour)]
    np.testing.assert_array_equal(*ours)
    theirs = [StandardScaler().fit_transform(records)[:300] for records in (X, neighbour)]
    assert np.abs(theirs[0] - theirs[1]).max() > 1.0


def test_it_stands_in_a_pipeline_and_keeps_everything_within_the_bound() -> None:
    classifier = CertifiedClassifier(
        epsilon=1.0, classes=[0, 1], k_max=5, training=ClippedDescent(input_bound=1.0)
    )
    model = make_pipeline(PublicRanges(RANGES), classifier).fit(X, Y)
    assert model[-1].clipped_ == 0
    assert (model.predict(X) == Y).mean() > 0.8
    with pytest.warns(UserWarning, match=r"X: \d+ of 900 feature values lie beyond input_bound=1"):
        bare = clone(classifier).fit(X, Y)
    assert bare.clipped_ == int((np.abs(X) > 1).sum())
    receipt = (
        str(bare.release(X[:2]).receipt.to_dict())
        + str(bare.bundle().settings)
        + bare.card().to_markdown()
    )
    # As a number of its own: its digits may stand in a digest or in a time by chance.
    assert not re.search(rf"(?<![\w.:-]){bare.clipped_}(?![\w.:-]\w)", receipt)
    assert re.search(rf"(?<![\w.:-]){bare.clipped_}(?![\w.:-]\w)", f"n={bare.clipped_}.")


def test_a_schema_is_encoded_into_the_range() -> None:
    schema = TabularSchema((Numeric("age", 0, 100), Categorical("sex", ("f", "m"))))
    scaler = PublicRanges(schema).fit([[3, "f"]])
    np.testing.assert_allclose(
        scaler.transform([[50, "m"], [500, "f"]]), [[0.0, -1.0, 1.0], [1.0, 1.0, -1.0]], atol=1e-12
    )
    assert scaler.get_feature_names_out().tolist() == ["age_0", "sex_0", "sex_1"]


@pytest.mark.parametrize(
    ("settings", "rows", "error", "message"),
    [
        ({"ranges": (0.0,)}, X, InvalidParameter, "ranges: expected a pair"),
        ({"ranges": (1.0, 0.0)}, X, InvalidParameter, "lower < upper"),
        ({"ranges": (0.0, np.nan)}, X, InvalidParameter, "finite ends"),
        ({"ranges": ([0.0, 0.0], [1.0, 1.0])}, X, InvalidParameter, "each of 3 columns"),
        ({"ranges": RANGES, "to": (1.0, 1.0)}, X, InvalidParameter, "finite lower < upper"),
        ({"ranges": RANGES}, np.where(X > 2, np.nan, X), InvalidInput, "contains NaN"),
    ],
)
def test_what_is_no_range_is_refused(
    settings: dict[str, Any], rows: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PublicRanges(**settings).fit(rows)
