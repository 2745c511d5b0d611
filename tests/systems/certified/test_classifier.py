"""Certified classifiers and votes of them, from fit to booked answers and back from disk."""

from __future__ import annotations

import copy
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from reticent.core import AddRemove, Guarantee, Replace
from reticent.core.errors import (
    InvalidParameter,
)
from reticent.retraining import (
    TrainingSettings,
    parameter_intervals,
    record_buckets,
    record_keys,
    stable_distances,
    training,
    vote_distances,
)
from reticent.systems import (
    CertifiedClassifier,
    CertifiedEnsemble,
    ClippedDescent,
    ConvexCertifiedClassifier,
    Features,
)


def blobs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    return random.normal(size=(count, 2)) + np.where(labels == 1, 1.0, -1.0)[:, None], labels


@pytest.fixture(scope="module")
def fitted() -> CertifiedClassifier:
    return CertifiedClassifier(classes=[0, 1], epsilon=0.03, k_max=300, data_set="blobs").fit(
        *blobs(3000)
    )


def test_what_is_certified_is_what_the_library_certifies(fitted: CertifiedClassifier) -> None:
    X, labels = blobs(3000)
    queries = blobs(500, seed=2)[0]
    intervals = parameter_intervals(X, labels, TrainingSettings(features=2, classes=2), k_max=300)
    for mine, reference in zip(
        fitted.stable_distances(queries), stable_distances(intervals, queries), strict=True
    ):
        np.testing.assert_array_equal(mine, reference)
    np.testing.assert_array_equal(
        fitted.exact_predict(queries), fitted.classes_[fitted.stable_distances(queries)[0]]
    )


def test_the_guarantee_is_the_mechanism_s_and_names_its_adjacency(
    fitted: CertifiedClassifier,
) -> None:
    assert fitted.guarantee == Guarantee(0.03, 0.0, AddRemove(1, data_set="blobs"))
    replace = CertifiedClassifier(
        classes=[0, 1], epsilon=1.0, k_max=2, counting="replace", data_set="blobs"
    ).fit(*blobs(50))
    assert replace.guarantee == Guarantee(1.0, 0.0, Replace(1, data_set="blobs"))
    signed = CertifiedClassifier(
        classes=[0, 1], epsilon=1.0, delta=1e-3, k_max=40, data_set="blobs"
    ).fit(*blobs(2000))
    assert "e^1 = 2.72, plus 0.001, per answer" in signed.card().protected
    assert signed.guarantee == Guarantee(1.0, 1e-3, AddRemove(1, data_set="blobs"))
    assert not signed.release([[3.0, 3.0], [0.0, 0.0]]).withheld.any()


def test_a_total_for_many_answers(fitted: CertifiedClassifier) -> None:
    classifier = CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=1, mechanism="stability")
    assert classifier.total(answers=10, delta=0.0).winner == "basic"
    assert classifier.calibrate(epsilon=10.0, delta=1e-5, answers=1000) is classifier
    total = classifier.total(answers=1000, delta=1e-5)
    assert total.winner == "optimal"
    assert 9.999 < total.epsilon <= 10.0 + 1e-9


def test_the_number_of_answers_decides_between_response_and_gaussian_noise() -> None:
    classifier = CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=60)
    classifier.fit(*blobs(400))
    for answers, name in ((1, "stability response"), (5000, "signed distance")):
        classifier.calibrate(epsilon=2.0, delta=1e-5, answers=answers)
        assert classifier.query_.mechanism.name == name
        total = classifier.total(answers=answers, delta=1e-5)
        assert 1.9999 < total.epsilon <= 2.0 + 1e-9
    assert total.winner == "Gaussian"
    assert classifier.guarantee.delta == 1e-5 / 5000
    assert "Gaussian noise on how far" in classifier.card().to_markdown()
    # Without any delta only the response is left.
    classifier.calibrate(epsilon=2.0, delta=0.0, answers=5000)
    assert classifier.query_.mechanism.name == "stability response"
    spoken = CertifiedClassifier(classes=[0, 1], epsilon=1.0, mechanism="stability", k_max=1)
    spoken.calibrate(epsilon=2.0, delta=1e-5, answers=5000)
    assert (spoken.delta, spoken._choice().name) == (0.0, "stability")


def test_the_choice_of_mechanism_knows_nothing_of_the_records() -> None:
    """Neighbouring training sets, or no training at all, lead to one choice."""
    X, y = blobs(60)
    asked = {"epsilon": 3.0, "delta": 1e-6, "answers": 20}
    parts = [
        CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=5).fit(X[cut:], y[cut:])
        for cut in (0, 1)
    ]
    far = np.concatenate([X, [[100.0, 100.0]]]), np.append(y, 0)
    checked = CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=5)
    with pytest.warns(UserWarning, match="were cut"):
        parts.append(checked.fit(*far, public_X=X, public_y=y))
    parts.append(CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=5))
    assert len({part.calibrate(**asked)._choice() for part in parts}) == 1


def test_a_frozen_extractor_goes_before_training_and_release(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.AvgPool2d(3), nn.Flatten())
    X, y = load_digits(return_X_y=True)
    pictures = (X[:60] / 16).reshape(-1, 1, 8, 8)
    classifier = CertifiedClassifier(
        epsilon=1.0, k_max=2, features=Features(map=module), classes=range(10)
    ).fit(pictures, y[:60])
    assert classifier.members_[0].settings.features == 12
    folder = classifier.save(tmp_path / "bundle")
    np.testing.assert_array_equal(
        CertifiedClassifier.load(folder, feature_map=module).exact_predict(pictures),
        classifier.exact_predict(pictures),
    )
    # A module of torch's own layers is in the bundle.
    np.testing.assert_array_equal(
        CertifiedClassifier.load(folder).exact_predict(pictures), classifier.exact_predict(pictures)
    )


def test_keys_decide_members_and_order_does_not() -> None:
    X, y = blobs(200)
    keys = [f"person {index}" for index in range(200)]
    order = np.random.default_rng(0).permutation(200)
    first = CertifiedEnsemble(classes=[0, 1], epsilon=1.0, k_max=3, members=4).fit(
        X, y, identities=keys
    )
    second = CertifiedEnsemble(classes=[0, 1], epsilon=1.0, k_max=3, members=4).fit(
        X[order], y[order], identities=[keys[index] for index in order]
    )
    assert _weights(first) == _weights(second)
    other = CertifiedEnsemble(classes=[0, 1], epsilon=1.0, k_max=3, members=4).fit(X, y)
    assert _weights(other) != _weights(first)


def _weights(classifier: CertifiedClassifier | CertifiedEnsemble) -> dict[str, list[Any]]:
    return {name: array.tolist() for name, array in classifier.bundle().arrays.items()}


@pytest.mark.filterwarnings("ignore::reticent.core.errors.PrivacyWarning")
def test_a_receipt_tells_nothing_about_the_records() -> None:
    # All of a receipt but its random names is equal for neighbours; a digest of the weights would
    # tell them apart for certain.
    X, y = blobs(40)
    settings: dict[str, Any] = {"epsilon": 0.01, "k_max": 2, "classes": [0, 1], "data_set": "blobs"}
    without = CertifiedClassifier(**settings).fit(X[1:], y[1:])
    fitted = CertifiedClassifier(**settings).fit(X, y)
    assert _weights(without) != _weights(fitted)
    receipts = [system.release(np.ones((1, 2))).receipt.to_dict() for system in (without, fitted)]
    for receipt in receipts:
        del receipt["bundle"], receipt["identifier"]
    assert receipts[0] == receipts[1]
    # With the random part equal as well the names are equal: the records have no say in them.
    without.serial_ = fitted.serial_
    without._identities.clear()
    assert without.bundle_identity_ == fitted.bundle_identity_
    assert CertifiedClassifier(**settings).fit(X, y).bundle_identity_ != fitted.bundle_identity_


def test_the_query_follows_what_it_is_made_of(fitted: CertifiedClassifier) -> None:
    """It is kept from one answer to the next, and no longer than its parts."""
    system = copy.copy(fitted)
    kept = system.query_
    assert system.query_ is kept
    system.set_params(epsilon=0.5)
    dearer = system.query_
    assert dearer.mechanism.guarantee.epsilon == pytest.approx(0.5)
    system.members_ = (*system.members_,)  # equal, and another tuple
    assert system.query_.members is system.members_
    system.data_set_ = "others"
    assert system.query_.adjacency.data_set == "others"
    assert system.set_params(epsilon=fitted.epsilon).query_ is not kept


def classifier(**fields: Any) -> ConvexCertifiedClassifier:
    return ConvexCertifiedClassifier(
        **{"epsilon": 0.1, "classes": [0, 1], "norm_bound": 4.0, "data_set": "blobs", **fields}
    )


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


def test_every_member_is_a_classifier_of_its_own_records() -> None:
    X, y = blobs(400)
    ensemble = CertifiedEnsemble(classes=[0, 1], epsilon=1.0, members=4, k_max=6).fit(X, y)
    member = record_buckets(record_keys(X, y), buckets=4, purpose="ensemble member")
    queries = blobs(200, seed=1)[0]
    labels, distances = ensemble.member_distances(queries)
    for index in range(4):
        alone = CertifiedClassifier(classes=[0, 1], epsilon=1.0, k_max=6).fit(
            X[member == index], y[member == index]
        )
        np.testing.assert_array_equal(alone.stable_distances(queries)[0], labels[index])
        np.testing.assert_array_equal(alone.stable_distances(queries)[1], distances[index])
    for mine, reference in zip(
        ensemble.stable_distances(queries),
        vote_distances(labels, distances, classes=2),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, reference)
    assert ensemble.guarantee == Guarantee(1.0, 0.0, AddRemove(1, data_set=ensemble.data_set_))


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
@pytest.mark.parametrize("hidden", [(), (4,)])
def test_a_fit_holds_a_small_part_of_its_records(
    counting: Any, hidden: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_LARGE_BLOCK", 0)  # no page of it is touched
    peaks = []
    for rows in (10_000, 20_000):
        X = np.random.default_rng(0).normal(size=(rows, 16))
        y = (X[:, 0] > 0).astype(int)
        descent = ClippedDescent(epochs=2, hidden=hidden, random_state=0)
        model = CertifiedClassifier(
            epsilon=1.0, classes=[0, 1], k_max=2, counting=counting, training=descent
        )
        tracemalloc.start()
        model.fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.3 * (X.nbytes + y.nbytes) / 2
