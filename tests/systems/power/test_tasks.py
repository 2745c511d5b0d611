"""One release for several tasks: against brute force over bins and channels, codes for one task,
and servers that learn from it.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from reticent import PowerEncoder
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.systems import train_server
from reticent.systems.power.channels import best_staircase
from reticent.systems.power.tasks import Joints, Tasks
from reticent.systems.scores import channel_scores, prediction_scores

EPSILON = 2.0
CELLS = np.array(
    [
        # share, chance of the first label, chance of the second
        [0.30, 0.05, 0.10],
        [0.20, 0.10, 0.85],
        [0.30, 0.90, 0.15],
        [0.20, 0.80, 0.95],
    ]
)


def table(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One column that names a cell, and two labels of words."""
    random = np.random.default_rng(seed)
    cell = random.choice(4, size=rows, p=CELLS[:, 0])
    told = random.random((rows, 2)) < CELLS[cell, 1:]
    return cell[:, None].astype(float), np.where(told, "yes", "no")


def encoder(**settings: object) -> PowerEncoder:
    given = {"mechanism": "score-code", "delta": 0.0, "random_state": 0, **settings}
    return PowerEncoder(epsilon=EPSILON, radius=None, schema=(0.0, 3.0), **given)


@cache
def fitted(weights: tuple[float, float] | None = None, task: int | None = None) -> PowerEncoder:
    """Of 2,500 rows, for both labels or one of them; nothing changes it."""
    rows, labels = table(2_500, 0)
    if task is None:
        return encoder(mechanism="auto", task_weights=weights).fit(rows, labels)
    return encoder().fit(rows, labels[:, task])


def vertices(bins: int, epsilon: float) -> list[np.ndarray]:
    """Every channel that is a vertex of those made of staircase columns, found by trying all bases:
    a convex criterion that adds up over outputs is largest at one of them.
    """
    low = math.exp(-epsilon)
    columns = [np.where(raised, 1.0, low) for raised in itertools.product((0, 1), repeat=bins)]
    columns = [column for column in columns if column.min() < column.max()]
    found = []
    for basis in itertools.combinations(columns, bins):
        matrix = np.array(basis).T
        if abs(np.linalg.det(matrix)) > 1e-9:
            weights = np.linalg.solve(matrix, np.ones(bins))
            if weights.min() >= -1e-12:
                found.append(matrix * np.maximum(weights, 0.0))
    return found


def partitions(count: int) -> list[np.ndarray]:
    """Every way to put ``count`` cells into bins, each once."""
    ways = [[0]]
    for _ in range(count - 1):
        ways = [[*way, place] for way in ways for place in range(max(way) + 2)]
    return [np.array(way) for way in ways]


def information(channel: np.ndarray, members: np.ndarray, weights: tuple[float, float]) -> float:
    """Weighted mean of what outputs tell about both labels, from the cells' exact shares."""
    total = 0.0
    for task, weight in zip((1, 2), weights, strict=True):
        joint = np.zeros((channel.shape[0], 2))
        both = CELLS[:, :1] * np.column_stack([1 - CELLS[:, task], CELLS[:, task]])
        np.add.at(joint, members, both)
        outputs = channel.T @ joint
        independent = outputs.sum(axis=1, keepdims=True) * outputs.sum(axis=0)
        kept = outputs > 0
        total += weight * float((outputs[kept] * np.log(outputs[kept] / independent[kept])).sum())
    return total


def best_of_all(weights: tuple[float, float]) -> float:
    """Over all bins of cells and all private channels of them."""
    return max(
        information(channel, members, weights)
        for members in partitions(4)
        if members.max() > 0
        for channel in vertices(int(members.max()) + 1, EPSILON)
    )


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.9, 0.1)])
def test_the_release_is_the_best_of_all_bins_and_channels(weights: tuple[float, float]) -> None:
    release = fitted(weights)
    found = information(release.exact(np.arange(4.0)[:, None]), np.arange(4), weights)
    best = best_of_all(weights)
    assert found <= best + 1e-9
    assert found > 0.97 * best
    assert {plan.mechanism for plan in release.considered_} == {"score-code"}
    assert release.considered_[0].utility == pytest.approx(found, abs=0.02)


def test_a_code_for_both_tells_more_of_both_than_a_code_for_one() -> None:
    cells, members, even = np.arange(4.0)[:, None], np.arange(4), (0.5, 0.5)
    both = information(fitted(even).exact(cells), members, even)
    assert both > information(fitted(task=0).exact(cells), members, even) + 0.005


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.8, 0.2)])
def test_no_vertex_is_worth_more_than_the_best_staircase(weights: tuple[float, float]) -> None:
    joints = Joints(
        tuple(
            CELLS[:, :1] * np.column_stack([1 - CELLS[:, task], CELLS[:, task]]) for task in (1, 2)
        ),
        weights,
    )
    channel = best_staircase(joints, epsilon=EPSILON, scoring="information")
    worth = [information(rival, np.arange(4), weights) for rival in vertices(4, EPSILON)]
    assert len(worth) > 50
    assert joints.scores(channel).information == pytest.approx(max(worth), abs=1e-9)


def test_log_shares_are_those_of_each_task_by_its_weight() -> None:
    """Four classes are two labels each; one class at a time says how likely both are."""
    tasks = Tasks((np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])), (0.75, 0.25))
    found = tasks.log_shares(np.array([[1.0, 2.0, 3.0, 4.0]]))
    first, second = np.log([0.3, 0.7]), np.log([0.4, 0.6])
    expected = [0.75 * first[a] + 0.25 * second[b] for a in range(2) for b in range(2)]
    np.testing.assert_allclose(found, [expected])


def test_a_server_for_each_task_learns_from_the_same_answers() -> None:
    release, (rows, labels) = fitted((0.5, 0.5)), table(5_000, 2)
    private, tested = slice(0, 2_500), slice(2_500, None)
    released = release.simulate(rows[private], seed=1).values
    asked = release.simulate(rows[tested], seed=2).values
    for task in range(2):
        server = train_server(
            "channel", released, labels[private, task], seed=0, channel=release.channel_
        )
        right = (labels[tested, task][:, None] == server.classes).astype(float)
        scores = prediction_scores(server.predict_proba(asked), right)
        assert scores.information > 0.03
        assert scores.accuracy > 0.6


def test_a_bundle_keeps_the_labels_of_every_task(tmp_path: Path) -> None:
    release, cells = fitted((0.5, 0.5)), np.arange(4.0)[:, None]
    loaded = PowerEncoder.load(release.save(tmp_path / "bundle"))
    assert [known.tolist() for known in loaded.classes_] == [["no", "yes"]] * 2
    assert loaded.bundle_identity_ == release.bundle_identity_
    np.testing.assert_array_equal(loaded.exact(cells), release.exact(cells))
    assert isinstance(fitted(task=0).classes_, np.ndarray)


def test_joints_are_counts_of_each_task() -> None:
    tasks = Tasks((np.array([0, 0, 1]), np.array([0, 1, 1])), (0.5, 0.5))
    classes, members = np.array([0, 1, 2, 2, 1]), np.array([0, 0, 1, 1, 1])
    joints = tasks.joints(members, classes, bins=2)
    np.testing.assert_allclose(6 * joints.tables[0], [[2.25, 0.25], [1.25, 2.25]])
    np.testing.assert_allclose(6 * joints.tables[1], [[1.25, 1.25], [0.25, 3.25]])
    # One of the labels is not among these rows: nothing can be told about it.
    few = tasks.joints(members[:2], classes[:2], bins=2, seen=True)
    assert [part.shape for part in few.tables] == [(2, 1), (2, 2)]
    scores = joints.scores(np.eye(2))
    each = [channel_scores(part).accuracy for part in joints.tables]
    assert scores.accuracy == pytest.approx(np.mean(each))


def test_what_does_not_fit_is_refused() -> None:
    rows, labels = table(60, 4)
    for weights in ((1.0,), 2.0, (1.0, 0.0)):
        with pytest.raises(InvalidParameter, match="task_weights"):
            encoder(task_weights=weights).fit(rows, labels)
    with pytest.raises(InvalidInput, match="at least two classes"):
        encoder().fit(rows, np.column_stack([labels[:, 0], np.full(60, "same")]))
    with pytest.raises(InvalidInput, match="expected 60 rows of labels"):
        encoder().fit(rows, labels[:50])
    with pytest.raises(InvalidParameter, match="several columns of labels"):
        encoder(mechanism="code").fit(rows, labels)
