"""A plan takes the best method, says what it cannot know, and never asks for a private record."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer

from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.planning.candidates import Requirements, all_candidates
from reticent.planning.planner import plan, standard_errors
from reticent.planning.planner import planned as planned_from
from reticent.planning.plans import CLOSE
from reticent.planning.prior import Case, Prior, noise_level
from reticent.planning.public_rows import PublicRows
from reticent.planning.survey import Entry, Survey
from reticent.systems.scores import criterion_of
from reticent.tables.attributes import Categorical, Numeric
from reticent.tables.schema import TabularSchema
from tests.planning.fakes import LIMITED, NOTHING, PUBLIC, Known, rows_and_labels, task

WANTED = {"n_private": 10_000, "epsilon": 1.0, "delta": 1e-5, "scoring": "accuracy"}


def planned(candidates, *, rows=400, **changed):
    X, y = rows_and_labels(rows)
    settings = {**WANTED, "random_state": 0, "prior": Prior(()), **changed}
    return plan(X, settings.pop("y", y), candidates=candidates, **settings)


def test_the_better_method_is_taken_and_regret_vanishes_as_rows_grow():
    """Methods 2 points apart: with few rows a plan errs, with many it does not."""
    regrets = []
    for rows in (60, 6000):
        lost = 0.0
        for seed in range(12):
            methods = [Known("a", 0.86), Known("bb", 0.88), Known("ccc", 0.84)]
            taken = planned(methods, rows=rows, random_state=seed).winner.method
            lost += 0.88 - {"a": 0.86, "bb": 0.88, "ccc": 0.84}[taken]
        regrets.append(lost / 12)
    assert regrets[0] > 0
    assert regrets[1] == 0


def test_expected_utility_is_within_its_standard_errors():
    misses = []
    for seed in range(10):
        row = planned([Known("a", 0.8)], rows=2000, random_state=seed).winner
        misses.append((row.utility - 0.8) / row.error)
    # the extrapolation takes the larger of two noisy slopes, so errors are not exactly normal
    assert np.abs(misses).mean() < 2.5


def test_the_winner_is_an_unfitted_estimator_with_its_settings():
    X, y = load_breast_cancer(return_X_y=True)
    found = plan(X, y, **WANTED, random_state=0, candidates=[PublicRows()])
    estimator = found.estimator
    assert estimator is not found.estimator
    assert estimator.fit(X, y).score(X, y) > 0.95
    assert found.best.behind == 0
    assert [row.score for row in found.rows] == sorted(
        (row.score for row in found.rows), reverse=True
    )


def test_plans_of_one_seed_are_equal():
    def found(seed):
        plan_ = planned([Known("a", 0.8), Known("bb", 0.82)], random_state=seed)
        return {key: value for key, value in plan_.to_dict().items() if key != "seconds"}

    assert found(5) == found(5)
    assert found(5) != found(6)


def test_a_constant_that_nothing_beats_is_named():
    floor = Known("floor", 0.7, requirements=NOTHING)
    worse = planned([Known("a", 0.69), floor], rows=2000)
    assert any("no method here beats the constant" in warning for warning in worse.warnings)
    better = planned([Known("a", 0.9), floor], rows=2000)
    assert not any("constant" in warning for warning in better.warnings)


def test_public_rows_that_are_enough_are_named():
    alone = Known("alone", 0.9, requirements=PUBLIC)
    enough = planned([Known("a", 0.88), alone], rows=2000)
    assert any("nothing private is needed" in warning for warning in enough.warnings)
    assert enough.guess_cap == 0.5
    needed = planned([Known("a", 0.95), alone], rows=2000)
    assert not any("nothing private is needed" in warning for warning in needed.warnings)
    assert needed.guess_cap == pytest.approx(1 / (1 + math.exp(-1)), abs=1e-4)


def test_public_rows_alone_are_taken_where_others_are_hardly_ahead():
    alone = Known("alone", 0.9, requirements=PUBLIC)
    close = [planned([Known("a", 0.9), alone], rows=600, random_state=seed) for seed in range(8)]
    taken = [found.winner.method for found in close]
    assert taken.count("alone") > 4  # half of them, were the higher score always taken
    for found in close:
        behind = found.best.score - next(row.score for row in found.rows if row.method == "alone")
        assert (found.winner.method == "alone") == (behind <= CLOSE * found.close)
    far = planned([Known("a", 0.95), alone], rows=1900)
    assert far.winner.method == "a"


def test_many_public_rows_decide_by_what_was_measured_on_them():
    """A private method may be far ahead by the score, and is not taken for that."""
    alone = Known("alone", 0.9, requirements=PUBLIC)
    level = noise_level(task(n_public=2000))
    elsewhere = Case("other", 0.2, level, {"accuracy": {"a": 0.0, "alone": 0.5}})
    taken = []
    for share in (0.9, 0.91, 0.97):
        for seed in range(4):
            found = planned(
                [Known("a", share), alone],
                rows=2000,
                random_state=seed,
                prior=Prior((elsewhere, replace(elsewhere, data="third"))),
            )
            row = next(row for row in found.rows if row.method == "alone")
            assert (found.winner is row) == (row.behind <= CLOSE * row.behind_error)
            said = [text for text in found.warnings if text.startswith("public rows alone")]
            assert bool(said) == (found.best is row or row.behind <= 2 * row.behind_error)
            assert all(("may train" in text) == (found.best is not row) for text in said)
            taken.append((share, found.winner.method))
    assert {method for share, method in taken if share == 0.97} == {"a"}
    assert sum(method == "alone" for share, method in taken if share == 0.9) >= 2


def test_few_public_rows_decide_by_the_score():
    """Measured, both are level; on other data sets public rows alone were far behind."""
    alone = Known("alone", 0.9, requirements=PUBLIC)
    level = noise_level(task(n_public=600))
    elsewhere = Case("other", 0.2, level, {"accuracy": {"a": 0.0, "alone": 0.5}})
    prior = Prior((elsewhere, replace(elsewhere, data="third")))
    level_as_measured = 0
    for seed in range(8):
        found = planned([Known("a", 0.9), alone], rows=600, random_state=seed, prior=prior)
        row = next(row for row in found.rows if row.method == "alone")
        behind = found.best.score - row.score
        assert (found.winner is row) == (behind <= CLOSE * found.close)
        level_as_measured += found.winner is not row and row.behind <= CLOSE * row.behind_error
    assert level_as_measured


@pytest.mark.parametrize(("grown_by", "first"), [(0.0, "b"), (0.1, "a")])
def test_what_is_extrapolated_counts_as_unsure(grown_by, first):
    wanted = task(n_public=500)
    entries = (Entry(Known("a", 0.8), {}), Entry(Known("b", 0.8), {}))
    folds = 0.001 * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    measured = np.array([0.80 + folds, 0.82 - folds])[:, None, :]
    survey = Survey(
        (wanted,), entries, measured, measured - grown_by, np.array([400.0, 400.0]), 1.0, (), 0.0
    )
    elsewhere = Case("other", 0.05, noise_level(wanted), {"accuracy": {"a": 0.0, "b": 0.05}})
    found = planned_from(survey, criterion_of("accuracy"), labelled=True, prior=Prior((elsewhere,)))
    assert found.best.method == first
    # Both grow alike, so measurements keep their distance, whatever the prior says.
    assert abs(found.rows[0].utility - found.rows[1].utility) == pytest.approx(0.02)


def test_errors_of_cross_validation_are_not_too_small():
    """Scores that share a fifth of their variance, as the correction assumes of five folds: twice
    the corrected error covers as often as Student's t with four degrees of freedom says.
    """
    random = np.random.default_rng(0)
    scores = 0.5 * random.normal(size=(20_000, 1)) + random.normal(size=(20_000, 5))
    means = np.abs(scores.mean(axis=1))
    expected = 1 - 2 * student.sf(2, df=4)
    assert (means <= 2 * standard_errors(scores)).mean() == pytest.approx(expected, abs=0.01)
    plain = scores.std(axis=1, ddof=1) / 5**0.5
    assert (means <= 2 * plain).mean() < expected - 0.1


@pytest.mark.parametrize(
    ("rows", "private", "wanted"),
    [(400, 10_000, 2000), (1999, 100, 2000), (2000, 10_000, 0), (2000, 10_001, 2001)],
)
def test_few_public_rows_are_named(rows, private, wanted):
    """Fewer than 2,000, or than a fifth of the private records."""
    warnings = planned([Known("a", 0.9)], rows=rows, n_private=private).warnings
    if not wanted:
        assert warnings == ()
    else:
        (warning,) = (text for text in warnings if "labelled public rows" in text)
        assert f"{rows} labelled public rows: with fewer than {wanted} " in warning


def test_without_labels_methods_are_only_ranked():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(150, 2)), random.normal(size=(50, 2)) + 8])

    class Clusters(Known):
        def evaluate(self, settings, tasks, stand_ins, queries, **rest):
            queries = np.column_stack([queries[:, 0] > 4, queries[:, 1]])
            return super().evaluate(settings, tasks, stand_ins, queries, **rest)

    methods = [Clusters("worse", 0.6), Clusters("better", 0.9), Known("p", 1, requirements=PUBLIC)]
    flipped = plan(
        X,
        None,
        **WANTED,
        classes=["no", "yes"],
        prevalence=[0.75, 0.25],
        random_state=0,
        candidates=methods,
    )
    # which cluster is which label is not known: the one that is right most often may be wrong most
    assert {row.method for row in flipped.rows} == {"worse", "better"}
    assert all(math.isnan(row.utility) for row in flipped.rows)
    assert any("what accuracy to expect cannot be said" in text for text in flipped.warnings)
    assert dict(flipped.left_out) == {"p": "needs labels of public rows"}
    assert json.dumps(flipped.to_dict(), allow_nan=False)


def test_answers_at_which_prediction_stops_paying():
    """Prediction loses a tenth for every factor of ten in answers; training has .75 for good."""

    def chance(stand_ins, task, settings):
        return 0.95 - 0.1 * math.log10(task.answers)

    prediction = Known("prediction", chance, requirements=LIMITED)
    training = Known("training", 0.75)
    found = planned([prediction, training], rows=4000, answers=10)
    # .95 - .1 log10 Q = .75 at Q = 100
    assert 40 < found.most_answers < 250
    assert found.winner.method == "prediction"
    late = planned([prediction, training], rows=4000, answers=10_000)
    assert late.winner.method == "training"
    assert late.winner.answers is None
    assert planned([Known("t", 0.99), prediction], rows=4000, answers=10).most_answers == 0
    assert planned([training], answers=10).most_answers is None


def test_the_curve_has_every_total_and_every_method():
    found = planned([Known("a", 0.8), Known("bb", 0.9)], epsilons=[0.5, 2.0], answers=10)
    assert {(point.method, point.at) for point in found.curve} == {
        (method, epsilon) for method in ("a", "bb") for epsilon in (0.5, 1.0, 2.0)
    }


def test_a_baseline_without_an_estimator_is_never_the_winner():
    found = planned([Known("baseline", 0.95, made=False), Known("a", 0.8)], rows=2000)
    assert found.best.method == "baseline"
    assert found.winner.method == "a"
    assert any("only to compare with" in warning for warning in found.warnings)


def test_other_packages_register_candidates(monkeypatch):
    from reticent.planning import candidates as module

    class Entry:
        def load(self):
            return lambda: [Known("theirs", 0.9)]

    monkeypatch.setattr(
        module, "entry_points", lambda *, group: [Entry()] * (group == module.GROUP)
    )
    module._registered.cache_clear()
    try:
        assert "theirs" in {candidate.name for candidate in all_candidates()}
        monkeypatch.setattr(module, "entry_points", lambda *, group: [Entry(), Entry()])
        module._registered.cache_clear()
        with pytest.raises(InvalidInput, match="twice: theirs"):
            all_candidates()
    finally:
        monkeypatch.undo()
        module._registered.cache_clear()


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 0.0},
        {"n_private": 0},
        {"adjacency": "neighborhood"},
        {"scoring": "f1"},
        {"y": None},
        {"y": None, "classes": ["one"]},
        {"y": None, "classes": [0, 1], "prevalence": [0.5, 0.6]},
        {"prevalence": [0.5, 0.5]},
        {"rows": 10},
        {"epsilons": [-1.0]},
    ],
)
def test_arguments_that_do_not_fit_are_refused(changed):
    never = Known("never", 0.9)
    with pytest.raises((InvalidInput, InvalidParameter, UnknownName)):
        planned([never], **changed)
    assert never.seen == []


def test_frames_and_words_are_what_arrays_are():
    X, y = rows_and_labels(400)
    words = np.array(["ill", "well"])[y]
    frame = pytest.importorskip("polars").DataFrame({"a": X[:, 0], "b": X[:, 1]})

    def found(rows, labels):
        return plan(rows, labels, **WANTED, random_state=0, candidates=[PublicRows()])

    named, plain = found(frame, words), found(X, y)
    assert [row.to_dict() for row in named.rows] == [row.to_dict() for row in plain.rows]
    assert named.task.label_list == ["ill", "well"]
    fitted = named.estimator.fit(X, words)
    assert set(fitted.predict(X)) == {"ill", "well"}


def test_columns_of_words_need_a_schema():
    pandas = pytest.importorskip("pandas")
    X, y = rows_and_labels(100)
    frame = pandas.DataFrame({"a": X[:, 0], "place": np.array(["north", "south"])[y]})
    with pytest.raises(InvalidInput, match="pass schema="):
        plan(frame, y, **WANTED, candidates=[PublicRows()])
    schema = TabularSchema((Numeric("a", -5.0, 5.0), Categorical("place", ("north", "south"))))
    found = plan(
        frame[["place", "a"]],  # by name, whatever their order
        y,
        **WANTED,
        schema=schema,
        random_state=0,
        candidates=[PublicRows()],
    )
    assert found.winner.utility > 0.95


def test_needs_are_checked():
    pure = planned([Known("a", 0.9), Known("p", 0.8, requirements=PUBLIC)], delta=0.0)
    assert dict(pure.left_out) == {"a": "needs delta above 0"}
    replaced = planned(
        [Known("a", 0.9), Known("b", 0.8, requirements=Requirements(replace=False))],
        adjacency="replace",
    )
    assert dict(replaced.left_out) == {"b": "has no guarantee for replaced records"}
    extra = Requirements(module="no_such_module", extra="baselines")
    missing = planned([Known("a", 0.9), Known("b", 0.8, requirements=extra)])
    assert "baselines" in dict(missing.left_out)["b"]
