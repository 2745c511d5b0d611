"""A scaler that no row has a say in."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from reticent.systems import PublicRanges
from reticent.tables import Categorical, Numeric, TabularSchema

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 3)) * [1.0, 10.0, 100.0]
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


def test_a_schema_is_encoded_into_the_range() -> None:
    schema = TabularSchema((Numeric("age", 0, 100), Categorical("sex", ("f", "m"))))
    scaler = PublicRanges(schema).fit([[3, "f"]])
    np.testing.assert_allclose(
        scaler.transform([[50, "m"], [500, "f"]]), [[0.0, -1.0, 1.0], [1.0, 1.0, -1.0]], atol=1e-12
    )
    assert scaler.get_feature_names_out().tolist() == ["age_0", "sex_0", "sex_1"]
