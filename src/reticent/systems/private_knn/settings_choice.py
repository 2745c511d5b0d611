"""Settings of the neighbour classifiers, chosen on labelled public rows.

A private record is never looked at, and so never paid for. What public rows cannot show is how many
private records there are. ``records`` says about how many, a public number. Noise is weighed as it
will be among so many, and neighbours are counted as shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from reticent.accounting import calibrate_private_knn
from reticent.core.arrays import Array, Integers
from reticent.core.checks import count
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import AddRemove
from reticent.core.workers import results_of
from reticent.neighbours import WEIGHT_STEPS, PointGrid, RadiusKernel
from reticent.neighbours.exhaustive import Exhaustive
from reticent.neighbours.integer_points import Points
from reticent.noise import SeededSampler
from reticent.systems.features import Features
from reticent.systems.private_knn.held_records import HeldRecords
from reticent.systems.private_knn.individual_session import IndividualNoise, IndividualSession
from reticent.systems.private_knn.inputs import feature_map_of, input_rows
from reticent.systems.private_knn.plan import Neighbours
from reticent.systems.private_knn.radii import Ball, kernels_by_share
from reticent.systems.record_labels import Classes, record_labels
from reticent.tables.frames import plain_rows

_FEWEST = 20
"""Public rows, at least."""

_MOST_QUERIES = 2000
_MOST_VOTES = 2.0**20

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
PARTS = (0.3, 0.6, 1.2)
LOOKS: tuple[tuple[int, ...], ...] = ((1,), (1, 1, 2))
RATES = (0.02, 0.05, 0.15, 0.4)
NEAREST = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, eq=False)
class PublicFold:
    """Public rows in the part of private records, and others in that of queries.

    Attributes:
        points, labels: rows in the part of private records.
        asked, truth: rows in the part of queries.
    """

    points: Points
    labels: Integers
    asked: Points
    truth: Integers


def public_folds(features: Array, codes: Integers, *, seed: int) -> list[PublicFold]:
    """Return two folds. Each half of the rows asks the other one.

    Raises:
        InvalidParameter: fewer than 20 rows.
    """
    if len(features) < _FEWEST:
        raise InvalidParameter(
            f"public_X: expected at least {_FEWEST} labelled rows to choose settings by, got "
            f"{len(features)}"
        )
    points = PointGrid.around(features).points(features)
    order = np.random.default_rng(seed).permutation(len(points))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    return [
        PublicFold(points[held], codes[held], points[asked], codes[asked])
        for held, asked in (halves, halves[::-1])
    ]


class TunedOnPublicRows:
    """Base of the neighbour classifiers, whose settings are chosen on public rows."""

    @classmethod
    def tuned(
        cls,
        public_X: npt.ArrayLike,
        public_y: npt.ArrayLike,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        records: int,
        queries: int,
        seed: int = 0,
        **settings: Any,
    ) -> Self:
        """Return an unfitted classifier with the settings that answer most public queries right.

        No private record is looked at, so nothing is paid for the choice.

        Args:
            public_X, public_y: labelled public rows, from 20 on. Half of them ask the other half.
            epsilon, delta, classes: arguments of the constructor.
            records: public number, about how many private records there will be.
            queries: number of queries that will be asked, about, or for ``PrivateKNNClassifier`` at
                most.
            seed: seed of the noise in the choice.
            settings: further arguments of the constructor.

        Raises:
            InvalidInput, InvalidParameter: rows, labels or numbers that cannot be.
        """
        rows, shape = input_rows(plain_rows(public_X))
        known, codes = record_labels(public_y, len(rows), classes)
        feature_map = feature_map_of((settings.get("features") or Features()).map, shape)
        chosen = cls._best(
            public_folds(feature_map.features(rows), codes, seed=seed),
            settings,
            epsilon=epsilon,
            delta=delta,
            classes=len(known),
            records=records,
            queries=queries,
            seed=seed,
        )
        make: Any = cls
        return cast(
            "Self",
            make(epsilon=epsilon, delta=delta, classes=classes, **{**chosen, **settings}),
        )

    @classmethod
    def _best(
        cls, folds: Sequence[PublicFold], settings: Mapping[str, Any], **known: Any
    ) -> dict[str, Any]:
        """Return the settings that are chosen, where some are given and public facts are known."""
        raise NotImplementedError


def individual_settings(
    folds: Sequence[PublicFold],
    *,
    epsilon: float,
    delta: float,
    classes: int,
    records: int,
    queries: int,
    lead: float,
    seed: int,
) -> dict[str, Any]:
    """Return the ``ball``, ``votes`` and ``looks`` that answer most public queries right.

    Args:
        folds: folds from ``public_folds``.
        epsilon, delta, classes, lead: arguments of the classifier.
        records: public number, about how many private records there will be.
        queries: number, about, of queries that will be asked.
        seed: seed of the noise.
    """
    records, queries = count(records, name="records"), count(queries, name="queries")
    size = min(queries, _MOST_QUERIES)
    shared = {"epsilon": epsilon, "delta": delta, "classes": classes, "lead": lead}
    calls = (
        (_best_of_share, folds, size, share, power, records, queries, seed, shared)
        for share, power in product(SHARES, (1, 2))
    )
    best, chosen = -1.0, {}
    for right, found in results_of(calls, n_jobs=None):
        if right > best:
            best, chosen = right, found
    return chosen


def _best_of_share(
    folds: Sequence[PublicFold],
    size: int,
    share: float,
    power: int,
    records: int,
    queries: int,
    seed: int,
    shared: dict[str, Any],
) -> tuple[float, dict[str, Any]]:
    """Return the largest share of ``size`` public queries that is right, and its first settings.

    The settings are of all numbers of votes and of looks.
    """
    rehearsals = [Rehearsal.of(fold, size, share=share, power=power) for fold in folds]
    each = float(np.mean([rehearsal.spending for rehearsal in rehearsals])) * queries / size
    best, chosen = -1.0, {}
    for part, looks in product(PARTS, LOOKS):
        votes = min(max(1.0, part * each), _MOST_VOTES)
        plan = IndividualNoise.of(votes=votes, looks=looks, adjacency=AddRemove(1), **shared)
        # A record gives as large a part of its votes as there are queries, and at least one.
        part_asked = max(size / queries, 1.0 / votes)
        right = float(np.mean([one.right(plan, records, part_asked, seed) for one in rehearsals]))
        if right > best:
            best = right
            chosen = {"ball": Ball(share=share, power=power), "votes": votes, "looks": looks}
    return best, chosen


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The queries of one fold with their kernels, in the order in which they are asked.

    Attributes:
        fold: the rows.
        asked, truth: queries, some of them repeated, and their labels.
        kernels: one kernel for each.
        spending: whole votes, squared, that a record gives on average if none retires.
    """

    fold: PublicFold
    asked: Points
    truth: Integers
    kernels: list[RadiusKernel]
    spending: float

    @classmethod
    def of(cls, fold: PublicFold, size: int, *, share: float, power: int) -> Rehearsal:
        """Return ``size`` queries of ``fold``, at radii that hold ``share`` of its records."""
        places = np.resize(np.arange(len(fold.asked)), size)
        asked, public = fold.asked[places], Exhaustive.of(fold.points)
        kernels = kernels_by_share(asked, public, len(fold.points), share=share, power=power)
        limits = np.array([kernel.squared_radius for kernel in kernels], dtype=np.int64)
        spending = sum(
            float(((kernel.weights(squared) / WEIGHT_STEPS) ** 2).sum())
            for kernel, (_, squared) in zip(kernels, public.within(asked, limits), strict=True)
        )
        return cls(fold, asked, fold.truth[places], kernels, spending / len(fold.points))

    def right(self, plan: IndividualNoise, records: int, part_asked: float, seed: int) -> float:
        """Return the share of the queries that ``records`` private records would answer right."""
        session = IndividualSession(
            plan, noise_scale=len(self.fold.points) / records, cap_scale=part_asked
        )
        held = HeldRecords(session.filter, dimension=self.fold.points.shape[1], by_person=False)
        held.insert([self.fold.points], self.fold.labels, None)
        found = session.answer(held, self.asked, self.kernels, sampler=SeededSampler(seed))
        return float((found == self.truth).mean())


def private_knn_settings(
    folds: Sequence[PublicFold],
    *,
    epsilon: float,
    delta: float,
    classes: int,
    records: int,
    queries: int,
    seed: int,
) -> dict[str, Any]:
    """Return the ``neighbours`` that answer most public queries right, all of them answered.

    Args:
        folds: folds from ``public_folds``.
        epsilon, delta, classes: arguments of the classifier.
        records: public number, about how many private records there will be.
        queries: number of queries that will be asked.
        seed: seed of the noise.
    """
    records = count(records, name="records")
    rng = np.random.default_rng(seed)
    votes = {
        share: [(fold, _nearest_votes(fold, share, classes)) for fold in folds] for share in NEAREST
    }
    best, chosen = -1.0, {}
    for rate in RATES:
        sigma = calibrate_private_knn(
            epsilon=epsilon,
            delta=delta,
            queries=queries,
            answers=queries,
            neighbours=1,  # without screening noise depends on how many vote in nothing
            sampling_probability=rate,
            threshold=None,
            noise_ratio=None,
        ).sigma_votes
        for share in NEAREST:
            neighbours = max(1, round(rate * share * records))
            right = []
            for fold, counts in votes[share]:
                drawn = np.stack([rng.multinomial(neighbours, row) for row in counts])
                noisy = drawn + sigma * rng.normal(size=drawn.shape)
                right.append(float((noisy.argmax(axis=1) == fold.truth).mean()))
            if np.mean(right) > best:
                best = float(np.mean(right))
                chosen = {"neighbours": Neighbours(number=neighbours, sampling_probability=rate)}
    return chosen


def _nearest_votes(fold: PublicFold, share: float, classes: int) -> Array:
    """Return shares of the labels among the nearest ``share`` of the rows, shape (queries,
    classes).
    """
    everybody, depth = Exhaustive.of(fold.points), max(1, round(share * len(fold.points)))
    limits = everybody.ranked(fold.asked, (depth,))[:, 0] + 1
    found = everybody.within(fold.asked, limits)
    counts = np.stack([np.bincount(fold.labels[places], minlength=classes) for places, _ in found])
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))
