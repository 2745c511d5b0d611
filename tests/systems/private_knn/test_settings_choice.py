"""Settings from public rows: they are better than bad ones, and no private row has a say."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_digits

from reticent.core.errors import InvalidParameter
from reticent.systems import Ball, IndividualKNNClassifier
from reticent.systems.private_knn import settings_choice
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
