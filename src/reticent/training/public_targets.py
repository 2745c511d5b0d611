"""A pool of regressors fitted on public targets, from which a private regression can start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import finite_array
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter
from reticent.core.rows import in_blocks
from reticent.training.public_forest import Forest
from reticent.training.public_models import BoostedTrees, LinearModel, model_from
from reticent.training.public_pool import FOLDS, LEAF_TREES, LEAVES
from reticent.training.public_start import PublicStart

_PENALTIES = (1.0, 10.0, 100.0, 1000.0)
_LEAST_ROWS = 2 * FOLDS
_ALPHAS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)
_PRIOR = 0.05  # weight of equal shares in the pool, as a share of the squared predictions

Fitted = BoostedTrees | LinearModel | Forest | Any


def usual_regressors(rows: int, *, table: bool) -> list[Any]:
    """Return the regressors that are tried where the caller names none, not fitted.

    Args:
        rows: the number of public rows with targets.
        table: True if rows are those of a table, for which trees are boosted too.

    Example:
        >>> len(usual_regressors(500, table=True)), len(usual_regressors(500, table=False))
        (8, 6)
    """
    found: list[Any] = [Ridge(alpha=penalty) for penalty in _PENALTIES]
    least = max(3, min(20, rows // 25))
    if table:
        found += [
            HistGradientBoostingRegressor(
                max_iter=rounds,
                learning_rate=0.07,
                max_leaf_nodes=leaves,
                min_samples_leaf=least,
                early_stopping=False,
                random_state=0,
            )
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
        for at, model in enumerate(self.models):
            if not isinstance(model, BoostedTrees | LinearModel | Forest):
                raise InvalidInput(
                    "pool: expected ridge regressions, boosted trees or forests of scikit-learn, "
                    f"which a bundle can hold, got {type(model).__name__}"
                )
            found |= {f"{at}.{model.kind}.{name}": each for name, each in model.describe().items()}
        return found

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
        models: list[Fitted] = []
        for at in range(len(weights)):
            [kind] = {name.split(".")[1] for name in arrays if name.startswith(f"{at}.")}
            head = f"{at}.{kind}."
            parts = {n.removeprefix(head): a for n, a in arrays.items() if n.startswith(head)}
            models.append(
                Forest.from_arrays(parts, dimension=dimension)
                if kind == Forest.kind
                else model_from(kind, parts, dimension=dimension)
            )
        return cls(tuple(models), weights, float(trust[0]), float(trust[1]))


class TargetStart(PublicStart):
    """A public start of targets."""

    _pool_kind = TargetPool


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
        least = max(2, min(5, len(scaled) // 20))
        trees = ExtraTreesRegressor(
            LEAF_TREES, max_leaf_nodes=LEAVES, min_samples_leaf=least, random_state=0
        ).fit(scaled, self.targets)
        return Forest.of_targets(trees)

    def pooled(self, scaled: Array) -> tuple[TargetPool, Array]:
        """Return the pool of rows, and their offsets by models that did not see them."""
        return TargetPool.fitted(scaled, self.targets, self.models)


def checked_regressors(pool: Any) -> list[Any] | None:
    """Return the models of a setting ``pool``, perhaps none, or None for the usual ones.

    Raises:
        InvalidParameter: ``pool`` is no list of regressors.
    """
    if pool is None:
        return None
    known = isinstance(pool, (list, tuple)) and all(
        hasattr(one, "fit") and hasattr(one, "predict") and hasattr(one, "get_params")
        for one in pool
    )
    if not known:
        raise InvalidParameter("pool: expected None, or a list of regressors of scikit-learn")
    return list(pool)


def _weights(outside: Array, targets: Array) -> Array:
    """Return weights of at least 0 of left-out predictions, drawn to equal shares."""
    models = len(outside)
    draw = np.sqrt(_PRIOR * np.square(outside).sum() / models)
    left = np.vstack([outside.T, draw * np.eye(models)])
    right = np.r_[targets, np.full(models, draw / models)]
    return np.asarray(nnls(left, right)[0])


def _trust(pooled: Array, targets: Array) -> float:
    """Return the trust whose gain over the constant, less its standard error, is largest."""

    def sure(alpha: float) -> float:
        gain = np.square(targets) - np.square(targets - alpha * pooled)
        return float(gain.mean() - gain.std() / np.sqrt(len(targets)))

    return max(_ALPHAS, key=sure)


def _as_arrays(fit: Any) -> Fitted:
    if type(fit) is Ridge:
        return LinearModel(
            np.asarray(fit.coef_, dtype=np.float64).reshape(-1, 1),
            np.asarray([fit.intercept_], dtype=np.float64).reshape(-1),
        )
    if type(fit) is HistGradientBoostingRegressor and fit.is_categorical_ is None:
        return BoostedTrees.from_sklearn(fit)
    if type(fit) in (RandomForestRegressor, ExtraTreesRegressor):
        return Forest.of_targets(fit)
    return fit


def _predictions(model: Fitted, rows: Array) -> Array:
    if isinstance(model, Forest):
        shares = model.shares(CodedRows.of(rows))
        return np.asarray(shares[:, 1] - shares[:, 0])
    if isinstance(model, BoostedTrees | LinearModel):
        return np.asarray(model.scores(CodedRows.of(rows))[:, 0])
    return in_blocks(lambda block: np.asarray(model.predict(block))[:, None], rows)[:, 0]


def halves(codes: Integers, steps: float) -> Array:
    """Return targets in halves of their range."""
    return np.asarray(codes / steps)
