"""How a release of score bins is fitted: public models, bins of their scores and channels, compared
exactly on public rows.

Scores that bins and channels are chosen by are those of models that did not learn from the row
(cross-fitting), so all public rows count for both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.grids.shares import WHOLE
from reticent.systems.power.channels import KEPT, Channel, channels
from reticent.systems.power.query import PowerSetting
from reticent.systems.power.score_choice import (
    FittedScores,
    RowScores,
    ScoreCode,
    is_above,
    ordered_codes,
    row_scores,
)
from reticent.systems.power.score_query import ScoreBins, ScoreCodeQuery
from reticent.systems.scores import Scores, channel_scores, joint_of, mean_scores
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report
from reticent.training.public_models import (
    BoostedTrees,
    LinearModel,
    PublicModel,
    label_shares,
)

Labels = npt.NDArray[np.int64]

FOLDS = 4
MOST_BINS = 24
_ASKED = ("information", "accuracy", "auc", KEPT)
"""What codes of two labels are made for, of which information chooses."""

LEAST_ROWS = 50
"""Public rows in a bin, at least, where bins are equal parts of them."""

_SETTINGS: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.1, "max_leaf_nodes": 8, "max_iter": 150},
    {"learning_rate": 0.05, "max_leaf_nodes": 16, "max_iter": 150},
    {"learning_rate": 0.1, "max_leaf_nodes": 4, "max_iter": 250},
)
_PENALTIES = (0.1, 10.0)
_CUTS = 32  # places where two bins may be cut
_SIDES = (2, 3, 4, 6, 8, 12)  # bins on either side of the label shares
_SIDE_ROWS = 200  # public rows in each of them: of fewer, the best of many is best by chance
_SMOOTHING = 0.5
_PASSES = 20


def fit_score_code(
    schema: TabularSchema,
    required: PowerSetting,
    rows: Array,
    labels: Labels,
    *,
    seed: int,
    report: Report,
) -> tuple[ScoreCodeQuery, tuple[PowerSetting, ...]]:
    """The best release of score bins, and the best plan of each kind of model and channel, best
    first.

    Args:
        schema: the public description of rows.
        required: budget, radius and scoring.
        rows: shape (n, dimension), encoded public rows.
        labels: shape (n,), integers from 0 to classes - 1.
        seed: of folds and models.
        report: told after every model.
    """
    models = public_models(rows, labels, seed=seed, report=report)
    return best_score_code(schema, required, models, labels)


def best_score_code(
    schema: TabularSchema,
    required: PowerSetting,
    models: Iterable[FittedScores],
    labels: Labels,
) -> tuple[ScoreCodeQuery, tuple[PowerSetting, ...]]:
    """As ``fit_score_code``, of models that are fitted already: budgets and scorings may share
    them.
    """
    codes = [
        code
        for fitted in models
        for asked in _asked(required.scoring, fitted)
        for code in score_codes(fitted, labels, epsilon=required.epsilon, scoring=asked)
    ]
    chosen = ordered_codes(codes, scoring=required.scoring)
    plans = [
        PowerSetting(
            mechanism="score-code",
            epsilon=required.epsilon,
            delta=0.0,
            radius=required.radius,
            utility=code.channel.scores.of(required.scoring),
            information=code.channel.scores.information,
            scoring=required.scoring,
            model=code.fitted.model.kind,
            response=code.channel.response,
        )
        for code in chosen
    ]
    first = chosen[0]
    query = ScoreCodeQuery(schema, first.fitted.model, first.bins, first.channel.shares, plans[0])
    return query, tuple(plans)


def _asked(scoring: str, fitted: FittedScores) -> tuple[str, ...]:
    """What codes are made for, if they are to be chosen by ``scoring``."""
    if scoring != "information":
        return (scoring,)
    return _ASKED if fitted.scores.shape[1] == 1 else (scoring,)


def public_models(
    rows: Array, labels: Labels, *, seed: int, report: Report
) -> Iterator[FittedScores]:
    """A linear model and boosted trees, each with the settings that lose least on one fold.

    Args:
        rows: shape (n, dimension).
        labels: shape (n,), integers from 0.
        seed: of folds and models.
        report: told after every model that is learnt.
    """
    folds = _folds(labels, seed)
    families: tuple[tuple[Any, ...], ...] = (
        tuple(LogisticRegression(C=size, max_iter=300) for size in _PENALTIES),
        tuple(
            HistGradientBoostingClassifier(
                **settings, l2_regularization=1.0, early_stopping=False, random_state=seed
            )
            for settings in _SETTINGS
        ),
    )
    total, done = sum(len(family) + FOLDS for family in families), 0
    for family in families:
        firsts = []
        for estimator in family:
            scores = _held_scores(estimator, rows, labels, folds == 0)
            loss = _log_loss(scores, labels[folds == 0])
            firsts.append((loss, scores))
            done += 1
            report("public models", done, total, loss)
        place = min(range(len(family)), key=lambda index: firsts[index][0])
        loss, first = firsts[place]
        scores = np.empty((len(rows), first.shape[1]))
        scores[folds == 0] = first
        for fold in range(1, FOLDS):
            scores[folds == fold] = _held_scores(family[place], rows, labels, folds == fold)
            done += 1
            report("public models", done, total, loss)
        model = _learnt(family[place], rows, labels)
        done += 1
        report("public models", done, total, loss)
        yield FittedScores(model, scores)


def _held_scores(estimator: Any, rows: Array, labels: Labels, held: npt.NDArray[np.bool_]) -> Array:
    """Scores of the rows ``held``, from a model that learnt from the others."""
    classes = int(labels.max()) + 1
    # A class whose only rows are held out cannot be learnt without them.
    rest = ~held if len(np.unique(labels[~held])) == classes else np.ones_like(held)
    return _learnt(estimator, rows[rest], labels[rest]).scores(CodedRows.of(rows[held]))


def _log_loss(scores: Array, labels: Labels) -> float:
    """Mean negative logarithm of the probability of the right label."""
    right = label_shares(scores)[np.arange(len(labels)), labels]
    return -float(np.log(np.maximum(right, np.finfo(np.float64).tiny)).mean())


def _folds(labels: Labels, seed: int) -> Labels:
    """A fold for each row, every class spread over all of them."""
    random = np.random.default_rng(seed)
    order = np.lexsort((random.random(len(labels)), labels))
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


def _learnt(estimator: Any, rows: Array, labels: Labels) -> PublicModel:
    if isinstance(estimator, LogisticRegression):
        with warnings.catch_warnings():
            # Weights after 300 steps are as public, and valid, as any others.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return LinearModel.from_sklearn(estimator.fit(rows, labels))
    return BoostedTrees.from_sklearn(estimator.fit(rows, labels))


def score_codes(
    fitted: FittedScores, labels: Labels, *, epsilon: float, scoring: str
) -> Iterator[ScoreCode]:
    """Bins and channels for one model, of which the best is to be taken.

    Each carries the scores that bins and channel, chosen on one half of the rows, have on the
    other, averaged over both ways: channels of many bins fit what is chance in few rows, and score
    too well on those.

    Args:
        fitted: the model.
        labels: shape (n,), integers from 0.
        epsilon: above 0.
        scoring: what staircase channels are made for.
    """
    scores = fitted.scores
    sides = _halves(labels)
    best_of = partial(_best_of, epsilon=epsilon, scoring=scoring)
    for family in _families(scores, labels, scoring):
        best = best_of(family, scores, labels)
        halves = [(best_of(family, scores[~side], labels[~side]), side) for side in (sides, ~sides)]
        for response, (bins, channel) in best.items():
            found, rows = [], RowScores.nothing(len(labels))
            for half, side in halves:
                # A response that the other half has no bins for is judged by the one that has.
                chosen, kept = half.get(response, (bins, channel)), response in half
                on_side, parts = _on_rows(*chosen, scores[side], labels[side])
                rows.fill(side, parts)
                found += [on_side] if kept else []
            if not found:  # nor the other one: nothing says what it is worth on other rows
                continue
            worth = replace(channel, scores=mean_scores(found))
            yield ScoreCode(fitted, bins, worth, rows, plain=family is _cut_at_prevalence)


Family = Callable[[Array, Labels], Iterator[ScoreBins]]


def _families(scores: Array, labels: Labels, scoring: str) -> Iterator[Family]:
    """Ways to cut scores into bins, each with the candidates that it finds on some rows."""
    if scores.shape[1] == 1:
        yield _cut_at_prevalence
        yield _two_bins
        for size in _SIDES:
            if size == _SIDES[0] or 2 * size * _SIDE_ROWS <= len(scores):
                yield partial(both_sides, size=size)
        if scoring in ("information", KEPT):
            return
        for size in range(3, MOST_BINS + 1):
            if size > 8 and size % 4:
                continue
            if size * LEAST_ROWS > max(len(scores), 3 * LEAST_ROWS):
                return
            yield partial(_equal_parts, size=size)
        return
    classes = scores.shape[1]
    if classes <= MOST_BINS:
        yield _likeliest
    for size in range(2, min(classes + 1, MOST_BINS, max(2, len(labels) // LEAST_ROWS)) + 1):
        yield partial(_prototypes, size=size)


def _best_of(
    family: Family,
    scores: Array,
    labels: Labels,
    *,
    epsilon: float,
    scoring: str,
) -> dict[str, tuple[ScoreBins, Channel]]:
    """The best candidate of each response on these rows, by the response's name."""
    best: dict[str, tuple[ScoreBins, Channel]] = {}
    compared = "information" if scoring == KEPT else scoring
    for bins in family(scores, labels):
        joint = joint_of(bins.of(scores), labels, bins=bins.count)
        for channel in channels(joint, epsilon=epsilon, scoring=scoring):
            kept = best.get(channel.response)
            if kept is None or is_above(channel.scores, kept[1].scores, scoring=compared):
                best[channel.response] = (bins, channel)
    return best


def _on_rows(
    bins: ScoreBins, channel: Channel, scores: Array, labels: Labels
) -> tuple[Scores, RowScores]:
    """Scores of servers on other rows than the channel was chosen on, exactly over its noise, and
    what each row adds to them.
    """
    members, table = bins.of(scores), channel.shares.T / WHOLE
    seen, columns = np.unique(labels, return_inverse=True)
    # A label that none of the rows has is left out, even where that leaves a single one.
    joint = joint_of(members, labels, bins=bins.count)[:, : len(seen)]
    return channel_scores(table.T @ joint), row_scores(table, joint, members, columns)


def _halves(labels: Labels) -> npt.NDArray[np.bool_]:
    """Which rows are in the second half, every class spread over both."""
    order = np.argsort(labels, kind="stable")
    side = np.empty(len(labels), dtype=np.bool_)
    side[order] = np.arange(len(labels)) % 2 == 1
    return side


def _cut_at_prevalence(scores: Array, labels: Labels) -> Iterator[ScoreBins]:
    """Two bins: the log odds above or below those of the second label."""
    yield ScoreBins(np.array([[_log_odds(labels)]]), 1)


def both_sides(scores: Array, labels: Labels, *, size: int) -> Iterator[ScoreBins]:
    """Equal parts of the rows above the second label's log odds, and of those below: no bin is on
    both sides. The end that is nearest to even odds is moved there, where guesses change.

    Args:
        scores: shape (n, 1), log odds of the second label.
        labels: shape (n,), 0 or 1.
        size: bins on either side.
    """
    place = _log_odds(labels)
    levels, ends = np.arange(1, size) / size, [np.array([place])]
    for part, has_even in (
        (scores[scores[:, 0] < place, 0], place > 0.0),
        (scores[scores[:, 0] >= place, 0], place < 0.0),
    ):
        if len(part):
            found = np.quantile(part, levels)
            if has_even and len(found):
                found[np.abs(found).argmin()] = 0.0
            ends.append(found)
    yield ScoreBins(np.unique(np.concatenate(ends))[None, :], 1)


def _log_odds(labels: Labels) -> float:
    """Of the second label's share, kept away from 0 and 1."""
    least = 1.0 / (2 + len(labels))
    share = float(np.clip((labels == 1).mean(), least, 1.0 - least))
    return float(np.log(share / (1.0 - share)))


def _two_bins(scores: Array, labels: Labels) -> Iterator[ScoreBins]:
    """Two bins cut at many places, among them even odds."""
    places = np.quantile(scores[:, 0], np.arange(1, _CUTS) / _CUTS)
    for place in np.unique([*places, 0.0]):
        yield ScoreBins(np.array([[place]]), 1)


def _equal_parts(scores: Array, labels: Labels, *, size: int) -> Iterator[ScoreBins]:
    """Equal parts of the rows."""
    ends = np.unique(np.quantile(scores[:, 0], np.arange(1, size) / size))
    if len(ends) >= 2:
        yield ScoreBins(ends[None, :], 1)


def _likeliest(scores: Array, labels: Labels) -> Iterator[ScoreBins]:
    """A bin for each class."""
    classes = scores.shape[1]
    yield ScoreBins(np.eye(classes), classes)


def _prototypes(scores: Array, labels: Labels, *, size: int) -> Iterator[ScoreBins]:
    """Distributions of labels that lose least, in nats, when they stand for the scores nearest to
    them.
    """
    shares = label_shares(scores)
    classes = shares.shape[1]
    if size <= classes + 1:
        # Start from the most frequent labels, the last bin standing for all others.
        frequent = np.argsort(-np.bincount(labels, minlength=classes), kind="stable")
        started = np.full(classes, size - 1)
        started[frequent[: size - 1]] = np.arange(size - 1)
        members = started[shares.argmax(axis=1)]
    else:
        # Equal parts of the rows, by their likeliest label and how sure it is.
        order = np.lexsort((shares.max(axis=1), shares.argmax(axis=1)))
        members = np.empty(len(shares), dtype=np.int64)
        members[order] = np.arange(len(shares)) * size // len(shares)
    prototypes = np.zeros((size, classes))
    for _ in range(_PASSES):
        sums = np.zeros((size, classes))
        np.add.at(sums, members, shares)
        sums += _SMOOTHING / classes
        prototypes = np.log(sums / sums.sum(axis=1, keepdims=True))
        moved = ScoreBins(prototypes, classes).of(scores)
        if np.array_equal(moved, members):
            break
        members = moved
    yield ScoreBins(prototypes, classes)
