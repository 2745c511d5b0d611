"""Oracles: every data set of a few devices, closed forms of the literature, and other channels."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from scipy import signal, stats

from reticent.accounting import ShuffledChannel, shuffled_epsilon
from reticent.accounting.loss_composition import composed_epsilon
from reticent.accounting.shuffling import local_epsilon_for
from reticent.core.errors import InvalidInput, InvalidParameter


def response(epsilon: float, labels: int) -> np.ndarray:
    table = np.ones((labels, labels)) + (math.exp(epsilon) - 1) * np.eye(labels)
    return table / table[0].sum()


def multisets(table: np.ndarray, inputs: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    """Law of the multiset of one report each, by enumeration."""
    law: Counter[tuple[int, ...]] = Counter({(0,) * table.shape[1]: 1.0})
    for x in inputs:
        after: Counter[tuple[int, ...]] = Counter()
        for counts, chance in law.items():
            for c, p in enumerate(table[x].tolist()):
                after[(*counts[:c], counts[c] + 1, *counts[c + 1 :])] += chance * p
        law = after
    return law


def divergence(first: Counter, second: Counter, epsilon: float) -> float:
    odds = math.exp(epsilon)
    return math.fsum(max(0.0, p - odds * second[counts]) for counts, p in first.items())


def worst(table: np.ndarray, devices: int, epsilon: float) -> float:
    """Largest divergence over every data set and both directions."""
    labels = range(len(table))
    return max(
        divergence(multisets(table, (a, *rest)), multisets(table, (b, *rest)), epsilon)
        for rest in itertools.combinations_with_replacement(labels, devices - 1)
        for a, b in itertools.permutations(labels, 2)
    )


def sum_bound(table: np.ndarray, devices: int, epsilon: float) -> float:
    """The blanket bound by enumeration of all reports."""
    least = table.min(axis=0)
    rest = 1 - least.sum()
    best = 0.0
    for a, b in itertools.permutations(range(len(table)), 2):
        worth = [*((table[a] - math.exp(epsilon) * table[b]) / least), 0.0]
        chances = [*least, rest]
        total = 0.0
        for drawn in itertools.product(range(len(worth)), repeat=devices):
            value = sum(worth[c] for c in drawn)
            total += max(0.0, value) * math.prod(chances[c] for c in drawn)
        best = max(best, total / devices)
    return best


@pytest.mark.parametrize(
    ("devices", "local", "labels"),
    [(1, 1.0, 3), (3, 2.0, 3), (4, 2.0, 4), (5, 3.0, 3), (6, 2.0, 3)],
)
def test_no_data_set_of_a_few_devices_is_worse(devices: int, local: float, labels: int) -> None:
    channel, table = ShuffledChannel.response(epsilon=local, labels=labels), response(local, labels)
    for share in (0.0, 0.3, 0.6, 0.9):
        epsilon = share * local
        bound = channel.delta(devices=devices, epsilon=epsilon)
        assert bound >= worst(table, devices, epsilon)
        assert bound == pytest.approx(sum_bound(table, devices, epsilon), rel=1e-3)


@pytest.mark.parametrize("shares", [[[7, 3], [3, 7]], [[90, 10], [35, 65]], [[1, 99], [60, 40]]])
def test_of_two_labels_the_worst_data_set_is_the_bound(shares: list[list[int]]) -> None:
    channel, table = ShuffledChannel.of_table(shares), np.array(shares) / np.sum(shares[0])
    for devices in (1, 2, 3, 6):
        for share in (0.0, 0.3, 0.6, 0.9):
            epsilon = share * channel.local_epsilon
            bound = channel.delta(devices=devices, epsilon=epsilon)
            assert bound >= (1 - 1e-12) * worst(table, devices, epsilon)
            assert bound == pytest.approx(worst(table, devices, epsilon), rel=1e-6, abs=1e-15)


def binomial(trials: int, chance: float) -> np.ndarray:
    law = stats.binom(trials, chance)
    low, high = law.interval(1 - 1e-14)
    return law.pmf(np.arange(low, high + 1))


@pytest.mark.parametrize(("devices", "loose"), [(400, 1.03), (3_000_000, 1.06)])
def test_no_split_of_many_devices_is_worse_than_the_bound(devices: int, loose: float) -> None:
    """Splits that lie within groups too, and laws that are multiplied by a transform."""
    local, epsilon = 2.0, 0.3 * math.sqrt(400 / devices)
    lie = 1 / (math.exp(local) + 1)
    bound = ShuffledChannel.response(epsilon=local, labels=2).delta(
        devices=devices, epsilon=epsilon
    )
    found = []
    for second in (0, 1, devices // 3, devices // 2, devices - 2, devices - 1):
        others = [(devices - 1 - second, lie), (second, 1 - lie)]
        law = signal.oaconvolve(*[binomial(n, p) for n, p in others])
        ones, other = np.append(0, law), np.append(law, 0)
        first, last = lie * ones + (1 - lie) * other, (1 - lie) * ones + lie * other
        odds = math.exp(epsilon)
        found += [
            float(np.maximum(a - odds * b, 0).sum()) for a, b in ((first, last), (last, first))
        ]
    assert max(found) <= bound <= loose * max(found)


def test_small_deltas_in_forty_digits() -> None:
    """The sum over three counts of 30 reports, term by term."""
    devices, local, labels = 30, 3.0, 5
    with mpmath.workdps(40):
        odds = mpmath.exp(local)
        lie = 1 / (odds + labels - 1)
        chances = (lie, lie, (labels - 2) * lie)
        for epsilon in (1.0, 2.2, 2.9):
            grown, total = mpmath.exp(epsilon), mpmath.mpf(0)
            for a, b, o in itertools.product(range(devices + 1), repeat=3):
                rest = devices - a - b - o
                value = a * (odds - grown) + b * (1 - odds * grown) + o * (1 - grown)
                if rest < 0 or value <= 0:
                    continue
                ways = mpmath.factorial(devices)
                for drawn in (a, b, o, rest):
                    ways /= mpmath.factorial(drawn)
                left = (1 - sum(chances)) ** rest
                total += (
                    value
                    * ways
                    * left
                    * mpmath.fprod(p**n for p, n in zip(chances, (a, b, o), strict=True))
                )
            exact = float(total / devices)
            found = ShuffledChannel.response(epsilon=local, labels=labels).delta(
                devices=devices, epsilon=epsilon
            )
            assert exact <= found <= 1.01 * exact, epsilon


@pytest.mark.parametrize("seed", range(3))
def test_no_data_set_is_worse_under_any_table(seed: int) -> None:
    random = np.random.default_rng(seed)
    shares = random.integers(20, 100, size=(3, 4))
    shares[:, 0] += 500 - shares.sum(axis=1)
    channel, table = ShuffledChannel.of_table(shares), shares / 500
    assert channel.local_epsilon == pytest.approx(
        math.log((table.max(axis=0) / table.min(axis=0)).max()), rel=1e-12
    )
    for epsilon in (0.0, 0.2, 0.5):
        bound = channel.delta(devices=4, epsilon=epsilon)
        assert bound >= worst(table, 4, epsilon)
        assert bound == pytest.approx(sum_bound(table, 4, epsilon), rel=1e-3)


@pytest.mark.parametrize(
    ("devices", "local", "labels", "central"),
    [
        (100_000, 5.0, 10, 0.2003),
        (1_000, 3.0, 10, 0.6634),
        (32_361, 4.0, 32, 0.1715),
        (100_000, 4.0, 2, 0.0850),
        (10_000, 6.0, 2, 1.3251),
    ],
)
def test_prices_of_three_counts_in_doubles(
    devices: int, local: float, labels: int, central: float
) -> None:
    found = shuffled_epsilon(devices=devices, epsilon=local, labels=labels, delta=1e-6)
    assert found == pytest.approx(central, abs=5e-4)
    channel = ShuffledChannel.response(epsilon=local, labels=labels)
    exact = channel.example_epsilon(devices=devices, delta=1e-6)
    assert exact * 0.999 <= found <= 1.02 * exact


def test_a_table_of_responses_costs_what_responses_cost() -> None:
    shares = np.full((6, 6), 10**6) + np.eye(6, dtype=np.int64) * round((math.e**3 - 1) * 10**6)
    table, closed = (
        ShuffledChannel.of_table(shares),
        ShuffledChannel.response(epsilon=3.0, labels=6),
    )
    assert len(table.pairs) == 1
    assert table.epsilon(devices=5000, delta=1e-6) == pytest.approx(
        closed.epsilon(devices=5000, delta=1e-6), rel=1e-5
    )


def test_more_devices_more_labels_and_less_local_epsilon_never_cost_more() -> None:
    def price(devices: int, local: float, labels: int | None) -> float:
        return shuffled_epsilon(devices=devices, epsilon=local, labels=labels, delta=1e-6)

    devices = [price(n, 4.0, 10) for n in (2, 1000, 10**5)]
    labels = [price(10**4, 4.0, k) for k in (10, 40)]
    local = [price(10**4, e, 10) for e in (0.5, 4.0, 6.0)]
    assert devices == sorted(devices, reverse=True)
    assert labels == sorted(labels, reverse=True)
    assert local == sorted(local)
    assert price(10**4, 4.0, None) >= price(10**4, 4.0, 2)


def test_clones_are_below_their_closed_form() -> None:
    # Feldman, McMillan and Talwar (2021), theorem 3.1
    for devices, local in ((10**4, 2.0), (10**5, 4.0), (10**6, 5.0)):
        odds = math.exp(local)
        spread = 8 * math.sqrt(odds * math.log(4e6)) / math.sqrt(devices) + 8 * odds / devices
        closed = math.log1p((odds - 1) / (odds + 1) * spread)
        assert (
            shuffled_epsilon(devices=devices, epsilon=local, labels=None, delta=1e-6)
            <= shuffled_epsilon(devices=devices, epsilon=local, labels=None, delta=1e-7)
            <= closed
        )


def test_two_rounds_of_every_data_set() -> None:
    devices, local, labels = 3, 1.0, 3
    table = response(local, labels)
    one = ShuffledChannel.response(epsilon=local, labels=labels)
    for delta in (1e-2,):
        found = one.epsilon(devices=devices, delta=delta, rounds=2)
        assert one.epsilon(devices=devices, delta=delta) <= found <= 2 * local
        for rest in itertools.combinations_with_replacement(range(labels), devices - 1):
            first, second = multisets(table, (0, *rest)), multisets(table, (1, *rest))
            pairs = [
                (first[a] * first[b], second[a] * second[b])
                for a, b in itertools.product(first, repeat=2)
            ]
            assert sum(max(0.0, p - math.exp(found) * q) for p, q in pairs) <= delta


def test_composed_losses_of_one_kind() -> None:
    # randomised response at epsilon .1, a hundred times, has the optimum of equal answers
    from reticent.accounting import optimal_epsilon

    truth = math.exp(0.1) / (1 + math.exp(0.1))
    found = composed_epsilon(
        np.array([-0.1, 0.1]), np.array([1 - truth, truth]), 0.0, times=100, delta=1e-6
    )
    exact = optimal_epsilon(epsilon=0.1, answers=100, delta=1e-6, answer_delta=0.0)
    assert exact <= found * (1 + 1e-9) <= exact * 1.005


def test_rare_infinite_losses_add_up() -> None:
    """Each is below what a double near 1 tells apart from 1: together they are 1e-14 of delta."""
    losses, masses = np.array([-0.1, 0.1]), np.array([0.5, 0.5])
    found = [
        composed_epsilon(losses, masses, 1e-17, times=1000, delta=delta)
        for delta in (0.99e-14, 1.01e-14)
    ]
    assert found[0] == math.inf
    # 1e-16 of delta is left, on a grid that may add half a percent to either
    assert found[1] > 0.99 * composed_epsilon(losses, masses, 0.0, times=1000, delta=1e-16)


def test_as_many_devices_and_as_large_a_local_epsilon_as_are_asked_for() -> None:
    channel = ShuffledChannel.response(epsilon=4.0, labels=10)
    least = channel.devices_for(epsilon=0.4, delta=1e-6)
    assert channel.epsilon(devices=least, delta=1e-6) <= 0.4
    assert channel.epsilon(devices=round(least * 0.99), delta=1e-6) > 0.4
    asked = {"devices": 1000, "labels": 10, "delta": 1e-6}
    local = local_epsilon_for(epsilon=0.5, **asked)
    assert shuffled_epsilon(epsilon=local, **asked) <= 0.5001
    assert shuffled_epsilon(epsilon=local + 0.01, **asked) > 0.5


def test_misuse() -> None:
    with pytest.raises(InvalidInput):
        ShuffledChannel.of_table([[1, 1], [2, 1]])
    with pytest.raises(InvalidInput):
        ShuffledChannel.of_table([[0, 2], [1, 1]])
    with pytest.raises(InvalidParameter):
        ShuffledChannel.response(epsilon=2.0, labels=1)
    with pytest.raises(InvalidParameter):
        ShuffledChannel.any_channel(epsilon=2.0).example_epsilon(devices=5, delta=1e-6)
    with pytest.raises(InvalidParameter):
        ShuffledChannel.any_channel(epsilon=2.0).devices_for(epsilon=1e-9, delta=1e-6, most=100)
