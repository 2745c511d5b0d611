"""Problems: shapes, public maps that treat each record alone, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import UnknownName
from reticent.demos.certified.problems import PROBLEMS, problem_of, whitening
from reticent.systems import CertifiedClassifier, CertifiedEnsemble


def test_a_record_is_mapped_the_same_in_any_company() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 17))
    white = whitening(random.normal(size=(100, 17)), 5, floor=0.02)
    together = white(rows)
    for index in range(0, 60, 7):
        np.testing.assert_array_equal(white(rows[index : index + 1])[0], together[index])


def test_whitening_is_the_principal_components() -> None:
    public = np.random.default_rng(1).normal(size=(400, 4)) @ np.diag([4.0, 3.0, 2.0, 1.0]) + 5.0
    mapped = whitening(public, 3, floor=0.0)(public)
    np.testing.assert_allclose(np.cov(mapped.T, bias=True), np.eye(3), atol=1e-9)
    values, vectors = np.linalg.eigh(np.cov(public.T, bias=True))
    for index in range(3):
        oracle = (
            (public - public.mean(axis=0)) @ vectors[:, -1 - index] / np.sqrt(values[-1 - index])
        )
        np.testing.assert_allclose(np.abs(mapped[:, index]), np.abs(oracle), atol=1e-8)


@pytest.mark.parametrize("name", ["blobs", "blobs-close", "digits"])
def test_problems_without_files(name: str) -> None:
    problem = problem_of(name)
    assert problem.X.shape[1] == problem.queries.shape[1]
    assert set(np.unique(problem.truth)) <= set(range(problem.classes))
    assert isinstance(problem.system(), CertifiedClassifier)
    ensemble = problem.system(25)
    assert isinstance(ensemble, CertifiedEnsemble)
    assert 20 <= ensemble.k_max <= problem.k_max


def test_unknown_problems_are_named() -> None:
    with pytest.raises(UnknownName, match=", ".join(PROBLEMS)):
        problem_of("moons")
