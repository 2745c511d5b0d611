"""An anytime-valid test of a privacy claim: draws may be looked at one by one, and stopped at will.

A claim is a null hypothesis about one pair of neighbours (D, D'): "the mechanism M is (epsilon,
delta)-private for this pair", or the stronger "M is mu-GDP for this pair", which is what a stated
amount of Gaussian noise says. A gambler who knows the claim bets against it. Under the claim no
bet is better than fair, so a gambler who becomes rich has refuted it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter

Coins = npt.NDArray[np.bool_]
Draw = Callable[[Coins], npt.ArrayLike]
"""From coins, shape (n,), to one output each, shape (n,) or (n, d): of D for True, D' for False."""

_RATIOS = (1.25, 1.5, 2.0, 4.0)
"""Believed odds of a right guess are e^epsilon to these powers."""

_LEAST_GAP = 0.5
"""For epsilon below it the believed odds keep the distance from the claim that they have here."""

_FRACTIONS = (0.1, 0.3, 0.6, 0.9)
"""Shares of the wealth that a bet against Gaussian noise risks."""

_GAUSSIAN_POINTS = (0.0, 0.5, 1.0)
"""Points of the mu-GDP curve that are tested, in epsilon / mu."""

_PAIRED = (0.35, 0.2, 0.08, 0.02)
"""Upper and lower ranks of the past scores beyond which the coin is guessed, as heads and tails."""

_SINGLE = (0.1, 0.02)
"""Ranks beyond which one side of the coin is guessed, and the other never."""

_FIRST_BET = 16
"""Draws before the first bet, where thresholds are learnt. They are learnt anew when the number of
draws has doubled."""

_REMEMBERED = 2**14
"""Latest draws that thresholds and the linear score are learnt from."""

_AT_ONCE = 2**12
"""Draws whose wealths are held at once."""

_CORRELATED = 256
"""Up to so many numbers in an output, the linear score takes their correlations into account."""

_TRIM = 0.01
"""Share of the past values on either side that scores trim, so that no outlier rules."""

_COINS = 0xC01
_RIDGE = 0.01
_TINY = 1e-100
_LARGEST = 1e100
_MOST_RISKED = 1.0 - 2.0**-40


class SequentialTest:
    """A test of a claim that may be stopped at any time, for any reason.

    Feed it with fair coins and outputs: for each draw a fresh fair coin chooses D (True) or D'
    (False), and the output is what the mechanism answers there. Before each draw the test has
    settled, from earlier draws alone, for which outputs it will guess the coin, and how much it
    stakes. So nothing that a caller passes can make it guess by the draw that it bets on, and its
    result does not depend on how the draws are cut into batches.

    Guarantee:
        If the claim holds for the pair, ``refuted`` ever becomes true with probability at most
        ``alpha``, however long the test runs and whoever stops it. Coins must be fair, and an
        output must depend on nothing but its coin, the mechanism's fresh noise and earlier draws.
        A claim that is not refuted is not shown to hold.

    *Why.* Let O be the output and H, T the events that the coin is heads (D) and tails (D'). For
    disjoint sets A, B of outputs, chosen from the past, and k = 2 put ::

        Z = 2 [O in A] ([H] - e^epsilon [T]) + 2 [O in B] ([T] - e^epsilon [H]) - k delta.

    The coin is fair and fresh, so E Z = P(A) - e^epsilon Q(A) + Q(B) - e^epsilon P(B) - k delta
    given the past, with P and Q the laws of the output on D and D'. An (epsilon, delta)-private
    mechanism has P(A) - e^epsilon Q(A) <= delta and Q(B) - e^epsilon P(B) <= delta, so E Z <= 0.
    Where B is empty always, or A is, k = 1 will do. Since Z >= -2 (e^epsilon + delta), the factor
    1 + lambda Z stays positive for 0 <= lambda < 1 / (2 (e^epsilon + delta)), and its mean given
    the past is at most 1. The product W of these factors is a nonnegative supermartingale that
    starts at 1. An average of such products with fixed weights is one again. By Ville's
    inequality P(W ever reaches 1 / alpha) <= alpha. Factors of 1, while thresholds are learnt,
    change nothing.

    *Gaussian noise.* A mechanism is mu-GDP for the pair if and only if it is (epsilon,
    delta_mu(epsilon))-private for it at every epsilon >= 0, in both directions. This is the same
    as P(E) <= Phi(Phi^-1(Q(E)) + mu) for every event E. Each point of the curve gives wealths as
    above, and their average over points is a supermartingale under the claim.

    Args:
        epsilon, delta: the claim; None where ``mu`` is given. ``delta`` is in [0, 1).
        mu: the claim that the mechanism is mu-GDP, such as one Gaussian sum of l2 sensitivity
            mu times the noise's standard deviation; above 0, or None.
        alpha: chance of refuting a claim that holds, in (0, 1).
        thresholds: numbers t >= 0. Scores of at least t guess D, of at most -t guess D'. None
            learns thresholds from the past, which costs the first 16 draws.

    Attributes:
        draws: how many draws were fed.
        refuted_after: the number of draws after which the claim was refuted, or None.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> coins = rng.random(1000) < 0.5
        >>> right = rng.random(1000) < 0.95  # a mechanism of epsilon log(19)
        >>> test = SequentialTest(epsilon=1.0, delta=0.0, alpha=0.05)
        >>> test.update(coins, np.where(right, coins, ~coins))
        True
        >>> test.refuted_after < 100
        True

    Edge cases:
        Scores may be infinite, and NaN is refused. A constant score loses nothing where delta is
        0. Claims whose epsilon is large need at least ``least_draws``.

    References:
        - Ville (1939), "Étude critique de la notion de collectif", Gauthier-Villars, the
          inequality.
        - Ramdas, Grünwald, Vovk and Shafer (2023), "Game-theoretic statistics and safe
          anytime-valid inference", arXiv:2210.01948, tests by betting.
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary
          2.13 (the curve of mu-GDP).

    See Also:
        reticent.audit.refute: draws until a claim is refuted or time is up.
        reticent.audit.epsilon_lower_bound: a lower bound on epsilon from a fixed number of runs.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        mu: float | None = None,
        alpha: float,
        thresholds: npt.ArrayLike | None = None,
    ) -> None:
        self.epsilon, self.delta, self.mu = epsilon, delta, mu
        self.alpha = probability(alpha, name="alpha", allow_zero=False)
        points, risked = _bets(epsilon, delta, mu)
        self._fixed = thresholds is not None
        if thresholds is None:
            sides = [2] * (1 + len(_PAIRED)) + [1] * 2 * (1 + len(_SINGLE))
            self._high = self._low = np.full(len(sides), np.nan)
        else:
            levels = np.asarray(thresholds, dtype=np.float64)
            if levels.ndim != 1 or not len(levels) or not bool((levels >= 0).all()):
                raise InvalidInput("thresholds: expected a list of numbers of at least 0")
            sides = [2] * len(levels)
            self._high, self._low = levels, -levels
        # Half of the weight is on guesses of either side, where there are others.
        kinds = np.array(sides)
        weights = np.where(kinds == 2, 1.0 / (kinds == 2).sum(), 1.0 / max(1, (kinds == 1).sum()))
        # Shape (3, events, bets), where a bet is a point of the curve with a stake. The wealth of
        # an event and a bet depends only on how many guesses were right, wrong, and not made.
        self._payoffs = np.stack(
            [
                np.concatenate([_log_payoffs(*point, risked, side) for point in points], axis=1)
                for side in sides
            ],
            axis=1,
        )
        self._log_weights = np.log(weights / weights.sum() / self._payoffs.shape[2])[:, None]
        self._counts = np.zeros((3, len(sides)))
        self._past: list[tuple[Coins, Array]] = []
        self._score: LinearScore | None = None
        self._shape: tuple[int, ...] | None = None
        self._learnt = False
        self.draws = 0
        self.refuted_after: int | None = None

    def update(self, coins: npt.ArrayLike, outputs: npt.ArrayLike) -> bool:
        """Bet on further draws, and return whether the claim is refuted by now.

        Args:
            coins: shape (n,), bool; True where D was drawn from.
            outputs: shape (n,), a score of each answer that is large where D is likely; or (n, d),
                answers as numbers, of which a linear score is learnt from earlier draws.

        Raises:
            InvalidInput: other shapes or types, or NaN.
        """
        heads, values = self._checked(coins, outputs)
        start = 0
        while start < len(heads):
            end = min(len(heads), start + min(self._until_learning(), _AT_ONCE))
            self._bet(heads[start:end], values[start:end])
            start = end
        return self.refuted

    @property
    def log_wealth(self) -> float:
        """Logarithm of the wealth after all draws."""
        return float(self._logs(self._counts[:, None])[0])

    @property
    def wealth(self) -> float:
        """Wealth after all draws, of one unit at the start; infinite beyond doubles."""
        return math.exp(self.log_wealth) if self.log_wealth < 700 else math.inf

    @property
    def refuted(self) -> bool:
        """Whether the wealth has ever reached 1 / alpha."""
        return self.refuted_after is not None

    @property
    def least_draws(self) -> int:
        """Draws that any test of this claim needs at this alpha, even where every output gives its
        coin away. A mechanism for which the claim holds lets the coin be guessed with a chance of
        up to p = (e^epsilon + delta) / (1 + e^epsilon), or Phi(mu / 2). So n right guesses have a
        chance of up to p^n, and a test that rejects them needs p^n <= alpha.

        Example:
            >>> SequentialTest(epsilon=5.0, delta=0.0, alpha=0.05).least_draws
            447
        """
        epsilon, delta = (
            (0.0, _gaussian_delta(self.mu, 0.0))
            if self.mu is not None
            else (self.epsilon, self.delta)
        )
        assert epsilon is not None
        assert delta is not None
        wrong = (1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0)))
        return max(1, math.ceil(math.log(self.alpha) / math.log1p(-wrong)))

    def describe(self) -> str:
        """Return the claim and what became of it, as one sentence."""
        claim = (
            f"({self.epsilon:g}, {self.delta:g})-privacy" if self.mu is None else f"{self.mu:g}-GDP"
        )
        if self.refuted_after is not None:
            return (
                f"refuted: {self.refuted_after} draws contradict {claim} of this pair; if it held, "
                f"that would happen with probability at most {self.alpha:g}"
            )
        if self.draws < self.least_draws:
            return (
                f"undecided: no test can refute {claim} by fewer than {self.least_draws} draws, "
                f"and there were {self.draws}"
            )
        return (
            f"not refuted: {self.draws} draws do not contradict {claim} of this pair; a test can "
            "refute a claim, never prove it"
        )

    def result(self, *, seconds: float) -> Refutation:
        """Return the result so far, after ``seconds`` of drawing."""
        return Refutation(
            refuted=self.refuted,
            draws=self.draws,
            wealth=self.wealth,
            seconds=seconds,
            alpha=self.alpha,
            least_draws=self.least_draws,
            summary=self.describe(),
        )

    def _checked(self, coins: npt.ArrayLike, outputs: npt.ArrayLike) -> tuple[Coins, Array]:
        heads, values = np.asarray(coins), np.asarray(outputs, dtype=np.float64)
        if heads.dtype != np.bool_ or heads.ndim != 1:
            raise InvalidInput(f"coins: expected shape (n,) of bool, got {heads.dtype}")
        if values.ndim not in (1, 2) or len(values) != len(heads):
            raise InvalidInput(
                f"outputs: expected shape ({len(heads)},) or ({len(heads)}, d), got {values.shape}"
            )
        if values.ndim == 2 and self._fixed:
            raise InvalidInput("thresholds: expected None where a score is learnt")
        if np.isnan(values).any():
            raise InvalidInput("outputs: contain NaN")
        if self._shape not in (None, values.shape[1:]):
            raise InvalidInput(f"outputs: expected the shape of earlier ones, got {values.shape}")
        self._shape = values.shape[1:]
        return heads, values

    def _until_learning(self) -> int:
        """Draws until the test learns anew: a function of the number of draws alone."""
        return max(_FIRST_BET, 1 << self.draws.bit_length()) - self.draws

    def _bet(self, coins: Coins, values: Array) -> None:
        """Bet on draws by events that were settled before them, then remember the draws."""
        scores = values if self._score is None else self._score(values)
        if self._fixed or self._learnt:
            heads = scores[:, None] >= self._high  # False where a side is NaN: never guessed
            tails = scores[:, None] <= self._low
            guessed = heads != tails  # where both would be guessed, neither is
            right = guessed & (heads == coins[:, None])
            steps = np.stack([right, guessed & ~right, ~guessed])
            counts = self._counts[:, None] + np.cumsum(steps, axis=1, dtype=np.float64)
            reached = self._logs(counts) >= -math.log(self.alpha)
            if self.refuted_after is None and bool(reached.any()):
                self.refuted_after = self.draws + int(reached.argmax()) + 1
            self._counts = counts[:, -1]
        self.draws += len(coins)
        if not self._fixed:
            self._past.append((coins, values))
            if self.draws >= _FIRST_BET and self.draws & (self.draws - 1) == 0:
                self._learn()

    def _learn(self) -> None:
        """Settle score and thresholds by the latest draws, for the draws to come."""
        coins, values = (
            np.concatenate(part)[-_REMEMBERED:] for part in zip(*self._past, strict=True)
        )
        self._past = [(coins, values)]
        if values.ndim == 2:
            self._score = linear_score(coins, values)
            values = self._score(values)
        ends = np.quantile(values, (_TRIM, 1.0 - _TRIM), method="inverted_cdf")
        inner = np.clip(np.clip(values, *ends), -_LARGEST, _LARGEST)
        both = bool(coins.any()) and not bool(coins.all())
        middle = (inner[coins].mean() + inner[~coins].mean()) / 2 if both else inner.mean()
        ranks = (*_PAIRED, *_SINGLE)
        top = np.quantile(values, [1.0 - rank for rank in ranks], method="inverted_cdf")
        bottom = np.quantile(values, ranks, method="inverted_cdf")
        pairs, never = len(_PAIRED), [np.nan] * (1 + len(_SINGLE))
        self._high = np.array([middle, *top[:pairs], middle, *top[pairs:], *never])
        self._low = np.array([middle, *bottom[:pairs], *never, middle, *bottom[pairs:]])
        self._learnt = True

    def _logs(self, counts: Array) -> Array:
        """Logarithm of the average wealth, shape (n,), from right, wrong and no guesses by event,
        shape (3, n, events).
        """
        logs = np.einsum("kne,kep->nep", counts, self._payoffs) + self._log_weights
        return np.asarray(np.logaddexp.reduce(logs.reshape(counts.shape[1], -1), axis=1))


@dataclass(frozen=True, kw_only=True)
class Refutation:
    """The result of ``refute``.

    Attributes:
        refuted: whether the claim was refuted at level ``alpha``.
        draws: the number of draws.
        wealth: the wealth after them, in units of the start.
        seconds: the time that it took.
        alpha: the chance of refuting a claim that holds.
        least_draws: the number of draws below which no test can refute this claim.
        summary: the result as one sentence.
    """

    refuted: bool
    draws: int
    wealth: float
    seconds: float
    alpha: float
    least_draws: int
    summary: str


def refute(
    draw: Draw,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    mu: float | None = None,
    alpha: float,
    seconds: float,
    draws: int | None = None,
    batch: int = 256,
    seed: int | None = None,
) -> Refutation:
    """Draw until a claim is refuted, or until time or draws are used up.

    Guarantee:
        That of ``SequentialTest``, whatever the time limit.

    Args:
        draw: gets fair coins, shape (n,) of bool, and returns an output for each: of D for True
            and of D' for False. Outputs are scores, shape (n,), large where D is likely; or
            numbers, shape (n, d), of which a score is learnt. It must use a coin for nothing but
            choosing between D and D'.
        epsilon, delta, mu, alpha: as for ``SequentialTest``.
        seconds: time limit, above 0; it is looked at after each batch.
        draws: most draws, or None.
        batch: draws at a time.
        seed: of the coins; None takes them from the operating system.

    Example:
        >>> def draw(coins):  # Laplace noise of scale 1/2, where epsilon = 1 needs 1
        ...     return np.where(coins, 1.0, 0.0) + noise.laplace(scale=0.5, size=len(coins))
        >>> noise = np.random.default_rng(0)
        >>> refute(draw, epsilon=1.0, delta=0.0, alpha=0.05, seconds=10.0, seed=0).refuted
        True

    Raises:
        InvalidInput, InvalidParameter: before anything is drawn, or outputs of another shape.

    See Also:
        reticent.audit.SequentialTest: the same, fed by the caller.
        reticent.audit.audit_records: through ``fit`` and ``release`` of an estimator.
    """
    test = SequentialTest(epsilon=epsilon, delta=delta, mu=mu, alpha=alpha)
    positive(seconds, name="seconds")
    most = None if draws is None else count(draws, name="draws")
    count(batch, name="batch")
    # Another stream than a caller's own generator of that seed, which may draw the outputs.
    words = None if seed is None else [count(seed, name="seed", minimum=0), _COINS]
    start = time.monotonic()
    random = np.random.default_rng(words)
    for coins, outputs in coin_runs(draw, seconds=seconds, runs=most, batch=batch, random=random):
        if test.update(coins, outputs):
            break
    return test.result(seconds=time.monotonic() - start)


def coin_runs(
    draw: Draw,
    *,
    seconds: float | None,
    runs: int | None,
    batch: int,
    random: np.random.Generator,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[Coins, npt.ArrayLike]]:
    """Yield fair coins and what ``draw`` returns for them, until runs or time are used up.

    Args:
        draw: as for ``refute``.
        seconds: time limit, which is looked at before each batch but the first, or None.
        runs: the number of all runs, or None.
        batch: runs at a time.
        random: of the coins.
        clock: of the time limit.
    """
    start, made = clock(), 0
    while runs is None or made < runs:
        if made and seconds is not None and clock() - start >= seconds:
            return
        coins = random.random(batch if runs is None else min(batch, runs - made)) < 0.5
        made += len(coins)
        yield coins, draw(coins.copy())


@dataclass(frozen=True)
class LinearScore:
    """A linear function of trimmed outputs.

    Attributes:
        low, high: ends that outputs are trimmed to, shape (d,).
        weights: shape (d,).
    """

    low: Array
    high: Array
    weights: Array

    def __call__(self, values: Array) -> Array:
        """Scores, shape (n,)."""
        return np.asarray(np.clip(values, self.low, self.high) @ self.weights)


def linear_score(coins: Coins, values: Array) -> LinearScore:
    """Return Fisher's discriminant of past coins, shape (n,), by outputs, shape (n, d)."""
    low, high = np.quantile(values, (_TRIM, 1.0 - _TRIM), axis=0, method="inverted_cdf")
    rare = low == high  # a value that is nearly always the same may still tell
    low, high = (
        np.where(rare, values.min(axis=0), low),
        np.where(rare, values.max(axis=0), high),
    )
    low, high = np.clip(low, -_LARGEST, _LARGEST), np.clip(high, -_LARGEST, _LARGEST)
    trimmed = np.clip(values, low, high)
    size, width = values.shape
    if not coins.any() or coins.all():
        return LinearScore(low, high, np.zeros(width))
    means = [trimmed[coins].mean(axis=0), trimmed[~coins].mean(axis=0)]
    rest = trimmed - np.where(coins[:, None], *means)
    spread = rest.std(axis=0)
    # A number that each side always gives alike tells everything where the sides differ.
    scale = np.where(spread > 0, spread, np.maximum(np.abs(means[0] - means[1]), _TINY))
    rest, change = rest / scale, (means[0] - means[1]) / scale
    if width > _CORRELATED:
        return LinearScore(low, high, change / scale)
    shrinkage = max(_RIDGE, width / (width + size))
    moments = (1.0 - shrinkage) * rest.T @ rest / size + shrinkage * np.eye(width)
    return LinearScore(low, high, np.linalg.solve(moments, change) / scale)


def _bets(
    epsilon: float | None, delta: float | None, mu: float | None
) -> tuple[list[tuple[float, float]], Array]:
    """Points (epsilon, delta) that are tested, and shares of the wealth that a bet risks."""
    if mu is not None:
        if epsilon is not None or delta is not None:
            raise InvalidParameter("mu: expected without epsilon and delta")
        positive(mu, name="mu")
        points = [(share * mu, _gaussian_delta(mu, share * mu)) for share in _GAUSSIAN_POINTS]
        return points, np.array(_FRACTIONS)
    if epsilon is None or delta is None:
        raise InvalidParameter("epsilon, delta: expected both, or mu alone")
    positive(epsilon, name="epsilon")
    probability(delta, name="delta")
    odds = epsilon + (np.array(_RATIOS) - 1.0) * max(epsilon, _LEAST_GAP)
    # At delta 0 this pays p1 / p0 for a right guess and (1 - p1) / (1 - p0) for a wrong one, with
    # p0 = e^epsilon / (1 + e^epsilon) and p1 the chance of those odds.
    risked = -np.expm1(np.logaddexp(0.0, epsilon) - np.logaddexp(0.0, odds))
    return [(epsilon, delta)], np.minimum(risked, _MOST_RISKED)


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of mu-GDP at ``epsilon``, rounded up."""
    return gaussian_delta(noise_multiplier=1.0 / mu, epsilon=epsilon)


def _log_payoffs(epsilon: float, delta: float, risked: Array, sides: int) -> Array:
    """Logarithms of 1 + lambda Z for a right guess, a wrong one and none, shape (3, stakes), with
    lambda = risked / (2 (e^epsilon + delta)).
    """
    small = math.exp(-epsilon)
    stake = risked / (1.0 + delta * small)  # lambda times 2 e^epsilon
    paid = 0.5 * sides * delta * small
    return np.log1p(np.stack([stake * (small - paid), -stake * (1.0 + paid), -stake * paid]))
