"""Tails of every sampler: words that are enumerated, against integers, and counts far out, against
Poisson.

A cut tail shows a neighbour for certain, however rarely, and no test of a shape or of a variance
sees it. The counts are seeded, so a passing test stays passing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from reticent.core import Norm
from reticent.noise import AuditSampler, Sampler, SecureSampler, SeededSampler, gaussian, k_norm
from reticent.noise.digits import BLOCK
from reticent.noise.gaussian import discrete_gaussian
from reticent.noise.geometric import GeometricDigits

ALARM = 1e-6
"""Of one count, both sides together."""

CELLS = 2**16
SIGMAS = [0.37, 1.0, 2.5, 40.25, 1.3 * 2**20]


def exponential_digits(exponent: Fraction, bits: int) -> int:
    """floor(2^bits e^-exponent): 1 over Taylor's series, its terms bounded from both sides."""
    work = bits + 64
    low = high = term_low = term_high = 1 << work
    place = 0
    while term_high > 1 or place < 2 * exponent:
        place += 1
        divisor = exponent.denominator * place
        term_low = term_low * exponent.numerator // divisor
        term_high = -(-term_high * exponent.numerator // divisor)
        low, high = low + term_low, high + term_high
    high += 2 * term_high  # terms from here on at least halve
    ends = {(1 << bits + work) // value for value in (low, high)}
    assert len(ends) == 1
    return ends.pop()


class Proposals:
    """Stands for the tables of discrete Laplace draws: gives one value as often as it is told to,
    zeros from then on.
    """

    def __init__(self, value: int, times: int) -> None:
        self.value, self.times = value, times

    def laplace(self, count: int, words: Callable[[int], np.ndarray]) -> np.ndarray:
        given = min(self.times, count)
        self.times -= given
        return np.repeat([self.value, 0], [given, count - given])


def gap(value: int, sigma: float) -> Fraction:
    """The exponent of the acceptance of a proposal."""
    return (abs(value) / Fraction(sigma) - 1) ** 2 / 2


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("deviations", [4, -4.5, 5, -5.5])
def test_a_proposal_far_out_is_kept_for_its_share_of_all_words(
    monkeypatch, sigma: float, deviations: float
) -> None:
    """All 2^16 first digits of the coin, each once, and both ends of the digits that follow."""
    value = int(math.copysign(math.ceil(abs(deviations) * sigma), deviations))
    exact = exponential_digits(gap(value, sigma), 16)
    for further, also in ((0, 1), (2**64 - 1, 0)):
        given: list[int] = []

        def words(count: int, given: list[int] = given, further: int = further) -> np.ndarray:
            if count == 1:
                return np.array([further], dtype=np.uint64)
            first = sum(given)
            given.append(4 * count)
            # every head once; zeros, which keep the proposal 0, afterwards
            heads = np.arange(first, first + 4 * count)
            return np.where(heads < CELLS, heads, 0).astype(np.uint16).view(np.uint64)

        monkeypatch.setattr(gaussian, "geometric_digits", lambda scale: Proposals(value, CELLS))
        drawn = discrete_gaussian(CELLS, sigma, words)
        assert int((drawn == value).sum()) == exact + also


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("deviations", [4, 4.5, 5, 6, 8, 10, 15, 20, 30, 40])
def test_a_proposal_up_to_forty_deviations_out_is_decided_by_its_own_digits(
    monkeypatch, sigma: float, deviations: float
) -> None:
    """A uniform number that agrees with the acceptance in all digits but its last word."""
    value = math.ceil(deviations * sigma)
    words_needed = 2 + int(gap(value, sigma) / Fraction(44))  # 64 binary digits are a factor e^44
    digits = exponential_digits(gap(value, sigma), 16 + 64 * words_needed)
    parts = [digits >> 64 * place & 2**64 - 1 for place in range(words_needed)][::-1]
    head = digits >> 64 * words_needed
    assert head < CELLS
    assert 0 < parts[-1] < 2**64 - 1
    for last, kept in ((parts[-1] - 1, True), (parts[-1] + 1, False)):
        # nine proposals, of which only the first can be kept; then zeros, which are
        script = iter([[head, CELLS - 1, CELLS - 1, CELLS - 1], [CELLS - 1] * 4, [CELLS - 1] * 4])
        tail = iter([*parts[:-1], last])

        def words(count: int, script=script, tail=tail) -> np.ndarray:
            if count == 1:
                return np.array([next(tail)], dtype=np.uint64)
            rows = [next(script, [0] * 4) for _ in range(count)]
            return np.array(rows, dtype=np.uint16).ravel().view(np.uint64)

        monkeypatch.setattr(gaussian, "geometric_digits", lambda scale: Proposals(value, 1))
        assert discrete_gaussian(1, sigma, words).tolist() == [value if kept else 0]
        assert next(tail, None) is None


@pytest.mark.parametrize("scale", [1.0, 1.15, 2.5, 40.25, 1.3 * 2**20])
@pytest.mark.parametrize("rounds", [1, 2, 12])
def test_leading_digits_are_drawn_again_for_their_share_of_all_words(
    scale: float, rounds: int
) -> None:
    """All 2^16 first digits of the leading group, after ``rounds`` - 1 draws of "more": as many go
    on as e^-(reach/scale) says, however far out they are.
    """
    digits, random = GeometricDigits(scale), np.random.default_rng(0)
    reach = 2 ** digits.groups[-1][1]
    decided = np.all([table._lookup != CELLS - 1 for table in digits._tables[:-1]], axis=0)
    asked = {"block": 0, "round": 0}

    def words(count: int) -> np.ndarray:
        if count < BLOCK // 4:  # what one cell leaves open, and what comes after
            return random.integers(0, 2**64, size=count, dtype=np.uint64)
        heads = np.full(4 * count, np.flatnonzero(decided)[0], dtype=np.uint16)
        heads[-BLOCK:] = CELLS - 1
        asked["round"] += 1
        if asked["round"] == rounds:
            heads[-BLOCK:] = np.arange(BLOCK) + BLOCK * asked["block"]
            asked.update(block=asked["block"] + 1, round=0)
        return heads.view(np.uint64)

    drawn = digits.geometric(CELLS, words)
    exact = exponential_digits(Fraction(reach) / Fraction(scale), 16)
    assert int((drawn >= rounds * reach).sum()) - exact in (0, 1)
    assert (drawn >= (rounds - 1) * reach).all()


def assert_tails(
    draw: Callable[[int], np.ndarray], runs: int, beyond: dict[float, float], alarm: float = ALARM
) -> None:
    """Counts of magnitudes from each limit on lie in the Poisson interval of their exact
    chance."""
    counts = dict.fromkeys(beyond, 0)
    block = 2**20
    for start in range(0, runs, block):
        size = np.abs(draw(min(block, runs - start)))
        for limit in beyond:
            counts[limit] += int((size >= limit).sum())
    for limit, chance in beyond.items():
        low, high = stats.poisson.interval(1 - alarm, runs * chance)
        assert low > 0  # so a tail that is cut is noticed
        assert low <= counts[limit] <= high, (limit, counts[limit], runs * chance)


def gaussian_tails(sigma: float) -> dict[float, float]:
    """Exact chances of 4, 4.5 and 5 deviations and more, of the discrete law."""
    support = np.arange(-int(40 * sigma) - 1, int(40 * sigma) + 2)
    law = np.exp(-0.5 * (support / sigma) ** 2)
    law /= law.sum()
    return {k * sigma: float(law[np.abs(support) >= k * sigma].sum()) for k in (4, 4.5, 5)}


def laplace_tails(scale: float) -> dict[float, float]:
    """Exact chances of 8, 10 and 12 scales and more."""
    q = math.exp(-1 / scale)
    return {k * scale: 2 * q ** math.ceil(k * scale) / (1 + q) for k in (8, 10, 12)}


def k_norm_tails(dimension: int, scale: float, norm: Norm) -> dict[float, float]:
    """Exact chances of norms, rounded up, by counting the vectors of each."""
    reach = 48
    axis = np.arange(-reach, reach + 1)
    squares = axis**2
    if norm is Norm.LINF:
        size = np.abs(axis)
        for _ in range(dimension - 1):
            size = np.maximum.outer(size, np.abs(axis))
    else:
        total = squares
        for _ in range(dimension - 1):
            total = np.add.outer(total, squares)
        size = np.array([math.isqrt(v) + (math.isqrt(v) ** 2 < v) for v in range(total.max() + 1)])
        size = size[total]
    vectors = np.bincount(size.ravel())[: reach + 1]
    law = vectors * np.exp(-np.arange(reach + 1) / scale)
    law /= law.sum()
    limits = (8, 10, 12) if norm is Norm.LINF else (8, 9, 10)
    return {float(limit): float(law[limit:].sum()) for limit in limits}


@pytest.mark.parametrize("sigma", [1.15, pytest.param(7.3, marks=pytest.mark.soak)])
def test_a_gaussian_is_beyond_four_to_five_deviations_as_often_as_it_must_be(sigma: float) -> None:
    """At least 20 million draws, of which 17 are expected beyond 5 deviations: none has the chance
    4e-8.
    """
    tails, sampler = gaussian_tails(sigma), AuditSampler(20)
    runs = max(20_000_000, math.ceil(17 / min(tails.values())))
    assert_tails(lambda count: sampler.discrete_gaussian(count, sigma=sigma), runs, tails)


@pytest.mark.parametrize("scale", [1.15, 7.3])
def test_a_laplace_draw_is_far_out_as_often_as_it_must_be(scale: float) -> None:
    sampler = AuditSampler(21)
    assert_tails(
        lambda count: sampler.discrete_laplace(count, scale=scale), 5_000_000, laplace_tails(scale)
    )


@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L2])
def test_k_norm_noise_is_far_out_as_often_as_it_must_be(norm: Norm) -> None:
    """Vectors of a norm, rounded up, of at least 8 to 12 times the scale."""
    sampler = AuditSampler(22)
    tails = k_norm_tails(2, 1.0, norm)

    def sizes(count: int) -> np.ndarray:
        drawn = k_norm(count, 2, scale=1.0, norm=norm, sampler=sampler)
        if norm is Norm.LINF:
            return np.asarray(np.abs(drawn).max(axis=1))
        return np.asarray(np.ceil(np.sqrt((drawn**2).sum(axis=1).astype(np.float64))))

    assert_tails(sizes, math.ceil(20 / min(tails.values())), tails)


def test_the_experiments_sampler_has_its_tails() -> None:
    sampler, tails = SeededSampler(23), gaussian_tails(7.3)
    del tails[5 * 7.3]  # too seldom in so few draws
    assert_tails(lambda count: sampler.discrete_gaussian(count, sigma=7.3), 5_000_000, tails)


@pytest.mark.soak
@pytest.mark.parametrize("sigma", [0.5, 1.15, 2.7, 7.3, 40.25, 1.3 * 2**20])
def test_words_of_the_operating_system_have_the_same_tails(sigma: float) -> None:
    """200 million fresh draws each; a right sampler fails three times in a million runs at most."""
    if sigma > 100:  # the continuous law
        tails = {k * sigma: float(2 * stats.norm.sf(k)) for k in (4, 4.5, 5)}
    else:
        tails = gaussian_tails(sigma)
    sampler: Sampler = SecureSampler()
    assert_tails(lambda count: sampler.discrete_gaussian(count, sigma=sigma), 200_000_000, tails)
