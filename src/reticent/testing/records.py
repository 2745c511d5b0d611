"""Checks of what records do: sums against the bounds that were charged, few records and none, and
what the number of records may not move.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest, chi2

from reticent.audit.records import Records
from reticent.core.arrays import Array
from reticent.core.guarantees import Replace
from reticent.mechanisms import SumSession
from reticent.noise import SecureSampler
from reticent.release.fits import not_counted
from reticent.systems.certified.system import CertifiedSystem
from reticent.systems.votes.query_votes import QueryVotes
from reticent.systems.votes.released_model import ReleasedModel
from reticent.testing.cases import WITHHELD, Case, expect

Sums = list[list[Array]]
"""For each sum that was released, the exact numbers of each block."""

_STANDARD_ERRORS = 5.0
_FALSE_ALARM = 5.7e-7
_LEAST_NUMBERS, _MOST_NUMBERS = 400, 100_000
_MOST_ANSWERS, _ANSWERS_AT_ONCE = 20_000, 1000


class Watched:
    """A ``SumSession`` that notes the exact sums, and what a model is given for them.

    Args:
        session: the session that draws, or None where ``released`` is given.
        released: sums that this fit is told, as another fit was told.
    """

    def __init__(self, session: SumSession, released: Sequence[Any] | None = None) -> None:
        self.mechanism, self.sampler = session.mechanism, session.sampler
        self.noise_scale, self.sigmas = session.noise_scale, session.sigmas
        self._session, self._given = session, released
        self.exact: Sums = []
        self.released: list[tuple[Any, ...]] = []

    def release(self, totals: Sequence[npt.ArrayLike]) -> tuple[Any, ...]:
        """Release as the session does."""
        self.exact.append([np.array(total, dtype=np.float64) for total in totals])
        place = len(self.released)
        if self._given is None:
            found = self._session.release(totals)
        else:
            expect(place < len(self._given), "sums", "their number depends on the records")
            found = tuple(np.array(block) for block in self._given[place])
        self.released.append(found)
        return found


def watched_fit(
    case: Case, records: Records, *, released: Sequence[Any] | None = None
) -> tuple[Any, Watched, str]:
    """Fit a released model, and see every sum as the model sees it.

    Returns:
        The model, what was seen, and a digest of all that was public when its ``learn`` began.
    """
    made = case.fresh()
    seen: list[Any] = []

    class Seen(type(made)):  # type: ignore[misc]
        def learn(self, voters: Any, public: Any, session: Any) -> None:
            seen.append(_digest(self.__dict__))
            seen.append(Watched(session, released))
            super().learn(voters, public, seen[1])

    made.__class__ = Seen
    with not_counted("a check of the estimator: nothing leaves"):
        made.fit(records.X, records.y, **case.fit, **records.given)
    made.__class__ = type(case.estimator)
    return made, seen[1], seen[0]


def check_sums(case: Case, seconds: float) -> None:
    """Check that no neighbour moves a sum by more than the bound that the noise was made for."""
    fitted = case.fitted()
    if isinstance(fitted, ReleasedModel):
        _check_model_sums(case)
    elif isinstance(fitted, QueryVotes):
        _check_votes(case, fitted)
    elif isinstance(fitted, CertifiedSystem):
        _check_distances(case, fitted)


def _check_model_sums(case: Case) -> None:
    _, first, _ = watched_fit(case, case.records)
    factor = 2.0 if isinstance(first.mechanism.adjacency, Replace) else 1.0
    for records in case.changed():
        _, other, _ = watched_fit(case, records, released=first.released)
        expect(len(other.exact) == len(first.exact), "sums", "their number depends on the records")
        for mine, others in zip(first.exact, other.exact, strict=True):
            for block, here, there in zip(first.mechanism.blocks, mine, others, strict=True):
                moved = float(np.linalg.norm((here - there).ravel()))
                expect(
                    moved <= factor * block.bound * (1 + 1e-12),
                    "sums",
                    f"a neighbour moves a block by {moved:g} grid steps, the noise is made for "
                    f"{factor * block.bound:g}",
                )


def _check_votes(case: Case, fitted: QueryVotes) -> None:
    response: Any = fitted.response_
    first = fitted.vote_table(case.asking)
    for records in case.changed():
        other = case.fitted(records).vote_table(case.asking)
        if hasattr(response, "levels"):
            _expect_levels(
                (first.argmax(axis=1), response.levels(first.astype(np.float64))),
                (other.argmax(axis=1), response.levels(other.astype(np.float64))),
            )
            continue
        [bound] = response.mechanism.distances
        moved = np.linalg.norm((first - other).astype(np.float64), axis=1).max()
        expect(
            moved <= bound,
            "sums",
            f"a neighbour moves votes by {moved:g}, the noise is made for {bound:g}",
        )


def _check_distances(case: Case, fitted: CertifiedSystem) -> None:
    first = fitted.stable_distances(case.asking)
    for records in case.changed():
        _expect_levels(first, case.fitted(records).stable_distances(case.asking))


def _expect_levels(first: Any, other: Any) -> None:
    """Check that neighbours' stable distances differ by at most 1, and are 0 where labels
    differ.
    """
    (labels, levels), (others, beside) = first, other
    apart = int(np.abs(levels - beside).max())
    expect(apart <= 1, "sums", f"neighbours' stable distances are {apart} apart")
    differ = labels != others
    expect(
        not (levels[differ].any() or beside[differ].any()),
        "sums",
        "neighbours have different labels and a stable distance above 0",
    )


def check_few_records(case: Case, seconds: float) -> None:
    """Check that no records, and one, are data sets like any other: they fit, and are answered, by
    finite numbers.
    """
    if case.kind == "input":
        return
    least = 1 if case.weaker else 0
    for n in range(least, 2):
        try:
            fitted = case.fitted(case.records[:n])
            if case.kind == "answerer":
                answer = fitted.release(np.asarray(case.queries)[:1])
                told = [answer.values[~answer.withheld]]
            else:
                told = list(fitted.arrays().values()) if hasattr(fitted, "arrays") else []
        except Exception as error:
            expect(False, "few records", f"{n} records: {type(error).__name__}: {error}")
        numbers = [one for one in map(np.asarray, told) if one.dtype.kind == "f"]
        finite = all(np.isfinite(one).all() for one in numbers)
        expect(finite, "few records", f"{n} records: NaN or an infinity is released")
    if case.weaker:
        words = fitted.card().to_markdown()
        expect(case.weaker in words, "few records", f"the card does not say {case.weaker!r}")


def check_sizes(case: Case, seconds: float) -> None:
    """Check what is public, and what each record adds, for n and n + 1 records: the same to the
    bit.

    For a released model: the public arrays when ``learn`` begins, and that its sums are the sum of
    what each record alone, or each person, adds.
    """
    if not isinstance(case.fitted(), ReleasedModel):
        return
    _, all_of_them, public = watched_fit(case, case.records)
    _, none, _ = watched_fit(case, case.records[:0], released=all_of_them.released)
    parts = [[np.array(block) for block in blocks] for blocks in none.exact]
    for places in case.units():
        unit = case.records[places]
        _, alone, mine = watched_fit(case, unit, released=all_of_them.released)
        expect(mine == public, "sizes", "what is public depends on the number of records")
        for total, own, empty in zip(parts, alone.exact, none.exact, strict=True):
            for at in range(len(total)):
                total[at] = total[at] + own[at] - empty[at]
    for whole, added in zip(all_of_them.exact, parts, strict=True):
        for here, there in zip(whole, added, strict=True):
            expect(
                np.array_equal(here, there),
                "sizes",
                "a sum is not the sum of what its records add alone",
            )


def _digest(value: Any) -> str:
    found = hashlib.sha256()
    _add(found, value, set())
    return found.hexdigest()


def _add(found: Any, value: Any, seen: set[int]) -> None:
    """Digest arrays and plain values, wherever they are. Random or private values are left out."""
    if isinstance(value, np.ndarray):
        found.update(str((value.dtype, value.shape)).encode())
        found.update(value.tobytes() if value.dtype != object else repr(value.tolist()).encode())
    elif isinstance(value, (str, bytes, int, float, bool, type(None))):
        found.update(repr(value).encode())
    elif id(value) in seen:
        return
    elif isinstance(value, dict):
        seen.add(id(value))
        for name in sorted(value, key=str):
            # A use counts fits on the same records; a receipt has a name drawn at random.
            if str(name) not in ("_data_use", "receipt_"):
                found.update(str(name).encode())
                _add(found, value[name], seen)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _add(found, one, seen)
    elif hasattr(value, "__dict__"):
        seen.add(id(value))
        _add(found, vars(value), seen)


def check_noise(case: Case, seconds: float) -> None:
    """Check that the noise that is drawn is the noise that was charged.

    For a released model the mean square of (released - exact) over its variance must be within five
    standard errors of 1. It is of at least 100,000 numbers or as many as fit into the time, and 400
    in any case. A sound model fails this less than once in 10^5 runs, and once in 1.7 million where
    there are 100,000 numbers. Half the noise passes it less than once in 10^50 runs, see
    ``variance_power``. For any other system whose ``law`` the case states, the frequencies of
    20,000 answers to the first query are compared with it.
    """
    if isinstance(case.fitted(), ReleasedModel):
        _check_variance(case, seconds)
    elif case.law is not None:
        _check_law(case, seconds)


def variance_limits(numbers: int) -> tuple[float, float]:
    """Return between what limits the mean square of so many normal numbers may lie, over its
    expectation.
    """
    errors = _STANDARD_ERRORS * (2.0 / numbers) ** 0.5
    return 1.0 - errors, 1.0 + errors


def variance_power(factor: float, *, numbers: int) -> float:
    """Return the chance that noise of ``factor`` times the right deviation passes the check.

    The sum of squares of n normal numbers has a chi-square law of n degrees of freedom.

    Example:
        >>> 0 < variance_power(0.5, numbers=400) < 1e-56
        True
        >>> variance_power(0.97, numbers=100_000) < 1e-9
        True
        >>> 1e-7 < 1.0 - variance_power(1.0, numbers=100_000) < 1e-6
        True
    """
    low, high = (numbers * limit / factor**2 for limit in variance_limits(numbers))
    if low > numbers:  # far out the chance is lost in the difference of two numbers near 1
        return float(chi2.sf(low, numbers) - chi2.sf(high, numbers))
    return float(chi2.cdf(high, numbers) - chi2.cdf(low, numbers))


def _check_variance(case: Case, seconds: float) -> None:
    end, squares, n = time.process_time() + seconds, 0.0, 0
    while n < _LEAST_NUMBERS or (n < _MOST_NUMBERS and time.process_time() < end):
        _, seen, _ = watched_fit(case, case.records)
        for exact, released in zip(seen.exact, seen.released, strict=True):
            for here, there, sigma in zip(exact, released, seen.mechanism.sigmas, strict=True):
                drawn = (np.asarray(there, dtype=np.float64) - here.reshape(there.shape)) / sigma
                squares += float(np.square(drawn).sum())
                n += drawn.size
        expect(n > 0, "noise", "the model is learnt from no sum")
    low, high = variance_limits(n)
    expect(
        low <= squares / n <= high,
        "noise",
        f"the variance is {squares / n:.4f} of what was charged, over {n} numbers",
    )


def _check_law(case: Case, seconds: float) -> None:
    assert case.law is not None
    fitted = case.fitted()
    expected = dict(case.law(fitted))
    found: Counter[Any] = Counter()
    end = time.process_time() + seconds
    while not found or (found.total() < _MOST_ANSWERS and time.process_time() < end):
        inputs = fitted.checked(np.repeat(case.asking[:1], _ANSWERS_AT_ONCE, axis=0))
        drawn = fitted.draw(inputs, SecureSampler())
        kept = np.asarray(drawn.values)[~np.asarray(drawn.withheld)].tolist()
        found.update(kept)
        found[WITHHELD] += len(drawn.values) - len(kept)
    n = found.total()
    expected[WITHHELD] = expected.get(WITHHELD, max(0.0, 1.0 - sum(expected.values())))
    for answer in dict.fromkeys([*expected, *found]):
        chance = expected.get(answer, 0.0)
        # Two-sided and exact, with the false alarms of five standard errors.
        tail = binomtest(found[answer], n, min(1.0, chance)).pvalue
        expect(
            tail >= _FALSE_ALARM,
            "noise",
            f"{answer!r} is the answer in {found[answer]} of {n} draws, its chance is {chance:.4g}",
        )


def check_seeds(case: Case, seconds: float) -> None:
    """Check that no release says that it was seeded, and no seed can be booked."""
    fitted = case.fitted()
    if case.kind == "model":
        expect(not fitted.receipt_.seeded, "seeds", "a fit was seeded")
        return
    rows = np.asarray(case.queries if case.queries is not None else case.X)[:1]
    from reticent.noise import SeededSampler
    from reticent.release import release
    from reticent.testing.cases import SCOPE, spent

    found = release(fitted, rows, sampler=SeededSampler(0))
    expect(found.receipt.seeded, "seeds", "a seeded answer does not say so")
    expect(
        not release(fitted, rows, sampler=SecureSampler()).receipt.seeded,
        "seeds",
        "an answer with noise from the operating system says that it was seeded",
    )
    with case.ledger(fitted.guarantee) as ledger:
        try:
            release(fitted, rows, sampler=SeededSampler(0), ledger=ledger, scope=SCOPE)
        except ValueError:
            expect(spent(ledger)[1] == 0, "seeds", "a seeded answer was charged")
        else:
            expect(False, "seeds", "a seeded answer was booked")
