"""Score bins end to end: what is chosen and stored, every bin against every other, audits, and the
server that knows the channel.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from reticent.audit import audit_fitted, refute_recorded
from reticent.core import Guarantee, Replace
from reticent.core.errors import CorruptBundle, InvalidInput, UnknownName
from reticent.noise import AuditSampler
from reticent.release.bundle import Bundle
from reticent.systems import VectorTraining, train_server
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.score_query import ScoreBins, ScoreCodeQuery
from reticent.tables.attributes import Categorical, Numeric
from reticent.tables.schema import TabularSchema

SCHEMA = TabularSchema((Numeric("a", 0, 10), Categorical("c", ("x", "y", "z"))))
RUNS = 10_000


def table_of(count: int, seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    rows = np.empty((count, 2), dtype=object)
    rows[:, 0] = random.uniform(0, 10, count)
    rows[:, 1] = random.choice(["x", "y", "z"], size=count)
    edges = np.array([7.0 if classes == 2 else 3.5, 7.0])[: classes - 1]
    labels = np.searchsorted(edges, rows[:, 0].astype(float) + random.normal(size=count))
    return rows, np.array(["no", "yes", "very"])[labels]


def fitted(epsilon: float = 2.0, classes: int = 2, **changes: Any) -> PowerEncoder:
    return PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=None,
        schema=SCHEMA,
        **{"mechanism": "score-code", "random_state": 0, **changes},
    ).fit(*table_of(800, 0, classes))


@pytest.fixture(scope="module")
def encoder() -> PowerEncoder:
    return fitted()


def test_the_guarantee_holds_between_all_records(encoder: PowerEncoder) -> None:
    assert encoder.guarantee == Guarantee(2.0, 0.0, Replace(1))
    grid = np.array([[a, c] for a in np.linspace(-1, 11, 60) for c in "xyz"], dtype=object)
    probabilities = encoder.exact(grid)
    assert len(np.unique(probabilities[:, 0])) >= 2  # not all in one bin
    losses = np.log(probabilities[:, None, :] / probabilities[None, :, :])
    assert 1.99 < losses.max() <= 2.0


def test_plans_are_ranked_by_what_is_told(encoder: PowerEncoder) -> None:
    utilities = np.array([plan.utility for plan in encoder.considered_])
    assert (np.diff(utilities) <= 1e-8).all()
    assert encoder.query_.plan == encoder.considered_[0]
    with pytest.raises(UnknownName, match="scoring="):
        fitted(scoring="f1")


def test_bundles_that_are_not_private_or_do_not_fit_are_refused(
    encoder: PowerEncoder, tmp_path
) -> None:
    stored = encoder.bundle()
    cheaper = copy.deepcopy(stored.settings)
    cheaper["plan"]["epsilon"] = 1.9
    fewer = {**stored.arrays, "channel.shares": stored.arrays["channel.shares"][:1]}
    bins = {**stored.arrays, "bins": np.array([[np.nan]])}
    for settings, arrays in (
        (cheaper, stored.arrays),
        (stored.settings, fewer),
        (stored.settings, bins),
    ):
        Bundle(stored.system, settings, arrays, stored.card).write(tmp_path / "b", overwrite=True)
        with pytest.raises(CorruptBundle):
            PowerEncoder.load(tmp_path / "b")


def test_the_audit_is_near_the_claim_and_refutes_half_of_it(encoder: PowerEncoder) -> None:
    query = encoder.query_
    assert isinstance(query, ScoreCodeQuery)
    rows = SCHEMA.encode(np.array([[0.0, "x"], [10.0, "x"]], dtype=object))
    values = query.exact(rows)
    best = int((values[1] / values[0]).argmax())

    def scores(row: np.ndarray, seed: int) -> np.ndarray:
        answer, _ = query.answer(np.tile(row, (RUNS, 1)), sampler=AuditSampler(seed))
        return answer[:, best]

    found = refute_recorded(
        scores(rows[1], 1), scores(rows[0], 2), epsilon=2.0, delta=0.0, alpha=1e-3, seed=0
    ).excluded(delta=0.0)
    assert 1.0 < found <= 2.0  # planted: whoever claims half the cost is refuted
    report = audit_fitted(encoder, table_of(300, 5)[0], draws=RUNS, alpha=0.01, seed=0)
    assert 0.5 < report.excluded <= report.epsilon == 2.0


def test_servers_know_the_channel(encoder: PowerEncoder) -> None:
    (rows, labels), (fresh, wanted) = table_of(6000, 3), table_of(6000, 4)
    released = encoder.simulate(rows, seed=1).values
    tested = encoder.simulate(fresh, seed=2).values
    server = train_server("channel", released, labels, seed=0, channel=encoder.channel_)
    p = server.predict_proba(tested)
    assert server.classes.tolist() == ["no", "yes"]
    for output in range(tested.shape[1]):
        of = tested[:, output] == 1
        assert p[of, 1].mean() == pytest.approx((wanted[of] == "yes").mean(), abs=0.06)
    assert set(server.predict(tested)) <= {"no", "yes"}
    balanced = server.predict(tested, balanced=True)
    recall = [(balanced[wanted == word] == word).mean() for word in ("no", "yes")]
    assert np.mean(recall) > 0.7


def test_no_channel_without_score_bins(encoder: PowerEncoder) -> None:
    other = PowerEncoder(
        epsilon=2.0,
        delta=0.0,
        radius=None,
        schema=SCHEMA,
        mechanism="code",
        training=VectorTraining(epochs=1),
    ).fit(*table_of(200, 0))
    with pytest.raises(InvalidInput, match="mechanism='score-code'"):
        _ = other.channel_


@pytest.mark.parametrize(
    ("table", "scores"),
    [(np.array([[1.0, 0.0]]), 1), (np.zeros((1, 0)), 1), (np.zeros((2, 2)), 3)],
)
def test_bins_that_cut_nothing_are_refused(table: np.ndarray, scores: int) -> None:
    with pytest.raises(CorruptBundle, match="bins"):
        ScoreBins(table, scores)
    assert ScoreBins(np.array([[0.0, 1.0]]), 1).of(np.array([[-1.0], [0.0], [3.0]])).tolist() == [
        0,
        1,
        2,
    ]
