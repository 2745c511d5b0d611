"""Labels by the nearest public row: what is promised, what it is worth, and what is refused."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from reticent.attacks import attack_fitted
from reticent.audit import audit_fitted
from reticent.core.errors import (
    InvalidInput,
    InvalidParameter,
)
from reticent.grids.shares import WHOLE
from reticent.systems import NearestRowClassifier
from reticent.tables import NamedRows

DIGITS = load_digits()
ORDER = np.random.default_rng(0).permutation(len(DIGITS.data))
X, Y = DIGITS.data[ORDER] / 16, DIGITS.target[ORDER]
PUBLIC, LABELS, ASKED, TRUTH = X[:900], Y[:900], X[900:], Y[900:]
QUICK = LogisticRegression(max_iter=200)
GIVEN = {"nodes": 300, "neighbours": 5, "classifier": QUICK, "random_state": 0}


@cache
def fitted(epsilon: float = 1.0) -> NearestRowClassifier:
    """One fit for all tests: a test that changes it copies it."""
    return NearestRowClassifier(epsilon=epsilon, **GIVEN).fit(PUBLIC, LABELS)


def accuracy(system: NearestRowClassifier) -> float:
    return float(system.probabilities(ASKED)[np.arange(len(TRUTH)), TRUTH].mean())


def test_every_pair_of_joined_rows_is_within_epsilon() -> None:
    system = fitted(1.0)
    logs = np.log(system.probabilities(system.graph_.points))
    first, second = system.graph_.edges.T
    loss = np.abs(logs[first] - logs[second]).max()
    assert 0.9 < loss <= 1.0 + 1e-12
    assert system.guarantee == system.query_.mechanism.guarantee
    assert (system.guarantee.epsilon, system.guarantee.delta) == (1.0, 0.0)
    assert system.guarantee.adjacency == system.graph_.adjacency


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_it_is_ahead_of_randomised_response_by_far(epsilon: float) -> None:
    """Response answers with the exact classifier's own label, and protects any two inputs."""
    system = fitted(epsilon)
    exact = QUICK.fit(PUBLIC, LABELS).score(ASKED, TRUTH)
    kept = math.exp(epsilon) / (math.exp(epsilon) + 9)
    response = exact * kept + (1 - exact) * (1 - kept) / 9
    assert accuracy(system) > response + 0.3
    assert system.worth_ <= system.bound_ < system.worth_ + 0.02
    assert abs(accuracy(system) - system.worth_) < 0.13


def test_counterfactuals_cost_more_than_the_nearest_and_less_than_any_two() -> None:
    near = fitted(1.0)
    other = NearestRowClassifier(epsilon=1.0, **GIVEN).fit(PUBLIC, LABELS, attribute=LABELS)
    assert accuracy(other) < accuracy(near) - 0.2
    assert accuracy(other) > 0.3 > math.e / (math.e + 9)
    rows = {row.tobytes(): label for row, label in zip(PUBLIC, LABELS, strict=True)}
    values = np.array([rows[row.tobytes()] for row in other.graph_.points])
    assert (values[other.graph_.edges[:, 0]] != values[other.graph_.edges[:, 1]]).all()
    assert "another value" in other.card().protected
    assert other.guarantee.adjacency != near.guarantee.adjacency


def test_nodes_are_public_rows_no_two_alike() -> None:
    rows = PUBLIC[:150]
    system = NearestRowClassifier(epsilon=1.0, **GIVEN).fit(
        np.concatenate([rows, rows]), np.tile(LABELS[:150], 2)
    )
    assert system.graph_.size == len(np.unique(rows, axis=0))
    assert {row.tobytes() for row in system.graph_.points} <= {row.tobytes() for row in rows}


def test_an_answer_depends_on_its_own_row_alone_and_none_is_withheld() -> None:
    system = fitted()
    together = system.probabilities(ASKED[:40])
    alone = np.concatenate([system.probabilities(row[None]) for row in ASKED[:40]])
    assert np.array_equal(together, alone)
    extreme = np.full((2, 64), 1e300) * [[1.0], [-1.0]]
    assert not system.release(extreme).withheld.any()


def test_words_and_frames_come_back_as_they_went_in() -> None:
    columns = tuple(f"pixel {place}" for place in range(64))
    words = np.array([f"digit {label}" for label in LABELS])
    system = NearestRowClassifier(epsilon=2.0, **GIVEN).fit(NamedRows(PUBLIC, columns), words)
    permuted = NamedRows(ASKED[:, ::-1], columns[::-1])
    assert set(system.release(permuted).values) <= set(words)
    assert np.array_equal(
        system.probabilities(permuted), system.probabilities(NamedRows(ASKED, columns))
    )
    right = system.exact_predict(NamedRows(ASKED, columns)) == [f"digit {label}" for label in TRUTH]
    assert right.mean() > 0.9
    with pytest.raises(InvalidInput, match="no column names"):
        system.release(ASKED)


def test_an_audit_comes_close_to_the_claim_and_finds_a_broken_table() -> None:
    system = deepcopy(fitted(1.0))
    found = audit_fitted(system, ASKED[:50], draws=80_000, alpha=1e-3, seed=0)
    assert not found.refuted
    assert found.excluded > 0.7
    shares = system.query_.mechanism.shares.copy()
    first = int(system.graph_.edges[0, 0])
    shares[:, first] = [2**20] * 9 + [WHOLE - 9 * 2**20]
    object.__setattr__(system.query_.mechanism, "shares", shares)
    broken = audit_fitted(system, system.graph_.points[[first]], draws=40_000, alpha=1e-3, seed=0)
    assert broken.refuted


def test_attacks_stay_below_their_caps_and_find_the_table_of_a_larger_epsilon() -> None:
    system = deepcopy(fitted(1.0))
    asked = {"candidates": 24, "trials": 2_000, "decoder": False, "seed": 0}
    found = attack_fitted(system, ASKED[:200], columns={"digit": TRUTH[:200]}, **asked)
    assert not found.exceeded
    more = fitted(4.0).query_.mechanism.shares
    object.__setattr__(system.query_.mechanism, "shares", more)
    assert attack_fitted(system, ASKED[:200], **asked).exceeded


def test_where_the_guarantee_measures_distance_is_the_graph() -> None:
    system = fitted()
    vectors = system.embed(system.graph_.points[:50])
    assert np.array_equal(vectors, system.graph_.hop_counts(system.graph_.points[:50]))
    assert system.guarantee.adjacency.radius == 1.0


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"epsilon": 0.0}, InvalidParameter),
        ({"nodes": 1}, InvalidParameter),
        ({"nodes": 20_001}, InvalidParameter),
        ({"neighbours": 300}, InvalidInput),
        ({"classifier": "boosted"}, InvalidParameter),
    ],
)
def test_parameters_that_do_not_fit_are_refused(changed: dict, error: type) -> None:
    with pytest.raises(error):
        NearestRowClassifier(**{"epsilon": 1.0, **GIVEN, **changed}).fit(PUBLIC, LABELS)


def test_a_label_of_one_row_is_no_obstacle() -> None:
    labels = LABELS.copy()
    labels[0] = 11
    system = NearestRowClassifier(epsilon=1.0, **GIVEN).fit(PUBLIC, labels)
    assert len(system.classes_) == 11


@pytest.mark.parametrize("attribute", [LABELS[1:], np.zeros(900)])
def test_an_attribute_that_parts_no_rows_is_refused(attribute: np.ndarray) -> None:
    with pytest.raises(InvalidInput):
        NearestRowClassifier(epsilon=1.0, **GIVEN).fit(PUBLIC, LABELS, attribute=attribute)
