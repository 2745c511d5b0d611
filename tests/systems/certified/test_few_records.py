"""Data sets of no record, one and two are data sets like any other."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reticent.core.errors import InvalidInput
from reticent.release.fits import not_counted
from reticent.systems import (
    CertifiedClassifier,
    CertifiedEnsemble,
    CertifiedNetwork,
    ClippedDescent,
    ConvexCertifiedClassifier,
    HiddenLayer,
    PublicReference,
)

QUERIES = np.array([[2.0, 2.0], [-2.0, 1.0], [0.0, 0.0], [0.1, -0.1]])
RECORDS = [((2.0, 2.0), 1), ((-2.0, -2.0), 0), ((-2.0, -2.0), 1), ((1e6, 0.0), 0)]
"""With contradicting labels, and far outside of the public range."""

PUBLIC = np.random.default_rng(0).normal(size=(60, 2)) * 2.0
SIDES = (PUBLIC[:, 0] > 0.3).astype(int)
BESIDE = PublicReference(models=[LogisticRegression()], rows="embedding")

KINDS: dict[str, Any] = {
    "linear": lambda: CertifiedClassifier(
        epsilon=1.0, classes=[0, 1], k_max=3, training=ClippedDescent(clip=1.0)
    ),
    "hidden": lambda: CertifiedClassifier(
        epsilon=1.0, classes=[0, 1], k_max=3, training=ClippedDescent(hidden=(2,), random_state=0)
    ),
    "missing class": lambda: CertifiedClassifier(epsilon=1.0, classes=[0, 1, 2], k_max=3),
    "ensemble": lambda: CertifiedEnsemble(epsilon=1.0, classes=[0, 1], k_max=3, members=3),
    "convex": lambda: ConvexCertifiedClassifier(
        epsilon=1.0, classes=[0, 1], regularization=2.0, norm_bound=3.0
    ),
    "hidden layer": lambda: CertifiedNetwork(
        epsilon=1.0, classes=[0, 1, 2], training=HiddenLayer(records=3, units=4, random_state=0)
    ),
    "convex beside public models": lambda: ConvexCertifiedClassifier(
        epsilon=1.0, classes=[0, 1], regularization=2.0, norm_bound=3.0, features=BESIDE
    ),
    "hidden layer beside public models": lambda: CertifiedNetwork(
        epsilon=1.0,
        classes=[0, 1],
        norm_bound=3.0,
        training=HiddenLayer(records=3, units=4, random_state=0),
        features=BESIDE,
    ),
    "convex, missing class": lambda: ConvexCertifiedClassifier(
        epsilon=1.0, classes=[0, 1, 2], regularization=1.0, norm_bound=3.0
    ),
}


def fitted(kind: str, records: tuple[int, ...]) -> Any:
    X = np.array([RECORDS[place][0] for place in records]).reshape(len(records), 2)
    y = np.array([RECORDS[place][1] for place in records], dtype=np.int64)
    public = {"public_X": PUBLIC, "public_y": SIDES} if "beside" in kind else {}
    with not_counted("brute force over tiny data sets"):
        return KINDS[kind]().fit(X, y, **public)


@pytest.mark.filterwarnings("ignore:X. ")
@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_of_few_records_are_one_apart_and_at_zero_where_labels_differ(kind: str) -> None:
    sets = [
        records
        for size in range(4)
        for records in combinations_with_replacement(range(len(RECORDS)), size)
    ]
    found = {records: fitted(kind, records).stable_distances(QUERIES) for records in sets}
    for records in sets:
        for place in range(len(records)):
            labels, distances = found[records]
            others, beside = found[records[:place] + records[place + 1 :]]
            assert np.abs(distances - beside).max() <= 1
            differ = labels != others
            assert not distances[differ].any()
            assert not beside[differ].any()


@pytest.mark.filterwarnings("ignore:X. ")
@pytest.mark.parametrize("kind", KINDS)
def test_what_no_record_made_is_stored(kind: str, tmp_path: Any) -> None:
    system = fitted(kind, ())
    loaded = type(system).load(system.save(tmp_path / "bundle"))
    np.testing.assert_array_equal(
        loaded.stable_distances(QUERIES), system.stable_distances(QUERIES)
    )


@pytest.mark.parametrize("kind", ["linear", "hidden layer"])
def test_two_records_of_one_identity_are_refused(kind: str) -> None:
    """Whoever owns both is no record. Intervals and reserves each look by themselves."""
    with pytest.raises(InvalidInput, match="identities"):
        KINDS[kind]().fit(np.eye(2), [0, 1], ["anna", "anna"])
