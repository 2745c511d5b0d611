"""What is public of a start from public labels or targets stays public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.linear_model import LogisticRegression, Ridge

from reticent.mechanisms import NoisySums
from reticent.release.fits import not_counted
from reticent.systems import PublicStartClassifier, PublicStartRegressor
from reticent.systems.votes.estimator import Given
from reticent.systems.votes.started_model import curvature_told, steadied

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(500, 4))
CODES = (ROWS[:, 0] + ROWS[:, 1] ** 2 + RNG.normal(size=500) > 0.5).astype(int)
TARGETS = ROWS[:, 0] + np.abs(ROWS[:, 1]) + 0.3 * RNG.normal(size=500)
PUBLIC: dict[str, Any] = {"public_X": ROWS[400:], "public_y": CODES[400:]}
PUBLIC_TARGETS: dict[str, Any] = {"public_X": ROWS[400:], "public_y": TARGETS[400:]}


def model(**more: Any) -> PublicStartClassifier:
    settings = {"epsilon": 2.0, "delta": 1e-5, "classes": (0, 1), "pool": [LogisticRegression()]}
    return PublicStartClassifier(**{**settings, **more})


def regressor(**more: Any) -> PublicStartRegressor:
    settings = {"epsilon": 4.0, "delta": 1e-5, "target_range": (-3, 5), "pool": [Ridge()]}
    return PublicStartRegressor(**{**settings, **more})


class Told:
    """Stands for a ``SumSession``: keeps the totals, and "releases" the same numbers to everybody,
    so that what follows can differ only where it depends on records in another way.
    """

    sampler = None
    noise_scale = 1.0

    def __init__(self, mechanism: NoisySums) -> None:
        self.mechanism, self.sigmas = mechanism, mechanism.sigmas
        self.totals: list[list[np.ndarray]] = []

    def release(self, totals: Any) -> tuple[np.ndarray, ...]:
        arrays = [np.array(total, dtype=np.float64) for total in totals]
        self.totals.append(arrays)
        rng = np.random.default_rng(len(self.totals))
        return tuple(
            np.rint(rng.normal(size=array.shape) * sigma).astype(np.int64)
            for array, sigma in zip(arrays, self.sigmas, strict=True)
        )


def told(made: Any, X: np.ndarray, y: Any, **public: Any) -> Told:
    """Let ``made`` learn from numbers that have nothing to do with the records."""
    voters, rows = made._ready(Given(X, y, **public))
    session = Told(made._mechanism())
    made.learn(voters, rows, session)
    return session


STARTS: dict[str, tuple[Any, np.ndarray, dict[str, Any]]] = {
    "counted": (model(), 1 - CODES, PUBLIC),
    "stated": (model(records=100), 1 - CODES, PUBLIC),
    "replaced": (model(records=100, counting="replace"), 1 - CODES, PUBLIC),
    "no public labels": (model(), 1 - CODES, {"public_X": PUBLIC["public_X"]}),
    "targets": (regressor(), -TARGETS, PUBLIC_TARGETS),
    "targets, stated": (regressor(records=400), -TARGETS, PUBLIC_TARGETS),
}


@pytest.mark.parametrize("name", STARTS)
def test_records_reach_the_model_by_released_sums_alone(name: str) -> None:
    """With the same released sums, models of any records are the same to the bit."""
    unfitted, y, public = STARTS[name]
    found = []
    for n in (400, 7):
        made = clone(unfitted)
        told(made, ROWS[:n], y[:n], **public)
        parts = ("weights_", "bias_", "cuts_")
        found.append([np.asarray(getattr(made, part, 0.0)).tolist() for part in parts])
    assert found[0] == found[1]


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


@pytest.mark.parametrize(
    ("made", "y", "public_y"),
    [
        # three labels, all public ones another's: a residual of length sqrt(2) is cut to 1
        (model(classes=(0, 1, 2), records=1, rows="embedding"), [2], ROWS[400:, 0] > 0),
        # a target far beyond what public models say of it
        (regressor(records=1, rows="embedding"), [-1e9], TARGETS[400:]),
    ],
)
def test_one_record_moves_a_gradient_by_its_stated_length_and_no_more(
    made: Any, y: Any, public_y: np.ndarray
) -> None:
    given = {"public_X": ROWS[400:], "public_y": public_y.astype(TARGETS.dtype)}
    session = told(made, np.full((1, 4), 9.0), np.array(y), **given)
    bound = session.mechanism.blocks[0].bound
    longest = max(float(np.linalg.norm(totals[0])) for totals in session.totals)
    assert 0.99 * bound < longest <= bound


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
def test_public_targets_that_are_all_alike_stop_no_fit_that_is_paid(counting: str) -> None:
    """Public models are sure of everything then, and nothing may be divided by their spread."""
    made = regressor(records=400, counting=counting, epsilon=0.1)
    made.fit(ROWS[:400], TARGETS[:400], public_X=ROWS[400:], public_y=np.zeros(100))
    assert np.isfinite(made.predict(ROWS[:9])).all()


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
