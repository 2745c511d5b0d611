"""Ballots beside public models: their spread and length, and the votes by an independent sum."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from reticent.grids.whole_numbers import softmax
from reticent.systems import LinearVoteClassifier, PublicReference
from reticent.systems.votes.linear_vote import BALLOT, residual_ballots, residual_spreads
from reticent.systems.votes.sums import VOTE
from reticent.training.public_space import INTERCEPT, directions_of
from reticent.training.public_start import OFFSET_STEPS

RANDOM = np.random.default_rng(0)
PUBLIC = RANDOM.normal(size=(120, 3))
ROWS = RANDOM.normal(size=(400, 3))
QUERIES = RANDOM.normal(size=(50, 3))


def labels_of(rows: np.ndarray, classes: int) -> np.ndarray:
    """Labels that lines tell, of which public rows have too few to know."""
    return np.digitize(rows[:, 0] + rows[:, 1], np.linspace(-1, 1, classes + 1)[1:-1])


def made(classes: int = 3, **more: Any) -> LinearVoteClassifier:
    reference = PublicReference(
        models=[LogisticRegression(C=0.1)], rows="embedding", records=400, **more
    )
    return LinearVoteClassifier(
        epsilon=5.0,
        delta=1e-5,
        classes=range(classes),
        answers=50,
        clip_quantile=0.5,
        features=reference,
    ).fit(ROWS, labels_of(ROWS, classes), public_X=PUBLIC, public_y=labels_of(PUBLIC, classes))


@pytest.mark.parametrize("classes", [2, 3, 4, 9])
def test_ballots_are_no_longer_than_a_whole_vote(classes: int) -> None:
    rng = np.random.default_rng(classes)
    scales = rng.choice([0.0, 0.1, 1.0, 8.0, 60.0], (20_000, 1))
    offsets = rng.normal(size=(20_000, classes)) * scales
    offsets[:200] = 64.0 * rng.choice([-1, 1], (200, classes))
    codes = rng.integers(0, classes, len(offsets))
    found = residual_ballots(offsets, codes)
    assert (found == np.rint(found)).all()
    assert (found.max(axis=1) - found.min(axis=1) == BALLOT).all()
    assert (found.argmax(axis=1) == codes).all()
    squares = classes * np.square(found).sum(axis=1) - found.sum(axis=1) ** 2
    assert (squares <= BALLOT**2 * (classes - 1)).all()  # whole numbers, so this is exact
    assert squares.max() > 0.99 * BALLOT**2 * (classes - 1)
    spread = residual_spreads(offsets, codes)
    residual = -softmax(offsets)
    residual[np.arange(len(codes)), codes] += 1.0
    assert np.abs(spread[:, None] * found / BALLOT - residual).max() <= 2.5 / BALLOT


@pytest.mark.parametrize("classes", [2, 3])
def test_votes_are_those_of_a_sum_record_by_record(classes: int) -> None:
    """Residuals, directions and clips as written down in docs/votes.md, in another order."""
    vote = made(classes)
    size = vote.space_.space.dimension
    points = [vote.space_.points(part) for part in (PUBLIC, ROWS, QUERIES)]
    public, own, asked = (directions_of(p[:, :size], intercept=INTERCEPT) / 2.0**14 for p in points)
    logs = [p[:, size:] / OFFSET_STEPS for p in points[1:]]
    held = vote.held_out_
    bends = (softmax(held) * (1 - softmax(held))).mean(axis=1)
    moments = sum(b * np.outer(d, d) for b, d in zip(bends, public, strict=True)) / len(public)
    moments += 0.1 * np.trace(moments) / len(moments) * np.eye(len(moments))
    ways = np.linalg.solve(moments, asked.T).T
    spreads = residual_spreads(held, labels_of(PUBLIC, classes))
    taus = np.quantile(np.abs(public @ ways.T) * spreads[:, None], 0.5, axis=0)
    table = 400 * 0.5 * classes / (classes - 1) / taus[:, None] * logs[1]
    for direction, code, offset in zip(own, labels_of(ROWS, classes), logs[0], strict=True):
        residual = np.eye(classes)[code] - softmax(offset[None])[0]
        reach = residual.max() - residual.min()
        table += np.clip(reach * (ways @ direction) / taus, -1, 1)[:, None] * residual / reach
    found = vote.vote_table(QUERIES) / VOTE / classes  # Gaussian tables are K times centred sums
    table -= table.mean(axis=1, keepdims=True)
    assert np.abs(found - table).max() < 400 * 2.0 / BALLOT + 1e-3 * np.abs(table).max()
    assert np.corrcoef(found.ravel(), table.ravel())[0, 1] > 1 - 1e-5


def test_records_correct_public_models_and_weight_leads_back_to_them() -> None:
    """Public rows are few, and so noisy that they hide what records show."""
    queries = np.random.default_rng(1).normal(size=(500, 3))
    y, truth = ((part[:, 0] + part[:, 2] > 0).astype(int) for part in (ROWS, queries))
    noisy = PUBLIC[:30, 0] + PUBLIC[:30, 2] + 2.0 * np.random.default_rng(2).normal(size=30)
    found = []
    for weight in (0.3, 1e4):
        own = PublicReference(
            models=[LogisticRegression(C=0.1)], rows="embedding", records=400, weight=weight
        )
        vote = LinearVoteClassifier(
            epsilon=5.0, delta=1e-5, classes=(0, 1), answers=50, features=own
        ).fit(ROWS, y, public_X=PUBLIC[:30], public_y=(noisy > 0).astype(int))
        found.append(vote.exact_predict(queries))
    start = vote._logs(vote._points(queries)).argmax(axis=1)
    np.testing.assert_array_equal(found[1], start)
    assert (found[0] == truth).mean() > (start == truth).mean() + 0.1


def test_the_clip_follows_from_the_noise_and_the_stated_records_alone() -> None:
    """The more answers, the more is cut; no number of private records has a part in it."""
    seen = []
    for answers in (1, 40, 100, 300, 10_000):
        votes = [made(2).set_params(answers=answers, clip_quantile=None) for _ in range(2)]
        votes[1].set_params(features=PublicReference(rows="embedding", records=10**9))
        assert votes[1]._unclipped == 1.0
        seen.append(votes[0]._unclipped)
    assert seen == sorted(seen, reverse=True)
    assert 0.8 in seen


@pytest.mark.parametrize("answers", [1, 50])
def test_labels_survive_what_they_say_they_survive(answers: int) -> None:
    """Records that pull most are taken away, records that pull the other way come, or both."""
    rows, labels = ROWS[:60], labels_of(ROWS[:60], 3)
    public = {"public_X": PUBLIC, "public_y": labels_of(PUBLIC, 3)}
    unfitted = clone(made(3)).set_params(answers=answers)

    def answer(X: np.ndarray, y: np.ndarray, query: np.ndarray) -> int:
        return int(clone(unfitted).fit(X, y, **public).exact_predict(query[None])[0])

    vote = clone(unfitted).fit(rows, labels, **public)
    survived = [
        vote.unlearning(QUERIES),
        vote.poisoning(QUERIES),
        vote.poisoning(QUERIES, change="replace"),
    ]
    np.testing.assert_array_equal(survived[0], survived[1])
    assert (survived[2] <= survived[0] // 2).all()
    told, asked = vote.exact_predict(QUERIES), vote.asked(vote.space_.points(QUERIES))
    votes = vote.weights(vote._voters, asked)[:, :, None] * vote.ballots(vote._voters)[:, None]
    changed = 0
    for place in np.argsort(survived[0])[[5, 15, 25, 35]]:
        rival = np.delete(votes[:, place].sum(axis=0), told[place]).argmax()
        rival += rival >= told[place]
        order = np.argsort(votes[:, place, rival] - votes[:, place, told[place]])
        for gone, come, levels in ((1, 0, survived[0]), (0, 1, survived[1]), (1, 1, survived[2])):
            assert levels[place] > 0
            for count, sign in product((int(levels[place]), 3 * int(levels[place]) + 5), (-1, 1)):
                left = order[gone * count :]
                new = np.tile(sign * 1e3 * QUERIES[place], (come * count, 1))
                y = np.append(labels[left], np.full(len(new), rival))
                same = answer(np.vstack([rows[left], new]), y, QUERIES[place]) == told[place]
                assert same or count > levels[place]
                changed += not same
    assert changed > 2
