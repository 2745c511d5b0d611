"""The table of shares: its rivals estimate what they should, with the noise that they should."""

from __future__ import annotations

import math

import numpy as np

from papers.fleet.frequencies import LABELS, errors, subset_shares


def test_subset_selection_is_unbiased_and_beats_randomised_response() -> None:
    """Means of 30 runs: beyond 5 standard errors at one of ten labels once in 10^5 runs."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(LABELS), np.arange(1, LABELS + 1) * 100)
    truth = np.bincount(labels) / len(labels)
    runs = np.array([subset_shares(labels, 0.2, random) for _ in range(30)])
    spread = runs.std(axis=0, ddof=1)
    assert (np.abs(runs.mean(axis=0) - truth) < 5 * spread / math.sqrt(30)).all()
    odds = math.exp(0.2)
    response = math.sqrt((odds + LABELS - 2) / (odds - 1) ** 2 / len(labels))
    assert spread.mean() < 0.85 * response


def test_shuffled_reports_lie_between_local_ones_and_a_curator() -> None:
    found = [errors(10_000, 1.0, local=5.507, seed=seed) for seed in range(3)]
    mean = {name: np.mean([run[name] for run in found]) for name in found[0]}
    assert mean["curator"] < mean["shuffled"] < 0.2 * mean["local"]
