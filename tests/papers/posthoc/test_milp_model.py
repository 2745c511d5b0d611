"""Programs built from blocks: small ones with known answers, and what HiGHS says when it has
none.
"""

from __future__ import annotations

from time import thread_time

import numpy as np
import pytest

from papers.posthoc.milp_model import Program


def knapsack() -> tuple[Program, np.ndarray]:
    """Values 10, 13, 7 with weights 3, 4, 2 and room 6, scaled so that the objective is a sum:
    20 by the last two.
    """
    program = Program()
    taken = program.variables(np.zeros(3), np.ones(3), integer=True)
    worth = program.variables(np.zeros(3), np.full(3, 20.0))
    program.rows(0.0, 0.0, (worth, 1.0), (taken, [-10.0, -13.0, -7.0]))
    program.rows(-np.inf, 6.0, (taken, [[3.0, 4.0, 2.0]]))
    return program, worth


def test_knapsack_has_its_known_answer():
    program, worth = knapsack()
    answer = program.solve(worth, maximise=True)
    assert answer.status == "optimal"
    assert answer.objective == pytest.approx(20.0)
    assert answer.bound == pytest.approx(20.0)
    assert answer.values is not None
    assert np.round(answer.values[:3]).tolist() == [0, 1, 1]


def test_the_limit_counts_processor_time_and_stops_a_search_on_its_way():
    rng = np.random.default_rng(0)
    program = Program()
    worth = program.variables(np.zeros(200), np.ones(200), integer=True)
    weights = rng.integers(1, 1000, (40, 200)).astype(float)
    program.rows(-np.inf, weights.sum(axis=1) / 2, (worth, weights))
    start = thread_time()
    answer = program.solve(worth, maximise=True, cpu_seconds=0.3)
    assert answer.status == "Processor time limit reached"
    assert 0.3 <= thread_time() - start < 5.0
