"""Noisy gradient descent beside Opacus at one guarantee: ``python benchmarks/gradients.py
[--records 45000] [--seeds 3] [--settings 6]``.

``NoisyGradientClassifier`` and DP-SGD by Opacus's per-sample gradients and optimiser
(``train_private``) train softmax regression on the same features, the public principal components
of MNIST's training pictures (``RETICENT_DATA``; scikit-learn's digits without it), at epsilon 1 and
delta 1e-5 for one record more or less, the number of records public on both sides. Noise of DP-SGD
is the smallest that privacy-loss distributions allow; it is PyTorch's float32 noise, no release
path, while ours is exact. Each side has a small grid of settings; for each, accuracy on held-out
training pictures (mean and standard error over seeds) and processor seconds of one thread, features
included. Then: the least time in which each side reaches the accuracy that both reach, less a
standard error. First of all: a fit beside as many steps of plain descent in float64.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from figures import Figure, processor_seconds
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from papers.datasets import load_mnist
from papers.dpsgd import PrivateTraining, train_private
from reticent import NoisyGradientClassifier
from reticent.core.errors import DataUnavailable
from reticent.systems import Features
from reticent.training.public_space import INTERCEPT, LENGTH, PublicSpace, directions_of

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

EPSILON, DELTA = 1.0, 1e-5
SPACE: dict[str, Any] = {"components": 100, "whitening": 0.5}
OURS = tuple(product((10, 20, 40), (20.0, 40.0)))
"""Steps and rate."""

THEIRS = tuple(product((1, 3, 10), (16.0, 64.0)))
"""Epochs and rate; batches of about 1,024 records."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Public, private and held-out rows.

    Attributes:
        public: without labels.
        private, labels: protected.
        held, truth: what accuracy is measured on.
    """

    public: Array
    private: Array
    labels: Integers
    held: Array
    truth: Integers

    @classmethod
    def of(cls, records: int) -> Rows:
        """``records`` private pictures, a ninth as many public ones, and up to 10,000 others."""
        try:
            images = load_mnist()
            X = images.train_images.reshape(len(images.train_images), -1).astype(np.float64) / 255
            y = images.train_labels.astype(np.int64)
        except DataUnavailable as missing:
            print(f"scikit-learn's digits in place of MNIST: {missing}")
            X, y = load_digits(return_X_y=True)
            records = min(records, 1200)
        first = max(100, records // 9)
        end = first + records
        held = slice(end, end + 10_000)
        return cls(X[:first], X[first:end], y[first:end], X[held], y[held])


@dataclass(frozen=True)
class Found:
    """What one setting came to.

    Attributes:
        accuracies, seconds: of each seed.
    """

    accuracies: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean accuracy."""
        return float(np.mean(self.accuracies))

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        if len(self.accuracies) < 2:
            return 0.0
        return float(np.std(self.accuracies, ddof=1) / math.sqrt(len(self.accuracies)))


def our_training(rows: Rows, steps: int, rate: float) -> tuple[float, float]:
    """Accuracy and seconds of one fit; its noise is the operating system's."""
    start = time.process_time()
    model = NoisyGradientClassifier(
        epsilon=EPSILON,
        delta=DELTA,
        classes=range(10),
        steps=steps,
        learning_rate=rate,
        records=len(rows.private),
        features=Features(**SPACE),
    ).fit(rows.private, rows.labels, public_X=rows.public)
    taken = time.process_time() - start
    return float((model.predict(rows.held) == rows.truth).mean()), taken


def their_training(rows: Rows, epochs: int, rate: float, seed: int) -> tuple[float, float]:
    """Accuracy and seconds of one training of DP-SGD on the same features."""
    start = time.process_time()
    space = PublicSpace.around(rows.public, lower_upper=None, alike=False, **SPACE)

    def features(points: Array) -> Array:
        return np.asarray(directions_of(space.points(points), intercept=INTERCEPT) / LENGTH)

    settings = PrivateTraining(
        epsilon=EPSILON,
        delta=DELTA,
        epochs=epochs,
        batch_size=1024,
        learning_rate=rate,
        seed=seed,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook")
        model = train_private(features(rows.private), rows.labels, settings)
    taken = time.process_time() - start
    return float((model.predict(features(rows.held)) == rows.truth).mean()), taken


def quickest(found: list[Found], accuracy: float) -> Found:
    """The setting that reaches ``accuracy`` in the least median time."""
    enough = [one for one in found if one.mean >= accuracy]
    return min(enough, key=lambda one: float(np.median(one.seconds)))


def show(name: str, found: Found) -> None:
    """One line."""
    print(
        f"  {name:24s} accuracy {found.mean:.4f} +- {found.error:.4f}, "
        f"{np.median(found.seconds):6.2f} s",
        flush=True,
    )


def descent(rows: int) -> None:
    """A fit in exact integers with noise, beside as many steps of plain float64 descent."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rows, 50)), rng.integers(10, size=rows)
    public = rng.normal(size=(2000, 50))
    truth = np.eye(10)[y]

    def ours() -> object:
        model = NoisyGradientClassifier(
            epsilon=EPSILON, delta=DELTA, classes=range(10), steps=20, records=rows
        )
        return model.fit(X, y, public_X=public)

    def plain() -> Array:
        weights = np.zeros((50, 10))
        for _ in range(20):
            logits = X @ weights
            chances = np.exp(logits - logits.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            weights -= 20.0 * (X.T @ (chances - truth)) / rows
        return weights

    Figure.of(
        f"20 noisy gradients of {rows:,} x 50",
        processor_seconds(ours, runs=3),
        peer="plain float64 NumPy",
        theirs=processor_seconds(plain, runs=3),
    ).keep()


def main() -> None:
    """Prints both grids, and the time for one accuracy."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=45_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", type=int, default=6, help="of each side's grid, the first")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        descent(4 * options.records)
        rows, seeds = Rows.of(options.records), range(options.seeds)
        our_training(rows, 1, 1.0)  # what is loaded, and made, once
        their_training(rows, 1, 1.0, 0)
        print(f"{len(rows.private)} private records, {len(rows.held)} held out, epsilon 1")
        ours, theirs = [], []
        for steps, rate in OURS[: options.settings]:
            runs = [our_training(rows, steps, rate) for _ in seeds]
            ours.append(Found(*zip(*runs, strict=True)))
            show(f"ours, {steps} steps of {rate:g}", ours[-1])
        for epochs, rate in THEIRS[: options.settings]:
            runs = [their_training(rows, epochs, rate, seed) for seed in seeds]
            theirs.append(Found(*zip(*runs, strict=True)))
            show(f"Opacus, {epochs} epochs of {rate:g}", theirs[-1])
        best = min((max(each, key=lambda one: one.mean) for each in (ours, theirs)), key=_mean)
        target = best.mean - best.error
        Figure.of(
            f"training to {target:.3f} right at ε = 1, {len(rows.private):,} records",
            quickest(ours, target).seconds,
            peer="Opacus",
            theirs=quickest(theirs, target).seconds,
        ).keep()


def _mean(found: Found) -> float:
    return found.mean


if __name__ == "__main__":
    main()
