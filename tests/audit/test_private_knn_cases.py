"""Screening and voting audited with their sampling at two settings; planted faults are caught.

False-alarm rate of one case: 1e-3 (seeded, so a passing test stays passing). One answer's claim
at delta 1e-5 is far above what one bit of a worst pair can show; faults are therefore held
against the exact loss of the honest pair, with a tenth to spare.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from reticent.audit import AuditCase, noisy_argmax_case, noisy_screening_case
from reticent.mechanisms import NoisyArgmax, NoisyScreening
from reticent.noise import AuditSampler, SecureSampler

MILLION = 1_000_000
RUNS = [60_000, pytest.param(MILLION, marks=pytest.mark.soak)]
# (sigma, sampling probability): strong noise on a small sample, weak noise on a large one.
VOTES = np.array([9, 10])
SETTINGS = [(3.0, 0.15), (0.6, 0.6)]


def _screening(sigma: float, rate: float) -> NoisyScreening:
    return NoisyScreening(
        neighbours=20, threshold=12.0, sigma=sigma, sampling_probability=rate, delta=1e-5
    )


def _argmax(sigma: float, rate: float) -> NoisyArgmax:
    return NoisyArgmax(classes=2, neighbours=20, sigma=sigma, sampling_probability=rate, delta=1e-5)


def _runs(case: AuditCase, seed: int, runs: int) -> tuple[bool, float]:
    """A million runs take the operating system's words, at a false-alarm rate of 1e-9."""
    if runs < MILLION:
        result = case.run(runs=runs, confidence=0.999, sampler=AuditSampler(seed))
    else:
        result = case.run(runs=runs, confidence=1 - 1e-9, sampler=SecureSampler())
    return result.refutes(case.epsilon), result.epsilon_lower


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize(("sigma", "rate"), SETTINGS)
def test_neither_step_exceeds_its_claim(sigma: float, rate: float, runs: int) -> None:
    screening, argmax = _screening(sigma, rate), _argmax(sigma, rate)
    for case in (
        *(
            noisy_screening_case(
                screening, votes=votes, epsilon=screening.guarantee.epsilon, delta=1e-5
            )
            for votes in (11, 12)
        ),
        noisy_argmax_case(argmax, votes=VOTES, epsilon=argmax.guarantee.epsilon, delta=1e-5),
    ):
        assert not _runs(case, 51, runs)[0]
        exact = replace(case, epsilon=1.0, delta=0.0)
        assert runs < MILLION or _runs(exact, 0, runs)[1] < _loss(exact)


def test_the_audit_sees_nearly_all_of_a_loss_that_is_large_enough_to_be_seen() -> None:
    for case in (
        noisy_screening_case(_screening(*SETTINGS[1]), votes=11, epsilon=1.0, delta=0.0),
        noisy_argmax_case(_argmax(*SETTINGS[1]), votes=VOTES, epsilon=1.0, delta=0.0),
    ):
        assert 0.8 * _loss(case) < _runs(case, 55, 400_000)[1] < 1.001 * _loss(case)


@pytest.mark.parametrize("runs", [400_000, RUNS[1]])
@pytest.mark.parametrize(("sigma", "rate"), SETTINGS)
def test_halved_noise_and_a_record_that_always_takes_part_are_caught(
    sigma: float, rate: float, runs: int
) -> None:
    screening_loss, vote_loss = _allowed(sigma, rate)
    for noise, sampled in ((sigma, 1.0), (sigma / 2, rate)):
        for case in (
            noisy_screening_case(
                _screening(noise, sampled), votes=11, epsilon=screening_loss, delta=0.0
            ),
            noisy_argmax_case(_argmax(noise, sampled), votes=VOTES, epsilon=vote_loss, delta=0.0),
        ):
            assert _runs(case, 71, runs)[0]


def _allowed(sigma: float, rate: float) -> tuple[float, float]:
    """The exact losses of the honest bit and label at their pairs, with a tenth to spare."""
    screened = noisy_screening_case(_screening(sigma, rate), votes=11, epsilon=1.0, delta=0.0)
    voted = noisy_argmax_case(_argmax(sigma, rate), votes=VOTES, epsilon=1.0, delta=0.0)
    return 1.1 * _loss(screened), 1.1 * _loss(voted)


def _loss(case: AuditCase) -> float:
    """Largest log-ratio of the pair, from the scores themselves."""
    return float(np.abs(case.first(2_000, AuditSampler(1))).max())


def test_the_loss_of_a_pair_is_the_exact_one() -> None:
    values = np.arange(-40, 41)
    distribution = np.exp(-(values**2) / 18.0)
    distribution /= distribution.sum()
    low, high = (float(distribution[votes + values >= 12].sum()) for votes in (11, 12))
    mixed = 0.85 * low + 0.15 * high
    exact = max(abs(math.log(mixed / low)), abs(math.log((1 - mixed) / (1 - low))))
    assert _loss(
        noisy_screening_case(_screening(3.0, 0.15), votes=11, epsilon=1.0, delta=0.0)
    ) == pytest.approx(exact)
