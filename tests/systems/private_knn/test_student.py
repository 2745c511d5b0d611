"""The loop: rounds under one total, a student that predicts for anyone, and a bundle without
private records.
"""

from __future__ import annotations

import pickle
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CorruptBundle,
    InvalidInput,
    InvalidParameter,
    LedgerUnavailable,
    NotFittedYet,
)
from reticent.datasets import load_digits
from reticent.ledger import Ledger, Reservation
from reticent.release import Bundle
from reticent.systems import Features, Neighbours, PrivateKNNStudent
from reticent.training.nearest_labels import NearestLabels
from reticent.training.students import StudentConfig
from reticent.training.surest_student import SurestStudent

DATA = load_digits()
X, Y = DATA.train_images[:1000], DATA.train_labels[:1000]
PUBLIC, TRUTH = DATA.train_images[1000:], DATA.train_labels[1000:]
STUDENT = StudentConfig(
    image_shape=(1, 8, 8),
    channels=(8, 16),
    width=32,
    epochs=60,
    learning_rate=5e-3,
    turn=0.1,
    zoom=0.05,
    shift=0.05,
)
SETTINGS: dict[str, Any] = {
    "epsilon": 6.0,
    "delta": 1e-5,
    "queries": (60, 40),
    "neighbours": Neighbours(number=30, sampling_probability=0.5),
    "features": Features(components=20),
    "student": STUDENT,
    "classes": range(10),
    "random_state": 0,
}


@pytest.fixture(scope="module")
def fitted() -> PrivateKNNStudent:
    return PrivateKNNStudent(**SETTINGS).fit(X, Y, public=PUBLIC)


def test_the_student_learns_under_one_total(fitted: PrivateKNNStudent) -> None:
    # The noise is never seeded. More than eight labels in ten are right on average: six in ten
    # leave six standard deviations.
    assert (fitted.predict(DATA.test_images) == DATA.test_labels).mean() > 0.5
    assert 5.8 < fitted.guarantee.epsilon <= 6.0
    assert fitted.plan_.steps.queries == 100
    assert [len(places) for places in fitted.rounds_] == [60, 40]
    asked = np.concatenate(fitted.rounds_)
    assert len(set(asked.tolist())) == 100
    assert (fitted.released_[np.setdiff1d(np.arange(len(PUBLIC)), asked)] == -1).all()
    assert (fitted.released_[asked] == TRUTH[asked]).mean() > 0.6
    np.testing.assert_allclose(fitted.predict_proba(PUBLIC[:5]).sum(axis=1), 1, atol=1e-5)


def test_a_bundle_predicts_the_same_and_holds_nothing_private(
    fitted: PrivateKNNStudent, tmp_path: Path
) -> None:
    folder = fitted.save(tmp_path / "student")
    loaded = PrivateKNNStudent.load(folder)
    assert (loaded.predict_proba(PUBLIC[:20]) == fitted.predict_proba(PUBLIC[:20])).all()
    assert loaded.guarantee == fitted.guarantee
    assert loaded.bundle().identity == fitted.bundle().identity
    bundle = Bundle.read(folder)
    assert set(bundle.arrays) == set(fitted.student_.state_dict())
    (folder / "weights.safetensors").write_bytes(b"x")
    with pytest.raises(CorruptBundle):
        PrivateKNNStudent.load(folder)
    other = Bundle("PosthocEncoder", {}, bundle.arrays, "").write(tmp_path / "other")
    with pytest.raises(InvalidInput, match="holds a PosthocEncoder"):
        PrivateKNNStudent.load(other)


def test_the_card_travels_with_the_bundle(tmp_path: Path) -> None:
    config = StudentConfig(image_shape=(1, 8, 8), channels=(4, 4), width=8, epochs=1)
    changes = {
        "queries": (10,),
        "student": config,
        "features": Features(map="hog"),
        "classes": "observed",
    }
    student = PrivateKNNStudent(**{**SETTINGS, **changes})
    student.fit(X, Y, list(range(len(X))), public=PUBLIC[:30])
    card = student.card()
    assert card.guarantee == student.guarantee
    folder = student.save(tmp_path / "student")
    assert PrivateKNNStudent.load(folder).card() == card
    assert (folder / "card.md").read_text() == card.to_markdown()
    stored = Bundle.read(folder)
    for spoiled in (
        {},
        {**stored.settings["card"], "origin": "a guess"},
        {**stored.settings["card"], "by_person": 1},
        None,
    ):
        Bundle(stored.system, {**stored.settings, "card": spoiled}, stored.arrays, "").write(
            tmp_path / "other", overwrite=True
        )
        with pytest.raises(CorruptBundle, match="do not fit together"):
            PrivateKNNStudent.load(tmp_path / "other")


def test_a_failed_commit_keeps_the_student_and_the_plan_that_was_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope(subject="records")
    with closing(Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")) as ledger:
        ledger.grant(scope, Guarantee(6.5, 1e-4, AddRemove(data_set="digits")))
        student = PrivateKNNStudent(**{**SETTINGS, "student": "svm", "data_set": "digits"})

        def fail(*_: object) -> None:
            raise LedgerUnavailable("the disk is full; nothing is released")

        with monkeypatch.context() as broken:
            broken.setattr(Reservation, "commit", fail)
            with pytest.raises(LedgerUnavailable):
                student.fit(X, Y, public=PUBLIC, ledger=ledger, scope=scope)
            with pytest.raises(LedgerUnavailable):
                student.commit()
        assert not hasattr(student, "released_")
        with pytest.raises(NotFittedYet):
            student.predict(PUBLIC)
        assert pickle.loads(pickle.dumps(student))._unbooked is None
        assert student.commit().predict(PUBLIC).shape == (len(PUBLIC),)
        [account] = ledger.report().accounts
        assert account.answers == 1
        assert student.receipt_.booked
        assert ledger.verify().ok
        with pytest.raises(NotFittedYet, match="there is none"):
            student.commit()


def test_a_fit_that_is_refused_leaves_an_earlier_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    student = PrivateKNNStudent(
        **{**SETTINGS, "student": "svm", "queries": (8,), "features": Features(map="hog")},
        data_set="students",
    )
    scope = Scope(subject="students")
    with closing(Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")) as ledger:
        adjacency = AddRemove(data_set="students")
        ledger.grant(scope, Guarantee(9.0, 1e-4, adjacency))
        student.fit(X, Y, public=PUBLIC, ledger=ledger, scope=scope)
        before = dict(vars(student))
        wide = np.tile(X, (1, 2, 2))
        with pytest.raises(BudgetExceeded):
            student.fit(wide, Y, public=np.tile(PUBLIC, (1, 2, 2)), ledger=ledger, scope=scope)
        assert vars(student) == before

        def prepared(*_: object) -> None:
            raise AssertionError("costly preparation before the books were looked at")

        monkeypatch.setattr("reticent.systems.private_knn.student.feature_map_of", prepared)
        with pytest.raises(InvalidInput):
            student.fit(X, Y, public=PUBLIC, ledger=ledger)
        with pytest.raises(InvalidInput):
            student.set_params(data_set=None).fit(X, Y, public=PUBLIC, ledger=ledger, scope=scope)
    assert student.receipt_.booked


def test_a_machine_on_public_features_learns_from_the_surest_labels() -> None:
    student = PrivateKNNStudent(**{**SETTINGS, "student": "svm"}).fit(X, Y, public=PUBLIC)
    assert (student.predict(DATA.test_images) == DATA.test_labels).mean() > 0.6
    assert student.student_.kept.sum() == 88
    np.testing.assert_allclose(student.predict_proba(PUBLIC[:5]).sum(axis=1), 1)
    with pytest.raises(InvalidInput, match="student='svm'"):
        student.bundle()
    with pytest.raises(InvalidParameter, match="student='forest'"):
        PrivateKNNStudent(**{**SETTINGS, "student": "forest"}).fit(X, Y, public=PUBLIC)


def test_only_a_student_that_beats_its_own_labels_is_kept() -> None:
    machine = {**SETTINGS, "student": "svm"}
    rows, labels = DATA.test_images, DATA.test_labels
    first = PrivateKNNStudent(**machine).fit(
        X, Y, public=PUBLIC, validation_X=rows, validation_y=labels
    )
    # Validation labels that nothing here can be right about: a tie, and the labels stay. So little
    # noise that no label without a vote is ever released.
    second = PrivateKNNStudent(**{**machine, "epsilon": 500.0, "queries": (20,)}).fit(
        X,
        Y % 9,
        public=PUBLIC,
        validation_X=rows,
        validation_y=np.full(len(rows), 9),
    )
    for student in (first, second):
        check = student.check_
        assert check is not None
        assert check.kept == isinstance(student.student_, SurestStudent)
    # Whoever stays is scored as it answers, on rows that it did not learn from.
    stays = max(first.check_.student, first.check_.labels)
    assert (first.predict(rows) == labels).mean() == stays
    assert (second.check_.student, second.check_.labels) == (0.0, 0.0)
    assert isinstance(second.student_, NearestLabels)
    asked = np.concatenate(second.rounds_)
    assert (second.predict(PUBLIC[asked]) == second.released_[asked]).all()
    np.testing.assert_allclose(second.predict_proba(rows).sum(axis=1), 1)
    with pytest.raises(InvalidInput, match="no student beat its labels"):
        second.bundle()


def test_a_plan_that_was_paid_ends_in_a_student_though_all_labels_are_withheld(
    tmp_path: Path,
) -> None:
    every = {
        **SETTINGS,
        "neighbours": Neighbours(threshold=1e4),
        "data_set": "digits",
    }
    rows, labels = DATA.test_images, DATA.test_labels
    with closing(Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")) as ledger:
        scope = Scope(subject="digits")
        ledger.grant(scope, Guarantee(6.5, 1e-4, AddRemove(data_set="digits")))
        fitted = PrivateKNNStudent(**every).fit(
            X,
            Y,
            public=PUBLIC,
            validation_X=rows,
            validation_y=labels,
            ledger=ledger,
            scope=scope,
        )
        [account] = ledger.report().accounts
    assert account.answers == 1
    assert fitted.receipt_.booked
    assert (fitted.released_ == -1).all()
    assert (fitted.predict(rows) == 0).all()
    assert fitted.check_ is not None
    assert not fitted.check_.kept


def test_validation_rows_that_do_not_fit_cost_nothing(tmp_path: Path) -> None:
    student = PrivateKNNStudent(**{**SETTINGS, "student": "svm", "data_set": "digits"})
    rows, labels = DATA.test_images, DATA.test_labels
    with closing(Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL")) as ledger:
        scope = Scope(subject="digits")
        ledger.grant(scope, Guarantee(6.5, 1e-4, AddRemove(data_set="digits")))
        for given in (
            {"validation_X": rows},
            {"validation_X": rows[:, :4], "validation_y": labels},
            {"validation_X": rows, "validation_y": labels[1:]},
            {"validation_X": rows, "validation_y": labels + 5},
        ):
            with pytest.raises(InvalidInput, match="validation_"):
                student.fit(X, Y, public=PUBLIC, ledger=ledger, scope=scope, **given)
        assert not ledger.report().accounts


@pytest.mark.parametrize(
    ("changes", "public", "error", "message"),
    [
        ({"student": (STUDENT,)}, PUBLIC, InvalidParameter, "student"),
        ({"student": (STUDENT, "svm")}, PUBLIC, InvalidParameter, "student"),
        ({"queries": ()}, PUBLIC, InvalidParameter, "expected at least one round"),
        ({"queries": (400, 400)}, PUBLIC, InvalidParameter, "at most 438 queries"),
        ({}, PUBLIC[:, :4], InvalidInput, "public: expected inputs of shape"),
    ],
)
def test_what_does_not_fit_is_refused(
    changes: dict[str, Any], public: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PrivateKNNStudent(**{**SETTINGS, **changes}).fit(X, Y, public=public)
