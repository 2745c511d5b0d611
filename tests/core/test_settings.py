"""Constructors written from annotated fields, and where training starts from."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from reticent.core.errors import InvalidParameter
from reticent.core.seeds import training_generator, training_seed
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


def test_without_a_seed_the_global_generator_is_neither_read_nor_advanced() -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        drawn.append(training_seed(None))
        assert np.random.randint(1000) == 684  # noqa: NPY002
    assert drawn[0] != drawn[1]  # equal with probability 2^-31


def test_a_seed_repeats_and_a_generator_of_the_caller_is_used() -> None:
    assert training_seed(3) == training_seed(np.int64(3)) == training_seed(np.random.RandomState(3))
    mine = np.random.RandomState(5)
    assert training_generator(mine) is mine


@pytest.mark.parametrize(
    "state",
    [np.random, np.random.mtrand._rand, True, -1, 2**32, 1.5, "seed", np.random.default_rng(0)],
)
def test_anything_else_is_refused(state: Any) -> None:
    with pytest.raises(InvalidParameter, match="random_state: "):
        training_generator(state)
