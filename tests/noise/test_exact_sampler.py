"""The release's sampler: its checks, its two sources of words, and coins of products of
quotients.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.noise import AuditSampler, ExactSampler, SecureSampler, SeededSampler
from tests.noise.words import Listed

ALARM = 1e-6


class Scripted(ExactSampler):
    """Words that were written down."""

    name = "scripted"
    seeded = True

    def __init__(self, source) -> None:
        self.source = source

    def words(self, count: int) -> np.ndarray:
        return self.source(count)


def test_receipts_can_tell_the_sources_apart() -> None:
    assert not SecureSampler().seeded
    assert AuditSampler(0).seeded
    assert "not private" in AuditSampler(0).name
    assert len({SecureSampler().name, AuditSampler(0).name, SeededSampler(0).name}) == 3


def test_the_audited_code_is_the_released_code() -> None:
    own = {name for name in vars(AuditSampler) if not name.startswith("__")} - {"_abc_impl"}
    assert own == {"name", "seeded", "words"}
    assert {name for name in vars(SecureSampler) if not name.startswith("__")} - {
        "_abc_impl"
    } == own


def test_seeds_repeat_and_the_secure_source_does_not() -> None:
    def draw(sampler: ExactSampler) -> list[int]:
        return [
            *sampler.discrete_laplace(20, scale=2.0**40).tolist(),
            *sampler.discrete_gaussian(20, sigma=2.0**40).tolist(),
        ]

    assert draw(AuditSampler(3)) == draw(AuditSampler(3))
    assert draw(AuditSampler(3)) != draw(AuditSampler(4))
    assert draw(SecureSampler()) != draw(SecureSampler())


def test_coins_of_products_of_quotients_have_their_rate() -> None:
    numerators, denominators = np.tile([3, 5, 99], (300_000, 1)), np.tile([4, 7, 100], (300_000, 1))
    shown = int(AuditSampler(1).quotient_coins(numerators, denominators).sum())
    exact = 3 * 5 * 99 / 2800
    assert stats.binomtest(shown, 300_000, exact).pvalue > ALARM
    assert stats.binomtest(shown, 300_000, exact * 0.98).pvalue < ALARM
    seeded = int(SeededSampler(1).quotient_coins(numerators, denominators).sum())
    assert stats.binomtest(seeded, 300_000, exact).pvalue > ALARM


def test_coins_of_products_of_quotients_are_exact_beyond_doubles() -> None:
    # 2/3 times 1/2 is a third; in doubles it is not, and the digits at 64 places decide.
    fives = 0x5555555555555555
    third = np.array([[2, 2**60]]), np.array([[3, 2**61]])
    for further, shown in (
        (fives - 1, True),
        (fives + 1, False),
    ):
        assert Scripted(Listed([0x5555, further])).quotient_coins(*third).tolist() == [shown]
    assert Scripted(Listed([0x5555, fives, fives, 0])).quotient_coins(*third).tolist() == [True]
    assert Scripted(Listed([0x5554])).quotient_coins(*third).tolist() == [True]
    assert Scripted(Listed([0x5556])).quotient_coins(*third).tolist() == [False]


def test_coins_of_later_blocks_ask_for_their_own_quotients() -> None:
    rows = 40_000
    denominators = np.full((rows, 1), 3)
    numerators = np.where(np.arange(rows) < 20_000, 1, 2)[:, None]

    class Ties(ExactSampler):
        name, seeded = "ties", True

        def words(self, count: int) -> np.ndarray:
            # Heads 0x5555 (a third), then 1.0: a third is below, two thirds are decided by the head
            # alone.
            return np.full(count, 0x5555555555555555 if count > 1 else 2**64 - 1, dtype=np.uint64)

    shown = Ties().quotient_coins(numerators, denominators)
    assert not shown[:20_000].any()
    assert shown[20_000:].all()


@pytest.mark.parametrize("ends", [[1, 2, 3], [[2**40, 5], [1, 2**62]]])
def test_uniform_integers_keep_their_shape_whatever_the_ends(ends) -> None:
    drawn = AuditSampler(2).uniform_integers(ends)
    assert drawn.shape == np.shape(ends)
    assert (drawn >= 0).all()
    assert (drawn < np.array(ends)).all()


def test_bad_arguments_are_refused_before_any_word_is_asked_for() -> None:
    sampler = Scripted(Listed([]))
    for scale in (0.0, -1.0, float("nan"), float("inf"), 2.0**51):
        for call in (sampler.discrete_laplace, sampler.geometric):
            with pytest.raises(InvalidParameter, match="scale"):
                call(1, scale=scale)
        with pytest.raises(InvalidParameter, match="sigma"):
            sampler.discrete_gaussian(1, sigma=scale)
    for bad in ([-0.1], [1.1], [float("nan")]):
        with pytest.raises(InvalidInput, match="bernoulli"):
            sampler.bernoulli(bad)
    with pytest.raises(InvalidInput, match="at least 1"):
        sampler.uniform_integers([1, 0])
