"""Regression on public labels: where noisy gradient descent can start."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import StratifiedKFold

from reticent.core.arrays import Array, Integers

_STRENGTHS = (1.0, 10.0, 100.0)
_FOLDS = 3
_RIDGES = 10.0 ** np.arange(-4, 3)


def public_softmax_regression(unit: Array, codes: Integers, classes: int) -> Array:
    """Weights of softmax regression on public rows, shape (m, classes), with the penalty that
    predicts left-out thirds of them best.

    Args:
        unit: shape (n, m), with its constant column.
        codes: shape (n,), places of labels.
        classes: how many labels there are; those that no row has get the least score of a row's.
    """
    found, sizes = np.unique(codes, return_counts=True)
    if len(found) < 2:
        weights = np.zeros((unit.shape[1], classes))
        weights[:, found] = unit.mean(axis=0)[:, None]
        return weights
    strength = _STRENGTHS[1]
    if sizes.min() >= _FOLDS:
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
        parts = list(folds.split(unit, codes))
        losses = [
            sum(_loss(_fitted(unit[a], codes[a], c), unit[b], codes[b]) for a, b in parts)
            for c in _STRENGTHS
        ]
        strength = _STRENGTHS[int(np.argmin(losses))]
    model = _fitted(unit, codes, strength)
    columns = model.coef_
    if len(found) == 2:
        columns = np.vstack([-0.5 * columns, 0.5 * columns])
    weights = np.zeros((unit.shape[1], classes))
    weights[:, found] = columns.T
    absent = np.setdiff1d(np.arange(classes), found)
    if len(absent):
        least = (unit @ columns.T).min() - 1.0
        weights[-1, absent] = least / max(float(unit[:, -1].mean()), 1e-6)
    return np.asarray(weights - weights.mean(axis=1, keepdims=True))


def public_ridge_regression(unit: Array, targets: Array) -> Array:
    """Weights of ridge regression on public rows, shape (m, 1), with the penalty that predicts
    left-out rows best.

    Args:
        unit: shape (n, m), with its constant column.
        targets: shape (n,).
    """
    model = RidgeCV(_RIDGES, fit_intercept=False).fit(unit, targets)
    return np.asarray(model.coef_, dtype=np.float64).reshape(-1, 1)


def _fitted(unit: Array, codes: Integers, strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, fit_intercept=False, max_iter=500).fit(unit, codes)


def _loss(model: LogisticRegression, unit: Array, codes: Integers) -> float:
    places = np.searchsorted(model.classes_, codes)
    return -float(model.predict_log_proba(unit)[np.arange(len(codes)), places].sum())
