"""The three-outcome bound against the exact law of the winner among several classes, histogram by histogram."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from reticent.accounting.discrete_gaussian import sampled_gaussian_rdp
from reticent.accounting.noisy_argmax import LARGEST_SIGMA, NoisyArgmaxDpEvent, noisy_argmax_rdp
from reticent.core.errors import InvalidParameter

Histogram = tuple[int, ...]


def _winner_law(votes: Histogram, sigma: float) -> np.ndarray:
    """P(class i wins) under discrete Gaussian noise, ties to the first class; by the product of the others' distributions."""
    reach = math.ceil(12 * sigma) + max(votes) + 2
    values = np.arange(-reach, reach + 1)
    law = np.exp(-(values**2) / (2 * sigma**2))
    law /= law.sum()
    below = np.concatenate([[0.0], np.cumsum(law)])

    def mass(center: int) -> np.ndarray:
        index = values - center + reach
        return np.where((index >= 0) & (index < law.size), law[np.clip(index, 0, law.size - 1)], 0.0)

    def at_most(center: int, *, strictly: bool) -> np.ndarray:
        return below[np.clip(values - center + reach + (0 if strictly else 1), 0, law.size)]

    chances = []
    for i, own in enumerate(votes):
        others = [at_most(other, strictly=j < i) for j, other in enumerate(votes) if j != i]
        chances.append((mass(own) * np.prod(others, axis=0)).sum())
    return np.array(chances)


def _neighbours(votes: Histogram) -> list[Histogram]:
    """What one record more can do: its class gains a vote, and at most one class loses the vote of whom it displaced."""
    found = []
    for gains, loses in itertools.product(range(len(votes)), range(-1, len(votes))):
        moved = list(votes)
        moved[gains] += 1
        if loses >= 0:
            moved[loses] -= 1
        if min(moved) >= 0 and gains != loses:
            found.append(tuple(moved))
    return found


def _worst(classes: int, most: int, sigma: float, rate: float, orders: list[int]) -> np.ndarray:
    """Largest divergence over all pairs of neighbouring histograms, both directions."""
    worst = np.zeros(len(orders))
    laws = {votes: _winner_law(votes, sigma) for votes in itertools.product(range(most + 2), repeat=classes)}
    for votes in itertools.product(range(most + 1), repeat=classes):
        base = laws[votes]
        for neighbour in _neighbours(votes):
            mixed = (1 - rate) * base + rate * laws[neighbour]
            for index, a in enumerate(orders):
                moments = [(p**a * q ** (1 - a)).sum() for p, q in ((mixed, base), (base, mixed))]
                worst[index] = max(worst[index], np.log(max(moments)) / (a - 1))
    return worst


@pytest.mark.parametrize(("classes", "most", "rate"), [(2, 12, 1.0), (2, 12, 0.3), (3, 7, 1.0), (3, 7, 0.3), (4, 4, 0.5)])
def test_no_pair_of_histograms_costs_more(classes: int, most: int, rate: float) -> None:
    sigma, orders = 2.0, [2, 3, 6]
    worst = _worst(classes, most, sigma, rate, orders)
    bound = noisy_argmax_rdp(NoisyArgmaxDpEvent(sigma), orders, sampling_probability=rate)
    assert np.all(worst <= bound * (1 + 1e-9))
    # What the observer is told about the other classes costs little, so a bound that is too small would be noticed: the cost of
    # one vote that comes without another that goes is half of it.
    # (At order 6 few votes do not reach the worst histograms.)
    assert np.all(worst[:2] >= 0.95 * bound[:2])
    one_sided = noisy_argmax_rdp(NoisyArgmaxDpEvent(sigma * math.sqrt(2)), orders, sampling_probability=rate)
    assert np.all(worst > one_sided)


def test_much_below_the_votes_that_it_post_processes() -> None:
    orders = [2, 4, 8, 16, 24]
    label = noisy_argmax_rdp(NoisyArgmaxDpEvent(15.0), orders, sampling_probability=0.15)
    votes = sampled_gaussian_rdp(orders, noise_multiplier=15.0 / math.sqrt(2), sampling_probability=0.15)
    # A sign costs 2/pi = 0.6366 of Gaussian noise in the limit of small divergences, and is one of the cases.
    assert np.all((label / votes > 0.62) & (label / votes < 0.66))


def test_orders_may_come_in_any_sequence_and_more_than_once() -> None:
    event = NoisyArgmaxDpEvent(4.0)
    orders = [16, 3, 9, 3, 2]
    together = noisy_argmax_rdp(event, orders, sampling_probability=0.5)
    alone = [noisy_argmax_rdp(event, [order], sampling_probability=0.5)[0] for order in orders]
    assert together == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("sigma", [0.5, LARGEST_SIGMA * 1.01])
def test_outside_the_table_the_votes_are_the_bound(sigma: float) -> None:
    event = NoisyArgmaxDpEvent(sigma)
    votes = sampled_gaussian_rdp([2, 9], noise_multiplier=sigma / math.sqrt(2), sampling_probability=0.4)
    assert np.array_equal(noisy_argmax_rdp(event, [2, 9], sampling_probability=0.4), votes)
    assert event.slack == 0.0


@pytest.mark.parametrize("sigma", [1.0, 2.5, 30.0, LARGEST_SIGMA])
def test_slack_is_no_more_than_stated(sigma: float) -> None:
    assert 0 < NoisyArgmaxDpEvent(sigma).slack < 2e-14


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="sigma"):
        NoisyArgmaxDpEvent(0.0)
    with pytest.raises(InvalidParameter, match="sampling_probability"):
        noisy_argmax_rdp(NoisyArgmaxDpEvent(2.0), [2], sampling_probability=0.0)
    with pytest.raises(InvalidParameter, match="integers"):
        noisy_argmax_rdp(NoisyArgmaxDpEvent(2.0), [2.5], sampling_probability=0.5)
