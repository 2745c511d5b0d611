"""Settings and radii from public rows alone."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_digits

from reticent.core.errors import InvalidParameter
from reticent.neighbours.exhaustive import Exhaustive
from reticent.systems import Ball, IndividualKNNClassifier
from reticent.systems.private_knn import settings_choice
from reticent.systems.private_knn.radii import kernels_by_share, kernels_of_radius
from reticent.systems.private_knn.settings_choice import public_folds

X, Y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(X))
PUBLIC, PRIVATE, ASKED = ORDER[:400], ORDER[400:1500], ORDER[1500:]
TOTAL = {"epsilon": 4.0, "delta": 1e-5, "classes": range(10), "records": 1000, "queries": 300}


def test_folds_are_two_halves_that_ask_each_other() -> None:
    first, second = public_folds(X[:51], Y[:51], seed=3)
    assert (len(first.points), len(first.asked)) == (25, 26)
    assert (first.points == second.asked).all()
    assert (first.labels == second.truth).all()
    with pytest.raises(InvalidParameter, match="at least 20 labelled rows"):
        public_folds(X[:19], Y[:19], seed=0)


def test_individual_settings_beat_the_worst_of_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kept in (("SHARES", (0.02, 0.9)), ("PARTS", (0.6,)), ("LOOKS", ((1,),))):
        monkeypatch.setattr(settings_choice, name, kept)
    chosen = IndividualKNNClassifier.tuned(X[PUBLIC], Y[PUBLIC], **TOTAL)
    assert (
        chosen.ball.share == 0.02
    )  # nine tenths of all digits around a query tell little about it
    assert chosen.get_params()["votes"] >= 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        again = IndividualKNNClassifier.tuned(X[PUBLIC], Y[PUBLIC], **TOTAL)
    assert again.get_params() == chosen.get_params()
    chosen.fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC])
    right = (chosen.simulate(X[ASKED], seed=0).values == Y[ASKED]).mean()
    wide = IndividualKNNClassifier(epsilon=4.0, delta=1e-5, classes=range(10), ball=Ball(share=0.9))
    wide.fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC])
    assert right > (wide.simulate(X[ASKED], seed=0).values == Y[ASKED]).mean() + 0.1


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_share_of_public_rows_lies_within(share: float) -> None:
    rng = np.random.default_rng(0)
    public = rng.integers(-900, 900, size=(200, 3)).astype(np.int16)
    queries = rng.integers(-900, 900, size=(20, 3)).astype(np.int16)
    kernels = kernels_by_share(queries, Exhaustive.of(public), 200, share=share, power=1)
    for query, kernel in zip(queries, kernels, strict=True):
        squared = ((public.astype(int) - query.astype(int)) ** 2).sum(axis=1)
        assert int((squared < kernel.squared_radius).sum()) == round(200 * share)
        assert int((squared <= kernel.squared_inner).sum()) == max(1, round(200 * share / 16))


def test_one_radius_is_the_same_for_all_in_units_of_the_features() -> None:
    kernels = kernels_of_radius(3, 2.5, per_unit=10.0, power=2)
    assert [(one.squared_inner, one.squared_radius, one.power) for one in kernels] == [
        (156, 626, 2)
    ] * 3
    [widest] = kernels_of_radius(1, 1e300, per_unit=1.0, power=0)
    assert widest.squared_radius == 4 * 2048**2 + 1
