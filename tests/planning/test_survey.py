"""Stand-ins are dealt out as they should be, noise is scaled, and the time limit holds."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from joblib import parallel_config
from scipy.stats import norm

from reticent.core.errors import InvalidParameter
from reticent.planning import survey
from reticent.planning.candidates import PublicUse, Requirements
from reticent.planning.noise_levels import gaussian_multiplier
from reticent.planning.released_models import released_models
from reticent.planning.survey import Trials, grown
from reticent.systems.scores import criterion_of
from tests.planning.fakes import LIMITED, NOTHING, PUBLIC, Known, NoisySign, rows_and_labels, task


def trials(candidates, *, rows=400, data=None, **changed):
    X, y = rows_and_labels(rows)
    settings = {
        "rows": data if data is not None else X,
        "labels": y,
        "labelled": True,
        "tasks": (task(n_public=rows),),
        "scoring": criterion_of("accuracy"),
        "seed": 0,
        "seconds": math.inf,
        "report": lambda *told: None,
    }
    return Trials(**{**settings, **changed}).run(candidates)


@pytest.mark.parametrize("use", [PublicUse.ROWS, PublicUse.LABELS_ALONE, PublicUse.LABELS_TOO])
def test_every_row_is_scored_once_by_methods_that_never_saw_it(use):
    X, _ = rows_and_labels(100)
    X[:, 1] = np.arange(100)
    held = []

    class Watched(Known):
        def evaluate(self, settings, tasks, stand_ins, queries, **rest):
            held.append(set(queries[:, 1]))
            for rows, labels in (
                (stand_ins.private_rows, stand_ins.private_labels),
                (stand_ins.public_rows, stand_ins.public_labels),
            ):
                assert not held[-1] & set(rows[:, 1])
                assert labels is None or (labels == rows[:, 0]).all()
            return super().evaluate(settings, tasks, stand_ins, queries, **rest)

    watched = Watched("one", 1.0, requirements=Requirements(public=use))
    trials([watched], rows=100, seed=3, data=X)
    folds = held[::2]  # each fold is used at full and at half size
    assert sum(len(fold) for fold in folds) == 100
    assert set().union(*folds) == set(range(100))


@pytest.mark.parametrize(
    ("use", "private", "public"),
    [
        (PublicUse.ROWS, 320, 320),
        (PublicUse.LABELS_ALONE, 0, 320),
        (PublicUse.LABELS_TOO, 272, 48),
    ],
)
def test_stand_ins_play_the_parts_that_a_method_asks_for(use, private, public):
    candidate = Known("one", 0.9, requirements=Requirements(public=use))
    trials([candidate])
    stand_ins, scale, _ = candidate.seen[0]
    assert (len(stand_ins.private_rows), len(stand_ins.public_rows)) == (private, public)
    assert (stand_ins.public_labels is None) == (use is PublicUse.ROWS)
    assert scale == private / 10_000
    half, half_scale, _ = candidate.seen[1]
    assert len(half.private_rows) == pytest.approx(private / 2, abs=1)
    assert half_scale == len(half.private_rows) / 10_000


def test_scaled_noise_has_the_effect_that_it_will_have():
    # 60 % of the records have label 1. On all of them the sum is right with probability
    # Phi(.2 n / noise); the trials see 1,600 stand-ins, and must say the same.
    wanted = task(n_private=20_000, n_public=2000)
    random = np.random.default_rng(0)
    labels = (np.arange(2000) < 1200).astype(np.int64)
    rows = np.column_stack([labels, random.normal(size=2000)])
    for epsilon in (3e-4, 1e-3, 3e-3):
        found = Trials(
            rows=rows,
            labels=labels,
            labelled=True,
            tasks=(wanted.at(epsilon=epsilon),),
            scoring=criterion_of("accuracy"),
            seed=1,
            seconds=math.inf,
            report=lambda *told: None,
            draws=400,
        ).run([NoisySign()])
        noise = gaussian_multiplier(epsilon=epsilon, delta=1e-5)
        right = norm.cdf(0.2 * 20_000 / noise)
        # of the rows of label 1 all are right with a positive sign, of the others none
        expected = 0.6 * right + 0.4 * (1 - right)
        error = 0.2 * math.sqrt(right * (1 - right) / 2000)
        assert found.measured.mean() == pytest.approx(expected, abs=4 * error + 1e-3)
    # Without the scale the smallest total would look like a coin.
    assert right > 0.55


def test_utilities_grow_as_one_over_the_number_of_rows():
    def error(count):
        return 0.8 - 12.0 / count

    many = {"methods": ["a"], "counts": np.array([320]), "goals": np.array([10_000])}
    full, half = np.full((1, 1, 3), error(320)), np.full((1, 1, 3), error(160))
    found = grown(full, half, **many, best=1.0)
    assert found == pytest.approx(error(10_000))


def test_growth_is_bounded_and_never_negative():
    full, half = np.array([[[0.9, 0.8]], [[0.7, 0.7]]]), np.array([[[0.2, 0.1]], [[0.8, 0.8]]])
    many = {"methods": ["a", "b"], "counts": np.full(2, 100), "goals": np.full(2, 10**6)}
    found = grown(full, half, **many, best=1.0)
    assert found[0].mean() <= 1.0
    assert (found[1] == full[1]).all()


def test_settings_of_one_method_share_a_slope():
    full, half = np.full((3, 1, 1), 0.8), np.array([[[0.7]], [[0.8]], [[0.8]]])
    many = {"methods": ["a", "a", "b"], "counts": np.full(3, 100), "goals": np.full(3, 200)}
    found = grown(full, half, **many, best=1.0)
    assert found[:, 0, 0] == pytest.approx([0.825, 0.825, 0.8])


def test_nothing_is_extrapolated_beyond_the_records_that_there_are():
    full, half = np.full((1, 1, 1), 0.8), np.full((1, 1, 1), 0.6)
    for goal in (320, 100):
        many = {"methods": ["a"], "counts": np.array([320]), "goals": np.array([goal])}
        found = grown(full, half, **many, best=1.0)
        assert found == pytest.approx(0.8)


def test_settings_that_cannot_win_are_dropped_and_constants_stay():
    accuracies = [0.95, 0.94, 0.9, *(0.6 - 0.01 * place for place in range(15))]
    candidates = [Known(f"method {at:02}", share) for at, share in enumerate(accuracies)]
    floor = Known("floor", 0.5, requirements=NOTHING)
    found = trials([*candidates, floor], rows=1000)
    splits = {
        entry.candidate.name: int((~np.isnan(row[0])).sum())
        for entry, row in zip(found.entries, found.measured, strict=True)
    }
    assert splits["method 00"] == splits["method 01"] == splits["floor"] == 5
    assert splits["method 17"] == 2


def test_the_time_limit_is_kept_and_named():
    now = [0.0]

    def accuracy(stand_ins, wanted, settings):
        now[0] += 1.0
        return 0.9

    candidates = [Known(f"method {at}", accuracy) for at in range(6)]
    found = trials(candidates, seconds=30.0, clock=lambda: now[0])
    assert now[0] <= 32.0  # what has begun is waited for
    assert found.seconds == now[0]
    assert any("time limit" in why for _, why in found.left_out)
    assert not np.isnan(found.measured[:, :, 0]).any()


def test_slow_methods_enter_after_a_trial_at_half_size():
    quick = Known("quick", 0.9)
    slow = Requirements(slow=True)
    good, bad = Known("good", 0.89, requirements=slow), Known("bad", 0.6, requirements=slow)
    found = trials([good, bad, quick], rows=2000)
    assert [entry.candidate.name for entry in found.entries] == ["good", "quick"]
    ((name, why),) = found.left_out
    assert name == "bad"
    assert "half size" in why
    assert len(bad.seen) == 1


def test_a_slow_method_that_would_take_too_long_is_named():
    now = [0.0]

    def accuracy(stand_ins, wanted, settings):
        now[0] += 20.0
        return 0.9

    slow = Known("slow", accuracy, requirements=Requirements(slow=True))
    found = trials([Known("quick", 0.9), slow], seconds=70.0, clock=lambda: now[0])
    assert [name for name, _ in found.left_out] == ["slow"]
    assert now[0] <= 70.0


def test_what_cannot_be_tried_is_left_out_with_the_reason():
    found = trials(
        [Known("one", 0.9), Known("few", 0.9, requirements=LIMITED)],
    )
    assert dict(found.left_out) == {
        "few": "answers a number of queries that is fixed beforehand, and none was given"
    }
    with pytest.raises(InvalidParameter, match="none fits"):
        trials([Known("public", 0.9, requirements=PUBLIC)], labelled=False)


def test_workers_measure_what_one_measures(monkeypatch):
    """Settings of one candidate go to one worker, several candidates at once; and each goes through
    a pickle, as to another process.
    """
    candidates = [Known("one", 0.9), released_models()[0], NoisySign("sign")]
    one = trials(candidates, scoring=criterion_of("log_loss"))
    told, sent = [], []

    def as_sent(part):
        sent.append({full.entry.candidate.name for full, _ in part})
        return measured(pickle.loads(pickle.dumps(part)))

    measured = survey._measured
    monkeypatch.setattr(survey, "_measured", as_sent)
    with parallel_config(backend="threading", n_jobs=2):
        two = trials(
            candidates, scoring=criterion_of("log_loss"), report=lambda *word: told.append(word)
        )
    assert [entry.name for entry in two.entries] == [entry.name for entry in one.entries]
    np.testing.assert_allclose(two.measured, one.measured, rtol=1e-9)
    np.testing.assert_allclose(two.halves, one.halves, rtol=1e-9)
    assert (two.counts == one.counts).all()
    assert all(len(names) == 1 for names in sent)
    assert told[-1][1] == told[-1][2]


def test_several_workers_look_at_the_clock_between_groups():
    ticks = iter(np.arange(0.0, 1000.0, 1.0))
    candidates = [Known(f"number {at}", 0.9) for at in range(6)]
    with parallel_config(backend="threading", n_jobs=2):
        found = trials(candidates, seconds=2.5, clock=lambda: next(ticks))
    assert 2 <= len(found.entries) < 6
    assert any("time limit" in why for _, why in found.left_out)
