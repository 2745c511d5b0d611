"""Pools of models fitted on public rows with labels or targets, from which a private model can
start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from reticent.core.arrays import Array, Arrays, Integers, part_of, under
from reticent.core.checks import finite_array
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter
from reticent.core.rows import in_blocks
from reticent.grids.whole_numbers import logarithm, softmax
from reticent.training.public_forest import Forest
from reticent.training.public_models import BoostedTrees, LinearModel, model_from

FOLDS = 5
LEAF_TREES, LEAVES = 60, 24
"""Trees whose leaves are features of a row, and leaves of each at most."""

_PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
_LEAST_SHARE = 5e-3  # of a label, by one model, over the number of labels
_LEAST_ALPHA = 0.35
_ALPHAS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
_FEW, _NEAR, _FAR = 300, 1.0, 9.0
_WEIGHT_SPREAD, _BIAS_SPREAD = 0.5, 0.3
_RIDGES = (1.0, 10.0, 100.0, 1000.0)
_LEAST_ROWS = 2 * FOLDS
_EQUAL = 0.05  # weight of equal shares in a pool of targets, as a share of squared predictions

Fitted = BoostedTrees | LinearModel | Forest | Any


def usual_pool(rows: int, classes: int, *, table: bool) -> list[Any]:
    """Return the models that are tried where the caller names none, not fitted.

    Args:
        rows: the number of labelled public rows.
        classes: the number of labels.
        table: True if rows are those of a table, for which trees are boosted too.

    Example:
        >>> len(usual_pool(500, 2, table=True)), len(usual_pool(500, 2, table=False))
        (10, 8)
    """
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression

    found: list[Any] = [LogisticRegression(C=c, max_iter=200) for c in _PENALTIES]
    sizes = ((60, 4), (80 if classes == 2 else 40, 12))
    if table:
        found += [
            HistGradientBoostingClassifier(**_boosting(rows, rounds, leaves))
            for rounds, leaves in (sizes if classes == 2 or rows <= 600 else sizes[:1])
        ]
    forest, extra = max(1, min(5, rows // 100)), max(1, min(3, rows // 100))
    found.append(RandomForestClassifier(100, min_samples_leaf=forest, random_state=0))
    found.append(ExtraTreesClassifier(100, min_samples_leaf=extra, random_state=0))
    return found


def _boosting(rows: int, rounds: int, leaves: int) -> dict[str, Any]:
    return {
        "max_iter": rounds,
        "learning_rate": 0.07,
        "max_leaf_nodes": leaves,
        "min_samples_leaf": max(3, min(20, rows // 25)),
        "early_stopping": False,
        "random_state": 0,
    }


@dataclass(frozen=True, eq=False)
class PublicPool:
    """Models of public rows and the pool of their log probabilities.

    The offset of a row is alpha (sum_m a_m log p_m + b) + (1 - alpha) log pi, where pi are shares
    of labels among public rows. A row's offset depends on that row and on public rows alone, to the
    last bit.

    Attributes:
        models: fitted models that are kept.
        known: for each model, the labels that its public rows had.
        weights: shape (models,), a_m.
        bias: shape (classes,), b.
        constant: shape (classes,), log pi.
        alpha: the trust in the pool, in [0, 1].

    References:
        - Genest and Zidek (1986), "Combining probability distributions: a critique and an
          annotated bibliography", doi:10.1214/ss/1177013825 (logarithmic pools).
    """

    models: tuple[Fitted, ...]
    known: tuple[Integers, ...]
    weights: Array
    bias: Array
    constant: Array
    alpha: float

    @classmethod
    def fitted(
        cls, rows: Array, codes: Integers, classes: int, models: Sequence[Any]
    ) -> tuple[Self, Array]:
        """Return the pool of public rows, and their offsets by models that did not see them.

        Args:
            rows: shape (n, d), public.
            codes: shape (n,), places of their labels.
            classes: the number of labels.
            models: classifiers of scikit-learn, not fitted. Of several logistic regressions the
                best by cross-validation alone is kept.

        Returns:
            The pool, and out-of-fold offsets of shape (n, classes).
        """
        from sklearn.base import clone

        counts = np.bincount(codes, minlength=classes)
        constant = logarithm((counts + 1.0) / (len(codes) + classes))
        folds = public_folds(rows, codes) if models else []
        if not folds:
            return cls.of_constant(constant), np.tile(constant, (len(rows), 1))
        held = [_held_out(model, rows, codes, classes, folds) for model in models]
        kept = _kept(models, held, codes)
        outside = np.stack([held[at] for at in kept])
        weights, bias = _pooled(outside, codes)
        pool = _log_shares(np.tensordot(weights, outside, 1) + bias)
        alpha = _alpha(pool, constant, codes)
        fits = [clone(models[at]).fit(rows, codes) for at in kept]
        known = tuple(np.asarray(fit.classes_, dtype=np.int64) for fit in fits)
        found = cls(
            tuple(_as_arrays(fit, classes) for fit in fits), known, weights, bias, constant, alpha
        )
        return found, alpha * pool + (1.0 - alpha) * constant

    @classmethod
    def of_constant(cls, constant: Array) -> Self:
        """Return the pool of no models, which gives every row the same log probabilities.

        Args:
            constant: shape (classes,).
        """
        return cls((), (), np.zeros(0), np.zeros(len(constant)), constant, 0.0)

    @property
    def width(self) -> int:
        """The number of labels."""
        return len(self.constant)

    def offsets(self, rows: Array) -> Array:
        """Return log probabilities, up to a constant, of shape (n, classes).

        Args:
            rows: shape (n, d), finite.
        """
        total = np.tile(self.bias, (len(rows), 1))
        for model, known, weight in zip(self.models, self.known, self.weights, strict=True):
            total += weight * _cut(_shares(model, rows), known, len(self.constant))
        return np.asarray(
            self.alpha * _log_shares(total) + (1.0 - self.alpha) * self.constant[None, :]
        )

    def describe(self) -> Arrays:
        """Return named arrays that ``from_arrays`` reads.

        Raises:
            InvalidInput: a model is of a kind that no bundle can hold.
        """
        found: Arrays = {"weights": self.weights, "bias": self.bias, "constant": self.constant}
        found["alpha"] = np.array([self.alpha])
        found |= _described(self.models)
        for at, (model, known) in enumerate(zip(self.models, self.known, strict=True)):
            found[f"{at}.{model.kind}.known"] = known
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays, *, dimension: int) -> PublicPool:
        """Return the pool that ``describe`` took apart.

        Raises:
            CorruptBundle, InvalidInput, KeyError: the arrays are no pool's.
        """
        weights, bias, constant, alpha = (
            finite_array(arrays[name], name=name, ndim=1, allow_empty=True)
            for name in ("weights", "bias", "constant", "alpha")
        )
        if len(alpha) != 1 or not 0 <= alpha[0] <= 1 or len(bias) != len(constant):
            raise CorruptBundle("bundle: arrays of its public pool do not fit together")
        models = _stored(arrays, len(weights), dimension)
        known = tuple(
            np.asarray(arrays[f"{at}.{model.kind}.known"], dtype=np.int64)
            for at, model in enumerate(models)
        )
        return cls(models, known, weights, bias, constant, float(alpha[0]))


@dataclass(frozen=True, eq=False)
class ClassColumn:
    """Labels of public rows, of which models are made.

    Attributes:
        codes: shape (n,), places of labels, or None where they are not known.
        classes: the number of labels.
        models: the models of ``PublicPool.fitted``.
    """

    codes: Integers | None
    classes: int
    models: Sequence[Any]

    def forest(self, scaled: Array) -> Forest | None:
        """Return extremely randomised trees of rows, for their leaves."""
        if self.codes is None:
            return None
        from sklearn.ensemble import ExtraTreesClassifier

        least = max(2, min(5, len(scaled) // 20))
        trees = ExtraTreesClassifier(
            LEAF_TREES, max_leaf_nodes=LEAVES, min_samples_leaf=least, random_state=0
        ).fit(scaled, self.codes)
        return Forest.from_sklearn(trees, classes=self.classes)

    def pooled(self, scaled: Array) -> tuple[PublicPool, Array]:
        """Return the pool of rows, or without labels a pool that tells no labels apart."""
        if self.codes is None:
            nothing = np.zeros(self.classes)
            return PublicPool.of_constant(nothing), np.tile(nothing, (len(scaled), 1))
        return PublicPool.fitted(scaled, self.codes, self.classes, self.models)


def usual_regressors(rows: int, *, table: bool) -> list[Any]:
    """Return the regressors that are tried where the caller names none, not fitted.

    Args:
        rows: the number of public rows with targets.
        table: True if rows are those of a table, for which trees are boosted too.

    Example:
        >>> len(usual_regressors(500, table=True)), len(usual_regressors(500, table=False))
        (8, 6)
    """
    from sklearn.ensemble import (
        ExtraTreesRegressor,
        HistGradientBoostingRegressor,
        RandomForestRegressor,
    )
    from sklearn.linear_model import Ridge

    found: list[Any] = [Ridge(alpha=penalty) for penalty in _RIDGES]
    if table:
        found += [
            HistGradientBoostingRegressor(**_boosting(rows, rounds, leaves))
            for rounds, leaves in ((60, 4), (80, 12))
        ]
    leaf = max(1, min(5, rows // 100))
    found.append(RandomForestRegressor(100, min_samples_leaf=leaf, random_state=0))
    found.append(ExtraTreesRegressor(100, min_samples_leaf=leaf, random_state=0))
    return found


@dataclass(frozen=True, eq=False)
class TargetPool:
    """Regressors of public rows and their weighted mean, in halves of the range of targets.

    Attributes:
        models: fitted models.
        weights: the weight of each model's distance from the constant, shape (models,).
        constant: the mean of public targets.
        alpha: the trust in the pool, which is in ``weights`` already.

    References:
        - Breiman (1996), "Stacked regressions", doi:10.1007/BF00117832 (weights of at least 0).
    """

    models: tuple[Fitted, ...]
    weights: Array
    constant: float
    alpha: float

    @classmethod
    def fitted(cls, rows: Array, targets: Array, models: Sequence[Any]) -> tuple[Self, Array]:
        """Return the pool of public rows, and their offsets by models that did not see them.

        Args:
            rows: shape (n, d), public.
            targets: shape (n,), in halves of the range, from -1 to 1.
            models: regressors of scikit-learn, not fitted. Of several ridge regressions the best
                by cross-validation alone is kept.
        """
        from sklearn.base import clone
        from sklearn.linear_model import Ridge
        from sklearn.model_selection import KFold

        constant = float(targets.mean())
        if len(rows) < _LEAST_ROWS or not models:
            found = cls((), np.zeros(0), constant, 0.0)
            return found, np.full((len(rows), 1), constant)
        folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(rows))
        held = np.zeros((len(models), len(rows)))
        for at, model in enumerate(models):
            for train, test in folds:
                fit = clone(model).fit(rows[train], targets[train])
                held[at, test] = np.clip(fit.predict(rows[test]), -1.0, 1.0)
        losses = np.square(held - targets).mean(axis=1)
        linear = [at for at, model in enumerate(models) if type(model) is Ridge]
        best = min(linear, key=lambda at: losses[at], default=-1)
        kept = [at for at in range(len(models)) if at == best or at not in linear]
        outside = held[kept] - constant
        weights = _weights(outside, targets - constant)
        alpha = _trust(weights @ outside, targets - constant)
        fits = tuple(_as_arrays(clone(models[at]).fit(rows, targets)) for at in kept)
        found = cls(fits, alpha * weights, constant, alpha)
        return found, constant + (alpha * weights @ outside)[:, None]

    @property
    def width(self) -> int:
        """The number of offsets, which is one."""
        return 1

    def offsets(self, rows: Array) -> Array:
        """Return predictions in halves of the range, shape (n, 1), each from its row alone."""
        found = np.full(len(rows), self.constant)
        for model, weight in zip(self.models, self.weights, strict=True):
            found += weight * (np.clip(_predictions(model, rows), -1.0, 1.0) - self.constant)
        return found[:, None]

    def describe(self) -> Arrays:
        """Return named arrays that ``from_arrays`` reads.

        Raises:
            InvalidInput: a model is of a kind that no bundle can hold.
        """
        found: Arrays = {"weights": self.weights, "trust": np.array([self.constant, self.alpha])}
        return found | _described(self.models)

    @classmethod
    def from_arrays(cls, arrays: Arrays, *, dimension: int) -> TargetPool:
        """Return the pool that ``describe`` took apart.

        Raises:
            CorruptBundle, InvalidInput, KeyError: the arrays are no pool's.
        """
        weights, trust = (
            finite_array(arrays[name], name=name, ndim=1, allow_empty=True)
            for name in ("weights", "trust")
        )
        if len(trust) != 2:
            raise CorruptBundle("bundle: arrays of its public pool do not fit together")
        models = _stored(arrays, len(weights), dimension)
        return cls(models, weights, float(trust[0]), float(trust[1]))


@dataclass(frozen=True, eq=False)
class TargetColumn:
    """Targets of public rows, of which models are made.

    Attributes:
        targets: shape (n,), in halves of the range.
        models: the models of ``TargetPool.fitted``.
    """

    targets: Array
    models: Sequence[Any]

    def forest(self, scaled: Array) -> Forest:
        """Return extremely randomised trees of rows, for their leaves."""
        from sklearn.ensemble import ExtraTreesRegressor

        least = max(2, min(5, len(scaled) // 20))
        trees = ExtraTreesRegressor(
            LEAF_TREES, max_leaf_nodes=LEAVES, min_samples_leaf=least, random_state=0
        ).fit(scaled, self.targets)
        return Forest.of_targets(trees)

    def pooled(self, scaled: Array) -> tuple[TargetPool, Array]:
        """Return the pool of rows, and their offsets by models that did not see them."""
        return TargetPool.fitted(scaled, self.targets, self.models)


def checked_pool(pool: Any, *, asked: str = "predict_proba") -> list[Any] | None:
    """Return the models of a setting ``pool``, perhaps none, or None for the usual ones.

    Args:
        pool: the setting.
        asked: the method that is asked of them: "predict_proba", or "predict" of regressors.

    Raises:
        InvalidParameter: ``pool`` is no list of models of scikit-learn, or one has no such method.
    """
    if pool is None:
        return None
    if not isinstance(pool, (list, tuple)) or not all(
        hasattr(one, "fit") and hasattr(one, "get_params") for one in pool
    ):
        raise InvalidParameter("pool: expected None, or a list of models of scikit-learn")
    if not all(hasattr(one, asked) for one in pool):
        raise InvalidParameter(f"pool: expected models that have {asked}")
    return list(pool)


def public_folds(rows: Array, codes: Integers) -> list[tuple[Integers, Integers]]:
    """Return public folds, or none where every training part cannot have two labels."""
    from sklearn.model_selection import KFold, StratifiedKFold

    sizes = np.bincount(codes)
    sizes = sizes[sizes > 0]
    if len(sizes) < 2 or np.sort(sizes)[-2] < 2:
        return []
    least = int(sizes.min())
    maker = (
        StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=0)
        if least > 1
        else KFold(FOLDS, shuffle=True, random_state=0)
    )
    found = list(maker.split(rows, codes))
    return found if all(len(np.unique(codes[train])) > 1 for train, _ in found) else []


def _held_out(
    model: Any,
    rows: Array,
    codes: Integers,
    classes: int,
    folds: list[tuple[Integers, Integers]],
) -> Array:
    from sklearn.base import clone

    found = np.zeros((len(rows), classes))
    for train, test in folds:
        fit = clone(model).fit(rows[train], codes[train])
        found[test] = _cut(fit.predict_proba(rows[test]), fit.classes_, classes)
    return found


def _kept(models: Sequence[Any], held: list[Array], codes: Integers) -> list[int]:
    """Return which models are pooled, those that are not clearly behind the best."""
    from sklearn.linear_model import LogisticRegression

    each = [scores[np.arange(len(codes)), codes] for scores in held]
    linear = [at for at, model in enumerate(models) if type(model) is LogisticRegression]
    best = max(linear, key=lambda at: each[at].mean(), default=-1)
    places = [at for at in range(len(models)) if at == best or at not in linear]
    first = max(places, key=lambda at: each[at].mean())
    errors = _NEAR if len(codes) < _FEW else _FAR
    return [
        at
        for at in places
        if (away := each[first] - each[at]).mean()
        <= errors * away.std() / np.sqrt(len(codes)) + 1e-12
    ]


def _pooled(outside: Array, codes: Integers) -> tuple[Array, Array]:
    """Return the most likely weights and bias, with log a_m ~ N(log 1/M, .5), b ~ N(0, .3)."""
    from scipy.optimize import minimize

    models, rows, _ = outside.shape
    middle = -np.log(models)

    def loss(theta: Array) -> float:
        shares = _log_shares(np.tensordot(np.exp(theta[:models]), outside, 1) + theta[models:])
        prior = np.square((theta[:models] - middle) / _WEIGHT_SPREAD).sum()
        prior += np.square(theta[models:] / _BIAS_SPREAD).sum()
        return float(0.5 * prior - shares[np.arange(rows), codes].sum())

    start = np.r_[np.full(models, middle), np.zeros(outside.shape[2])]
    theta = minimize(loss, start, method="L-BFGS-B").x
    return np.exp(theta[:models]), theta[models:]


def _alpha(pool: Array, constant: Array, codes: Integers) -> float:
    """Return the trust whose gain over the constant, less its standard error, is largest."""
    places = np.arange(len(codes))

    def sure(alpha: float) -> float:
        mixed = _log_shares(alpha * pool + (1.0 - alpha) * constant)
        gain = mixed[places, codes] - constant[codes]
        return float(gain.mean() - gain.std() / np.sqrt(len(codes)))

    return max(_LEAST_ALPHA, max(_ALPHAS, key=sure))


def _as_arrays(fit: Any, classes: int = 0) -> Fitted:
    """Return a fitted model as arrays, or as it is where its kind has none."""
    from sklearn import ensemble, linear_model

    kind = type(fit)
    if not classes and hasattr(fit, "classes_"):
        return fit  # a classifier in a pool for targets: its scores are no predictions
    if kind is linear_model.LogisticRegression:
        return LinearModel.from_sklearn(fit)
    if kind is linear_model.Ridge:
        weights = np.asarray(fit.coef_, dtype=np.float64).reshape(-1, 1)
        return LinearModel(weights, np.asarray([fit.intercept_], dtype=np.float64).reshape(-1))
    boosted = (ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor)
    if kind in boosted and fit.is_categorical_ is None:
        return BoostedTrees.from_sklearn(fit)
    if kind in (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier):
        return Forest.from_sklearn(fit, classes=classes)
    if kind in (ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor):
        return Forest.of_targets(fit)
    return fit


def _described(models: Sequence[Fitted]) -> Arrays:
    """Return named arrays that ``_stored`` reads, those of a model under its place and kind."""
    found: Arrays = {}
    for at, model in enumerate(models):
        if not isinstance(model, BoostedTrees | LinearModel | Forest):
            raise InvalidInput(
                "pool: expected linear models, boosted trees or forests of scikit-learn, which a "
                f"bundle can hold, got {type(model).__name__}"
            )
        found |= under(f"{at}.{model.kind}.", model.describe())
    return found


def _stored(arrays: Arrays, models: int, dimension: int) -> tuple[Fitted, ...]:
    """Return the models that ``_described`` took apart."""
    found: list[Fitted] = []
    for at in range(models):
        [kind] = {name.split(".")[0] for name in part_of(arrays, f"{at}.")}
        parts = part_of(arrays, f"{at}.{kind}.")
        found.append(
            Forest.from_arrays(parts, dimension=dimension)
            if kind == Forest.kind
            else model_from(kind, parts, dimension=dimension)
        )
    return tuple(found)


def _shares(model: Fitted, rows: Array) -> Array:
    """Return shares of the labels that a model knows, each row's from that row alone."""
    if isinstance(model, Forest):
        return model.shares(CodedRows.of(rows))
    if isinstance(model, BoostedTrees | LinearModel):
        scores = model.scores(CodedRows.of(rows))
        if scores.shape[1] == 1:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return softmax(scores)
    return in_blocks(lambda block: np.asarray(model.predict_proba(block)), rows)


def _cut(shares: Array, known: Integers, classes: int) -> Array:
    """Return log shares of all labels, none below a public one."""
    full = np.full((len(shares), classes), 1e-4)
    full[:, known] = shares if shares.shape[1] == len(known) else shares[:, known]
    full = np.maximum(full, _LEAST_SHARE / classes)
    # bit-exact: labels in their order, whatever the number of rows.
    total = np.zeros(len(full))
    for column in full.T:
        total += column
    return logarithm(full / total[:, None])


def _log_shares(scores: Array) -> Array:
    return logarithm(np.maximum(softmax(scores), 1e-30))


def _weights(outside: Array, targets: Array) -> Array:
    """Return weights of at least 0 of left-out predictions, drawn to equal shares."""
    from scipy.optimize import nnls

    models = len(outside)
    draw = np.sqrt(_EQUAL * np.square(outside).sum() / models)
    left = np.vstack([outside.T, draw * np.eye(models)])
    right = np.r_[targets, np.full(models, draw / models)]
    return np.asarray(nnls(left, right)[0])


def _trust(pooled: Array, targets: Array) -> float:
    """Return the trust whose gain over the constant, less its standard error, is largest."""

    def sure(alpha: float) -> float:
        gain = np.square(targets) - np.square(targets - alpha * pooled)
        return float(gain.mean() - gain.std() / np.sqrt(len(targets)))

    return max(_ALPHAS, key=sure)


def _predictions(model: Fitted, rows: Array) -> Array:
    if isinstance(model, Forest):
        shares = model.shares(CodedRows.of(rows))
        return np.asarray(shares[:, 1] - shares[:, 0])
    if isinstance(model, BoostedTrees | LinearModel):
        return np.asarray(model.scores(CodedRows.of(rows))[:, 0])
    return in_blocks(lambda block: np.asarray(model.predict(block))[:, None], rows)[:, 0]


def pool_from(arrays: Arrays, *, dimension: int) -> PublicPool | TargetPool:
    """Return the pool that ``describe`` took apart, of labels or of targets.

    Raises:
        CorruptBundle, InvalidInput, KeyError: the arrays are no pool's.
    """
    kind = TargetPool if "trust" in arrays else PublicPool
    return kind.from_arrays(arrays, dimension=dimension)
