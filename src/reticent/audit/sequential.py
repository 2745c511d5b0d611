"""An anytime-valid test of a privacy claim: draws may be looked at one by one, and stopped at will.

A claim is a null hypothesis about one pair of neighbours (D, D'): "the mechanism M is (epsilon,
delta)-private for this pair", or the stronger "M is mu-GDP for this pair", which is what a stated
amount of Gaussian noise says. A gambler who knows the claim bets against it. Under the claim no
bet is better than fair, so a gambler who becomes rich has refuted it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.audit.beliefs import Atoms, Averaged, Boosted, Learner, Logistic, LowBits, Pooled
from reticent.core.arrays import Array
from reticent.core.checks import positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.training.progress import Report, silent

Coins = npt.NDArray[np.bool_]
Draw = Callable[[Coins], npt.ArrayLike]
"""From coins, shape (n,), to one output each, shape (n,) or (n, d): of D for True, D' for False."""

_MULTIPLES = (1.0, 1.5, 2.0)
"""The believed log odds are taken to be this many times what was learnt, the last at delta 0 alone.
"""

_STEPS = ((0.3, 2.0), (0.5, 2.0), (0.2, 4.0), (0.4, 4.0))
"""Bets that ignore how strong a belief is: from this many times epsilon on, the odds are taken to
be e^epsilon to that power.
"""

_ONE_SIDED = 0.5
"""Bets of power 2 on one side alone are placed from this many times epsilon on: what tells one side
may say nothing of the other.
"""

_LEAST_GAP = 0.5
"""For epsilon below it the odds of a step keep the distance from the claim that they have here."""

_FRACTIONS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of the wealth that a bet against a positive delta risks."""

_FROM = (0.8, 1.0, 1.25)
"""Such a bet is placed from this many times epsilon on."""

_GAUSSIAN_POINTS = (0.0, 0.5, 1.0)
"""Points of the mu-GDP curve that are tested, in epsilon / mu."""

_POINT_SHARES = np.array([0.4, 0.3, 0.3])
"""Their shares of the wealth."""

_PURE_WEIGHTS = np.array([0.05, 0.20, 0.10, 0.22, 0.30, 0.03, 0.04, 0.03, 0.03])
"""Shares of the bets at delta 0: those on beliefs, the steps, and one side alone.

They were fitted to geometric and staircase noise, to two numbers with Laplace noise, to histograms
of 5 and of 12 counts and to responses over 3 and 6 labels, at an epsilon of .5, 1, 1.5, 3 and 5,
then moved towards equal shares.
"""

_BELIEVED = np.array([0.2, 0.1])
"""Shares of the bets on beliefs where a delta is granted. The others share the rest evenly."""

_SIDE_WEIGHTS = np.array([0.8, 0.1, 0.1])
"""Shares of guesses of both sides, of heads alone and of tails alone, where a delta is granted."""

_LEVELS = np.concatenate([[1e-9], np.geomspace(0.02, 50.0, 200)])
"""Believed log odds are rounded down to one of these, or to 0."""

_FIRST_BET = 8
"""Draws before the first bet."""

_GROWTH = 1.2
"""Beliefs are learnt anew when there are this many times as many draws."""

_GROWTH_LATER, _LATER = 2.0, 2**11
"""The same from so many draws on, when learning anew changes little."""

_REMEMBERED = 2**15
"""Latest draws that beliefs are learnt from."""

_AT_ONCE = 2**11
"""Draws whose wealths are held at once."""

_SEARCHED = np.geomspace(0.01, 24.0, 240)
"""Values of epsilon among which ``excluded`` looks."""

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
        epsilon, delta: the claim, or None where ``mu`` is given. ``delta`` is in [0, 1).
        mu: the claim that the mechanism is mu-GDP, such as one Gaussian sum of l2 sensitivity
            mu times the noise's standard deviation. It is above 0, or None.
        alpha: chance of refuting a claim that holds, in (0, 1).
        beliefs: learners from the past of which outputs speak for D. None chooses by the first
            outputs.

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
        reticent.audit.claim: of anything that answers about a data set.
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        mu: float | None = None,
        alpha: float,
        beliefs: Sequence[Learner] | None = None,
    ) -> None:
        self.epsilon, self.delta, self.mu = epsilon, delta, mu
        self.alpha = probability(alpha, name="alpha", allow_zero=False)
        self._points = _points(epsilon, delta, mu)
        self._beliefs = None if beliefs is None else tuple(beliefs)
        self._belief: Pooled | None = None
        self._alone: Array = np.zeros((1, 1))
        # From a place (whether heads or tails are guessed, and how surely) and the coin to the
        # logarithm of each bet's factor, shape (places, 2, bets).
        parts = [_bets(*point) for point in self._points]
        self._payoffs = np.concatenate([payoffs for payoffs, _ in parts], axis=2)
        shares = _POINT_SHARES[: len(parts)] / _POINT_SHARES[: len(parts)].sum()
        self._bet_weights = np.concatenate(
            [weights + math.log(share) for (_, weights), share in zip(parts, shares, strict=True)]
        )
        self._logs = np.zeros(len(self._bet_weights))
        self._counts = np.zeros(self._payoffs.shape[:2])
        self._looks: list[Array] = []
        self._past: list[tuple[Coins, Array]] = []
        self._shape: tuple[int, ...] | None = None
        self._due = _FIRST_BET
        self.draws = 0
        self.refuted_after: int | None = None

    def update(self, coins: npt.ArrayLike, outputs: npt.ArrayLike) -> bool:
        """Bet on further draws, and return whether the claim is refuted by now.

        Args:
            coins: shape (n,), bool, True where D was drawn from.
            outputs: shape (n,) or (n, d), answers as numbers.

        Raises:
            InvalidInput: other shapes or types, or NaN.
        """
        heads, values = self._checked(coins, outputs)
        start = 0
        while start < len(heads):
            end = min(len(heads), start + min(_AT_ONCE, self._due - self.draws))
            self._bet(heads[start:end], values[start:end])
            start = end
        return self.refuted

    @property
    def log_wealth(self) -> float:
        """The logarithm of the wealth after all draws."""
        return float(_log_sum(self._logs[None] + self._bet_weights)[0])

    @property
    def wealth(self) -> float:
        """The wealth after all draws, of one unit at the start, infinite beyond doubles."""
        return math.exp(self.log_wealth) if self.log_wealth < 700 else math.inf

    @property
    def refuted(self) -> bool:
        """Whether the wealth has ever reached 1 / alpha."""
        return self.refuted_after is not None

    @property
    def least_draws(self) -> int:
        """The draws that any test of this claim needs at this alpha, even where every output gives
        its coin away.

        A mechanism for which the claim holds lets the coin be guessed with a chance of
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

    def excluded(self, *, delta: float, alpha: float | None = None) -> float:
        """Return the largest epsilon that the draws exclude at ``delta``, or 0.

        An (epsilon, delta)-private mechanism is excluded for every epsilon up to it. With
        probability 1 - alpha that is right, also where the test was stopped by what was seen.

        *Why.* Let e be the least epsilon of the grid at which the pair is private. The same bets
        against (e, delta) make a supermartingale, so they reach 1 / alpha with probability at most
        alpha, ever. A wrong result would need that, since every smaller epsilon of the grid is
        refuted before a larger one is looked at. So the counts when the claim was refuted may be
        looked at too.

        Args:
            delta: delta in [0, 1).
            alpha: the chance of a wrong result. None takes that of the test.
        """
        probability(delta, name="delta")
        level = -math.log(self.alpha if alpha is None else probability(alpha, name="alpha"))
        own = [] if self.epsilon is None else [self.epsilon]
        grid = np.unique([*_SEARCHED, *own])
        return max(self._excluded_by(counts, grid, delta, level) for counts in self._all_looks())

    def _all_looks(self) -> list[Array]:
        """Return the counts when the claim was refuted, if it was, and now."""
        return [*self._looks, self._counts]

    def _excluded_by(self, counts: Array, grid: Array, delta: float, level: float) -> float:
        found = 0.0
        for epsilon in grid:
            payoffs, of_bets = _bets(float(epsilon), delta)
            logs = np.einsum("pc,pcb->b", counts, payoffs)
            if float(_log_sum((logs + of_bets)[None])[0]) < level:
                break
            found = float(epsilon)
        return found

    def leading(self) -> str:
        """Return in words what gained most: guesses by which belief, how many right and wrong."""
        bet = int((self._logs + self._bet_weights).argmax())
        gains = self._payoffs[:, :, bet]
        used = gains.max(axis=1) > max(0.0, float(gains[0].max()))
        heads = int(self._counts[used & _of_heads(gains)].sum())
        counts = self._counts[used]
        right = int(np.where(gains[used] > gains[used][:, ::-1], counts, 0.0).sum())
        wrong = int(counts.sum()) - right
        # The belief that would have gained most by itself.
        name = "nothing yet"
        if self._belief is not None:
            name = self._belief.learners[int(self._alone[:, bet].argmax())].name
        return f"{name}: {right + wrong} guesses ({heads} of the first), {right} of them right"

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

    def _checked(self, coins: npt.ArrayLike, outputs: npt.ArrayLike) -> tuple[Coins, Array]:
        heads, values = np.asarray(coins), np.asarray(outputs, dtype=np.float64)
        if heads.dtype != np.bool_ or heads.ndim != 1:
            raise InvalidInput(f"coins: expected shape (n,) of bool, got {heads.dtype}")
        if values.ndim not in (1, 2) or len(values) != len(heads):
            raise InvalidInput(
                f"outputs: expected shape ({len(heads)},) or ({len(heads)}, d), got {values.shape}"
            )
        if np.isnan(values).any():
            raise InvalidInput("outputs: contain NaN")
        if self._shape not in (None, values.shape[1:]):
            raise InvalidInput(f"outputs: expected the shape of earlier ones, got {values.shape}")
        self._shape = values.shape[1:]
        return heads, values if values.ndim == 2 else values[:, None]

    def _bet(self, coins: Coins, values: Array) -> None:
        """Bet on draws by beliefs that were settled before them, then remember the draws."""
        if self._belief is not None:
            odds, each = self._belief.foretell(coins, values)
            places, tails = _places(odds), np.where(coins, 0, 1)
            self._alone = self._alone + self._payoffs[_places(each), tails[:, None]].sum(axis=0)
            paths = self._logs + np.cumsum(self._payoffs[places, tails], axis=0)
            reached = _log_sum(paths + self._bet_weights) >= -math.log(self.alpha)
            if self.refuted_after is None and bool(reached.any()):
                first = int(reached.argmax()) + 1
                self.refuted_after = self.draws + first
                counts = self._counts.copy()
                np.add.at(counts, (places[:first], tails[:first]), 1.0)
                self._looks.append(counts)
            self._logs = paths[-1]
            np.add.at(self._counts, (places, tails), 1.0)
        self.draws += len(coins)
        self._past.append((coins, values))
        if self.draws >= self._due:
            self._learn()

    def _learn(self) -> None:
        """Settle beliefs by the latest draws, for the draws to come."""
        growth = _GROWTH if self.draws < _LATER else _GROWTH_LATER
        self._due = math.ceil(growth * self.draws)
        coins, values = (
            np.concatenate(part)[-_REMEMBERED:] for part in zip(*self._past, strict=True)
        )
        self._past = [(coins, values)]
        if coins.all() or not coins.any():
            return
        if self._belief is None:
            # Chosen by the past, before the first bet.
            learners = self._beliefs
            self._belief = (
                Pooled(*_learners(values))
                if learners is None
                else Pooled(learners, [1.0 / len(learners)] * len(learners))
            )
            self._alone = np.zeros((len(self._belief.learners), len(self._bet_weights)))
        self._belief.learn(coins, values)


def bet(
    draw: Draw,
    tests: Sequence[SequentialTest],
    *,
    batch: int,
    runs: int | None = None,
    seconds: float | None = None,
    stop: bool = True,
    random: np.random.Generator,
    clock: Callable[[], float] = time.monotonic,
    report: Report = silent,
) -> None:
    """Feed tests with draws until runs or time are used up.

    Args:
        draw: function that gets fair coins, shape (n,) of bool, and returns an output for each: of
            D for True and of D' for False, shape (n,) or (n, d). It must use a coin for nothing but
            choosing between D and D'.
        tests: tests of claims about the same two neighbours.
        batch: runs at a time.
        runs: the number of all runs, or None.
        seconds: time limit, which is looked at before each batch but the first, or None.
        stop: whether to stop as soon as a claim is refuted.
        random: source of the coins.
        clock: clock of the time limit.
        report: function that is told of the state after each batch.
    """
    start, made = clock(), 0
    while runs is None or made < runs:
        if made and seconds is not None and clock() - start >= seconds:
            break
        coins = random.random(batch if runs is None else min(batch, runs - made)) < 0.5
        outputs = draw(coins.copy())
        for test in tests:
            test.update(coins, outputs)
        made += len(coins)
        report("runs", made, runs or 0, float("nan"))
        if stop and any(test.refuted for test in tests):
            break


def by_coin(first: Callable[[int], Array], second: Callable[[int], Array]) -> Draw:
    """Return a draw, which ``bet`` takes, from functions that give outputs of D and of D'."""

    def draw(coins: Coins) -> Array:
        heads = first(int(coins.sum()))
        tails = second(len(coins) - len(heads))
        outputs = np.empty((len(coins), *heads.shape[1:]))
        outputs[coins], outputs[~coins] = heads, tails
        return outputs

    return draw


def _learners(values: Array) -> tuple[list[Learner], list[float]]:
    """Return learners for outputs like these, with their first shares of the belief."""
    whole = bool((np.abs(values) < 2**31).all() and (values == np.rint(values)).all())
    if whole and bool(((values == 0) | (values == 1)).all()) and values.shape[1] > 1:
        both = Logistic(0.0, columns="both", prior=0.15)
        return [both, Logistic(0.0, prior=0.3), Atoms()], [0.8, 0.1, 0.1]
    if values.shape[1] == 1:
        found: list[Learner] = [Logistic(0.3), Logistic(0.05), Logistic(0.002)]
        shares = [0.14, 0.27, 0.47]
    else:
        found = [Logistic(0.3, columns="both"), Averaged(0.3, prior=0.3)]
        found += [Logistic(0.1, prior=0.3), Logistic(0.002)]
        shares = [0.08, 0.64, 0.09, 0.05]
    found += [Atoms(), Boosted()] if whole else [Atoms(), Boosted(), LowBits()]
    shares += [0.05, 0.05] if whole else [0.03, 0.05, 0.08]
    return found, [share / sum(shares) for share in shares]


def _points(
    epsilon: float | None, delta: float | None, mu: float | None
) -> tuple[tuple[float, float], ...]:
    """Return points (epsilon, delta) that are tested."""
    if mu is not None:
        if epsilon is not None or delta is not None:
            raise InvalidParameter("mu: expected without epsilon and delta")
        positive(mu, name="mu")
        return tuple((share * mu, _gaussian_delta(mu, share * mu)) for share in _GAUSSIAN_POINTS)
    if epsilon is None or delta is None:
        raise InvalidParameter("epsilon, delta: expected both, or mu alone")
    positive(epsilon, name="epsilon")
    probability(delta, name="delta")
    return ((epsilon, delta),)


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of mu-GDP at ``epsilon``, rounded up."""
    return gaussian_delta(noise_multiplier=1.0 / mu, epsilon=epsilon)


def _bets(epsilon: float, delta: float) -> tuple[Array, Array]:
    """Return all bets against one (epsilon, delta).

    They are logarithms of their factors, shape (places, 2, bets), and of their weights, shape
    (bets,).
    """
    levels = np.concatenate([[0.0], _LEVELS])
    guessed = np.arange(len(levels)) > 0
    multiples = _MULTIPLES if delta == 0.0 else _MULTIPLES[:-1]
    risks = [_risk(epsilon, np.maximum(many * levels, epsilon)) for many in multiples]
    # Where a delta is granted, guesses of one side alone pay for it once in place of twice.
    both, alone = (1, 1), ((1, 0), (0, 1))
    if delta == 0.0:
        for start, power in _STEPS:
            odds = epsilon + (power - 1.0) * max(epsilon, _LEAST_GAP)
            risk = float(_risk(epsilon, np.array(odds)))
            risks.append(np.where(guessed & (levels >= start * epsilon), risk, 0.0))
        risk = float(_risk(epsilon, np.array(epsilon + max(epsilon, _LEAST_GAP))))
        one = np.where(guessed & (levels >= _ONE_SIDED * epsilon), risk, 0.0)
        bets = [*((risk, both) for risk in risks), *((one, side) for side in alone)]
        weights = _PURE_WEIGHTS
    else:
        risks += [
            np.where(guessed & (levels >= start * epsilon), share, 0.0)
            for start in (_FROM if epsilon > 0.0 else _FROM[:1])
            for share in _FRACTIONS
        ]
        bets = [(risk, side) for risk in risks for side in (both, *alone)]
        of_risks = np.concatenate(
            [_BELIEVED, np.full(len(risks) - 2, (1.0 - _BELIEVED.sum()) / (len(risks) - 2))]
        )
        weights = np.outer(of_risks, _SIDE_WEIGHTS).ravel()
    risked, sides = (np.array(part, dtype=np.float64) for part in zip(*bets, strict=True))
    return _log_factors(epsilon, delta, risked, sides), np.log(weights / weights.sum())


def _risk(epsilon: float, odds: Array) -> Array:
    """Return shares of the wealth to risk on a guess whose log odds are ``odds``.

    At delta 0 a right guess then pays p1 / p0, and a wrong one (1 - p1) / (1 - p0), with p0 and p1
    the chances of epsilon and of the odds.
    """
    risked = -np.expm1(np.logaddexp(0.0, epsilon) - np.logaddexp(0.0, odds))
    return np.asarray(np.minimum(risked, _MOST_RISKED))


def _log_factors(epsilon: float, delta: float, risked: Array, sides: Array) -> Array:
    """Return logarithms of 1 + lambda Z, shape (places, 2, bets), for heads and tails.

    First come places where heads are guessed at every level, then those where tails are. lambda is
    the largest of ``risked``, shape (bets, levels), over 2 (e^epsilon + delta). ``sides``, shape
    (bets, 2), says on which sides a bet is placed.
    """
    small = math.exp(-epsilon)
    stakes = np.concatenate([risked * sides[:, :1], risked * sides[:, 1:]], axis=1)
    stakes /= 1.0 + delta * small
    paid = 0.5 * sides.sum(axis=1) * delta * small * stakes.max(axis=1)
    right, wrong = np.log1p(stakes * small - paid[:, None]), np.log1p(-stakes - paid[:, None])
    heads_guessed = np.arange(stakes.shape[1]) < risked.shape[1]
    found = np.where(heads_guessed, right, wrong), np.where(heads_guessed, wrong, right)
    return np.ascontiguousarray(np.transpose(found, (2, 0, 1)))


def _places(odds: Array) -> npt.NDArray[np.int64]:
    """Return where odds stand in a bet's table: heads and tails guessed, at every level."""
    places = np.searchsorted(_LEVELS, np.abs(odds), side="right")
    return np.asarray(places + np.where(odds < 0.0, len(_LEVELS) + 1, 0))


def _of_heads(gains: Array) -> npt.NDArray[np.bool_]:
    """Return places where heads are guessed, from gains, shape (places, 2)."""
    return np.asarray(gains[:, 0] > gains[:, 1])


def _log_sum(logs: Array) -> Array:
    """Return logarithms of the sums of exponentials of rows, shape (n,)."""
    largest = logs.max(axis=1)
    return np.asarray(np.log(np.exp(logs - largest[:, None]).sum(axis=1)) + largest)
