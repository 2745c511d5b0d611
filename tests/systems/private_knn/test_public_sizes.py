"""What is public, and what a record contributes, is the same to the last bit whatever the number of
private records, their order and the number of threads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from torch import nn

from reticent.neighbours import PointGrid
from reticent.release.fits import not_counted
from reticent.systems import (
    Ball,
    Features,
    IndividualKNNClassifier,
    Neighbours,
    PrivateKNNClassifier,
)

RANDOM = np.random.default_rng(0)
SIZES = (0, 1, 32, 33, 65, 257)
PICTURES = RANDOM.random((258, 8, 8))
LABELS = RANDOM.integers(0, 2, 258)
PUBLIC = RANDOM.random((70, 8, 8))
QUERIES = RANDOM.random((66, 8, 8))
COMMON: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "classes": (0, 1)}
NETWORK = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 5))


FEATURES = Features(map=NETWORK, range=(-3.0, 3.0))
"""A product; ``tests/training`` has all maps."""


@pytest.fixture(autouse=True)
def nothing_leaves() -> Iterator[None]:
    with not_counted("tests release nothing"):
        yield


def digest(*arrays: Any) -> str:
    """SHA-256 of the bits of arrays, and of their shapes and kinds."""
    found = hashlib.sha256()
    for array in map(np.asarray, arrays):
        found.update(f"{array.shape}{array.dtype.str}".encode() + array.tobytes())
    return found.hexdigest()


def public_part(classifier: IndividualKNNClassifier | PrivateKNNClassifier) -> str:
    """Grid, queries, radii and noise: all that answers rest on besides the records."""
    points = classifier.checked(QUERIES)
    grid: PointGrid = classifier.grid_
    settled: list[Any] = [grid.center, grid.per_unit, points]
    if isinstance(classifier, IndividualKNNClassifier):
        public, rows = classifier._public, classifier._public_rows
        kernels = classifier._kernels(grid, public, rows, points)
        settled += [[kernel.squared_radius, kernel.squared_inner] for kernel in kernels]
        settled += [classifier.plan_.budget.sigma, classifier.plan_.budget.cap]
        settled += [classifier.plan_.sigma_votes]
    else:
        steps = classifier.plan_.steps
        settled += [steps.sigma_votes, steps.neighbours, steps.sampling_probability]
    return digest(*settled)


def contributions(classifier: IndividualKNNClassifier | PrivateKNNClassifier) -> list[str]:
    """For each record its point, its label and its place in every query, in no order."""
    points = classifier.checked(QUERIES)
    if isinstance(classifier, IndividualKNNClassifier):
        held = classifier.held_
        public, rows = classifier._public, classifier._public_rows
        kernels = classifier._kernels(classifier.grid_, public, rows, points)
        weights = np.zeros((len(held), len(points)), dtype=np.int64)
        limits = np.array([kernel.squared_radius for kernel in kernels])
        for query, (numbers, squared, _) in enumerate(held.near(points, limits)):
            weights[np.searchsorted(held.numbers, numbers), query] = kernels[query].weights(squared)
        each = zip(held.points, held.labels, weights, strict=True)
    else:
        records = classifier.search_.records
        own = records.candidates.points[np.argsort(records.places)]
        distances = np.zeros((len(records), len(points)), dtype=np.int64)
        for lists in classifier.search_.lists(points, depth=max(1, len(records))):
            for row, order in enumerate(lists.order):
                found = own[order].astype(np.int64) - points[lists.first + row]
                squared = np.square(found).sum(axis=1)
                assert (np.diff(squared) >= 0).all()
                distances[order, lists.first + row] = squared
        each = zip(own, records.votes, distances, strict=True)
    return sorted(digest(*parts) for parts in each)


def fitted(kind: str, rows: Any, labels: Any) -> Any:
    if kind == "individual":
        # The grid of the range, and radii from public rows.
        individual = IndividualKNNClassifier(ball=Ball(share=0.3), **COMMON, features=FEATURES)
        return individual.fit(rows, labels, public_X=PUBLIC)
    near = Neighbours(number=9, sampling_probability=0.4)
    return PrivateKNNClassifier(queries=66, neighbours=near, **COMMON, features=FEATURES).fit(
        rows, labels
    )


@pytest.mark.parametrize("kind", ["neighbours", "individual"])
def test_no_bit_depends_on_the_number_of_records(kind: str) -> None:
    """Neither public numbers nor what the records before the last contribute."""
    most = fitted(kind, PICTURES, LABELS)
    known, public = set(contributions(most)), public_part(most)
    for size in SIZES:
        for turned in (False, True):
            order = RANDOM.permutation(size) if turned else np.arange(size)
            with threadpool_limits(None if turned else 1):
                one = fitted(kind, PICTURES[order], LABELS[order])
                assert public_part(one) == public
                assert set(contributions(one)) <= known
