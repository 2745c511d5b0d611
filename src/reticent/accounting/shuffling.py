"""The central privacy of reports that devices draw locally and a shuffler forwards as a
multiset.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from reticent.accounting.positive_part import upper_positive_part
from reticent.accounting.shuffled_bits import Bits
from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter

_ULP = 2.0**-49

_COARSE, _FINE = 0.02, 2e-3
"""Variance that the grid of a first estimate, and of an epsilon, may add."""

_NEARLY = 1e-6
"""Relative width to which an epsilon is found, always from above."""

_RARE = 1e-9
"""Delta from which on the divergence of bits is sharper than the blanket bound."""

_STEPS = 400
"""Number of losses of one round from which several rounds are composed."""


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two inputs, each given by its outputs' chances in units of the least chance over all inputs.

    Attributes:
        first: shape (c,), chances under the first input, over the least.
        second: shape (c,), chances under the second input, over the least.
        least: shape (c,), the least chance of these outputs together.
        bits: the same inputs, where no other input and no third output is possible.
    """

    first: Array
    second: Array
    least: Array
    bits: Bits | None = None

    @classmethod
    def of(cls, first: Array, second: Array, least: Array) -> Self:
        """Join outputs that tell the two inputs apart equally well."""
        ratios = np.stack([first / least, second / least], axis=1)
        joined, index = np.unique(ratios, axis=0, return_inverse=True)
        total = np.zeros(len(joined))
        np.add.at(total, index.ravel(), least)
        return cls(joined[:, 0], joined[:, 1], total)

    def values(self, epsilon: float) -> Array:
        """Return the values that one report may add to the divergence's sum, rounded up."""
        second = math.exp(epsilon) * self.second
        slack = _ULP * (self.first + second)
        return self.first - second + slack

    def delta(self, devices: int, epsilon: float, share: float) -> float:
        """Return the bound for this ordered pair, rounded up: that of bits, or the blanket's."""
        exact = 1.0 if self.bits is None else self.bits.delta(devices, epsilon)
        if _RARE < exact < 1.0:
            return exact
        values = self.values(epsilon)
        part = upper_positive_part(values, self.least, devices, share=share)
        return min(exact, part / devices)

    def key(self) -> tuple[bytes, bytes, bytes]:
        """Return a key that pairs with the same divergence share."""
        return self.first.tobytes(), self.second.tobytes(), self.least.round(15).tobytes()


@dataclass(frozen=True, eq=False)
class ShuffledChannel:
    """Central guarantees of reports that devices draw from one channel and a shuffler forwards.

    Every device draws one report from the same channel, which is (local_epsilon, 0)-private for any
    two inputs. The shuffler forwards the multiset of the reports and nothing else.

    Attributes:
        pairs: distinct ordered pairs of inputs.
        local_epsilon: guarantee of one report by itself.

    Guarantee:
        (epsilon, ``delta``)-differential privacy of the forwarded multiset, where neighbouring data
        sets differ in the inputs of one device (replacement, the unit is the device). It holds
        against whoever sees only the shuffler's output. ``devices`` counts the honest devices that
        sent a report from this very channel, the protected one among them. The guarantee does not
        hide whether a device sends. If shuffler and receiver collude, each report keeps its local
        guarantee.
        Floating point: every number is rounded up.

        *Proof.* Let q_c be the least chance of output c over all inputs, and g the sum of all q_c.
        Each device draws from q/g with chance g, whatever its input is. Reveal which other devices
        did not, and their reports. M + 1 reports are left, where M has a binomial law with n - 1
        draws and chance g. Under input x their counts have the multinomial law of M + 1 draws from
        q/g times the mean of p(c|x) g/q_c over them. So the divergence is at most (1/n) E[sum_c N_c
        (p(c|x) - e^epsilon p(c|x'))/q_c]_+, where each of n draws is c with chance q_c. It bounds
        every data set of the others, and the maximum is taken over all ordered pairs of inputs.
        Where there are two inputs and two outputs, ``Bits`` bounds every data set directly.

    Utility:
        .2003 for 100,000 devices, ten labels and local epsilon 5 at delta 1e-6. It lies within 2 %
        of the exact value of one data set from 1,000 devices on, with two labels at a delta of 1e-9
        or more.

    Runtime:
        O(cells log cells) an evaluation, 5 to 50 ms. An epsilon takes about a dozen for each
        distinct pair of inputs.

    Edge cases: one device has the local guarantee. An output that no input has is left out.

    References:
        - Balle, Bell, Gascón and Nissim (2019), "The privacy blanket of the shuffle model",
          arXiv:1903.02837, lemma 5.3.
        - Feldman, McMillan and Talwar (2021), "Hiding among the clones: a simple and nearly optimal
          analysis of privacy amplification by shuffling", arXiv:2012.12803, theorem 3.1 (channels
          of which only epsilon is known).

    See Also:
        reticent.accounting.shuffled_epsilon: epsilon of randomised response in one call.

    Example:
        >>> channel = ShuffledChannel.response(epsilon=5.0, labels=10)
        >>> round(channel.epsilon(devices=100_000, delta=1e-6), 3)
        0.2
        >>> round(channel.example_epsilon(devices=100_000, delta=1e-6), 2)
        0.2
    """

    pairs: tuple[_Pair, ...]
    local_epsilon: float
    _example: _Pair | None = None

    @classmethod
    def response(cls, *, epsilon: float, labels: int) -> Self:
        """Return the channel of randomised response, where the true label has e^epsilon times the
        chance of each other label.

        Args:
            epsilon: local guarantee of one report, above 0.
            labels: number of labels, at least 2.
        """
        epsilon = positive(epsilon, name="epsilon")
        labels = count(labels, name="labels", minimum=2)
        if epsilon > 30:
            raise InvalidParameter(f"epsilon={epsilon!r}: expected at most 30 for one report")
        odds = math.exp(epsilon)
        lie = 1.0 / (odds + labels - 1)
        shared = lie * (labels - 2)
        first, second = np.array([odds, 1.0, 1.0]), np.array([1.0, odds, 1.0])
        kept = slice(None) if labels > 2 else slice(0, 2)
        pair = _Pair(first[kept], second[kept], np.array([lie, lie, shared])[kept])
        # everybody else's chances of the two labels, of his own and of the rest
        others = [odds * lie, lie] if labels == 2 else [lie, lie, odds * lie, shared - lie]
        truth = lie * np.array([first[:2], second[:2]])
        if labels > 2:
            truth = np.hstack([truth, [[lie, shared - lie]] * 2])
        ratios = truth[:, np.array(others) > 0] / np.array(others)[np.array(others) > 0]
        known = np.array(others)[np.array(others) > 0]
        if labels == 2:
            pair = replace(pair, bits=Bits(lie, odds * lie))
        return cls((pair,), epsilon, _Pair(ratios[0], ratios[1], known))

    @classmethod
    def of_table(cls, shares: npt.ArrayLike) -> Self:
        """Return the channel of a table of chances.

        Args:
            shares: the very shares that are drawn from, shape (inputs, outputs), whole numbers of
                at least 0, each row with the same sum.

        Raises:
            InvalidInput: the rows differ in their sums, there are fewer than two, or an output is
                possible for one input and impossible for another.
        """
        table = np.asarray(shares)
        if table.ndim != 2 or len(table) < 2 or not np.issubdtype(table.dtype, np.integer):
            raise InvalidInput("shares: expected whole numbers in two or more rows")
        totals = {sum(row) for row in table.tolist()}
        if (table < 0).any() or len(totals) != 1 or 0 in totals:
            raise InvalidInput("shares: expected numbers of at least 0 with one sum in every row")
        table = table[:, (table > 0).any(axis=0)]
        if (table == 0).any():
            raise InvalidInput("shares: an output that one input never has tells it apart for sure")
        chances = table / float(totals.pop())
        least = chances.min(axis=0)
        rows = np.unique(chances, axis=0)
        found: dict[tuple[bytes, bytes, bytes], _Pair] = {}
        for i, first in enumerate(rows):
            for j, second in enumerate(rows):
                if i != j:
                    pair = _Pair.of(first, second, least)
                    found.setdefault(pair.key(), pair)
        spread = sorted(
            found.values(), key=lambda pair: -float(pair.least @ (pair.first - pair.second) ** 2)
        )
        if rows.shape == (2, 2):
            bits = Bits(*np.sort(rows[:, 1]).tolist())
            spread = [replace(pair, bits=bits) for pair in spread]
        odds = float((chances.max(axis=0) / least).max()) * (1 + 2.0**-50)
        return cls(tuple(spread), math.log(odds) if odds > 1 else 0.0)

    @classmethod
    def any_channel(cls, *, epsilon: float) -> Self:
        """Return a bound for every channel with pure local ``epsilon``, by clones."""
        epsilon = positive(epsilon, name="epsilon")
        share = math.exp(-epsilon)
        height = 2.0 / share
        pair = _Pair(np.array([height, 0.0]), np.array([0.0, height]), np.full(2, share / 2))
        return cls((pair,), epsilon)

    def delta(self, *, devices: int, epsilon: float) -> float:
        """Return the delta of one round at ``epsilon``, rounded up.

        Args:
            devices: number of honest devices that send, at least 1.
            epsilon: at least 0.
        """
        devices = count(devices, name="devices")
        if not epsilon >= 0:
            raise InvalidParameter(f"epsilon={epsilon!r}: expected at least 0")
        if epsilon >= self.local_epsilon:
            return 0.0
        worst = 0.0
        for pair in self.pairs:
            if len(self.pairs) == 1 or pair.delta(devices, epsilon, _COARSE) > worst:
                worst = max(worst, pair.delta(devices, epsilon, _FINE))
        return worst

    def epsilon(self, *, devices: int, delta: float, rounds: int = 1) -> float:
        """Return the epsilon at ``delta``, rounded up and never above the local one.

        Args:
            devices: number of honest devices that send in each round, at least 1.
            delta: in [0, 1). At 0 the result is the sum of the local guarantees.
            rounds: number of rounds of one campaign. Each honest device draws freshly in each.
        """
        devices, rounds = count(devices, name="devices"), count(rounds, name="rounds")
        delta = probability(delta, name="delta")
        if delta == 0:
            return rounds * self.local_epsilon
        if rounds > 1:
            return self._of_rounds(devices, delta, rounds)
        found = 0.0
        for pair in self.pairs:
            if pair.delta(devices, found, _COARSE) > delta >= 0:
                if pair.delta(devices, found, _FINE) <= delta:
                    continue
                found = _smallest(
                    lambda at, pair=pair: pair.delta(devices, at, _FINE),  # type: ignore[misc]
                    delta,
                    found,
                    self.local_epsilon,
                )
        return found

    def example_epsilon(self, *, devices: int, delta: float) -> float:
        """Return the epsilon of one data set, to about a thousandth. No bound can be much smaller.

        Everybody else has one label that is neither of the two that are told apart. With two labels
        it is the first of them.

        Raises:
            InvalidParameter: the channel is not randomised response.
        """
        if self._example is None:
            raise InvalidParameter("example_epsilon is for ShuffledChannel.response")
        devices = count(devices, name="devices")
        delta = probability(delta, name="delta", allow_zero=False)
        pair = self._example
        return _smallest(lambda at: pair.delta(devices, at, _FINE), delta, 0.0, self.local_epsilon)

    def devices_for(self, *, epsilon: float, delta: float, most: int = 10**9) -> int:
        """Return the least number of devices that reaches ``epsilon``, to a thousandth.

        Raises:
            InvalidParameter: ``most`` devices do not reach it.
        """
        positive(epsilon, name="epsilon")
        probability(delta, name="delta", allow_zero=False)
        if self.delta(devices=most, epsilon=epsilon) > delta:
            raise InvalidParameter(
                f"epsilon={epsilon!r}, delta={delta!r}: not reached with {most} devices"
            )
        low, high = 0, most
        while high - low > max(1, high // 1000):
            middle = round(math.sqrt(low * high)) if low else high // 2 or 1
            middle = min(max(middle, low + 1), high - 1)
            enough = self.delta(devices=middle, epsilon=epsilon) <= delta
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _of_rounds(self, devices: int, delta: float, rounds: int) -> float:
        """Return epsilon of several rounds from a pair whose profile is at least that of one round.

        The profile is the largest over ordered pairs, rounded up at finitely many losses and joined
        by straight lines in e^epsilon. Some pair of laws with these losses has this profile.
        """
        from reticent.accounting.loss_composition import composed_epsilon

        # losses beyond this one round's are rare enough to count as certain disclosure
        edge = self.epsilon(devices=devices, delta=min(delta, 1e-4) * 1e-4 / rounds)
        if edge == 0:  # all rounds together are within delta of telling nothing
            return 0.0
        upper = np.linspace(0.0, edge, _STEPS // 2 + 1)
        grid = np.concatenate([-upper[:0:-1], upper])
        above = np.array([self.delta(devices=devices, epsilon=e) for e in grid[grid >= 0].tolist()])
        odds = np.exp(grid)
        # delta(-e) of the pair turned round is 1 - e^-e (1 - delta(e)), and both ways are covered
        below = 1 - odds[grid < 0] * (1 - above[:0:-1][: (grid < 0).sum()])
        profile = np.concatenate([below, above])
        hull = _minorant(odds, profile)
        slopes = np.diff(hull) / np.diff(odds)
        lower = np.diff(np.concatenate([[-1.0], slopes, [0.0]]))
        masses = np.maximum(odds * lower, 0.0)
        infinite = max(0.0, float(hull[-1]))
        masses[0] += max(0.0, 1.0 - infinite - float(masses.sum()))
        return min(
            rounds * self.local_epsilon,
            composed_epsilon(grid, masses, infinite, times=rounds, delta=delta),
        )


def _smallest(delta_at: Callable[[float], float], delta: float, low: float, high: float) -> float:
    """Return the smallest epsilon with at most ``delta``, from above. The result's own delta was
    evaluated.
    """
    from scipy.optimize import brentq  # takes longer to load than most prices to find

    smallest = 1e-300

    def excess(epsilon: float) -> float:
        return math.log(max(delta_at(epsilon), smallest) / delta)

    if delta_at(high * (1 - 1e-12)) > delta:
        return high
    found = float(brentq(excess, low, high * (1 - 1e-12), xtol=_NEARLY * high, rtol=1e-9))
    step = _NEARLY * high
    while found < high and delta_at(found) > delta:
        found, step = found + step, 2 * step
    return min(found, high)


def _minorant(odds: Array, profile: Array) -> Array:
    """Return the values at ``odds`` of the largest convex function that is not above ``profile``
    there.
    """
    kept: list[int] = []
    for i in range(odds.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            left = (profile[b] - profile[a]) * (odds[i] - odds[a])
            if left < (profile[i] - profile[a]) * (odds[b] - odds[a]):
                break
            kept.pop()
        kept.append(i)
    return np.interp(odds, odds[kept], profile[kept])


def shuffled_epsilon(
    *, devices: int, epsilon: float, labels: int | None, delta: float, rounds: int = 1
) -> float:
    """Return the central epsilon of shuffled reports, rounded up.

    Args:
        devices: number of honest devices that send, at least 1.
        epsilon: local guarantee of one report, above 0.
        labels: number of labels of the randomised response, or ``None`` for a channel of which only
            ``epsilon`` is known.
        delta: delta of the central guarantee, in [0, 1).
        rounds: number of rounds of one campaign.

    Example:
        >>> round(shuffled_epsilon(devices=10_000, epsilon=4.0, labels=10, delta=1e-6), 3)
        0.381
        >>> round(shuffled_epsilon(devices=10_000, epsilon=4.0, labels=None, delta=1e-6), 3)
        0.627

    See Also:
        reticent.accounting.ShuffledChannel: the statement, its proof and the inverse questions.
    """
    channel = (
        ShuffledChannel.any_channel(epsilon=epsilon)
        if labels is None
        else ShuffledChannel.response(epsilon=epsilon, labels=labels)
    )
    return channel.epsilon(devices=devices, delta=delta, rounds=rounds)


def local_epsilon_for(*, devices: int, labels: int, epsilon: float, delta: float) -> float:
    """Return the largest local epsilon whose shuffled reports have central ``epsilon``.

    Args:
        devices: number of honest devices that send, at least 1.
        labels: number of labels of the randomised response.
        epsilon: epsilon of the central guarantee, above 0.
        delta: delta of the central guarantee, in (0, 1).

    Returns:
        At least ``epsilon`` itself, rounded down.

    Example:
        >>> round(local_epsilon_for(devices=100_000, labels=10, epsilon=0.2, delta=1e-6), 2)
        5.0
    """
    low = positive(epsilon, name="epsilon")
    probability(delta, name="delta", allow_zero=False)

    def fits(local: float) -> bool:
        channel = ShuffledChannel.response(epsilon=local, labels=labels)
        return channel.delta(devices=devices, epsilon=epsilon) <= delta

    high = min(2 * low, 30.0)
    while fits(high) and high < 30.0:
        low, high = high, min(2 * high, 30.0)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
