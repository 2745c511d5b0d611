"""The problems of certified private prediction, and the exact expected accuracy of one answer by
each mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from papers.datasets import load_pneumonia
from reticent.core.arrays import Array, Integers
from reticent.core.errors import UnknownName
from reticent.core.extras import require
from reticent.core.guarantees import AddRemove
from reticent.datasets import load_blobs, load_fashion
from reticent.demos.certified import Problem, digits, imdb, whitening
from reticent.mechanisms import StabilityResponse
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy

ADJACENCY = AddRemove(1)

OURS = "ours: stability response"
PUBLISHED = "published: smooth sensitivity, Cauchy"
GLOBAL = "published: global sensitivity, Laplace"


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
