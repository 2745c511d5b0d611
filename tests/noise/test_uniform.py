"""Uniform integers: every answer comes from equally many words, and words that would favour some
are drawn again.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.noise.digits import long_uniform, short_uniform
from tests.noise.words import Listed, seeded

ALARM = 1e-6
DRAWS = [short_uniform, long_uniform]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("end", [1, 2, 3, 7, 10, 1000])
def test_every_answer_is_equally_frequent(draw, end: int) -> None:
    answers = draw(np.full(200_000, end), seeded(1))
    counts = np.bincount(answers, minlength=end)
    assert len(counts) == end
    assert end == 1 or stats.chisquare(counts).pvalue > ALARM


@pytest.mark.parametrize(("draw", "end"), [(short_uniform, 3 * 2**30), (long_uniform, 3 * 2**61)])
def test_large_ends_favour_nothing(draw, end: int) -> None:
    # Without drawing again some thirds would be twice as frequent as others.
    answers = draw(np.full(60_000, end), seeded(2))
    counts = np.bincount(answers // (end // 3), minlength=3)
    assert stats.chisquare(counts).pvalue > ALARM
    assert stats.chisquare(counts, np.array([2, 1, 1]) * 15_000).pvalue < ALARM


@pytest.mark.parametrize("end", [3, 5, 641, 2**16 + 1, 2**31 + 1, 2**32 - 1, 2**32])
def test_short_draws_leave_equally_many_words_for_each_answer(end: int) -> None:
    """Exact count: word w gives floor(w end / 2^32), and is left out if w end mod 2^32 is below
    2^32 mod end.
    """
    share = 2**32 // end
    for answer in {0, 1, end // 2, end - 1}:
        first = -(-(answer << 32) // end)
        near = [*range(first, first + 3), *range(first + max(share - 3, 0), first + share + 3)]
        kept = sorted(
            {
                w
                for w in near
                if w < 2**32 and w * end >> 32 == answer and (w * end) % 2**32 >= 2**32 % end
            }
        )
        # All words from the lowest to the highest are kept: exactly as many for each answer.
        assert kept[-1] - kept[0] + 1 == share
        padded = np.array(kept + kept[:1] * (len(kept) % 2), dtype=np.uint32)
        drawn = short_uniform(
            np.full(len(padded), end), lambda count, padded=padded: padded.view(np.uint64).copy()
        )
        assert (drawn == answer).all()


def test_words_that_are_left_out_are_drawn_again() -> None:
    # 2^32 mod 3 = 1: only the word 0 is left out for end 3.
    assert short_uniform(np.array([3, 3]), Listed([0 | (2**31 << 32), 2**32 - 1])).tolist() == [
        2,
        1,
    ]
    # The last fair word for end 3 is 2^64 - 2.
    assert long_uniform(np.array([3]), Listed([2**64 - 1, 2**64 - 2])).tolist() == [2]
