"""A test of anybody's privacy claim: run what is claimed to be private on neighbours, and bet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reticent.accounting.exact_gaussian import gaussian_epsilon
from reticent.audit.implementation import Finding, implementation_findings
from reticent.audit.neighbour_pairs import NeighbourPair, checked_pairs
from reticent.audit.outputs import OutputCode, Raised, leaves
from reticent.audit.sequential import Coins, Draw, SequentialTest
from reticent.audit.stated_noise import ScaleTest, reachable_laplace
from reticent.audit.subjects import FunctionSubject, RecordedScores, Subject
from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput
from reticent.training.progress import Report, silent

_FIRST_BATCH, _BATCH = 8, 64
"""Draws of a pair at once. The first ones are not bet on: they say what answers look like."""

_ALIKE = 20
"""Answers of each side from which on it is said that all were alike."""

_ALIKE_KIND = "answers that never varied"

_TURNS = 200
"""Draws of every pair before they go where the wealth is."""

_NOT_TRIED = (
    "neighbours that were not tried, other settings, other versions, and what other releases about "
    "the same data add up to"
)

_CLAIM_COINS = 0xC1A

_ROUNDED = 1.0 + 1e-6
"""Above a claim by more than this factor is more than rounding."""

_SCALE_BATCHES, _SCALE_DRAWS = 10, 20
_POROUS_DRAWS = 200


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """The result of the draws of one pair of neighbours.

    Attributes:
        name: the neighbours, in words.
        draws: the number of draws.
        refuted: whether they refute the claim at level ``alpha``.
        wealth: the wealth of the bets after them, in units of the start.
        alpha: this pair's share of the level.
        least_draws: the number of draws below which no test can refute this claim.
        excluded: the largest epsilon that is excluded at the claimed delta, 0 for none.
        event: the outputs that gave the neighbours away, in words.
    """

    name: str
    draws: int
    refuted: bool
    wealth: float
    alpha: float
    least_draws: int
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
    alpha: float
    pairs: tuple[PairResult, ...]
    draws: int
    seconds: float
    refuted: bool
    mu: float | None = None
    source: str = ""
    noise: str | None = None
    noise_refuted: bool = False
    findings: tuple[Finding, ...] = ()
    replay: str = ""
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
                f"{worst.draws} draws of this pair, by {worst.event}. If the claim held, "
                f"this would happen with probability at most {self.alpha:g}."
            )
        elif self.noise_refuted:
            words = f"refuted: {self.noise}."
        else:
            least = worst.least_draws
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
        seconds: the time limit of the draws, and again of ``implementation``, or None.
        seed: seed of the coins, never of the subject. None takes them from the operating system.
        implementation: whether to look beside the value too: forked processes, time, state,
            exceptions. Each finding is one at level ``alpha`` by itself.
        exact: a function from a data set to the answer before the noise, if the subject shows it.
        sensitivity: the stated l1 sensitivity of the answer before the noise. It is compared with
            what ``exact`` shows, and the exact epsilon of stated ``noise`` for it with the claim.
        source: the sentence that states the claim, for the report.
        replay: the command that repeats the audit, for the report. Empty names this call.
        report: function that is told of the state after each batch.

    Raises:
        InvalidInput, InvalidParameter: an argument is refused before anything is drawn, an answer
            is of an unknown kind, a command or address does not answer, or a subject raises at
            every first draw.

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
    raised = _Raised(2 * _FIRST_BATCH * len(pairs))
    asked = [_Asked(run, pair, raised) for pair in pairs]
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
    start, at = time.monotonic(), 1e-5 if delta is None else delta
    if not replay:
        stated = f"epsilon={epsilon}, delta={delta}" if mu is None else f"mu={mu}"
        replay = f"claim({run.name}, ..., {stated}, alpha={alpha:g}, draws={draws}, seed={seed})"
    if sensitivity is not None:
        positive(sensitivity, name="sensitivity")
    if scales is not None:
        _test_scale(run, pairs[0], scales)
    made, refuted = bet_on(
        books, draws=most, seconds=seconds, batch=_BATCH, level=level, random=random, report=report
    )
    found: list[Finding] = []
    if implementation:
        found += implementation_findings(
            run,
            pairs[0],
            epsilon=epsilon if epsilon is not None else mu or 1.0,
            delta=at,
            alpha=alpha,
            replay=replay,
            seconds=seconds,
        )
    if scales is not None and sensitivity is not None:
        found += _law_findings(scales, sensitivity, epsilon, at, mu, pairs[0].name, replay)
    found += _exact_findings(pairs, exact, sensitivity, noise, run, replay)
    found += [finding for one in asked for finding in one.oddities(replay)]
    if all(one.never_varied and one.seen[0] == one.seen[1] for one in asked):
        event = f"{made} answers were all alike: the neighbours that were tried test nothing"
        found.append(Finding(kind=_ALIKE_KIND, witness="all pairs", event=event, replay=replay))
    for text, times in getattr(run, "warned", {}).items():
        event = f"{times} times: {text}"
        found.append(Finding(kind="a warning", witness="any draw", event=event, replay=replay))
    noise_refuted = scales is not None and scales.refuted
    return ClaimAudit(
        subject=run.name,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        source=source,
        alpha=alpha,
        pairs=results_of(books, delta=at),
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
        draw: from coins to outputs, as for ``bet``.
        test: of the claim, at the level of this pair's share.
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


def results_of(books: list[Book], *, delta: float) -> tuple[PairResult, ...]:
    """Return what each book shows, with the epsilon that is excluded at ``delta``."""
    return tuple(
        PairResult(
            name=book.name,
            draws=book.test.draws,
            refuted=book.test.refuted,
            wealth=book.test.wealth,
            alpha=book.test.alpha,
            least_draws=book.test.least_draws,
            excluded=book.test.excluded(delta=delta),
            event=book.test.leading(),
        )
        for book in books
    )


@dataclass(eq=False)
class _Raised:
    """Counts the answers of all pairs that were exceptions."""

    least: int
    answers: int = 0
    raised: int = 0

    def count(self, answers: list[Any]) -> None:
        """Raise InvalidInput where nothing but exceptions came."""
        self.answers += len(answers)
        self.raised += sum(isinstance(one, Raised) for one in answers)
        if self.raised == self.answers >= self.least:
            raise InvalidInput(
                f"subject: raised {answers[-1].kind} at each of the first {self.answers} draws; "
                "call it once on one of the neighbours"
            )


@dataclass(eq=False)
class _Asked:
    """A subject that is asked about one pair, and what was odd in its answers."""

    run: Subject
    pair: NeighbourPair
    raised: _Raised
    code: OutputCode = field(default_factory=OutputCode)
    odd: dict[str, list[int]] = field(default_factory=dict)
    sides: list[int] = field(default_factory=lambda: [0, 0])
    seen: tuple[set[bytes], set[bytes]] = field(default_factory=lambda: (set(), set()))

    def draw(self, coins: Coins) -> Array:
        answers = self.run.answers([self.pair.copied(coin) for coin in coins])
        self.raised.count(answers)
        rows = self.code(answers)
        for coin, answer, row in zip(coins.tolist(), answers, rows, strict=True):
            side = 0 if coin else 1
            self.sides[side] += 1
            if len(self.seen[side]) < 2:
                self.seen[side].add(row.tobytes())
            kind = _oddity(answer)
            if kind is not None:
                self.odd.setdefault(kind, [0, 0])[side] += 1
        return rows

    @property
    def never_varied(self) -> bool:
        """Whether all answers of either side were alike, and many."""
        return min(self.sides) >= _ALIKE and max(map(len, self.seen)) == 1

    def oddities(self, replay: str) -> list[Finding]:
        """Return answers that never varied, and exceptions and NaN of one neighbour alone."""
        found = []
        if self.never_varied and self.seen[0] != self.seen[1]:
            event = (
                f"{self.sides[0]} answers about the first were all alike, {self.sides[1]} about "
                "the second too, and different from them"
            )
            found.append(self._finding(_ALIKE_KIND, event, replay))
        for kind, (first, second) in self.odd.items():
            # Six of one side and none of the other: a chance of 1 / 32 by coins alone, per kind.
            if min(first, second) == 0 and max(first, second) >= 6:
                event = (
                    f"{kind}: {first} of {self.sides[0]} answers about the first, {second} of "
                    f"{self.sides[1]} about the second"
                )
                found.append(
                    self._finding("an answer that only one neighbour gives", event, replay)
                )
        return found

    def _finding(self, kind: str, event: str, replay: str) -> Finding:
        return Finding(kind=kind, witness=self.pair.name, event=event, replay=replay)


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


def _test_scale(run: Subject, pair: NeighbourPair, scales: ScaleTest) -> None:
    for _ in range(_SCALE_BATCHES):
        answers = run.answers([pair.copied(True) for _ in range(_SCALE_DRAWS)])
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


def _law_findings(
    scales: ScaleTest,
    sensitivity: float,
    epsilon: float | None,
    delta: float,
    mu: float | None,
    witness: str,
    replay: str,
) -> list[Finding]:
    """What noise of the stated law and scale is worth for answers ``sensitivity`` apart: a finding
    if it is too small for the claim, whatever was drawn.
    """
    ratio, gaussian = sensitivity / scales.scale, scales.law == "gaussian"
    exact = (
        gaussian_epsilon(noise_multiplier=1.0 / ratio, delta=delta)
        if gaussian
        else max(0.0, ratio + 2.0 * math.log1p(-delta))  # delta is 1 - exp((epsilon - ratio) / 2)
    )
    too_small = ratio > mu * _ROUNDED if mu is not None else exact > (epsilon or 0.0) * _ROUNDED
    if not too_small or (mu is not None and not gaussian):
        return []
    claimed = f"mu {mu:g}" if mu is not None else f"epsilon {epsilon:g}"
    shown = f"mu {ratio:.4g}" if mu is not None else f"epsilon {exact:.4g} at delta {delta:g}"
    return [
        Finding(
            kind="stated noise that is too small for the claim",
            witness=witness,
            event=f"{scales.law} noise of scale {scales.scale:g} for answers {sensitivity:g} apart "
            f"has {shown}, by its law alone; the claim is {claimed}",
            replay=replay,
        )
    ]


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
            sides = [
                np.array(leaves(exact(pair.copied(first))), dtype=float) for first in (True, False)
            ]
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
        centers = [float(exact(pair.copied(first))) for first in (True, False)]
        copies = [pair.copied(True) for _ in range(_POROUS_DRAWS)]
        answers = [float(one) for one in run.answers(copies)]
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
