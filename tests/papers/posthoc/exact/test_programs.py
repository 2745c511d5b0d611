"""Feasibility: against HiGHS, with every refutation and every point checked, and exactly at the
edge of rounding.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from papers.posthoc.exact.programs import Inequalities, Refutation, exactly_feasible, feasible_point


def fractions(values):
    return [Fraction(float(value)) for value in values]


def random_case(rng, *, whole=False):
    n, k = int(rng.integers(1, 9)), int(rng.integers(1, 25))
    rows, offsets = (
        rng.normal(size=(k, n)),
        rng.normal(size=k) * np.sqrt(n) * rng.choice([0.1, 0.5]),
    )
    if whole:
        rows, offsets = np.round(2 * rows), np.round(2 * offsets)
    half = float(rng.choice([0.25, 1.0]))
    return Inequalities(rows, offsets, np.full(k, 1e-12)), np.full(n, -half), np.full(n, half)


def feasible_by_highs(case, lower, upper):
    answer = linprog(
        np.zeros(len(lower)), -case.rows, case.offsets, bounds=list(zip(lower, upper, strict=True))
    )
    return answer.status == 0


def test_points_and_refutations_are_what_highs_says_and_prove_themselves():
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(200):
        case, lower, upper = random_case(rng)
        found = feasible_point(case, lower, upper, rng.uniform(lower, upper))
        kinds.add(type(found))
        if isinstance(found, Refutation):
            assert case.refuted_by(found, lower, upper)
            assert (found.weights > 0).all()
            assert not feasible_by_highs(case, lower, upper)
        else:
            assert found is not None
            assert ((found >= lower) & (found <= upper)).all()
            assert (case.rows @ found + case.offsets > 0).all()
    assert kinds == {Refutation, np.ndarray}


def test_exact_answers_are_what_highs_says_also_where_edges_touch():
    """Whole numbers, so that boxes, half-spaces and their corners touch all the time."""
    rng = np.random.default_rng(1)
    answers = []
    for trial in range(30):
        case, lower, upper = random_case(rng, whole=trial % 2 == 0)
        rows, offsets = [fractions(row) for row in case.rows], fractions(case.offsets)
        point = exactly_feasible(rows, offsets, fractions(lower), fractions(upper))
        assert (point is not None) == feasible_by_highs(case, lower, upper)
        answers.append(point is not None)
        if point is not None:
            assert all(
                low <= x <= high
                for low, x, high in zip(fractions(lower), point, fractions(upper), strict=True)
            )
            values = [
                sum(a * x for a, x in zip(row, point, strict=True)) + b
                for row, b in zip(rows, offsets, strict=True)
            ]
            assert min(values) >= 0
    assert len(set(answers)) == 2


def test_a_refutation_of_a_feasible_set_is_not_accepted():
    """Planted faults: a combination that proves nothing, and one that is negative by less than
    the errors.
    """
    case = Inequalities(np.array([[1.0], [-1.0]]), np.array([-1.0, 1.0 - 1e-13]), np.full(2, 1e-12))
    lower, upper = np.array([0.0]), np.array([2.0])
    assert not case.refuted_by(Refutation(np.array([0]), np.array([1.0])), lower, upper)
    assert not case.refuted_by(Refutation(np.array([0, 1]), np.array([1.0, 1.0])), lower, upper)
    apart = Inequalities(case.rows, np.array([-1.0, 1.0 - 1e-9]), case.errors)
    assert apart.refuted_by(Refutation(np.array([0, 1]), np.array([1.0, 1.0])), lower, upper)
