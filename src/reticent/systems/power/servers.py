"""The server's side: models that learn from released values, and the boosted trees that are an
extra.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from reticent.core.errors import InvalidInput, UnknownName
from reticent.core.extras import require
from reticent.training.heads import Head, HeadConfig, train_head

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_LEAVES = (10, 100, 1000)  # least rows in a forest's leaf

SERVERS = ("network", "forest", "boosted", "xgboost")
"""``boosted`` is scikit-learn's histogram gradient boosting with XGBoost's default shape;
``xgboost`` needs that package.
"""


@dataclass(frozen=True, eq=False)
class Server:
    """A model of released values.

    Attributes:
        name: one of ``SERVERS``.
        model: the fitted classifier.

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, servers with any model.

    See Also:
        reticent.systems.train_server: makes them.
    """

    name: str
    model: Any

    def predict(self, released: npt.ArrayLike) -> Labels:
        """Labels, shape (n,), of released values (shape (n, m)); -1 for a withheld row (NaN),
        wrong under every accuracy.
        """
        values = np.asarray(released, dtype=np.float64)
        known = np.isfinite(values).all(axis=1)
        labels = np.full(len(values), -1, dtype=np.int64)
        if known.any():
            labels[known] = self.model.predict(values[known])
        return labels


def train_server(name: str, released: npt.ArrayLike, labels: npt.ArrayLike, *, seed: int) -> Server:
    """A model trained on released values as they are; withheld rows (NaN) are left out.

    Args:
        name: one of ``SERVERS``.
        released: shape (n, m).
        labels: shape (n,), integers from 0.
        seed: of the model.

    Raises:
        UnknownName: no such server.
        MissingExtra: ``xgboost`` is not installed.
        InvalidInput: shapes that do not fit, or fewer than two released rows.

    References:
        - Vepakomma and Ponkshe (2025), "Power mechanism: private tabular representation release for
          model agnostic consumption", arXiv:2510.05581, servers with any model.

    See Also:
        reticent.PowerEncoder: releases the rows.
        reticent.systems.Server: the result.
    """
    if name not in SERVERS:
        raise UnknownName(f"server={name!r}: expected one of {', '.join(SERVERS)}")
    values, targets = np.asarray(released, dtype=np.float64), np.asarray(labels)
    if values.ndim != 2 or targets.shape != values.shape[:1]:
        raise InvalidInput(
            f"released: expected shape ({len(targets)}, m) as there are labels, got "
            f"shape={values.shape}"
        )
    known = np.isfinite(values).all(axis=1)
    if known.sum() < 2:
        raise InvalidInput("released: expected at least two released rows")
    model = _model(name, seed)
    model.fit(values[known], targets[known])
    return Server(name, model)


class _Network:
    """The project's own head, under scikit-learn's two verbs."""

    head: Head

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, released: Array, labels: Labels) -> None:
        config = HeadConfig(hidden=(64, 64), epochs=15, seed=self.seed)
        with torch.random.fork_rng(devices=[]):
            self.head = train_head(released, labels, config, noise=None)

    def predict(self, released: Array) -> Labels:
        return self.head.predict(released)


class _Forest:
    """A random forest whose leaves are as large as the noise asks for: the size with the best
    out-of-bag accuracy.
    """

    model: RandomForestClassifier

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, released: Array, labels: Labels) -> None:
        sizes = [size for size in _LEAVES if size == _LEAVES[0] or 10 * size <= len(released)]
        forests = [self._grown(released, labels, size) for size in sizes]
        self.model = max(forests, key=lambda forest: float(forest.oob_score_))

    def predict(self, released: Array) -> Labels:
        return np.asarray(self.model.predict(released))

    def _grown(self, released: Array, labels: Labels, size: int) -> RandomForestClassifier:
        forest = RandomForestClassifier(
            100,
            min_samples_leaf=size,
            max_features="sqrt",
            max_samples=0.5,
            oob_score=True,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="Some inputs do not have OOB scores"
            )  # a few rows in tiny tables
            forest.fit(released, labels)
        return forest


class _XGBoost:
    """XGBoost with its own defaults, stopped when a tenth of the rows that it does not learn
    from stops to gain.
    """

    def __init__(self, seed: int) -> None:
        xgboost = require("xgboost", extra="xgboost", instead="use server='boosted'")
        self.seed = seed
        self.model = xgboost.XGBClassifier(
            random_state=seed, tree_method="hist", early_stopping_rounds=5
        )

    def fit(self, released: Array, labels: Labels) -> None:
        self.classes, codes = np.unique(labels, return_inverse=True)
        order = np.random.default_rng(self.seed).permutation(len(released))
        held = order[: max(1, len(order) // 10)]
        learnt = np.setdiff1d(order, held)
        if len(np.unique(codes[learnt])) < len(
            self.classes
        ):  # a class of one row: nothing can be held out
            held = learnt = order
        self.model.fit(
            released[learnt], codes[learnt], eval_set=[(released[held], codes[held])], verbose=False
        )

    def predict(self, released: Array) -> Labels:
        return np.asarray(self.classes[np.asarray(self.model.predict(released), dtype=np.int64)])


def _model(name: str, seed: int) -> Any:
    if name == "network":
        return _Network(seed)
    if name == "forest":
        return _Forest(seed)
    if name == "xgboost":
        return _XGBoost(seed)
    return HistGradientBoostingClassifier(
        learning_rate=0.3,
        max_depth=6,
        max_leaf_nodes=64,
        l2_regularization=1.0,  # without it, rare classes can make boosting stop at once
        early_stopping=True,
        n_iter_no_change=5,
        random_state=seed,
    )
