"""The package's own methods as candidates: noise is scaled, estimators are real."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from reticent.planning.candidates import PublicUse, all_candidates
from reticent.planning.tasks import StandIns
from tests.planning.fakes import task

CANDIDATES = {one.name: one for one in all_candidates()}
QUICK = [name for name in CANDIDATES if name != "DP-SGD"]
FEATURES = 4


def rows(count, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    return random.normal(size=(count, FEATURES)) + 2.0 * labels[:, None], labels


def places(candidate, records=400, seed=0):
    private, labels = rows(records, seed)
    public, public_labels = rows(200, seed + 1)
    labelled = candidate.requirements.public is not PublicUse.ROWS
    return StandIns(public, public_labels if labelled else None, private, labels)


def wanted(epsilon=1.0, **changed):
    base = task(
        n_private=changed.pop("n_private", 400),
        n_public=200,
        features=FEATURES,
        answers=20,
        lower=(-6.0,) * FEATURES,
        upper=(8.0,) * FEATURES,
    )
    return base.at(epsilon=epsilon)


def accuracy(candidate, scale, epsilon, draws=6):
    queries, truth = rows(300, 9)
    one = wanted(epsilon)
    (found,) = candidate.evaluate(
        candidate.settings(one)[0],
        [one],
        places(candidate),
        queries,
        noise_scale=scale,
        seeds=range(draws),
    )
    assert len(found) == draws
    return float(np.mean([(draw.labels == truth).mean() for draw in found]))


@pytest.mark.parametrize("name", QUICK)
def test_predictions_are_labels_and_probabilities_of_every_query(name):
    candidate = CANDIDATES[name]
    tasks = [wanted(0.5), wanted(2.0)]
    queries, _ = rows(50, 3)
    settings = candidate.settings(tasks[0])[0]
    found = candidate.evaluate(
        settings, tasks, places(candidate), queries, noise_scale=0.5, seeds=[1, 2]
    )
    assert [len(draws) for draws in found] == [2, 2]
    for draw in (draw for draws in found for draw in draws):
        assert draw.labels.shape == (50,)
        assert set(draw.labels) <= {0, 1}
        if draw.probabilities is not None:
            assert draw.probabilities.sum(axis=1) == pytest.approx(1.0)
    again = candidate.evaluate(
        settings, tasks, places(candidate), queries, noise_scale=0.5, seeds=[1, 2]
    )
    assert all(
        (first.labels == second.labels).all()
        for one, other in zip(found, again, strict=True)
        for first, second in zip(one, other, strict=True)
    )


SCALED_TOO = ("warm start", "private kNN")
"""A warm start is worth something under any noise; neighbours are scaled with theirs."""

PRIVATE = [
    name
    for name in QUICK
    if CANDIDATES[name].requirements.public in (PublicUse.ROWS, PublicUse.LABELS_TOO)
]


@pytest.mark.parametrize(
    "name", [name for name in PRIVATE if name not in ("warm start", "private kNN")]
)
def test_less_noise_is_worth_more(name):
    """Noise that drowns 400 records leaves them readable once it is scaled down a thousandfold."""
    candidate = CANDIDATES[name]
    epsilon = 0.05 if name == "PATE" else 0.002  # below 0.01 its noise is beyond what is computed
    loud, quiet = accuracy(candidate, 1.0, epsilon), accuracy(candidate, 1e-3, epsilon)
    assert loud < 0.85
    assert quiet > loud + 0.05


def test_neighbours_are_scaled_with_the_noise():
    """Fewer stand-ins have fewer neighbours and less noise: the answer is as good as with more."""
    candidate = CANDIDATES["private kNN"]
    loud, quiet = accuracy(candidate, 1.0, 0.05), accuracy(candidate, 1.0, 20.0)
    assert loud < 0.7 < 0.85 < quiet
    assert accuracy(candidate, 0.5, 20.0) == pytest.approx(quiet, abs=0.08)


@pytest.mark.parametrize("name", QUICK)
def test_estimators_are_unfitted_and_can_be_cloned(name):
    candidate = CANDIDATES[name]
    one = wanted()
    for settings in candidate.settings(one):
        estimator = candidate.estimator(settings, one)
        if name == "PATE":
            assert estimator is None
            continue
        assert type(clone(estimator)) is type(estimator)


@pytest.mark.parametrize("name", ["cells", "moment", "noisy gradient descent", "warm start"])
def test_released_models_are_those_of_the_estimator(name):
    """With a scale of 1 the trial is the estimator's own simulation."""
    candidate = CANDIDATES[name]
    one, settings = wanted(), candidate.settings(wanted())[0]
    where = places(candidate)
    queries, _ = rows(50, 3)
    ((draw,),) = candidate.evaluate(settings, [one], where, queries, noise_scale=1.0, seeds=[5])
    fitted = candidate.estimator(settings, one).simulate_fit(
        where.private_rows,
        where.private_labels,
        seed=5,
        public_X=where.public_rows,
        public_y=where.public_labels,
    )
    assert draw.probabilities == pytest.approx(fitted.predict_proba(queries))


@pytest.mark.parametrize("name", ["linear vote", "radius votes"])
def test_query_votes_are_those_of_the_estimator(name):
    candidate = CANDIDATES[name]
    one, settings = wanted(), candidate.settings(wanted())[0]
    where = places(candidate)
    queries, _ = rows(50, 3)
    ((draw,),) = candidate.evaluate(settings, [one], where, queries, noise_scale=1.0, seeds=[5])
    fitted = candidate.estimator(settings, one).fit(
        where.private_rows, where.private_labels, public_X=where.public_rows
    )
    assert (draw.labels == fitted.simulate(queries, seed=5).values).all()


@pytest.mark.slow
def test_dp_sgd_learns_where_its_noise_lets_it():
    pytest.importorskip("opacus")
    candidate = CANDIDATES["DP-SGD"]
    assert accuracy(candidate, 1e-3, 1.0, draws=1) > 0.9
    assert candidate.estimator({}, wanted()) is None
