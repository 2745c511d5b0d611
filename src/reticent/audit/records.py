"""An audit of a method that protects training records, through its own ``fit`` and ``release``.

The method is fitted on a data set D or on a neighbour D', as a fair coin says, many times and with
real noise. What it releases is all that the audit sees. If the coin can be guessed from it better
than the claimed guarantee allows, the claim is refuted.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.audit.beliefs import linear_score
from reticent.audit.claims import Book, ClaimAudit, results_of
from reticent.audit.sequential import Draw, SequentialTest, bet, by_coin
from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import AddRemove, Guarantee, Replace, Unit
from reticent.mechanisms import analytic_sigma
from reticent.release.fits import not_counted
from reticent.training.progress import Report, silent

LEAST_RUNS = 200
"""Fewer establish nothing."""

_SEARCH_SHARE = 0.25
"""Share of the runs, and of the time, in which neighbours are chosen."""

_EXTREMES, _OTHERS, _CORNERS = 2, 1, 4
"""Records that the search tries: farthest from the mean, drawn at random, and at corners of the
box around all.
"""

_LEAST_TRIALS = 16

_MOST_ASKED = 256
"""Rows that one run asks about, at most."""

_FITS_AT_ONCE, _ANSWERS_AT_ONCE = 16, 1024
"""Runs between two looks at the time."""


@dataclass(frozen=True, eq=False)
class Records:
    """The private records of one fit.

    Attributes:
        X: shape (n, ...), rows.
        y: shape (n,), their labels or targets.
        persons: shape (n,), the person of each record, or None where no person has two.
    """

    X: npt.NDArray[Any]
    y: npt.NDArray[Any]
    persons: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, places: Any) -> Records:
        persons = None if self.persons is None else self.persons[places]
        return Records(self.X[places], self.y[places], persons)

    def __add__(self, others: Records) -> Records:
        persons = None
        if self.persons is not None and others.persons is not None:
            persons = np.concatenate([self.persons, others.persons])
        return Records(
            np.concatenate([self.X, others.X]), np.concatenate([self.y, others.y]), persons
        )

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that ``fit`` gets beside rows and labels."""
        return {} if self.persons is None else {"persons": self.persons.tolist()}


@not_counted("an audit by the owner: nothing that is fitted leaves")
def audit_records(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    public_X: npt.ArrayLike | None = None,
    public_y: npt.ArrayLike | None = None,
    remove: int | None = None,
    add: tuple[npt.ArrayLike, Any] | None = None,
    queries: npt.ArrayLike | None = None,
    outputs: Callable[[Any], npt.ArrayLike] | None = None,
    mu: float | None = None,
    runs: int,
    alpha: float,
    seconds: float | None = None,
    seed: int | None = None,
    report: Report = silent,
) -> ClaimAudit:
    """Fit a method many times on two neighbouring data sets, and test its claim on what it
    releases.

    For each run a fair coin chooses the records as given or the neighbour. The public ``fit`` and
    ``release`` are called with noise from the operating system, without a ledger. Methods whose
    training is without noise (certified ones) are fitted once on either side and answer afresh in
    each run. What is released is the model's arrays, or labels of queries.

    The sequential tests of the claimed (epsilon, delta) and of ``mu`` share ``alpha`` evenly. The
    lower bound on epsilon is what the first of them excludes, so it needs no share of its own. All
    bet by what they learnt from earlier runs alone.

    Guarantee:
        If the estimator is as private between the two data sets as it claims, the result is
        refuted with probability at most ``alpha``. An audit gives no guarantee for neighbours that
        it did not try.

        **The audit itself is private**: it spends no budget and protects nothing. Every run is a
        further release about the records. It is for their owner, who shows neither the runs nor
        the result to anybody.

    Args:
        estimator: an estimator, not fitted, that protects training records. It is not changed.
        X: shape (n, features) or with more axes, the records, n at least 2.
        y: shape (n,), labels or targets.
        public_X, public_y: public rows and their labels, if ``fit`` takes them, or None.
        remove: the place of the record that the neighbour lacks.
        add: the row and the label of a record that the neighbour has in addition. With ``remove``
            it stands in that record's place, as the adjacency "replace" needs. Where neither is
            given, neighbours are searched with a quarter of the runs: records removed, added with
            another label, or added at corners of the box around all.
        queries: shape (q, ...), public rows that are asked. None asks the neighbour's record, as
            often as the method's total allows.
        outputs: a function from the fitted estimator to what it releases, numbers of shape (d,),
            in place of arrays and labels.
        mu: the noise that the method states, as mu-GDP. None takes it from the claim where the
            estimator is one of ours whose sums have Gaussian noise, and tests none otherwise.
        runs: number of runs, those of the search included, at least 200.
        alpha: the chance of refuting a claim that holds, in (0, 1).
        seconds: time limit after which fewer runs are made, or None.
        seed: seed of coins and search, never of noise. None takes them from the operating system.
        report: told after each run.

    Raises:
        InvalidInput, InvalidParameter: data, neighbours or numbers that cannot be.

    Example:
        >>> from reticent import NoisyGradientClassifier
        >>> from reticent.systems import Features
        >>> X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
        >>> given = {"epsilon": 2.0, "delta": 1e-5, "classes": [0, 1], "steps": 2}
        >>> model = NoisyGradientClassifier(**given, features=Features(range=(-4, 4)))
        >>> audit = audit_records(model, X, y, remove=3, runs=400, alpha=1e-6)
        >>> audit.refuted, audit.draws
        (False, 400)

    References:
        - Jagielski, Ullman and Oprea (2020), "Auditing differentially private machine learning: how
          private is private SGD?", arXiv:2006.07709, algorithm 2.

    See Also:
        reticent.audit.SequentialTest: the test, and its proof.
        reticent.audit.claim: of anything that answers.
        reticent.audit.audit_fitted: of fitted systems that protect their inputs.
    """
    from sklearn.base import clone

    if count(runs, name="runs") < LEAST_RUNS:
        raise InvalidInput(f"runs={runs}: expected at least {LEAST_RUNS}; fewer establish nothing")
    probability(alpha, name="alpha", allow_zero=False)
    if seconds is not None:
        positive(seconds, name="seconds")
    words = None if seed is None else [count(seed, name="seed", minimum=0), 0xA0D]
    random = np.random.default_rng(words)
    start = time.monotonic()
    rows, labels = np.asarray(X), np.asarray(y)
    if rows.ndim < 2 or labels.ndim != 1 or len(rows) != len(labels) or len(rows) < 2:
        raise InvalidInput(
            f"X, y: expected at least two records and a label for each, got shapes {rows.shape} "
            f"and {labels.shape}"
        )
    given = _public(estimator, public_X, public_y)
    read = Reader(clone(estimator), given, outputs)
    first = _DataSet("the records as given", Records(rows, labels), rows[:1])
    claim = read.claim(first.records)
    candidates = (
        # Each candidate needs some runs on either side.
        _searched(claim, first, random)[
            : max(1, round(_SEARCH_SHARE * runs) // (2 * _LEAST_TRIALS))
        ]
        if remove is None and add is None
        else [_neighbour(claim, first, remove, add)]
    )

    def draw_of(candidate: _DataSet) -> tuple[Draw, int]:
        asked = candidate.asked if queries is None else np.asarray(queries)
        return read.draws(first.records, candidate.records, asked, repeated=queries is None)

    chosen, spent = 0, 0
    if len(candidates) > 1:
        until = None if seconds is None else start + _SEARCH_SHARE * seconds
        draws = [draw_of(candidate)[0] for candidate in candidates]
        chosen, spent = _search(draws, round(_SEARCH_SHARE * runs), until, report)
    second = candidates[chosen]
    noise = _stated_mu(estimator, claim) if mu is None else positive(mu, name="mu")
    level = alpha / (1 if noise is None else 2)
    tests = [SequentialTest(epsilon=claim.epsilon, delta=claim.delta, alpha=level)]
    if noise is not None:
        tests.append(SequentialTest(mu=noise, alpha=level))
    draw, batch = draw_of(second)
    left = None if seconds is None else max(0.0, seconds - (time.monotonic() - start))
    bet(
        draw,
        tests,
        batch=batch,
        runs=runs - spent,
        seconds=left,
        stop=False,
        random=random,
        report=report,
    )
    chosen_from = f", chosen among {len(candidates)}" if len(candidates) > 1 else ""
    book = Book(second.name + chosen_from, draw, tests[0])
    return ClaimAudit(
        subject=type(estimator).__name__,
        epsilon=claim.epsilon,
        delta=claim.delta,
        source=claim.describe(),
        alpha=alpha,
        pairs=results_of([book], delta=claim.delta),
        noise=None if noise is None else tests[1].describe().removeprefix("refuted: "),
        noise_refuted=noise is not None and tests[1].refuted,
        draws=tests[0].draws,
        seconds=time.monotonic() - start,
        refuted=any(test.refuted for test in tests),
    )


@dataclass(frozen=True, eq=False)
class _DataSet:
    """Records, and the row that tells them from the others.

    Attributes:
        name: its name in words.
        records: the data set.
        asked: shape (1, ...), the row of the record in which it differs.
    """

    name: str
    records: Records
    asked: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Reader:
    """Fit an estimator again and again, and read what it releases as numbers.

    Attributes:
        estimator: the estimator, not fitted.
        given: further arguments of ``fit``, all of them public.
        outputs: function from a fitted estimator to what it releases, in place of arrays and
            labels, or None.
    """

    estimator: Any
    given: Mapping[str, Any]
    outputs: Callable[[Any], npt.ArrayLike] | None = None

    def fitted(self, records: Records) -> Any:
        """Return the estimator, fitted."""
        # copies, which a fit may change
        X, y = records.X.copy(), records.y.copy()
        return self.estimator.fit(X, y, **self.given, **records.given)

    def claim(self, records: Records) -> Guarantee:
        """Return what the estimator says that everything which is released of one run costs."""
        found = getattr(self.fitted(records), "guarantee", None)
        if not isinstance(found, Guarantee) or not isinstance(found.adjacency, AddRemove | Replace):
            raise InvalidInput(
                f"estimator: expected one that protects training records, with a guarantee; got "
                f"{type(self.estimator).__name__}"
            )
        if found.adjacency.unit is not Unit.RECORD or found.adjacency.records != 1:
            raise InvalidInput("estimator: expected a guarantee for one record")
        return found

    def draws(
        self, first: Records, second: Records, asked: npt.NDArray[Any], *, repeated: bool
    ) -> tuple[Draw, int]:
        """Return a function from coins to what is released of two neighbours, and how many runs to
        make at once.

        A model is prepared once on either side, and released anew in each run. A system whose
        answers are paid for one by one is fitted once, and answers. Any other is fitted anew.

        Args:
            first, second: the neighbours.
            asked: shape (q, ...), rows that are asked about where the model is not the release.
            repeated: whether to ask about the first of them as often as the total allows.
        """
        from copy import deepcopy

        from reticent.systems.votes.released_model import ReleasedModel

        both = (second, first)
        if isinstance(self.estimator, ReleasedModel):
            models = [
                self.estimator._drawn_again(one.X, one.y, **self.given, **one.given) for one in both
            ]

            def again(place: int) -> Array:
                return self._read(next(models[place]))

            return _one_by_one(again)
        fitted = self.fitted(first)
        if hasattr(fitted, "price") and hasattr(fitted, "checked"):
            prepaid = fitted.price(fitted.checked(asked[:1])).prepaid
            if prepaid is None and self.outputs is None:
                if len(asked) != 1:
                    raise InvalidInput("queries: expected one, since each answer is paid for alone")
                # All noise is in the answer, and each answer costs the claim by itself.
                return self._answers([deepcopy(self.fitted(one)) for one in both], asked)
            most = None if prepaid is None else prepaid.queries
            if repeated:
                asked = np.repeat(asked[:1], min(_MOST_ASKED, most or self._times()), axis=0)

        def anew(place: int) -> Array:
            return self._read(self.fitted(both[place]), asked, repeated)

        return _one_by_one(anew)

    def _answers(self, held: list[Any], asked: npt.NDArray[Any]) -> tuple[Draw, int]:
        def answers(system: Any) -> Callable[[int], Array]:
            def answer(size: int) -> Array:
                return _numbers(system.release(np.repeat(asked, max(size, 1), axis=0)), system)[
                    :size
                ]

            return answer

        second, first = (answers(system) for system in held)
        return by_coin(first, second), _ANSWERS_AT_ONCE

    def _times(self) -> int:
        """Return how often the total of the estimator allows to ask, as far as its parameters
        say.
        """
        for name in ("queries", "answers", "votes"):
            most = getattr(self.estimator, name, None)
            if isinstance(most, int | float):
                return max(1, int(most))
        return 1

    def _read(
        self, system: Any, asked: npt.NDArray[Any] | None = None, repeated: bool = False
    ) -> Array:
        if self.outputs is not None:
            return np.asarray(self.outputs(system), dtype=np.float64).ravel()
        if callable(getattr(system, "release", None)):
            named = _numbers(system.release(asked), system)
            return named.sum(axis=0) if repeated else named.ravel()
        if callable(getattr(system, "arrays", None)):
            arrays = sorted(system.arrays().items())
            return np.concatenate([np.asarray(a, dtype=np.float64).ravel() for _, a in arrays])
        if callable(getattr(system, "predict_proba", None)):
            return np.asarray(system.predict_proba(asked), dtype=np.float64).ravel()
        raise InvalidInput(
            f"outputs: expected a function, since a {type(system).__name__} has neither release, "
            "the arrays of a released model, nor predict_proba"
        )


def _one_by_one(run: Callable[[int], Array]) -> tuple[Draw, int]:
    return lambda coins: np.stack([run(int(coin)) for coin in coins]), _FITS_AT_ONCE


def _numbers(release: Any, system: Any) -> Array:
    """Return answers as numbers, shape (answers, m), and zeros where they are withheld.

    A number says which label it is, or is the number that a regressor gives.
    """
    values = np.asarray(release.values)
    if hasattr(system, "classes_"):
        values = values[:, None] == np.asarray(system.classes_)
    numbers = values.reshape(len(values), -1).astype(np.float64)
    return np.where(np.asarray(release.withheld)[:, None], 0.0, numbers)


def _public(
    estimator: Any, public_X: npt.ArrayLike | None, public_y: npt.ArrayLike | None
) -> dict[str, Any]:
    """Return public rows under the names that ``fit`` has for them."""
    known = inspect.signature(estimator.fit).parameters
    found = {}
    for value, names in ((public_X, ("public_X", "public")), (public_y, ("public_y",))):
        if value is None:
            continue
        taken = [name for name in names if name in known]
        if not taken:
            raise InvalidInput(
                f"{names[0]}: fit of a {type(estimator).__name__} takes no such rows"
            )
        found[taken[0]] = value
    return found


def _neighbour(
    claim: Guarantee, first: _DataSet, remove: int | None, add: tuple[npt.ArrayLike, Any] | None
) -> _DataSet:
    """Return the neighbour that the caller names."""
    replaces = isinstance(claim.adjacency, Replace)
    if replaces != (remove is not None and add is not None):
        wanted = "both, the record and what replaces it" if replaces else "one of them"
        raise InvalidInput(f"remove, add: expected {wanted}, by the adjacency of the guarantee")
    rows, labels, asked = first.records.X, first.records.y, first.asked
    if remove is not None:
        place = count(remove, name="remove", minimum=0)
        if place >= len(rows):
            raise InvalidInput(f"remove={place}: expected a place among {len(rows)} records")
        asked = rows[place : place + 1]
        rows, labels = np.delete(rows, place, axis=0), np.delete(labels, place)
    if add is not None:
        row = np.asarray(add[0])
        if row.shape != rows.shape[1:]:
            raise InvalidInput(f"add: expected a row of shape {rows.shape[1:]}, got {row.shape}")
        asked = row[None]
        rows = np.concatenate([rows, asked])
        labels = np.concatenate([labels, np.asarray([add[1]])])
    name = (
        f"record {remove} replaced"
        if remove is not None and add is not None
        else f"record {remove} removed"
        if remove is not None
        else "a record added"
    )
    return _DataSet(name, Records(rows, labels), asked)


def _searched(claim: Guarantee, first: _DataSet, random: np.random.Generator) -> list[_DataSet]:
    """Return neighbours to choose from: extreme records and others, removed or with another
    label.
    """
    rows, labels = first.records.X, first.records.y
    flat = np.nan_to_num(rows.reshape(len(rows), -1).astype(np.float64))
    far = np.argsort(-np.abs(flat - flat.mean(axis=0)).sum(axis=1), kind="stable")[:_EXTREMES]
    drawn = random.permutation(len(flat))[:_OTHERS]
    places = list(dict.fromkeys(int(place) for place in (*far, *drawn)))
    replaces = isinstance(claim.adjacency, Replace)
    found = []
    for place in places:
        other = (rows[place], _other_label(labels, place))
        if replaces:
            found.append(_neighbour(claim, first, place, other))
            continue
        found.append(_neighbour(claim, first, place, None))
        found.append(_neighbour(claim, first, None, other))
    ends = np.stack([rows.min(axis=0), rows.max(axis=0)])
    for turn in range(_CORNERS):
        row = np.where(random.random(rows.shape[1:]) < 0.5, *ends)
        add = (row, labels[random.integers(len(labels))])
        # Such a record is like no other, so that nothing else hides it.
        found.insert(2 * turn, _neighbour(claim, first, places[0] if replaces else None, add))
    return found


def _other_label(labels: npt.NDArray[Any], place: int) -> Any:
    """Return the other end of the targets, or the next label."""
    known = np.unique(labels)
    if labels.dtype.kind == "f":
        middle = (known[0] + known[-1]) / 2
        return known[0] if labels[place] > middle else known[-1]
    return known[(int(np.searchsorted(known, labels[place])) + 1) % len(known)]


def _search(draws: list[Draw], runs: int, until: float | None, report: Report) -> tuple[int, int]:
    """Return the place of the neighbour that runs tell best, and how many runs that took.

    In each round the better half of the candidates goes on.
    """
    rounds = max(1, (len(draws) - 1).bit_length())
    left = list(range(len(draws)))
    values: dict[int, list[Array]] = {place: [] for place in left}
    spent = 0
    for number in range(rounds):
        each = 2 * max(_LEAST_TRIALS // 2, runs // (2 * rounds * len(left)))
        gaps = []
        for place in left:
            values[place].append(np.asarray(draws[place](np.arange(each) % 2 == 0)))
            spent += each
            gaps.append(_told_apart(np.concatenate(values[place])))
            if until is not None and time.monotonic() >= until:
                return left[int(np.argmax(gaps))], spent
        order = np.argsort(-np.array(gaps), kind="stable")
        left = [left[place] for place in order[: (len(left) + 1) // 2]]
        report("search", number + 1, rounds, float("nan"))
    return left[0], spent


def _told_apart(values: Array) -> float:
    """Return how many standard errors the scores of two data sets, drawn in turn, are apart.

    The scores are those of the second half, by a score of the first.
    """
    coins = np.arange(len(values)) % 2 == 0
    half = len(values) // 2
    scores = linear_score(coins[:half], values[:half])(values[half:])
    one, other = scores[coins[half:]], scores[~coins[half:]]
    error = np.sqrt(one.var() / len(one) + other.var() / len(other))
    return float((one.mean() - other.mean()) / max(float(error), 1e-300))


def _stated_mu(estimator: Any, claim: Guarantee) -> float | None:
    """Return the mu of Gaussian noise that is just (epsilon, delta)-private, or None.

    It is a millionth more for its rounding. It is None unless noisy sums are all that is released.
    """
    from reticent.systems.votes.released_model import ReleasedModel

    if not isinstance(estimator, ReleasedModel):
        return None
    sigma = analytic_sigma(sensitivity=1.0, epsilon=claim.epsilon, delta=claim.delta)
    return (1.0 + 1e-6) / sigma
