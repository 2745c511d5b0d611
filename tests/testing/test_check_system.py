"""The contract suite refuses what breaks the contract, and the page's plug-in passes it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee
from reticent.core.checks import finite_array
from reticent.core.errors import NotFittedYet
from reticent.release import Drawn, Prepaid, Price, Releasing
from reticent.testing import Case, CheckFailed, check_system, checks_of

PAGE = Path(__file__).parents[2] / "docs" / "write-your-own.md"


class Majority(Releasing, BaseEstimator):
    """Randomised response on the majority of private bits, so many times."""

    def __init__(self, epsilon: float = 1.0, data_set: str | None = None) -> None:
        self.epsilon, self.data_set = epsilon, data_set

    def fit(self, X: Any, y: Any) -> Majority:
        self.bit_ = bool(2 * np.asarray(y).sum() > len(y))
        self._prepaid = Prepaid(PrivacyEvent("majority", self.guarantee), queries=64)
        return self

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(64 * self.epsilon, 0.0, AddRemove(1, data_set=self.data_set or ""))

    def checked(self, X: Any) -> Any:
        if not hasattr(self, "bit_"):
            raise NotFittedYet("fit first")
        return finite_array(X, name="X", ndim=2)

    def price(self, inputs: Any) -> Price:
        words = "majority"
        return Price(self._prepaid.event, len(inputs), words, prepaid=self._prepaid)

    def draw(self, inputs: Any, sampler: Any) -> Drawn:
        chance = np.full(len(inputs), 1.0 / (1.0 + np.exp(self.epsilon)))
        flipped = sampler.bernoulli(chance)
        return Drawn(np.where(flipped, not self.bit_, self.bit_), np.zeros(len(inputs), bool))


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the page defines; its plug-in must pass, or this fails."""
    names: dict[str, Any] = {}
    for block in blocks()[:2]:
        exec(block, names)
    exec(blocks()[2].partition("for broken in")[0], names)
    return names


def case_of(page: dict[str, Any], name: str) -> Case:
    made = page[name](epsilon=4.0, delta=1e-5, classes=(0, 1))
    return Case(estimator=made, X=page["rows"], y=page["labels"], fit={"public_X": page["public"]})


@pytest.mark.parametrize(
    ("name", "check"),
    [("BoundTooSmall", "sums"), ("FailsAfterTheCharge", "totality"), ("HalfTheNoise", "audit")],
)
def test_what_the_page_breaks_is_refused_by_the_check_it_names(
    page: dict[str, Any], name: str, check: str
) -> None:
    """Half the noise passes the audit of six seconds about once in 10^3 runs on an idle core."""
    broken = {one.name: one for one in checks_of(case_of(page, name), seconds=15.0)}
    with pytest.raises(CheckFailed):
        broken[check]()


def test_a_model_whose_records_move_one_another_is_refused(page: dict[str, Any]) -> None:
    class Centred(page["SidesClassifier"]):  # type: ignore[misc]
        """Splits columns at the records' own median."""

        def learn(self, voters: Any, public: Any, session: Any) -> None:
            if len(voters):
                middle = np.median(voters.points, axis=0)
                object.__setattr__(voters, "points", voters.points - middle)
            super().learn(voters, public, session)

    page["Centred"] = Centred
    with pytest.raises(CheckFailed):
        check_system(case_of(page, "Centred"), seconds=0.5)


def test_answers_of_a_stranger_are_checked() -> None:
    """A system with nothing but the three methods, and one that draws before it refuses."""
    rows = np.arange(14.0).reshape(7, 2)
    case = Case(estimator=Majority(), X=rows, y=np.array([0, 1, 0, 1, 0, 1, 1]), queries=rows[:1])
    names = [check.name for check in checks_of(case, seconds=0.5)]
    assert "threads" in names
    for check in checks_of(case, seconds=0.5):
        if check.name not in ("audit", "forks"):
            check()
