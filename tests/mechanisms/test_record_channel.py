"""Channels of bins: the factor over every pair of bins, tables that are refused, exact draws, and
an audit that finds a planted fault.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from reticent.audit import epsilon_lower_bound
from reticent.core import Guarantee, Replace
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.shares import WHOLE, exponential_below
from reticent.mechanisms import RecordChannel
from reticent.noise import AuditSampler, SeededSampler
from reticent.systems.power.channels import randomised_response, whole_shares

RUNS = 10_000


def channel(epsilon: float = 2.0, bins: int = 3) -> RecordChannel:
    table = randomised_response(bins, epsilon=epsilon)
    return RecordChannel(
        shares=whole_shares(table, epsilon=epsilon), epsilon=epsilon, adjacency=Replace(1)
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 9.0, 30.0])
@pytest.mark.parametrize("bins", [2, 5])
def test_every_two_bins_are_within_the_factor(epsilon: float, bins: int) -> None:
    response = channel(epsilon, bins)
    with mpmath.workdps(60):
        largest = max(
            Fraction(int(high[output]), int(low[output]))
            for low, high in itertools.permutations(response.shares, 2)
            for output in range(response.outputs)
        )
        loss = mpmath.log(mpmath.mpf(largest.numerator) / largest.denominator)
        assert loss <= epsilon
        assert loss > 0.999 * min(epsilon, 20.0)  # and next to nothing is given away
    assert response.guarantee == Guarantee(epsilon, 0.0, Replace(1))
    assert response.event.guarantee == response.guarantee


def test_one_unit_too_much_is_refused() -> None:
    good = channel().shares
    assert max(good[:, 0]) <= exponential_below(2.0) * int(min(good[:, 0]))
    bad = good.copy()
    excess = int(exponential_below(2.0) * int(min(bad[:, 0]))) + 1 - int(bad[0, 0])
    bad[0] += [excess, -excess, 0]
    with pytest.raises(InvalidInput, match="more than a factor e\\^epsilon apart"):
        RecordChannel(shares=bad, epsilon=2.0, adjacency=Replace(1))


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        (np.full((2, 2), 0.5), "expected integers"),
        (np.array([[WHOLE]] * 2), "2 to 64 outputs"),
        (np.array([[2**31, 2**31]]), "at least 2 bins"),
        (np.array([[2**31, 2**31], [2**31, 2**31 + 1]]), "1 of 2 rows do not sum"),
        (np.array([[0, WHOLE]] * 2), "at least 1"),
    ],
    ids=["fractions", "one output", "one bin", "sum", "zero"],
)
def test_tables_that_are_no_channel_are_refused(shares: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        RecordChannel(shares=shares, epsilon=2.0, adjacency=Replace(1))


def test_epsilon_and_bins_are_checked_and_the_table_cannot_be_changed() -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        RecordChannel(shares=channel().shares, epsilon=0.0, adjacency=Replace(1))
    for bins in ([3], [-1], [0.5], [[0]]):
        with pytest.raises(InvalidInput, match="bins: expected"):
            channel().release(bins, sampler=SeededSampler(0))
    with pytest.raises(ValueError, match="read-only"):
        channel().shares[0, 0] = 1
    assert channel().release([], sampler=SeededSampler(0)).tolist() == []


def test_outputs_have_the_probabilities_of_the_table() -> None:
    response = channel(1.0, 4)
    for bin_ in range(4):
        drawn = response.release(np.full(40_000, bin_), sampler=AuditSampler(bin_))
        counts = np.bincount(drawn, minlength=4)
        assert stats.chisquare(counts, 40_000 * response.matrix[bin_]).pvalue > 1e-5
        # The test has power: a neighbouring bin's row is told apart.
        assert stats.chisquare(counts, 40_000 * response.matrix[bin_ - 1]).pvalue < 1e-9


def test_the_audit_finds_a_channel_that_spends_twice_what_it_claims() -> None:
    def bound(epsilon: float) -> float:
        response = channel(epsilon, 2)
        outputs = [
            -response.release(np.full(RUNS, bin_), sampler=AuditSampler(7 + bin_)).astype(float)
            for bin_ in range(2)
        ]
        return epsilon_lower_bound(*outputs, delta=0.0, confidence=0.999).epsilon_lower

    assert 0.85 < bound(1.0) <= 1.0
    assert bound(2.0) > 1.0  # planted: a table for epsilon 2 that claims 1


def test_a_shares_table_for_two_bins_is_the_known_one() -> None:
    truth = math.exp(1.5) / (1 + math.exp(1.5))
    assert channel(1.5, 2).matrix[0, 0] == pytest.approx(truth, abs=1e-7)
