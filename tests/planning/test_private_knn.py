"""The noise that Private-kNN and PATE are tried with, against what the calibration proves."""

from __future__ import annotations

import pytest

from reticent.accounting import calibrate_private_knn
from reticent.planning.private_knn import votes_noise


@pytest.mark.parametrize(
    ("epsilon", "answers", "sampled"),
    [(3.0, 4, 0.15), (1.0, 10, 1.0), (2.0, 3000, 0.15)],
)
def test_noise_is_about_that_of_the_calibration(epsilon, answers, sampled):
    proved = calibrate_private_knn(
        epsilon=epsilon,
        delta=1e-5,
        queries=answers,
        answers=answers,
        neighbours=1,
        sampling_probability=sampled,
        threshold=None,
        noise_ratio=None,
    ).sigma_votes
    tried = votes_noise(epsilon=epsilon, delta=1e-5, answers=answers, sampling_probability=sampled)
    assert tried == pytest.approx(proved, rel=0.04)


def test_totals_beyond_all_noise_are_guesses():
    noise = votes_noise(epsilon=1e-6, delta=1e-9, answers=10**6, sampling_probability=1.0)
    assert noise > 1e6
