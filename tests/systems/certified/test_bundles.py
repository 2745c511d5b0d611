"""Bundles of certified systems whose parts do not fit together are refused, whoever wrote them; and
records of one owner.
"""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.systems import (
    CertifiedClassifier,
    CertifiedNetwork,
    ConvexCertifiedClassifier,
    HiddenLayer,
    PublicReference,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)
RECORDS: dict[str, Any] = {"epsilon": 1.0, "classes": [0, 1]}
BESIDE = PublicReference(models=[LogisticRegression()], rows="embedding")
SYSTEMS = {
    "intervals": CertifiedClassifier(**RECORDS, k_max=1),
    "convex": ConvexCertifiedClassifier(**RECORDS),
    "beside": ConvexCertifiedClassifier(**RECORDS, features=BESIDE),
    "network": CertifiedNetwork(
        **RECORDS, training=HiddenLayer(records=41, units=8, random_state=0)
    ),
}


def training(**changes: Any) -> Any:
    return lambda settings, arrays: settings["training"].update(changes)


def stated(**changes: Any) -> Any:
    return lambda settings, arrays: settings.update(changes)


def without(name: str) -> Any:
    return lambda settings, arrays: arrays.pop(name)


def filled(name: str, value: float) -> Any:
    return lambda settings, arrays: arrays[name].fill(value)


CHANGES = {
    "intervals": (
        training(classes=5),
        training(clip=-1.0),
        lambda settings, arrays: settings["mechanism"].update(name="none"),
        stated(labels=[1]),
        lambda settings, arrays: settings.pop("input_shape"),
        stated(members=2),
        without("member0.layer0.lower"),
        filled("member0.layer0.lower", 2**30),
    ),
    "convex": (
        training(regularization=-1.0),
        training(class_weights=[1.0, 0.5]),
        stated(certificate="parameter intervals"),
        stated(members=0),
        stated(prevalence=[0.5]),
        filled("member0.eigenvalue", -1.0),
        filled("member0.weights", np.nan),
        without("member0.weights"),
    ),
    "beside": (
        lambda settings, arrays: settings["extractor"].update(weight=0.0),
        lambda settings, arrays: settings["extractor"].update(kind="identity"),
        stated(members=2),
        training(offset_bound=0.0),
        without("reference.pool.0.weights"),
    ),
    "network": (
        training(records=0),
        training(units=6),
        training(offset_bound=8.0),
        stated(certificate="convex"),
        stated(members=2),
        filled("member0.weights", np.nan),
        filled("member0.weights", 1e6),
    ),
}


@pytest.mark.filterwarnings("ignore:X. ")  # of rows that were cut to a public bound
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_bundle_that_does_not_fit_together_is_refused(name: str, tmp_path: Path) -> None:
    public = {"public_X": X, "public_y": Y} if name == "beside" else {}
    system = SYSTEMS[name].fit(X, Y, **public)
    type(system).load(system.save(tmp_path / "good"))
    nobody = clone(system).fit(X[:0], Y[:0], **public)
    again = type(system).load(nobody.save(tmp_path / "nobody"))
    np.testing.assert_array_equal(again.stable_distances(X), nobody.stable_distances(X))
    for place, change in enumerate(CHANGES[name]):
        bundle = system.bundle()
        settings = copy.deepcopy(bundle.settings)
        arrays = {part: array.copy() for part, array in bundle.arrays.items()}
        change(settings, arrays)
        bad = dataclasses.replace(bundle, settings=settings, arrays=arrays)
        with pytest.raises(CorruptBundle):
            type(system).load(bad.write(tmp_path / str(place)))


@pytest.mark.parametrize("name", ["intervals", "network"])
def test_two_records_of_one_identity_are_refused(name: str) -> None:
    """Whoever owns both is no record. Intervals and reserves each look by themselves."""
    with pytest.raises(InvalidInput, match="identities"):
        clone(SYSTEMS[name]).fit(np.eye(2), [0, 1], ["anna", "anna"])
