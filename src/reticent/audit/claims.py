"""A test of anybody's privacy claim: run what is claimed to be private on neighbours, and bet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reticent.audit.implementation import Finding, implementation_findings
from reticent.audit.neighbour_pairs import NeighbourPair, checked_pairs
from reticent.audit.outputs import OutputCode, Raised, leaves
from reticent.audit.sequential import Coins, Draw, Refutation, SequentialTest
from reticent.audit.stated_noise import ScaleTest, reachable_laplace
from reticent.audit.subjects import FunctionSubject, RecordedScores, Subject
from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput
from reticent.training.progress import Report, silent

_FIRST_BATCH, _BATCH = 8, 64
"""Draws of a pair at once. The first ones are not bet on: they say what answers look like."""

_TURNS = 200
"""Draws of every pair before they go where the wealth is."""

_NOT_TRIED = (
    "neighbours that were not tried, other settings, other versions, and what other releases about "
    "the same data add up to"
)

_CLAIM_COINS = 0xC1A

_SCALE_BATCHES, _SCALE_DRAWS = 10, 20
_POROUS_DRAWS = 200


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """The result of the draws of one pair of neighbours.

    Attributes:
        name: the neighbours, in words.
        claimed: the test of the claim, at the level of this pair's share.
        excluded: the largest epsilon that is excluded at the claimed delta, 0 for none.
        event: the outputs that gave the neighbours away, in words.
    """

    name: str
    claimed: Refutation
    excluded: float
    event: str


@dataclass(frozen=True, kw_only=True)
class ClaimAudit:
    """The result of ``claim``, ``audit_fitted`` and ``audit_records``. It is as private as the data
    sets.

    Attributes:
        subject: name of what was run.
        epsilon, delta, mu: the claim, None where it is none of these.
        source: the sentence or place that the claim was taken from, empty where none was given.
        alpha: the chance of refuting a claim that holds, of all tests of the claim together.
        pairs: results of each pair of neighbours, the one that tells most first.
        noise: the test of noise whose law is stated, in words, or None where none is.
        noise_refuted: whether that noise is smaller than stated.
        findings: findings beside the value, each with its witness and how to see it again.
        draws: the number of draws of all pairs.
        seconds: the time that it took.
        replay: the command or call that repeats the audit.
        refuted: whether the claim, or the noise that it states, cannot stand.
        not_examined: the assumptions that the audit takes on trust, in words.
    """

    subject: str
    epsilon: float | None
    delta: float | None
    mu: float | None
    source: str
    alpha: float
    pairs: tuple[PairResult, ...]
    noise: str | None
    noise_refuted: bool
    findings: tuple[Finding, ...]
    draws: int
    seconds: float
    replay: str
    refuted: bool
    not_examined: str = _NOT_TRIED

    @property
    def excluded(self) -> float:
        """The largest epsilon that is excluded at the claimed delta (1e-5 for mu), 0 for none."""
        return max(pair.excluded for pair in self.pairs)

    @property
    def claim_words(self) -> str:
        """The claim in words."""
        if self.mu is not None:
            return f"{self.mu:g}-Gaussian differential privacy"
        return f"epsilon={self.epsilon:g}, delta={self.delta:g}"

    @property
    def summary(self) -> str:
        """The result as one paragraph."""
        worst, tried = self.pairs[0], len(self.pairs)
        pairs = f"{tried} pair{'s' if tried > 1 else ''} of neighbours"
        if self.refuted and not self.noise_refuted:
            words = (
                f"refuted: {worst.name} is told apart better than {self.claim_words} allows, after "
                f"{worst.claimed.draws} draws of this pair, by {worst.event}. If the claim held, "
                f"this would happen with probability at most {self.alpha:g}."
            )
        elif self.noise_refuted:
            words = f"refuted: {self.noise}."
        else:
            least = worst.claimed.least_draws
            words = (
                f"not refuted by {self.draws} draws of {pairs}; the claim is {self.claim_words}. "
                "An audit refutes a claim or does not, and it speaks only of the pairs it tried."
            )
            if self.draws < least:
                words += f" No test can refute this claim by fewer than {least} draws of one pair."
            if self.epsilon is not None and self.epsilon > 4:
                words += (
                    " For an epsilon above 4 audit the components, each with its own smaller claim."
                )
        if self.excluded > 0:
            words += (
                f" The largest epsilon that is excluded is {self.excluded:.3g} (level "
                f"{self.alpha:g})."
            )
        if self.findings:
            kinds = ", ".join(dict.fromkeys(finding.kind for finding in self.findings))
            words += f" Beside the value: {kinds}."
        return words


def claim(
    subject: Callable[[Any], Any] | Subject,
    *,
    neighbours: Iterable[Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    noise: tuple[str, float] | None = None,
    alpha: float,
    draws: int,
    seconds: float | None = None,
    seed: int | None = None,
    implementation: bool = False,
    exact: Callable[[Any], Any] | None = None,
    sensitivity: float | None = None,
    source: str = "",
    replay: str = "",
    report: Report = silent,
) -> ClaimAudit:
    """Test a stated guarantee of anything that answers about a data set.

    For each draw a fair coin chooses one of two neighbours, the subject answers afresh, and a test
    that may be stopped at any time bets on the coin (``SequentialTest``). Draws go more often to
    the pairs that earlier draws told apart. The audit ends when the claim is refuted, or when draws
    or seconds are used up.

    Guarantee:
        If the subject is as private as claimed between the neighbours of every pair that is tried,
        and its noise is as stated, the result is refuted with probability at most ``alpha``.
        Answers must be independent given their data sets. An audit gives no guarantee for
        neighbours that it did not try.

        **The audit protects nothing.** Every draw is a further release about the data sets. Use
        synthetic ones, or keep the result to their owner.

    *Several pairs.* Each pair's wealth is a supermartingale under the claim, and the past decides
    which pair is drawn next. So their average with equal weights is one, and a wealth of
    1 / alpha of this average refutes the claim for one of the pairs.

    Args:
        subject: a callable of one data set, or a ``Subject``: a command, an estimator, an address,
            recorded scores.
        neighbours: pairs (first, second), or objects with these keys. None for recorded scores.
        epsilon, delta: the claim, None where ``mu`` is given.
        mu: the claim that the subject is mu-GDP, None where epsilon and delta are given.
        noise: the law and the scale that are stated for one number: ("gaussian", sigma) or
            ("laplace", scale). It is tested on answers to the first data set, at half of ``alpha``.
        alpha: the chance of refuting a claim that holds, in (0, 1).
        draws: the most draws.
        seconds: the time limit, or None.
        seed: seed of the coins, never of the subject. None takes them from the operating system.
        implementation: whether to look beside the value too: forked processes, time, state,
            exceptions. Each finding is one at level ``alpha`` by itself.
        exact: a function from a data set to the answer before the noise, if the subject shows it.
        sensitivity: the stated l1 sensitivity of ``exact``, to be compared with what pairs show.
        source: the sentence that states the claim, for the report.
        replay: the command that repeats the audit, for the report.
        report: function that is told of the state after each batch.

    Raises:
        InvalidInput, InvalidParameter: an argument is refused before anything is drawn, an answer
            is
            of an unknown kind, or a command or address does not answer.

    Example:
        >>> noise = np.random.default_rng(0)
        >>> def mean_age(ages):  # claims epsilon 1 for ages up to 100, with half the noise
        ...     return sum(ages) / 10 + noise.laplace(scale=5.0)
        >>> found = claim(
        ...     mean_age, neighbours=[([100] * 10, [100] * 9)],
        ...     epsilon=1.0, delta=0.0, alpha=0.01, draws=4000, seed=0,
        ... )
        >>> found.refuted, found.excluded >= 1.0
        (True, True)

    See Also:
        reticent.audit.SequentialTest: the test, and its proof.
        reticent.audit.audit_records: of our own methods that protect records.
    """
    run: Subject = subject if hasattr(subject, "answers") else FunctionSubject(subject)  # type: ignore[assignment]
    if neighbours is None:
        if not isinstance(run, RecordedScores):
            raise InvalidInput("neighbours: expected pairs of data sets, got none")
        neighbours = [("first", "second")]
    pairs = checked_pairs(neighbours)
    most = count(draws, name="draws")
    if isinstance(run, RecordedScores):
        most = min(most, run.fair)
    if seconds is not None:
        positive(seconds, name="seconds")
    level = probability(alpha, name="alpha", allow_zero=False) / (1 if noise is None else 2)
    asked = [_Asked(run, pair) for pair in pairs]
    books = [
        Book(
            one.pair.name,
            one.draw,
            SequentialTest(epsilon=epsilon, delta=delta, mu=mu, alpha=level / len(pairs)),
        )
        for one in asked
    ]
    scales = ScaleTest(noise[0], scale=noise[1], alpha=level) if noise is not None else None
    words = None if seed is None else [count(seed, name="seed", minimum=0), _CLAIM_COINS]
    random = np.random.default_rng(words)
    start = time.monotonic()
    if scales is not None:
        _test_scale(run, pairs[0].first, scales)
    made, refuted = bet_on(
        books, draws=most, seconds=seconds, batch=_BATCH, level=level, random=random, report=report
    )
    at = 1e-5 if delta is None else delta
    found: list[Finding] = []
    if implementation:
        found += implementation_findings(
            run,
            pairs[0],
            epsilon=epsilon if epsilon is not None else mu or 1.0,
            delta=at,
            alpha=alpha,
            replay=replay,
        )
    found += _exact_findings(pairs, exact, sensitivity, noise, run, replay)
    found += [finding for one in asked for finding in one.oddities(replay)]
    noise_refuted = scales is not None and scales.refuted
    return ClaimAudit(
        subject=run.name,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        source=source,
        alpha=alpha,
        pairs=results_of(books, delta=at, seconds=time.monotonic() - start),
        noise=None if scales is None else _scale_words(scales),
        noise_refuted=noise_refuted,
        findings=tuple(found),
        draws=made,
        seconds=time.monotonic() - start,
        replay=replay,
        refuted=refuted or noise_refuted,
    )


@dataclass(frozen=True, eq=False)
class Book:
    """A pair of neighbours that is bet on.

    Attributes:
        name: which neighbours.
        draw: function from coins to outputs, as ``refute`` takes it.
        test: test of the claim, at the level of this pair's share.
    """

    name: str
    draw: Draw
    test: SequentialTest


def bet_on(
    books: list[Book],
    *,
    draws: int,
    seconds: float | None,
    batch: int,
    level: float,
    random: np.random.Generator,
    report: Report,
) -> tuple[int, bool]:
    """Bet on several pairs until one of them, or their average, refutes the claim.

    Args:
        books: books of the pairs, sorted by their wealth on return.
        draws: the most draws of all pairs.
        seconds: the time limit, which is looked at after each batch, or None.
        batch: draws of a pair at once, from its second turn on.
        level: the chance of refuting a claim that holds for every pair.
        random: source of the coins.
        report: function that is told of the state after each batch.

    Returns:
        The number of draws that were made, and whether the claim is refuted.
    """
    start, made = time.monotonic(), 0
    while made < draws and not _refuted(books, level):
        if seconds is not None and made and time.monotonic() - start >= seconds:
            break
        book = _next(books, random)
        size = min(batch if book.test.draws else _FIRST_BATCH, draws - made)
        coins = random.random(size) < 0.5
        book.test.update(coins, book.draw(coins.copy()))
        made += size
        report("draws", made, draws, float("nan"))
    refuted = _refuted(books, level)
    books.sort(key=lambda book: -book.test.log_wealth)
    return made, refuted


def results_of(books: list[Book], *, delta: float, seconds: float) -> tuple[PairResult, ...]:
    """Return what each book shows, with the epsilon that is excluded at ``delta``."""
    return tuple(
        PairResult(
            name=book.name,
            claimed=book.test.result(seconds=seconds),
            excluded=book.test.excluded(delta=delta),
            event=book.test.leading(),
        )
        for book in books
    )


@dataclass(eq=False)
class _Asked:
    """A subject that is asked about one pair, and what was odd in its answers."""

    run: Subject
    pair: NeighbourPair
    code: OutputCode = field(default_factory=OutputCode)
    odd: dict[str, list[int]] = field(default_factory=dict)
    sides: list[int] = field(default_factory=lambda: [0, 0])

    def draw(self, coins: Coins) -> Array:
        answers = self.run.answers(
            [self.pair.first if coin else self.pair.second for coin in coins]
        )
        for coin, answer in zip(coins.tolist(), answers, strict=True):
            self.sides[0 if coin else 1] += 1
            kind = _oddity(answer)
            if kind is not None:
                self.odd.setdefault(kind, [0, 0])[0 if coin else 1] += 1
        return self.code(answers)

    def oddities(self, replay: str) -> list[Finding]:
        """Return exceptions and NaN that one neighbour gives and the other does not."""
        found = []
        for kind, (first, second) in self.odd.items():
            rates = first / max(1, self.sides[0]), second / max(1, self.sides[1])
            # Six of one side and none of the other: a chance of 1 / 32 by coins alone, per kind.
            if min(first, second) == 0 and max(first, second) >= 6:
                found.append(
                    Finding(
                        kind="an answer that only one neighbour gives",
                        witness=self.pair.name,
                        event=f"{kind}: {rates[0]:.3g} of the first, {rates[1]:.3g} of the second",
                        replay=replay,
                    )
                )
        return found


def _oddity(answer: Any) -> str | None:
    if isinstance(answer, Raised):
        return f"exception {answer.kind}"
    if isinstance(answer, float) and not math.isfinite(answer):
        return "NaN" if math.isnan(answer) else "infinity"
    return None


def _next(books: list[Book], random: np.random.Generator) -> Book:
    """Return the pair of the next batch: all in turn at first, then half of the time the
    richest.
    """
    fewest = min(books, key=lambda book: book.test.draws)
    if fewest.test.draws < _TURNS or random.random() < 0.5:
        return fewest
    return max(books, key=lambda book: book.test.log_wealth)


def _refuted(books: list[Book], level: float) -> bool:
    """Return whether a pair's wealth ever reached its share, or the pairs' average is 1 / level."""
    logs = np.array([book.test.log_wealth for book in books])
    average = float(np.logaddexp.reduce(logs)) - math.log(len(books))
    return average >= -math.log(level) or any(book.test.refuted for book in books)


def _test_scale(run: Subject, data_set: Any, scales: ScaleTest) -> None:
    for _ in range(_SCALE_BATCHES):
        answers = run.answers([data_set] * _SCALE_DRAWS)
        if not all(isinstance(one, int | float | np.number) for one in answers):
            raise InvalidInput("noise: expected an answer of one number")
        if scales.update([float(one) for one in answers]):
            return


def _scale_words(scales: ScaleTest) -> str:
    stated = f"{scales.law} noise of scale {scales.scale:g}"
    if scales.refuted_after is not None:
        return (
            f"{scales.refuted_after} answers to one data set have less than the stated {stated} "
            f"(level {scales.alpha:g})"
        )
    return f"{scales.draws} answers to one data set do not contradict the stated {stated}"


def _exact_findings(
    pairs: tuple[NeighbourPair, ...],
    exact: Callable[[Any], Any] | None,
    sensitivity: float | None,
    noise: tuple[str, float] | None,
    run: Subject,
    replay: str,
) -> list[Finding]:
    """Return what the answer before the noise shows.

    That is its sensitivity, and doubles that only one neighbour can give.
    """
    if exact is None:
        return []
    found = []
    if sensitivity is not None:
        changes = []
        for pair in pairs:
            sides = [np.array(leaves(exact(one)), dtype=float) for one in (pair.first, pair.second)]
            changes.append(float(np.abs(sides[0] - sides[1]).sum()))
        worst = int(np.argmax(changes))
        if changes[worst] > sensitivity * (1 + 1e-9):
            found.append(
                Finding(
                    kind="a sensitivity above what is stated",
                    witness=pairs[worst].name,
                    event=f"answers before the noise differ by {changes[worst]:g}, stated is "
                    f"{sensitivity:g}",
                    replay=replay,
                )
            )
    if noise is not None and noise[0] == "laplace":
        pair = pairs[0]
        centers = [float(exact(one)) for one in (pair.first, pair.second)]
        answers = [float(one) for one in run.answers([pair.first] * _POROUS_DRAWS)]
        own, other = (reachable_laplace(answers, exact=c, scale=noise[1]) for c in centers)
        only = int((own & ~other).sum())
        if own.all() and only:
            found.append(
                Finding(
                    kind="doubles that only one neighbour can give",
                    witness=pair.name,
                    event=f"{only} of {len(answers)} answers, such as "
                    f"{answers[int((own & ~other).argmax())]!r}, are sums of a textbook sampler "
                    "for the first neighbour and can never be for the second",
                    replay=replay,
                )
            )
    return found
