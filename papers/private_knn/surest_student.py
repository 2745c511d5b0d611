"""A student on public features: a linear support vector machine that leaves out the labels it
believes least.

It sees public rows and released labels, nothing else, so it is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans, Integers
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.workers import results_of

_FOLDS = 5
_PENALTIES = (0.003, 0.03, 0.3)
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class SurestStudent:
    """A student made by ``surest_student``.

    Attributes:
        centre, spread: center and spread of the rows that it learned from, shape (d,).
        weights: shape (d + 1, classes). The last row is the intercept.
        kept: True for each given row that it learned from in the end, shape (n,).
    """

    centre: Array
    spread: Array
    weights: Array
    kept: Booleans

    def scores(self, features: npt.ArrayLike) -> Array:
        """Return scores, shape (n, classes), for features of shape (n, d). The largest is the
        answer.
        """
        rows = finite_array(features, name="features", ndim=2, columns=len(self.centre))
        scaled = (rows - self.centre) / self.spread
        return np.asarray(scaled @ self.weights[:-1] + self.weights[-1])

    def predict(self, features: npt.ArrayLike) -> Integers:
        """Return codes of labels, shape (n,)."""
        return np.asarray(self.scores(features).argmax(axis=1), dtype=np.int64)


def surest_student(
    features: npt.ArrayLike, labels: npt.ArrayLike, *, classes: int, share: float = 0.88, seed: int
) -> SurestStudent:
    """Train the machine on the ``share`` of released labels that others' labels speak for most.

    The belief in a label comes from machines that did not see it, in five parts. It is the label's
    score less the best other one's. The penalty is the one under which these machines agree with
    most of the labels. The machines are shared among the workers of ``joblib.parallel_config``.

    Args:
        features: shape (n, d), public.
        labels: shape (n,), released codes, negative where withheld.
        classes: the number of labels.
        share: the share of the labels that are kept, in (0, 1].
        seed: the public seed of the parts and the solver.

    Raises:
        InvalidInput: shapes do not fit, or codes are not below ``classes``.
        InvalidParameter: ``share`` is outside (0, 1].

    Edge cases: fewer than two different labels give a student that always answers the only one, or
    the first class where all were withheld.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> rows, truth = rng.normal(size=(200, 2)), np.arange(200) % 2
        >>> rows[:, 0] += 4 * truth
        >>> released = np.where(rng.random(200) < 0.1, 1 - truth, truth)
        >>> student = surest_student(rows, released, classes=2, seed=0)
        >>> bool((student.predict(rows) == truth).mean() > 0.95)
        True
    """
    rows = finite_array(features, name="features", ndim=2)
    codes = np.asarray(labels)
    if codes.shape != (len(rows),) or codes.dtype.kind not in "iu":
        raise InvalidInput(f"labels: expected {len(rows)} whole numbers, got shape={codes.shape}")
    if not 0 < positive(share, name="share") <= 1:
        raise InvalidParameter(f"share={share!r}: expected a number in (0, 1]")
    count(classes, name="classes", minimum=2)
    if codes.size and codes.max() >= classes:
        raise InvalidInput(f"labels: expected codes below classes={classes}")
    answered = np.flatnonzero(codes >= 0)
    if len(np.unique(codes[answered])) < 2:
        weights = np.zeros((rows.shape[1] + 1, classes))
        weights[-1, codes[answered][:1]] = 1.0
        size = rows.shape[1]
        return SurestStudent(np.zeros(size), np.ones(size), weights, np.asarray(codes >= 0))
    centre, spread = rows[answered].mean(axis=0), rows[answered].std(axis=0) + _LEAST_SPREAD
    scaled, given = (rows[answered] - centre) / spread, codes[answered].astype(np.int64)
    parts = np.random.default_rng(seed).permutation(len(given)) % _FOLDS
    best, penalty, belief = -1, _PENALTIES[0], np.zeros(len(given))
    calls = (
        (_beliefs, scaled, given, parts == part, classes, tried, seed)
        for tried in _PENALTIES
        for part in range(_FOLDS)
    )
    folds = list(results_of(calls, n_jobs=None))
    for place, tried in enumerate(_PENALTIES):
        found = np.full(len(given), -np.inf)
        for part in range(_FOLDS):
            found[parts == part] = folds[place * _FOLDS + part]
        agreed = int((found > 0).sum())
        if agreed > best:
            best, penalty, belief = agreed, tried, found
    surest = np.argsort(-belief, kind="stable")[: max(2, round(share * len(given)))]
    if len(np.unique(given[surest])) < 2:
        surest = np.arange(len(given))
    kept = np.zeros(len(rows), dtype=np.bool_)
    kept[answered[surest]] = True
    weights = _machine(scaled[surest], given[surest], classes, penalty, seed)
    return SurestStudent(centre, spread, weights, kept)


def _beliefs(
    scaled: Array, given: Integers, held: Booleans, classes: int, penalty: float, seed: int
) -> Array:
    """Return for each label held out its score less the best other one, by a machine of the
    others.
    """
    if len(np.unique(given[~held])) < 2 or not held.any():
        return np.full(int(held.sum()), -np.inf)
    weights = _machine(scaled[~held], given[~held], classes, penalty, seed)
    scores = scaled[held] @ weights[:-1] + weights[-1]
    places = np.arange(len(scores)), given[held]
    own = scores[places]
    scores[places] = -np.inf
    return np.asarray(own - scores.max(axis=1))


def _machine(scaled: Array, given: Integers, classes: int, penalty: float, seed: int) -> Array:
    """Return weights, shape (d + 1, classes). A label that nobody has stays below all others."""
    from sklearn.svm import LinearSVC

    machine = LinearSVC(C=penalty / scaled.shape[1] ** 0.5, random_state=seed, max_iter=20_000)
    machine.fit(scaled, given)
    columns, shifts = machine.coef_, machine.intercept_
    if len(columns) == 1:
        columns, shifts = np.vstack([-columns, columns]), np.concatenate([-shifts, shifts])
    weights = np.zeros((scaled.shape[1] + 1, classes))
    weights[-1] = -1e9
    weights[:-1, machine.classes_] = columns.T
    weights[-1, machine.classes_] = shifts
    return weights
