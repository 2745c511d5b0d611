"""A certified logistic regression, from fit to booked answers and back from disk."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.systems import ConvexCertifiedClassifier


def blobs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    return random.normal(size=(count, 2)) + np.where(labels == 1, 1.0, -1.0)[:, None], labels


def classifier(**fields: Any) -> ConvexCertifiedClassifier:
    return ConvexCertifiedClassifier(
        **{"epsilon": 0.1, "classes": [0, 1], "norm_bound": 4.0, "data_set": "blobs", **fields}
    )


@pytest.fixture(scope="module")
def fitted() -> ConvexCertifiedClassifier:
    return classifier().fit(*blobs(2000))


@pytest.mark.parametrize(
    "change",
    [
        lambda bundle: bundle.settings["training"].update(regularization=-1.0),
        lambda bundle: bundle.settings["training"].update(class_weights=[1.0, 0.5]),
        lambda bundle: bundle.settings.update(certificate="parameter intervals"),
        lambda bundle: bundle.settings.update(members=0),
        lambda bundle: bundle.settings.update(prevalence=[0.5]),
        lambda bundle: bundle.arrays["member0.eigenvalue"].fill(-1.0),
        lambda bundle: bundle.arrays["member0.weights"].fill(np.nan),
        lambda bundle: bundle.arrays.pop("member0.weights"),
    ],
)
def test_a_bundle_that_does_not_fit_together_is_refused(
    fitted: ConvexCertifiedClassifier, tmp_path: Path, change: Any
) -> None:
    bundle = fitted.bundle()
    copy = dataclasses.replace(
        bundle,
        settings={**bundle.settings, "training": dict(bundle.settings["training"])},
        arrays={name: array.copy() for name, array in bundle.arrays.items()},
    )
    change(copy)
    with pytest.raises(CorruptBundle):
        ConvexCertifiedClassifier.load(copy.write(tmp_path / "bundle"))


def test_public_prevalence_makes_a_rare_label_count(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    y = (random.random(4000) < 0.05).astype(int)
    X = random.normal(size=(4000, 2)) + 0.8 * y[:, None]
    names = np.where(y == 1, "ill", "well")
    fields = {"classes": ["ill", "well"], "regularization": 1.0}
    plain = classifier(**fields).fit(X, names)
    weighted = classifier(**fields, prevalence={"well": 0.95, "ill": 0.05}).fit(X, names)
    found = [(part.exact_predict(X) == "ill")[y == 1].mean() for part in (plain, weighted)]
    assert found[0] < 0.05
    assert found[1] > 0.5
    assert weighted.members_[0].settings.class_weights == pytest.approx((1.0, 1 / 19))
    loaded = ConvexCertifiedClassifier.load(weighted.save(tmp_path / "bundle"))
    assert loaded.prevalence == {"ill": 0.05, "well": 0.95}
    assert "weights of labels" in loaded.card().to_markdown()
    with pytest.raises(InvalidParameter, match="prevalence"):
        classifier(**fields, prevalence={"ill": 0.05}).fit(X, names)


def test_predictions_survive_what_they_say_they_survive() -> None:
    X, y = blobs(120)
    fitted = classifier(regularization=1.0).fit(X, y)
    random = np.random.default_rng(0)
    queries = random.normal(size=(200, 2)) * 2
    before = fitted.exact_predict(queries)
    survived = {
        "remove": fitted.unlearning(queries),
        "insert": fitted.poisoning(queries),
        "replace": fitted.poisoning(queries, change="replace"),
    }
    assert survived["remove"].max() > 3
    # One exchanged record is a removal and an insertion.
    assert (survived["replace"] <= (survived["insert"] + 1) / 2).all()
    direction = X @ fitted.members_[0].weights[:-1]
    for k in (1, 3, 6):
        for label in (0, 1):
            helpful = np.argsort(np.where(y == label, -np.abs(direction), np.inf))[:k]
            kept = np.setdiff1d(np.arange(len(X)), helpful)
            worst = np.tile([[9.0, 9.0]] if label == 0 else [[-9.0, -9.0]], (k, 1))
            changed = {
                "remove": (X[kept], y[kept]),
                "insert": (np.concatenate([X, worst]), np.append(y, [label] * k)),
                "replace": (
                    np.concatenate([X[kept], worst]),
                    np.append(y[kept], [label] * k),
                ),
            }
            for kind, data in changed.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    after = classifier(regularization=1.0).fit(*data).exact_predict(queries)
                assert (after == before)[survived[kind] >= k].all()
