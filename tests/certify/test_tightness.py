"""The claim of tightness, on the networks of the benchmark that measures it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np


def test_enumeration_is_tight_on_networks_trained_on_digits():
    """Median over held-out points at most 1.12 times what a search finds; intervals are at least 1.4 times."""
    path = Path(__file__).parents[2] / "benchmarks" / "certify.py"
    spec = importlib.util.spec_from_file_location("benchmark_certify", path)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    ratios = benchmark.tightness(range(1), 40, restarts=32)
    assert (ratios["enumeration"] >= 1).all()
    assert np.median(ratios["enumeration"]) <= 1.12
    assert 1.4 <= np.median(ratios["interval"]) <= 2.5
