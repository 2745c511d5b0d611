"""The problems of certified private prediction, and the exact expected accuracy of one answer by
each mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.datasets import load_fashion, load_imdb, load_pneumonia
from reticent.core.arrays import Array, Integers
from reticent.core.errors import UnknownName
from reticent.core.extras import require
from reticent.core.guarantees import AddRemove
from reticent.datasets import load_blobs, load_digits
from reticent.demos.certified import whitening
from reticent.mechanisms import StabilityResponse
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy

ADJACENCY = AddRemove(1)

OURS = "ours: stability response"
PUBLISHED = "published: smooth sensitivity, Cauchy"
GLOBAL = "published: global sensitivity, Laplace"


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Private records, public queries with their true labels, and the training of a model.

    Everything but the model is learned from public data, and settings were chosen there too. Public
    data are another data set, or a part that is declared public and is no private record.

    Attributes:
        name: name for files and titles.
        X, y: private records, shape (n, d), and their labels 0 .. classes - 1.
        queries, truth: held-out queries and their labels, which only score answers.
        classes: number of labels.
        training: arguments of ``CertifiedClassifier`` that decide the run.
        k_max: largest certified distance.
        about: text on the data and their public part.
        public_rows, public_labels: labelled public rows in the same features, shapes (p, d) and
            (p,), empty if no part is public.
    """

    name: str
    X: Array
    y: Integers
    queries: Array
    truth: Integers
    classes: int = 2
    training: dict[str, Any] = field(default_factory=dict)
    k_max: int = 300
    about: str = ""
    public_rows: Array = field(default_factory=lambda: np.zeros((0, 0)))
    public_labels: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def digits(public: int) -> Problem:
    """Return scikit-learn's digits, with the last ``public`` training pictures as public ones.

    Example:
        >>> opened = digits(200)
        >>> len(opened.X), len(opened.public_rows)
        (1238, 200)
    """
    data = load_digits()
    cut = len(data.train_rows) - public
    rows, queries = (2.0 * part - 0.65 for part in (data.train_rows, data.test_rows))
    return Problem(
        name="digits",
        X=rows[:cut],
        y=data.train_labels[:cut],
        queries=queries,
        truth=data.test_labels,
        classes=10,
        k_max=30,
        training={"epochs": 1, "clip": 0.1},
        public_rows=rows[cut:],
        public_labels=data.train_labels[cut:],
        about="scikit-learn's digits, pixels scaled to -0.65 .. 1.35; ten classes, one "
        "full-batch step of softmax regression.",
    )


def imdb() -> Problem:
    """Return good and bad film reviews as sentence embeddings, from files below RETICENT_DATA."""
    data = load_imdb()
    order = np.random.default_rng(0).permutation(len(data.train_rows))
    public, private = order[:2000], order[2000:]
    white = whitening(data.train_rows[public], 50, floor=0.0)
    return Problem(
        name="imdb",
        X=white(data.train_rows[private]),
        y=data.train_labels[private],
        queries=white(data.test_rows),
        truth=data.test_labels,
        training={"epochs": 3, "learning_rate": 1.0, "rate_decay": 0.5, "clip": 0.05},
        public_rows=white(data.train_rows[public]),
        public_labels=data.train_labels[public],
        about="IMDB reviews as frozen public sentence embeddings (all-MiniLM-L6-v2): 17,924 "
        "private records, 4,980 held-out queries. 50 principal components of 2,000 other reviews, "
        "which count as public. Logistic regression from zero weights, 3 epochs.",
    )


def _blobs(kind: str, points: int) -> Problem:
    data, other = load_blobs(kind, points=points), load_blobs(kind, points=200, seed=10_000)
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
        about=f"{points:,} points, {data.origin}; {kind}. Logistic regression from zero weights "
        "with the paper's settings: 4 epochs, full batch. 200 more points, with labels, are "
        "public.",
    )


@cache
def xray_features() -> tuple[Array, Integers, Array, Integers]:
    """Return PneumoniaMNIST as frozen convolutions that pictures of clothing taught: rows and
    labels of the 4,708 training pictures followed by the 524 validation pictures, and of the 624
    test ones.

    Raises:
        DataUnavailable: its files are missing.
        MissingExtra: torch is not installed.
    """
    require("torch", extra="networks")
    from papers.certified.convolutional_features import (
        ConvolutionalConfig,
        train_convolutional_features,
    )

    clothing, some = load_fashion(), slice(0, 20_000)
    data, public = load_pneumonia(), load_pneumonia(held_out="validation")
    network = train_convolutional_features(
        clothing.train_images[some],
        clothing.train_labels[some],
        ConvolutionalConfig(image_shape=(28, 28)),
    )
    return (
        np.concatenate([network.features(data.train_images), network.features(public.test_images)]),
        np.concatenate([data.train_labels, public.test_labels]),
        network.features(data.test_images),
        data.test_labels,
    )


def _pneumonia() -> Problem:
    rows, labels, queries, truth = xray_features()
    private, public = slice(None, -524), slice(-524, None)
    white = whitening(rows[public], 30, floor=0.02)
    return Problem(
        name="pneumonia",
        X=white(rows[private]),
        y=labels[private],
        queries=white(queries),
        truth=truth,
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.0, "clip": 0.1},
        public_rows=white(rows[public]),
        public_labels=labels[public],
        about="PneumoniaMNIST: 4,708 private X-rays, 624 official test pictures as queries. Two "
        "frozen convolutions of 16 and 32 filters, trained on 20,000 public pictures of clothing "
        "(Fashion-MNIST), 2 x 2 means, 30 principal components of the 524 official validation "
        "pictures, which count as public. Logistic regression from zero weights, 4 epochs.",
    )


_PROBLEMS: dict[str, Callable[[], Problem]] = {
    "blobs": partial(_blobs, "separable", 5000),
    "blobs-close": partial(_blobs, "close", 3000),
    "digits": partial(digits, 0),
    "pneumonia": _pneumonia,
    "imdb": imdb,
}
PROBLEMS = tuple(_PROBLEMS)
"""Names that ``problem_of`` knows; blobs and digits need no file."""


def problem_of(name: str) -> Problem:
    """Return the problem called ``name``.

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


@dataclass(frozen=True, eq=False)
class Answers:
    """What a fitted system knows about every query. Private; experiments only score it.

    Attributes:
        labels: the noise-free label, shape (n,).
        distances: its certified stable distance, shape (n,).
        votes: label of every member, shape (members, n).
        truth: the true label, shape (n,).
        classes: number of labels.
    """

    labels: Integers
    distances: Integers
    votes: Integers
    truth: Integers
    classes: int

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether the noise-free label is true, shape (n,)."""
        return np.asarray(self.labels == self.truth)

    @property
    def noise_free(self) -> float:
        """Accuracy without noise."""
        return float(self.right.mean())


def _stability(answers: Answers, epsilon: float) -> float:
    response = StabilityResponse(classes=answers.classes, epsilon=epsilon, adjacency=ADJACENCY)
    level = np.minimum(answers.distances, response.max_level)
    given = np.where(
        answers.right, response.right_probabilities[level], response.wrong_probabilities[level]
    )
    return float(given.mean())


def _cauchy(answers: Answers, epsilon: float) -> float:
    """On the same certificates, of every distance: so it is private."""
    response = SmoothCauchy(epsilon=epsilon, adjacency=ADJACENCY)
    return accuracy_of_flips(answers, response.flip_probabilities(answers.distances))


def _laplace(answers: Answers, epsilon: float) -> float:
    response = GlobalSensitivityResponse(epsilon=epsilon, adjacency=ADJACENCY)
    return accuracy_of_flips(answers, response.flip_probabilities(answers.distances))


PURE: dict[str, Callable[[Answers, float], float]] = {
    OURS: _stability,
    PUBLISHED: _cauchy,
    GLOBAL: _laplace,
}
"""Exact expected accuracy of one answer of a pure epsilon, by mechanism; the last two answer two
labels only.
"""


def accuracy_of_flips(answers: Answers, flips: Array) -> float:
    """Return the expected accuracy on two labels where ``flips``, shape (n,), are the chances that
    the other one is told.
    """
    return float(np.where(answers.right, 1.0 - flips, flips).mean())
