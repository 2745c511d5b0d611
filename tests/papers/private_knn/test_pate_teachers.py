"""PATE teachers: one record retrains one teacher, whatever the order, and votes move by one."""

from __future__ import annotations

import numpy as np
import pytest

from papers.private_knn.pate_teachers import PateTeachers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=60) > 0).astype(int)
QUERIES = RNG.normal(size=(40, 3))


def _teachers(keep: np.ndarray, keys: list[str] | None = None, teachers: int = 8) -> PateTeachers:
    own = None if keys is None else [keys[i] for i in keep]
    return PateTeachers.of(
        X[keep], Y[keep], own, teachers=teachers, classes=2, public_features=QUERIES, ridge=1.0
    )


def test_one_record_retrains_one_teacher_and_moves_one_vote() -> None:
    whole = _teachers(np.arange(60))
    for gone in range(60):
        rest = _teachers(np.delete(np.arange(60), gone))
        changed = (whole.weights != rest.weights).any(axis=(1, 2))
        assert changed.sum() == 1
        moved = np.abs(whole.votes(QUERIES) - rest.votes(QUERIES))
        assert moved.sum(axis=1).max() <= 2


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 / 3])
def test_a_column_that_only_private_rows_vary_in_is_learned_from_in_its_own_unit(value) -> None:
    rows = np.column_stack([np.zeros(60), X[:, 1:]])
    public = np.column_stack([np.full(40, value), QUERIES[:, 1:]])
    rows[:, 0] = value + np.where(Y > 0, 3.0, -3.0)
    teachers = PateTeachers.of(
        rows, Y, None, teachers=4, classes=2, public_features=public, ridge=1.0
    )
    assert (teachers.votes(rows).argmax(axis=1) == Y).mean() > 0.95
    assert teachers.spread[0] == 1.0


def test_all_records_of_a_key_go_to_one_teacher() -> None:
    keys = [f"person {i % 10}" for i in range(60)]
    whole = _teachers(np.arange(60), keys)
    for person in range(10):
        rest = _teachers(np.array([i for i in range(60) if i % 10 != person]), keys)
        assert (whole.weights != rest.weights).any(axis=(1, 2)).sum() == 1
