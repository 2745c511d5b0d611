"""Constructors written from annotated fields, against scikit-learn's own conventions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from sklearn.base import BaseEstimator

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


@pytest.mark.parametrize("given", [{}, {"epsilon": 1.0, "colour": "red"}])
def test_what_is_missing_or_unknown_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="epsilon" if not given else "colour"):
        Base(**given)
    with pytest.raises(TypeError):
        Base(1.0)  # type: ignore[misc]
