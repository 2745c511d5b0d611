"""The data, features and training settings of the certified experiments, one entry per problem.

Everything here that is learned is learned from public data: another data set, or a part that is
said to be public and is not among the private records. That part also served for choosing
settings; held-out parts never did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import UnknownName
from reticent.core.extras import require
from reticent.datasets import load_blobs, load_digits, load_fashion, load_imdb, load_pneumonia
from reticent.systems import CertifiedClassifier, CertifiedEnsemble
from reticent.systems.certified.interval_system import ClippedDescent

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_PUBLIC_REVIEWS = 2000
_PUBLIC_PICTURES = 20_000
_PUBLIC_POINTS = 200
_PUBLIC_XRAYS = 524


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Private records, public queries with their true labels, and how a model is trained.

    Attributes:
        name: for files and titles.
        X, y: private records, shape (n, d), and their labels 0 .. classes - 1.
        queries, truth: held-out queries and their labels, which only score answers.
        classes: number of labels.
        training: arguments of ``CertifiedClassifier`` that decide the run.
        k_max: largest certified distance.
        about: what it is and what was public, in words.
        public_rows, public_labels: labelled public rows in the same features, shapes (p, d) and
            (p,); none where no part is public yet.
    """

    name: str
    X: Array
    y: Labels
    queries: Array
    truth: Labels
    classes: int = 2
    training: dict[str, Any] = field(default_factory=dict)
    k_max: int = 300
    about: str = ""
    public_rows: Array = field(default_factory=lambda: np.zeros((0, 0)))
    public_labels: Labels = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def opened(self, rows: int) -> Problem:
        """The same problem whose last ``rows`` records are public, and private no more.

        Example:
            >>> opened = problem_of("digits").opened(200)
            >>> len(opened.X), len(opened.public_rows)
            (1238, 200)
        """
        return replace(
            self,
            X=self.X[:-rows],
            y=self.y[:-rows],
            public_rows=self.X[-rows:],
            public_labels=self.y[-rows:],
            about=f"{self.about} The last {rows} records count as public.",
        )

    def system(self, members: int = 1) -> CertifiedClassifier | CertifiedEnsemble:
        """An unfitted estimator with this problem's settings; its epsilon is a placeholder that no
        figure uses.

        A member sees a share of the records, so it is certified up to about four times its share
        of ``k_max``.
        """
        k_max = min(self.k_max, max(20, 4 * self.k_max // members))
        shared: dict[str, Any] = {
            "epsilon": 1.0,
            "k_max": k_max,
            "classes": range(self.classes),
            "training": ClippedDescent(**self.training, random_state=0),
        }
        return (
            CertifiedClassifier(**shared)
            if members == 1
            else CertifiedEnsemble(members=members, **shared)
        )


def whitening(public: Array, components: int, *, floor: float) -> Callable[[Array], Array]:
    """The map to the leading principal components of public rows, each brought to about unit
    variance.

    Args:
        public: shape (n, d).
        components: how many, at most d.
        floor: share of the largest standard deviation that is added to each, so that no small one
            is blown up.

    Example:
        >>> rows = np.random.default_rng(0).normal(size=(500, 3)) * [5.0, 1.0, 0.1] + 7.0
        >>> whitening(rows, 2, floor=0.0)(rows).std(axis=0).round(6).tolist()
        [1.0, 1.0]
    """
    center = public.mean(axis=0)
    _, spreads, axes = np.linalg.svd((public - center) / np.sqrt(len(public)), full_matrices=False)
    matrix = axes[:components].T / (spreads[:components] + floor * spreads[0])

    def map_rows(rows: Array) -> Array:
        # Multiplied element by element and summed row by row: a record's features must not depend
        # on the other records.
        return np.stack([((row - center)[:, None] * matrix).sum(axis=0) for row in rows])

    return map_rows


def _blobs(kind: str, points: int) -> Problem:
    data = load_blobs(kind, points=points)
    other = load_blobs(kind, points=_PUBLIC_POINTS, seed=10_000)
    return Problem(
        name="blobs" if kind == "separable" else f"blobs-{kind}",
        X=data.train_rows,
        y=data.train_labels,
        queries=data.test_rows,
        truth=data.test_labels,
        k_max=600,
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.6, "clip": 0.06},
        public_rows=other.train_rows,
        public_labels=other.train_labels,
        about=(
            f"{points:,} points, {data.origin}; {kind}. Logistic regression from zero weights "
            "with the paper's settings: "
            f"4 epochs, full batch. {_PUBLIC_POINTS} more points, with labels, are public."
        ),
    )


def _digits() -> Problem:
    data = load_digits()
    return Problem(
        name="digits",
        X=_scaled(data.train_rows),
        y=data.train_labels,
        queries=_scaled(data.test_rows),
        truth=data.test_labels,
        classes=10,
        k_max=30,
        training={"epochs": 1, "clip": 0.1},
        about="scikit-learn's digits, pixels scaled to -0.65 .. 1.35; ten classes, one "
        "full-batch step of softmax regression.",
    )


def _scaled(rows: Array) -> Array:
    return 2.0 * rows - 0.65


@cache
def xray_features() -> tuple[Array, Labels, Array, Labels]:
    """PneumoniaMNIST as frozen convolutions that pictures of clothing taught: rows and labels of
    the 4,708 training pictures followed by the 524 validation pictures, and of the 624 test ones.

    Raises:
        DataUnavailable: its files are missing.
        MissingExtra: torch is not installed.
    """
    require("torch", extra="networks")
    from reticent.training.convolutional_features import (
        ConvolutionalConfig,
        train_convolutional_features,
    )

    clothing = load_fashion()
    data, public = load_pneumonia(), load_pneumonia(held_out="validation")
    some = slice(0, _PUBLIC_PICTURES)
    config = ConvolutionalConfig(image_shape=(28, 28))
    network = train_convolutional_features(
        clothing.train_images[some], clothing.train_labels[some], config
    )
    return (
        np.concatenate([network.features(data.train_images), network.features(public.test_images)]),
        np.concatenate([data.train_labels, public.test_labels]),
        network.features(data.test_images),
        data.test_labels,
    )


def _pneumonia() -> Problem:
    rows, labels, queries, truth = xray_features()
    private, public = slice(None, -_PUBLIC_XRAYS), slice(-_PUBLIC_XRAYS, None)
    white = whitening(rows[public], 30, floor=0.02)
    return Problem(
        name="pneumonia",
        X=white(rows[private]),
        y=labels[private],
        queries=white(queries),
        truth=truth,
        k_max=300,
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.0, "clip": 0.1},
        public_rows=white(rows[public]),
        public_labels=labels[public],
        about=(
            "PneumoniaMNIST: 4,708 private X-rays, 624 official test pictures as queries. Two "
            "frozen convolutions of 16 and 32 "
            "filters, trained on 20,000 public pictures of clothing (Fashion-MNIST), 2 x 2 "
            "means, 30 principal components of the "
            "524 official validation pictures, which count as public. Logistic regression from "
            "zero weights, 4 epochs."
        ),
    )


def _imdb() -> Problem:
    data = load_imdb()
    order = np.random.default_rng(0).permutation(len(data.train_rows))
    public, private = order[:_PUBLIC_REVIEWS], order[_PUBLIC_REVIEWS:]
    white = whitening(data.train_rows[public], 50, floor=0.0)
    return Problem(
        name="imdb",
        X=white(data.train_rows[private]),
        y=data.train_labels[private],
        queries=white(data.test_rows),
        truth=data.test_labels,
        k_max=300,
        training={"epochs": 3, "learning_rate": 1.0, "rate_decay": 0.5, "clip": 0.05},
        public_rows=white(data.train_rows[public]),
        public_labels=data.train_labels[public],
        about=(
            "IMDB reviews as frozen public sentence embeddings (all-MiniLM-L6-v2): 17,924 "
            "private records, 4,980 held-out "
            "queries. 50 principal components of 2,000 other reviews, which count as public. "
            "Logistic regression from zero "
            "weights, 3 epochs."
        ),
    )


_PROBLEMS: dict[str, Callable[[], Problem]] = {
    "blobs": lambda: _blobs("separable", 5000),
    "blobs-close": lambda: _blobs("close", 3000),
    "digits": _digits,
    "pneumonia": _pneumonia,
    "imdb": _imdb,
}

PROBLEMS = tuple(_PROBLEMS)
"""Names that ``problem_of`` knows; blobs and digits need no file."""


def problem_of(name: str) -> Problem:
    """The problem called ``name``.

    Raises:
        UnknownName: no such problem.
        DataUnavailable: its files are missing.
        MissingExtra: its features are a network's ("pneumonia"), and torch is not installed.

    Example:
        >>> problem_of("digits").X.shape
        (1438, 64)
    """
    if name not in _PROBLEMS:
        raise UnknownName(f"data={name!r}: expected one of {', '.join(PROBLEMS)}")
    return _PROBLEMS[name]()
