"""The package's own methods as candidates: noise is scaled, estimators are real."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from reticent.noise import SeededSampler
from reticent.planning.candidates import PublicUse, all_candidates
from reticent.planning.certified import _each, _released
from reticent.planning.tasks import StandIns
from reticent.systems.methods import BUILT_IN
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


@pytest.mark.parametrize("name", [name for name in PRIVATE if name not in SCALED_TOO])
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
def test_estimators_are_registered_unfitted_and_of_the_labels_that_records_have(name):
    """Whatever a plan names can be found by ``reticent methods`` and fitted by ``reticent fit``."""
    candidate, one = CANDIDATES[name], replace(wanted(), labels=("no", "yes"))
    for settings in candidate.settings(one):
        made = candidate.estimator(settings, one)
        if made is None:
            assert name == "PATE"
            continue
        assert type(clone(made)) is type(made)
        if name not in PRIVATE:
            continue  # scikit-learn's own
        last = made[-1] if isinstance(getattr(made, "steps", None), list) else made
        assert type(last).__name__ in {method.name for method in BUILT_IN}
        assert last.get_params()["classes"] == ["no", "yes"]


@pytest.mark.parametrize(
    "name", ["cells", "moment", "noisy gradient descent", "warm start", "student"]
)
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


def test_query_votes_are_those_of_the_estimator():
    candidate = CANDIDATES["linear vote"]
    one, settings = wanted(), candidate.settings(wanted())[0]
    where = places(candidate)
    queries, _ = rows(50, 3)
    ((draw,),) = candidate.evaluate(settings, [one], where, queries, noise_scale=1.0, seeds=[5])
    fitted = candidate.estimator(settings, one).fit(
        where.private_rows, where.private_labels, public_X=where.public_rows
    )
    assert (draw.labels == fitted.simulate(queries, seed=5).values).all()


def test_individual_votes_are_those_of_the_estimator():
    """With a scale of 1 and as many queries as answers."""
    candidate = CANDIDATES["individual kNN"]
    one, where = wanted(5.0), places(candidate)
    queries, truth = rows(20, 3)
    for settings in candidate.settings(one):
        ((draw,),) = candidate.evaluate(settings, [one], where, queries, noise_scale=1.0, seeds=[5])
        fitted = candidate.estimator(settings, one).fit(
            where.private_rows, where.private_labels, public_X=where.public_rows
        )
        assert (draw.labels == fitted.simulate(queries, seed=5).values).all()
        assert (draw.labels == truth).mean() > 0.8


def test_individual_budgets_are_those_of_as_many_answers_as_will_be_asked():
    """Many queries of a task of few answers are each asked of budgets that are whole."""
    candidate = CANDIDATES["individual kNN"]
    settings = {"share": 0.4, "part": 0.05, "power": 0}
    queries, truth = rows(300, 9)
    right = []
    for asked in (wanted(1e4), wanted(1e4).at(answers=300)):
        ((draw,),) = candidate.evaluate(
            settings, [asked], places(candidate), queries, noise_scale=1.0, seeds=[0]
        )
        right.append((draw.labels == truth).mean())
    # 20 answers and votes for one of them: most of 300 would find nobody left in one session
    assert right[0] > 0.6
    assert right[1] == pytest.approx(right[0], abs=0.25)


@pytest.mark.parametrize("name", ["certified prediction", "convex certified prediction"])
def test_half_as_many_stand_ins_are_as_stable_once_scaled(name):
    candidate = CANDIDATES[name]
    one, (queries, truth) = wanted(0.3), rows(300, 9)
    right = []
    for records, scale in ((400, 1.0), (200, 0.5)):
        (draws,) = candidate.evaluate(
            candidate.settings(one)[-1],
            [one],
            places(candidate, records),
            queries,
            noise_scale=scale,
            seeds=range(6),
        )
        right.append(float(np.mean([(draw.labels == truth).mean() for draw in draws])))
    assert right[0] == pytest.approx(right[1], abs=0.06)
    assert 0.55 < right[0] < 0.98  # neither drowned nor free of noise


@pytest.mark.parametrize("name", ["certified prediction", "convex certified prediction"])
def test_certified_answers_are_gaussian_where_there_are_many(name):
    candidate = CANDIDATES[name]
    for answers, mechanism in ((1, "stability"), (10_000, "signed-distance")):
        one = wanted(2.0).at(answers=answers)
        made = candidate.estimator(candidate.settings(one)[0], one)
        where = places(candidate)
        fitted = made.fit(where.private_rows, where.private_labels)[-1]
        assert fitted.mechanism == mechanism
        assert fitted.total(answers=answers, delta=1e-5).epsilon == pytest.approx(2.0, rel=1e-3)
        assert fitted.total(answers=answers, delta=1e-5).epsilon <= 2.0 + 1e-9


def test_released_labels_are_right_as_often_as_their_mechanism_says():
    labels, levels = np.zeros(20_000, dtype=np.int64), np.full(20_000, 12)
    for answers in (1, 10_000):
        one = wanted(2.0).at(answers=answers)
        each = _each(one)
        mechanism = each.mechanism(2, one.guarantee.adjacency)
        drawn = mechanism.release(labels, levels, sampler=SeededSampler(1))
        told = _released(one, labels, levels, seed=2)
        # two shares of 20,000: 4.5 joint standard errors
        assert abs((told == 0).mean() - (drawn == 0).mean()) < 4.5 * 0.5 * np.sqrt(2 / 20_000)


def test_a_student_is_taught():
    candidate = CANDIDATES["student"]
    where, one = places(candidate), wanted()
    for settings in candidate.settings(one):
        fitted = candidate.estimator(settings, one).simulate_fit(
            where.private_rows, where.private_labels, seed=5, public_X=where.public_rows
        )
        assert fitted.student_ is not None


@pytest.mark.slow
def test_dp_sgd_learns_where_its_noise_lets_it():
    pytest.importorskip("opacus")
    candidate = CANDIDATES["DP-SGD"]
    assert accuracy(candidate, 1e-3, 1.0, draws=1) > 0.9
    assert candidate.estimator({}, wanted()) is None
