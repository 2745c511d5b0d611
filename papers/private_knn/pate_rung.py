"""PATE, tuned on public rows: the rival of Private-kNN's labels at the same total."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from papers.private_knn.pate_teachers import PateTeachers
from papers.private_knn.rung_rows import DELTA, Found, Rows, asked_places, taught_right
from papers.private_knn.surest_student import surest_student
from reticent.accounting import PrivateKnnSteps, calibrate_private_knn
from reticent.core.arrays import Integers

Array = npt.NDArray[np.float64]

RECORDS_OF_A_TEACHER = (50, 100, 200, 400)
RIDGES = (1.0, 10.0, 100.0)
THRESHOLDS = (None, 0.5, 0.7)
"""Of PATE: shares of the teachers that the largest count must reach, noise included."""

NOISE_RATIO = 3.0
_WITHHELD = -1


def pate(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> Found:
    """Labels of the same public pictures by teachers on parts of the records, with Gaussian noise,
    and the same student.

    Two halves of the public rows choose how many records a teacher has, its ridge, and whether
    labels without a clear majority are withheld (confident aggregation): each half in turn is the
    teachers' records, as many to a teacher as there will be, and the other one asks. The first two
    are chosen by how many labels are right, the last by what a student learns from them, on
    pictures that neither it nor the teachers saw.
    """
    near, half = rows.near, len(rows.public) // 2
    halves = slice(None, half), slice(half, None)
    pairs = (halves, halves[::-1])
    asked = asked_places(rows)
    found: dict[tuple[int, float], list[Integers]] = {
        (records, ridge): [
            _teachers(near.public[held], rows.public_codes[held], near, records, ridge).votes(
                near.public[other]
            )
            for held, other in pairs
        ]
        for records, ridge in product(RECORDS_OF_A_TEACHER, RIDGES)
        if len(rows.private) >= 2 * records and half >= 2 * records
    }

    def steps_of(records: int, threshold: float | None) -> tuple[PrivateKnnSteps, float]:
        teachers = len(rows.private) // records
        return pate_steps(epsilon, len(asked), teachers, threshold), 1.0 / teachers

    def labels_right(choice: tuple[int, float]) -> float:
        steps, share = steps_of(choice[0], None)
        right = []
        for votes, (_, other) in zip(found[choice], pairs, strict=True):
            shares = np.asarray(votes / votes.sum(axis=1).max(), dtype=np.float64)
            for seed in seeds:
                labels = noisy_winners(shares, steps, share, seed)
                right.append((labels == rows.public_codes[other]).mean())
        return float(np.mean(right))

    records, ridge = max(found, key=labels_right)

    def lessons_right(threshold: float | None) -> float:
        steps, share = steps_of(records, threshold)
        right, taught = [], round(0.6 * half)
        for votes, (_, other) in zip(found[records, ridge], pairs, strict=True):
            pictures, truth = near.public[other], rows.public_codes[other]
            labels = noisy_winners(votes / votes.sum(axis=1).max(), steps, share, seeds[0])
            student = surest_student(
                pictures[:taught], labels[:taught], classes=rows.classes, seed=seeds[0]
            )
            right.append((student.predict(pictures[taught:]) == truth[taught:]).mean())
        return float(np.mean(right))

    threshold = max(THRESHOLDS, key=lessons_right)
    steps, share = steps_of(records, threshold)
    asked_votes = _teachers(near.private, rows.codes, near, records, ridge).votes(
        near.public[asked]
    )
    shares = np.asarray(asked_votes * share, dtype=np.float64)
    right = [
        taught_right(rows, asked, noisy_winners(shares, steps, share, seed), seed) for seed in seeds
    ]
    return Found(right, {"records": records, "ridge": ridge, "threshold": threshold})


def pate_steps(
    epsilon: float, queries: int, teachers: int, threshold: float | None
) -> PrivateKnnSteps:
    """The noise of PATE at the total, without subsampling.

    Args:
        epsilon: of the total.
        queries: how many labels are asked for.
        teachers: how many vote.
        threshold: share of them that the largest count must reach; None to answer all.
    """
    return calibrate_private_knn(
        epsilon=epsilon,
        delta=DELTA,
        queries=queries,
        answers=queries,
        neighbours=teachers,
        sampling_probability=1.0,
        threshold=None if threshold is None else threshold * teachers,
        noise_ratio=None if threshold is None else NOISE_RATIO,
    )


def noisy_winners(shares: Array, steps: PrivateKnnSteps, per_teacher: float, seed: int) -> Integers:
    """The label with most votes after seeded noise, shape (q,); -1 where it is withheld.

    Args:
        shares: shape (q, classes), of the teachers' votes.
        steps: noise and threshold, in votes.
        per_teacher: one vote, as a share.
        seed: of the noise.
    """
    rng = np.random.default_rng(seed)
    noisy = shares + steps.sigma_votes * per_teacher * rng.normal(size=shares.shape)
    labels = noisy.argmax(axis=1)
    if steps.threshold is None or steps.sigma_screening is None:
        return np.asarray(labels)
    noise = steps.sigma_screening * per_teacher * rng.normal(size=len(shares))
    passed = shares.max(axis=1) + noise >= steps.threshold * per_teacher
    return np.where(passed, labels, _WITHHELD)


def _teachers(records: Array, codes: Integers, near: Rows, each: int, ridge: float) -> PateTeachers:
    return PateTeachers.of(
        records,
        codes,
        None,
        teachers=len(records) // each,
        classes=near.classes,
        public_features=near.public,
        ridge=ridge,
    )
