"""What is public of a ``PublicStartClassifier`` stays public, and what is saved answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.linear_model import LogisticRegression

from reticent.release.fits import not_counted
from reticent.systems import PublicStartClassifier
from reticent.systems.votes.estimator import Given
from reticent.systems.votes.started_model import curvature_told, steadied
from tests.systems.votes.tiny import Told, told

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(500, 4))
CODES = (ROWS[:, 0] + ROWS[:, 1] ** 2 + RNG.normal(size=500) > 0.5).astype(int)
PUBLIC: dict[str, Any] = {"public_X": ROWS[400:], "public_y": CODES[400:]}


def model(**more: Any) -> PublicStartClassifier:
    settings = {"epsilon": 2.0, "delta": 1e-5, "classes": (0, 1), "pool": [LogisticRegression()]}
    return PublicStartClassifier(**{**settings, **more})


@pytest.mark.parametrize(
    ("records", "counting"), [(100, "add-remove"), (100, "replace"), (None, "add-remove")]
)
def test_records_reach_the_model_by_released_sums_alone(records: int | None, counting: str) -> None:
    """With the same released sums, models of any records are the same to the bit."""

    found = []
    for n in (400, 7):
        made = model(records=records, counting=counting)
        told(made, ROWS[:n], 1 - CODES[:n], **PUBLIC)
        found.append(made.weights_)
    assert np.array_equal(*found)


def test_records_reach_a_model_without_public_labels_by_released_sums_alone() -> None:
    found = []
    for n in (400, 7):
        made = model()
        told(made, ROWS[:n], 1 - CODES[:n], public_X=PUBLIC["public_X"])
        found.append(np.r_[made.weights_[:, 0], made.bias_])
    assert np.array_equal(*found)


@pytest.mark.parametrize("records", [None, 400])
def test_a_start_without_public_labels_finds_rare_labels_and_their_rows(
    records: int | None,
) -> None:
    """One label in ten, told by one column; rows and noise come from fixed seeds."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(6400, 4))
    codes = (rows[:, 0] + 0.5 * rng.normal(size=6400) > 1.4).astype(int)
    given = None if records is None else 6000
    with not_counted("a test: nothing leaves"):
        made = model(records=given).simulate_fit(
            rows[:6000], codes[:6000], seed=0, public_X=rows[6000:]
        )
    shares = made.predict_proba(rows[:6000])[:, 1]
    assert abs(shares.mean() - codes.mean()) < 0.05
    assert shares[codes[:6000] == 1].mean() > 3.0 * shares[codes[:6000] == 0].mean()


def test_one_record_moves_a_gradient_by_its_stated_length_and_no_more() -> None:
    """Three labels, all public ones another's: a residual of length sqrt(2) is cut to 1."""
    made = model(classes=(0, 1, 2), records=1, rows="embedding")
    public_y = np.where(PUBLIC["public_X"][:, 0] > 0, 1, 0)
    given = Given(np.full((1, 4), 9.0), np.array([2]), PUBLIC["public_X"], public_y)
    voters, public = made._ready(given)
    session = Told(made._mechanism())
    made.learn(voters, public, session)  # type: ignore[arg-type]
    bound = session.mechanism.blocks[0].bound
    longest = max(float(np.linalg.norm(totals[0])) for totals in session.totals)
    assert 0.99 * bound < longest <= bound


def test_public_labels_of_one_kind_are_a_start_from_their_shares() -> None:
    made = model(records=400).simulate_fit(
        ROWS, CODES, seed=0, public_X=ROWS[:50], public_y=np.zeros(50, dtype=int)
    )
    assert np.isfinite(made.predict_proba(ROWS)).all()


@pytest.mark.parametrize("rows", ["table", "embedding"])
def test_records_beyond_the_public_rows_are_reached_and_not_overshot(rows: str) -> None:
    """All private rows lie where no public row does; rows and noise come from fixed seeds."""
    rng = np.random.default_rng(1)
    public, private = rng.normal(size=(200, 8)), rng.normal(size=(6000, 8)) + 6 * np.eye(8)[0]
    tells = np.array([0.0, 1, -1, 1, 0, 0, 0, 1]) / 2
    codes = (private @ tells + 0.2 * rng.normal(size=6000) > 0).astype(int)
    with not_counted("a test: nothing leaves"):
        made = model(epsilon=400.0, rows=rows, records=4000).simulate_fit(
            private[:4000],
            codes[:4000],
            seed=0,
            public_X=public,
            public_y=(public @ tells > 0).astype(int),
        )
    alone = made.space_.pools[0].offsets(made.space_.row_details.scaled(private[4000:]))
    public_only = float((alone.argmax(axis=1) == codes[4000:]).mean())
    best = LogisticRegression().fit(private[:4000], codes[:4000])
    reached = made.score(private[4000:], codes[4000:])
    assert reached > max(public_only, best.score(private[4000:], codes[4000:]) - 0.03)


@pytest.mark.parametrize("width", [1, 3])
def test_curvature_is_raised_to_what_a_gradient_tells_and_no_further(width: int) -> None:
    """Of records' own information nothing is missing; the public one is raised to it at most."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, m = int(rng.integers(1, 40)), int(rng.integers(1, 6))
        rows = rng.normal(size=(n, m)) + rng.integers(0, 4)
        residuals = rng.normal(size=(n, width))
        gradient, each = rows.T @ residuals, np.square(residuals).mean(axis=1)
        own = (rows * each[:, None]).T @ rows + 1e-3 * np.eye(m)
        assert np.abs(curvature_told(gradient, 0.0, n, own)).max() < 1e-9 * np.trace(own)
        public = np.diag(rng.uniform(0.01, 1.0, size=m))
        raised = public + curvature_told(gradient, 0.0, n, public)
        outer = gradient @ gradient.T / (n * width)
        assert np.linalg.eigvalsh(raised - outer).min() > -1e-9 * np.trace(raised)
        assert np.linalg.eigvalsh(public + outer - raised).min() > -1e-9 * np.trace(raised)


def test_a_gradient_of_noise_alone_tells_nothing() -> None:
    """A chance of 1 in 100 at each draw, for one direction alone; seeds are fixed."""
    rng = np.random.default_rng(0)
    for curvature in (np.eye(80) * 1e-3, np.diag([1e-5, *[1.0] * 79])):
        raised = [
            np.trace(curvature_told(rng.normal(size=(80, 1)), 1.0, 1, curvature))
            for _ in range(200)
        ]
        assert np.mean(np.array(raised) > 0) <= 0.03


def test_public_models_that_are_sure_of_few_rows_do_not_bend_the_loss_to_nothing() -> None:
    """38 rows that are all told for sure do not exclude one in 40 that is not."""
    made = model(records=100)
    made._ready(Given(ROWS[:1], CODES[:1], ROWS[400:438], CODES[400:438]))
    made.held_out_ = np.where(CODES[400:438, None] == [0, 1], 0.0, -40.0)
    curvature, _ = made._curvature(0, np.zeros((made._unit.shape[1], 1)), 100.0)
    assert np.isclose(np.trace(curvature), 100.0 * 2.0 * 0.25 / 40.0, rtol=0.05)


def test_curvature_is_drawn_halfway_to_the_one_of_ledoit_and_wolf() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 20)) * np.linspace(0.5, 2.0, 20) + 5.0 * np.eye(20)[3]
    values, basis = np.linalg.eigh(rows.T @ rows / 60)
    others = rows @ basis[:, :-1]
    share = 0.5 * ledoit_wolf_shrinkage(others, assume_centered=True)
    expected = np.r_[(1 - share) * values[:-1] + share * values[:-1].mean(), values[-1]]
    assert 0.05 < share < 0.5
    assert np.allclose(np.linalg.eigvalsh(steadied(rows)), expected)
