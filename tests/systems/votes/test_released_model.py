"""Released models: booking, seeds, bundles, students, frames, and what is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from reticent.core import AddRemove, Guarantee, Scope, Unit
from reticent.core.errors import (
    BudgetExceeded,
    CorruptBundle,
    InvalidInput,
    InvalidParameter,
)
from reticent.ledger import Ledger
from reticent.noise import SecureSampler
from reticent.systems import Features
from reticent.systems.votes import sums
from reticent.systems.votes.estimator import Given
from reticent.systems.votes.linear_model import COUNT_STEPS, NoisyCount
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.public_start import PublicModelsClassifier
from reticent.systems.votes.released_classifier import surest_labels
from reticent.training.public_features import PatchFeatures, PublicPCA

X, Y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(X))
X, Y = X[ORDER], Y[ORDER]
PRIVATE, PUBLIC, TEST = slice(0, 1200), slice(1200, 1500), slice(1500, None)
SCOPE = Scope(subject="ward 7")

SETTINGS: dict[str, Any] = {
    "epsilon": 4.0,
    "delta": 1e-5,
    "classes": range(10),
    "features": Features(components=30),
    "steps": 10,
    "records": 1200,
}


def made(**changes: Any) -> NoisyGradientClassifier:
    return NoisyGradientClassifier(**{**SETTINGS, **changes})


def fitted(**changes: Any) -> NoisyGradientClassifier:
    return made(**changes).fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC], public_y=Y[PUBLIC])


def test_a_changed_bundle_is_refused(tmp_path: Path) -> None:
    bundle = fitted().bundle()
    weights = bundle.arrays["model.weights"]
    for arrays in (
        {"model.weights": weights[:, :3]},
        {"model.weights": weights[:3]},
        {"more": weights},
        {"space.scales": weights[:2, 0]},
    ):
        changed = type(bundle)(
            bundle.system, bundle.settings, {**bundle.arrays, **arrays}, bundle.card
        )
        folder = changed.write(tmp_path / "changed", overwrite=True)
        with pytest.raises(CorruptBundle):
            NoisyGradientClassifier.load(folder)


def test_noise_scale_is_for_experiments() -> None:
    scores = [
        made()
        .simulate_fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC], seed=1, noise_scale=scale)
        .weights_
        for scale in (1e-6, 1.0, 4.0)
    ]
    near, far = (np.linalg.norm(one - scores[0]) for one in scores[1:])
    assert far / near == pytest.approx(4, rel=0.2)
    with pytest.raises(TypeError, match="noise_scale"):
        made().fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC], noise_scale=0.5)  # type: ignore[call-arg]
    model = made()
    with pytest.raises(InvalidInput, match="expected 1 in a release"):
        model._fit(Given(X[PRIVATE], Y[PRIVATE], X[PUBLIC]), SecureSampler(), 0.5, None, None)
    assert not hasattr(model, "receipt_")


def test_a_fit_is_charged_before_any_noise_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        model = made(data_set="ward 7", epsilon=1.0)
        adjacency = AddRemove(1, Unit.RECORD, "ward 7")
        ledger.grant(SCOPE, Guarantee(1.5, 2e-5, adjacency))
        spent_when_drawn = []
        honest = SecureSampler.discrete_gaussian

        def drawn(self: Any, shape: Any, *, sigma: float) -> Any:
            spent_when_drawn.append(ledger.report().accounts[0].spent_epsilon)
            return honest(self, shape, sigma=sigma)

        monkeypatch.setattr(SecureSampler, "discrete_gaussian", drawn)
        give = {"public_X": X[PUBLIC], "ledger": ledger, "scope": SCOPE}
        model.fit(X[PRIVATE], Y[PRIVATE], **give)
        assert min(spent_when_drawn) > 0
        assert model.receipt_.booked
        assert model.guarantee.adjacency == adjacency
        before = len(spent_when_drawn)
        with pytest.raises(BudgetExceeded):
            model.fit(X[PRIVATE], Y[PRIVATE], **give)
        assert len(spent_when_drawn) == before


def test_more_records_than_sums_are_exact_for_are_refused_on_every_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (X[PRIVATE], Y[PRIVATE])
    public = {"public_X": X[PUBLIC], "public_y": Y[PUBLIC]}
    model = made(data_set="ward 7", epsilon=1.0)
    model._ready(Given(*data, X[PUBLIC], Y[PUBLIC]))
    bound = max(block.bound for block in model.blocks()[0])
    monkeypatch.setattr(sums, "EXACT", 2.0 * bound * (len(data[0]) - 0.5))
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(9.0, 1e-3, AddRemove(1, Unit.RECORD, "ward 7")))
        with pytest.raises(InvalidInput, match="fewer records"):
            model.fit(*data, **public, ledger=ledger, scope=SCOPE)
        assert ledger.report().accounts == ()
    with pytest.raises(InvalidInput, match="fewer records"):
        model.simulate_fit(*data, **public, seed=1)
    with pytest.raises(InvalidInput, match="fewer records"):
        next(model.simulate_fits(*data, **public, totals=[(1.0, 1e-5)], seeds=[1]))
    model.simulate_fit(X[PRIVATE][1:], Y[PRIVATE][1:], **public, seed=1)


def test_a_record_without_features_is_a_record_all_the_same(tmp_path: Path) -> None:
    """A map of one's own that fails on a record must not fail the fit after the charge."""

    class Halves:
        name = "halves"

        def features(self, inputs: Any) -> Any:
            return np.where(inputs[:, :1] > 1e6, np.nan, inputs / 2)

    records = X[PRIVATE].copy()
    records[3, 0] = 1e9
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(900.0, 1e-3, AddRemove(1, Unit.RECORD, "ward 7")))
        model = made(data_set="ward 7", features=Features(map=Halves()))
        model.fit(records, Y[PRIVATE], public_X=X[PUBLIC], ledger=ledger, scope=SCOPE)
    assert np.isfinite(model.decision_function(records[:5])).all()
    with pytest.raises(InvalidInput, match="public_X"):
        model.fit(X[PRIVATE], Y[PRIVATE], public_X=records)


def test_a_model_of_public_labels_alone_costs_nothing(tmp_path: Path) -> None:
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:

        def alone() -> PublicModelsClassifier:
            return PublicModelsClassifier(
                epsilon=1.0,
                delta=1e-5,
                classes=range(10),
                pool=[LogisticRegression(max_iter=500)],
                data_set="ward 7",
            )

        model = alone()
        public = {"public_X": X[PUBLIC], "public_y": Y[PUBLIC]}
        model.fit(X[PRIVATE], Y[PRIVATE], **public, ledger=ledger, scope=SCOPE)
        other = alone().fit(X[:20], Y[:20], **public)
        assert not model.receipt_.booked
        assert np.array_equal(model.predict(X[TEST]), other.predict(X[TEST]))


def test_a_student_is_post_processing() -> None:
    model = fitted(student_share=0.8, records=None)
    alone, again = model.with_student(X[PUBLIC], None), model.with_student(X[PUBLIC], 0.8)
    assert model.student_ is not None
    assert alone.student_ is None
    assert np.array_equal(again.decision_function(X[TEST]), model.decision_function(X[TEST]))
    assert not np.array_equal(alone.predict(X[TEST]), model.predict(X[TEST]))


class Own:
    """A feature map of the caller's own."""

    name = "half of the columns"

    def features(self, inputs: Any) -> np.ndarray:
        return np.asarray(inputs)[:, ::2]


@pytest.mark.filterwarnings("ignore::reticent.PrivacyWarning")
def test_feature_maps_travel_with_the_bundle_or_are_asked_for(tmp_path: Path) -> None:
    patches = PatchFeatures(image_shape=(1, 8, 8), filters=20, patch=4, pool=2).fit(X[PUBLIC])
    reduced = PublicPCA(components=20, of=patches).fit(X[PUBLIC])
    for feature_map, held in ((patches, True), (reduced, True), (Own(), False)):
        model = fitted(features=Features(map=feature_map, components=20))
        assert (model.predict(X[TEST]) == Y[TEST]).mean() > 0.7
        folder = model.save(tmp_path / "bundle", overwrite=True)
        if not held:
            with pytest.raises(InvalidInput, match="does not hold"):
                NoisyGradientClassifier.load(folder)
        again = NoisyGradientClassifier.load(folder, feature_map=None if held else feature_map)
        assert np.array_equal(again.predict(X[TEST]), model.predict(X[TEST]))
    with pytest.raises(InvalidParameter, match="map"):
        made(features=Features(map="magic")).fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC])


def test_a_noisy_count_is_a_mean_that_is_never_lost_in_its_noise() -> None:
    count = NoisyCount(100 * COUNT_STEPS)
    assert count.records == 200
    count.add([[1000 * COUNT_STEPS]])
    assert count.records == 1000
    count.add([[-3000 * COUNT_STEPS]])
    assert count.records == pytest.approx(2 * 100 / np.sqrt(2))
    assert NoisyCount(1e-3 * COUNT_STEPS).records == 1


def test_a_student_mends_labels_that_the_model_was_unsure_of() -> None:
    points = np.rint((X - X.mean(axis=0)) / 30 * 2.0**16)
    rng = np.random.default_rng(0)
    scores = 6.0 * np.eye(10)[Y] + 2.5 * rng.normal(size=(len(X), 10))
    own = (scores.argmax(axis=1) == Y).mean()
    student = surest_labels(points, scores, share=0.6)
    assert student is not None
    assert own < 0.9
    assert (student.scores(points).argmax(axis=1) == Y).mean() > own + 0.05
