"""The experiments' sampler against exact distributions, with power: the right distribution passes,
scales 2/3 and 3/2 do not. Seeded runs never fail by chance.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.noise import SecureSampler, SeededSampler
from tests.noise.test_exact_sampler import Scripted
from tests.noise.words import gaussian_law, laplace_law, p_value

ALARM = 1e-6


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
@pytest.mark.parametrize("distribution", ["laplace", "gaussian"])
def test_discrete_distributions_fit_and_neighbouring_scales_do_not(
    scale: float, distribution: str
) -> None:
    sampler = SeededSampler(1)
    if distribution == "laplace":
        draws, law = sampler.discrete_laplace(20_000, scale=scale), laplace_law
    else:
        draws, law = sampler.discrete_gaussian(10_000, sigma=scale), gaussian_law
    assert p_value(draws, law(scale)) > ALARM
    assert p_value(draws, law(scale * 2 / 3)) < ALARM
    assert p_value(draws, law(scale * 3 / 2)) < ALARM


def test_geometric() -> None:
    draws = SeededSampler(1).geometric((100, 200), scale=2.5)
    assert draws.shape == (100, 200)
    assert draws.min() >= 0
    for scale, fits in ((2.5, True), (2.7, False)):
        q = np.exp(-1 / scale)
        assert (p_value(draws, lambda k, q=q: (1 - q) * q**k * (k >= 0)) > ALARM) == fits


def test_uniform_integers_are_uniform_for_every_end() -> None:
    sampler = SeededSampler(3)
    ends = np.array([1, 2, 3, 7, 10])
    draws = sampler.uniform_integers(np.broadcast_to(ends, (20_000, 5)))
    for column, end in enumerate(ends):
        counts = np.bincount(draws[:, column], minlength=end)
        assert len(counts) == end
        assert stats.chisquare(counts).pvalue > ALARM if end > 1 else (counts == 20_000).all()


def test_uniform_integers_near_the_end_of_int64_have_no_remainder_bias() -> None:
    # Taking remainders of 64-bit words without rejection would favour values below 2**62 by 2 to 1
    # here.
    draws = SeededSampler(4).uniform_integers(np.full(20_000, 3 * 2**61))
    assert abs((draws < 2**62).mean() - 2 / 3) < 0.02
    assert draws.max() >= 2**62


class ConstantWords(SeededSampler):
    """Every word is the same: shows which bits a decision looks at."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int) -> np.ndarray:
        return np.full(count, self.word, dtype=np.uint64)


def test_bernoulli_reads_a_real_number_bit_by_bit() -> None:
    # With all bits zero the uniform real is 0: below every positive probability. With all bits one
    # it is 1: below 1 only.
    probabilities = np.array([0.0, 5e-324, 1e-300, 2.0**-60, 0.5, 1 - 2.0**-53, 1.0])
    for word, shown in ((0, [False, *[True] * 6]), (2**64 - 1, [*[False] * 6, True])):
        exactly = Scripted(lambda count, word=word: np.full(count, word, dtype=np.uint64))
        for sampler in (ConstantWords(word), exactly):
            assert sampler.bernoulli(probabilities).tolist() == shown


def test_bernoulli_decides_by_exactly_the_mantissa() -> None:
    p = 0.3
    numerator = int(np.ldexp(np.frexp(p)[0], 53))
    # 0.3 = 0.6 / 2: one leading zero bit (the top bit of the word), then 53 bits below the
    # numerator.
    assert ConstantWords(numerator - 1).bernoulli(p)
    assert not ConstantWords(numerator).bernoulli(p)
    assert not ConstantWords(numerator - 1 + 2**63).bernoulli(p)


@pytest.mark.parametrize("p", [0.9, 0.5, 0.3, 0.01, 2.0**-11, 2.0**-12, 3e-4])
def test_bernoulli_rates(p: float) -> None:
    runs = 400_000
    hits = int(SeededSampler(5).bernoulli(np.full(runs, p)).sum())
    assert stats.binomtest(hits, runs, p).pvalue > ALARM
    assert stats.binomtest(hits, runs, min(1.0, p * 1.5) if p < 0.6 else p / 1.5).pvalue < ALARM


def test_bernoulli_at_probabilities_far_below_one_word() -> None:
    # 2**-70 asks for 6 blocks of bits; the chance that any of these succeeds is below 1e-15.
    assert not SecureSampler().bernoulli(np.full(100_000, 2.0**-70)).any()


def test_categorical_fits_its_weights() -> None:
    weights = np.array([3.0, 0.0, 1.0, 1e-3, 6.0])
    draws = SeededSampler(6).categorical(np.broadcast_to(weights, (200_000, 5)))
    counts = np.bincount(draws, minlength=5)
    assert counts[1] == 0
    keep = weights > 0
    assert stats.chisquare(counts[keep], 200_000 * weights[keep] / weights.sum()).pvalue > ALARM
    wrong = np.array([4.0, 1.0, 1e-3, 6.0])
    assert stats.chisquare(counts[keep], 200_000 * wrong / wrong.sum()).pvalue < ALARM
