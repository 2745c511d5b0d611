"""The usual misuses of scikit-learn with a model that is released by ``fit``: none is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

from reticent import NoisyGradientClassifier, NoisyGradientRegressor, PrivacyWarning, PublicRanges
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import InvalidInput
from reticent.ledger import Ledger
from reticent.release.fits import not_counted
from reticent.systems import Features

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = RNG.uniform(-1, 1, size=(60, 3))
GRID = {"epsilon": [1.0, 2.0]}
SCOPE = Scope(subject="ward")


def model(**settings: Any) -> NoisyGradientClassifier:
    given = {
        "epsilon": 1.0,
        "delta": 1e-5,
        "classes": [0, 1],
        "features": Features(range=(-1.0, 1.0)),
    }
    return NoisyGradientClassifier(**{"steps": 3, **given, **settings})


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(99.0, 1e-3, AddRemove(data_set="ward")))
        yield Books(ledger)


class Books:
    """A ledger for the records that are called "ward"."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.booking = {"ledger": ledger, "scope": SCOPE}

    @property
    def spent(self) -> float:
        """Epsilon that the ledger has booked."""
        accounts = self.ledger.report().accounts
        return accounts[0].spent_epsilon / 1e6 if accounts else 0.0


def regressor() -> NoisyGradientRegressor:
    return NoisyGradientRegressor(
        epsilon=1.0, delta=1e-5, target_range=(-1.0, 1.0), features=Features(range=(-1.0, 1.0))
    )


class Centred(BaseEstimator, TransformerMixin):
    """A transformer of somebody else's, that breaks scikit-learn's rule of names."""

    def fit(self, X: Any, y: Any = None) -> Centred:
        self.mean = np.mean(X, axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean


BEHIND_A_FITTED_STEP: dict[str, Callable[[], Any]] = {
    "standard scaler": lambda: make_pipeline(StandardScaler(), model()),
    "remaining columns": lambda: make_pipeline(
        ColumnTransformer([("a", "passthrough", [0])], remainder=MinMaxScaler()), model()
    ),
    "chosen columns": lambda: make_pipeline(SelectKBest(k=2), model()),
    "union": lambda: make_pipeline(
        FeatureUnion([("a", Normalizer()), ("b", StandardScaler())]), model()
    ),
    "outer pipeline": lambda: make_pipeline(StandardScaler(), make_pipeline(Normalizer(), model())),
    "another's step": lambda: make_pipeline(Centred(), model()),
    "target": lambda: TransformedTargetRegressor(regressor(), transformer=MinMaxScaler()),
}


@pytest.mark.parametrize("name", BEHIND_A_FITTED_STEP)
def test_steps_fitted_on_private_rows_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="FrozenEstimator"):
        BEHIND_A_FITTED_STEP[name]().fit(X, Y)


def test_a_cached_step_is_fitted_too(tmp_path: Path) -> None:
    for _ in range(2):
        pipeline = make_pipeline(StandardScaler(), model(), memory=str(tmp_path))
        with pytest.raises(InvalidInput, match="StandardScaler"):
            pipeline.fit(X, Y)


def test_a_ledger_does_not_pay_for_a_step(books: Books) -> None:
    given = {f"noisygradientclassifier__{name}": value for name, value in books.booking.items()}
    with pytest.raises(InvalidInput, match="StandardScaler"):
        make_pipeline(StandardScaler(), model(data_set="ward")).fit(X, Y, **given)
    assert books.spent == 0.0
    make_pipeline(Normalizer(), model(data_set="ward")).fit(X, Y, **given)
    assert books.spent == 1.0


REPEATED: dict[str, Callable[[int], Any]] = {
    "grid search": lambda jobs: GridSearchCV(model(), GRID, cv=2, n_jobs=jobs).fit(X, Y),
    "cross_val_predict": lambda jobs: cross_val_predict(model(), X, Y, cv=2, n_jobs=jobs),
    "voting": lambda jobs: VotingClassifier([("a", model()), ("b", model())], n_jobs=jobs).fit(
        X, Y
    ),
    "one against the rest": lambda jobs: OneVsRestClassifier(model(), n_jobs=jobs).fit(X, Y),
    "missing values": lambda _: IterativeImputer(regressor(), max_iter=2).fit(
        np.where(X > 0.9, np.nan, X)
    ),
}
"""Ways to fit a model more than once, or something else on the same rows, in so many processes: one
of each part of scikit-learn. Any part is refused that is not known to fit once."""


@pytest.mark.parametrize(
    ("name", "jobs"),
    [
        *((name, 1) for name in REPEATED),
        pytest.param("voting", 2, marks=pytest.mark.slow),  # processes that must ask their parent
    ],
)
def test_what_fits_more_than_one_model_is_refused(name: str, jobs: int) -> None:
    # Some report the failures of all folds in an error of their own, with ours in its text.
    with pytest.raises(ValueError, match="no ledger books it"):
        REPEATED[name](jobs)


AGAIN: dict[str, Callable[[], Any]] = {
    "clone": lambda: clone(model().fit(X, Y)).fit(X, Y),
    "folds by hand": lambda: [model().fit(X[fold], Y[fold]) for fold in (range(50), range(10, 60))],
    "classifier and regressor": lambda: (model().fit(X, Y), regressor().fit(X, X[:, 0])),
    "workers": lambda: joblib.Parallel(n_jobs=2, prefer="threads")(
        joblib.delayed(model().fit)(X, Y) for _ in range(2)
    ),
}


@pytest.mark.parametrize("name", AGAIN)
def test_another_fit_on_the_same_records_warns_with_the_sum(name: str) -> None:
    with pytest.warns(PrivacyWarning, match="epsilon="):
        AGAIN[name]()


def test_the_sum_is_on_the_card_and_not_in_the_guarantee(tmp_path: Path) -> None:
    first = model(data_set="ward").fit(X, Y)
    alone = first.card().to_markdown()
    with pytest.warns(PrivacyWarning, match=r"epsilon=3, delta=2e-05"):
        second = model(epsilon=2.0, data_set="ward").fit(X, Y)
    assert (second.guarantee.epsilon, second.guarantee.delta) == (2.0, 1e-5)
    line = dict(second.card().details)["fits on the same records"]
    assert line == second._data_use.card_line() != ""
    assert "fits on the same records" not in alone
    loaded = NoisyGradientClassifier.load(second.save(tmp_path / "bundle"))
    assert loaded.guarantee == second.guarantee


def test_a_booked_search_warns_of_its_scores(books: Books) -> None:
    with pytest.warns(PrivacyWarning, match="GridSearchCV"):
        search = GridSearchCV(model(data_set="ward"), GRID, cv=2).fit(X, Y, **books.booking)
    assert books.spent == 2 * (1.0 + 2.0) + search.best_params_["epsilon"]


SOUND: dict[str, Callable[[], Any]] = {
    "one fit": lambda: model().fit(X, Y),
    "scaler of public rows": lambda: make_pipeline(
        FrozenEstimator(StandardScaler().fit(PUBLIC)), model()
    ).fit(X, Y),
    "pipeline of public rows": lambda: make_pipeline(
        FrozenEstimator(make_pipeline(StandardScaler(), PCA(2)).fit(PUBLIC)), model()
    ).fit(X, Y),
    "public steps fitted apart": lambda: model().fit(StandardScaler().fit(PUBLIC).transform(X), Y),
    "steps that learn nothing": lambda: make_pipeline(
        PublicRanges((-1.0, 1.0)),
        FunctionTransformer(np.tanh),
        Normalizer(),
        PolynomialFeatures(2),
        ColumnTransformer([("a", Normalizer(), [0, 1]), ("b", "drop", [2])]),
        FeatureUnion([("a", Normalizer()), ("b", "passthrough")]),
        "passthrough",
        None,
        model(),
    ).fit(X, Y),
    "target by a function": lambda: TransformedTargetRegressor(
        regressor(), func=np.sin, inverse_func=np.arcsin
    ).fit(X, X[:, 0]),
    "disjoint parts": lambda: [
        model().fit(X[part], Y[part]) for part in (range(30), range(30, 60))
    ],
    "simulated fits": lambda: [model().simulate_fit(X, Y, seed=seed) for seed in range(3)],
    "a simulated fit before": lambda: model().fit(model().simulate_fit(X, Y, seed=0) and X, Y),
    "answers": lambda: [fitted.predict(X) for fitted in [model().fit(X, Y)] for _ in range(3)],
}


@pytest.mark.parametrize("name", SOUND)
def test_sound_uses_are_silent(name: str) -> None:
    SOUND[name]()


def test_a_search_on_public_rows_is_excused() -> None:
    with not_counted("the rows are public"):
        search = GridSearchCV(model(), GRID, cv=2).fit(PUBLIC, (PUBLIC[:, 0] > 0).astype(int))
    assert search.best_params_["epsilon"] in GRID["epsilon"]


def test_booked_fits_are_added_up_by_the_ledger_alone(books: Books) -> None:
    for _ in range(2):
        model(data_set="ward").fit(X, Y, **books.booking)
    model(data_set="ward").fit(X, Y)  # the first one without a ledger
    assert books.spent == 2.0


def test_a_refused_fit_leaves_the_records_uncounted() -> None:
    with pytest.raises(InvalidInput):
        make_pipeline(StandardScaler(), model()).fit(X, Y)
    with pytest.raises(InvalidInput):
        model().fit(X, Y + 7)
    model().fit(X, Y)
