"""Constructors written from annotated fields, against scikit-learn's own conventions."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from sklearn.base import BaseEstimator, clone

from reticent.core.settings import Group, learned, with_settings


@dataclass(frozen=True)
class Schedule(Group):
    """Settings of a part."""

    epochs: int = 3
    rate: float = 0.5


@with_settings
class Base(BaseEstimator):
    """Settings that several share."""

    kind: ClassVar[str] = "base"
    epsilon: float
    seed: int = 0
    schedule: Schedule | None = None
    rows_: int = learned()


class Undecorated(Base):
    """Declares no settings: its fields are for type checkers."""

    width: Any = None


@with_settings
class Model(Undecorated):
    """Settings of its own, one with another default."""

    classes: list[str]
    steps: int = 5
    seed: int = 7


def test_needed_settings_come_first_and_then_the_estimators_own() -> None:
    parameters = inspect.signature(Model).parameters
    assert list(parameters) == ["epsilon", "classes", "steps", "seed", "schedule"]
    assert {each.kind for each in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["seed"].default == 7
    assert parameters["steps"].annotation == "int"


def test_values_are_stored_as_they_are() -> None:
    classes, schedule = ["a", "b"], Schedule(epochs=9)
    model = Model(epsilon=1.0, classes=classes, schedule=schedule)
    assert vars(model) == {
        "epsilon": 1.0, "classes": classes, "steps": 5, "seed": 7, "schedule": schedule
    }  # fmt: skip
    assert model.classes is classes
    assert not hasattr(model, "rows_")


def test_scikit_learn_copies_sets_and_shows_them() -> None:
    model = Model(epsilon=1.0, classes=["a"], schedule=Schedule(epochs=9))
    assert model.get_params()["schedule__epochs"] == 9
    assert Model(epsilon=1.0, classes=["a"]).get_params().keys() == {
        "epsilon", "classes", "steps", "seed", "schedule"
    }  # fmt: skip
    for again in (clone(model), pickle.loads(pickle.dumps(model))):
        assert again.get_params() == model.get_params()
    assert model.set_params(steps=8).steps == 8
    assert repr(Model(epsilon=1.0, classes=["a"])) == "Model(classes=['a'], epsilon=1.0)"


@pytest.mark.parametrize("given", [{}, {"epsilon": 1.0, "colour": "red"}])
def test_what_is_missing_or_unknown_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="epsilon" if not given else "colour"):
        Base(**given)
    with pytest.raises(TypeError):
        Base(1.0)  # type: ignore[misc]
