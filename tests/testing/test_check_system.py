"""The contract suite refuses what breaks the contract, and the page's plug-in passes it."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from dataclasses import replace
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


def checks_by_name(case: Case, seconds: float) -> dict[str, Any]:
    return {check.name: check for check in checks_of(case, seconds=seconds)}


@pytest.mark.parametrize(
    ("name", "check"),
    [("BoundTooSmall", "sums"), ("FailsAfterTheCharge", "totality"), ("HalfTheNoise", "audit")],
)
def test_what_the_page_breaks_is_refused_by_the_check_it_names(
    page: dict[str, Any], name: str, check: str
) -> None:
    """Half the noise passes the audit of six seconds about once in 10^3 runs on an idle core."""
    with pytest.raises(CheckFailed):
        checks_by_name(case_of(page, name), 15.0)[check]()


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


def test_an_answer_about_no_records_that_is_no_number_is_refused() -> None:
    class Share(Majority):
        """The share of a bit: no number for no records, which tells that there are none."""

        def fit(self, X: Any, y: Any) -> Share:
            self.share_ = np.sum(y) / len(y) if len(y) else np.nan
            return super().fit(X, y)

        def draw(self, inputs: Any, sampler: Any) -> Drawn:
            return Drawn(np.full(len(inputs), self.share_), np.zeros(len(inputs), bool))

    rows = np.arange(14.0).reshape(7, 2)
    case = Case(estimator=Share(), X=rows, y=np.array([0, 1, 0, 1, 0, 1, 1]), queries=rows[:1])
    check = checks_by_name(case, 0.5)["few records"]
    with pytest.raises(CheckFailed, match="few records"):
        check()


def test_answers_that_do_not_follow_their_law_are_refused() -> None:
    rows, labels = np.arange(14.0).reshape(7, 2), np.array([0, 1, 0, 1, 0, 1, 1])

    def law(fitted: Majority) -> dict[bool, float]:
        right = 1.0 / (1.0 + np.exp(-1.0))
        return {fitted.bit_: right, not fitted.bit_: 1.0 - right}

    for epsilon, holds in ((1.0, True), (1.2, False)):
        case = Case(estimator=Majority(epsilon), X=rows, y=labels, queries=rows[:1], law=law)
        check = checks_by_name(case, 6.0)["noise"]
        if holds:
            check()
        else:
            with pytest.raises(CheckFailed, match="noise"):
                check()


def test_a_person_who_counts_for_every_record_is_refused(page: dict[str, Any]) -> None:
    class EachRecord(page["SidesClassifier"]):  # type: ignore[misc]
        """Sums over records, whoever owns them."""

        def learn(self, voters: Any, public: Any, session: Any) -> None:
            object.__setattr__(voters, "starts", None)
            super().learn(voters, public, session)

    page["EachRecord"] = EachRecord
    persons = np.array([0, 0, 0, 1, 2, 2, 3, 3])
    for name, whose, holds in (
        ("SidesClassifier", persons, True),
        ("EachRecord", None, True),
        ("EachRecord", persons, False),
    ):
        check = checks_by_name(replace(case_of(page, name), persons=whose), 0.5)["sums"]
        if holds:
            check()
        else:
            with pytest.raises(CheckFailed, match="sums"):
                check()


def test_neighbours_lack_all_records_of_a_person(page: dict[str, Any]) -> None:
    persons = np.array([0, 0, 0, 1, 2, 2, 3, 3])
    case = replace(case_of(page, "SidesClassifier"), persons=persons)
    found = [one.persons.tolist() for one in case.changed()]
    assert [1, 2, 2, 3, 3] in found
    assert [0, 0, 0, 1, 3, 3] in found
    assert [*persons, 4, 4, 4] in found
    assert all(len(set(one) ^ set(persons.tolist())) == 1 for one in found)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of somebody else, as the page shows it."""
    made = blocks()
    (tmp_path / "sides.py").write_text(made[0], encoding="utf-8")
    (tmp_path / "test_contract.py").write_text(made[-1], encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "sides"\nversion = "1"\ndependencies = ["reticent"]\n', encoding="utf-8"
    )
    return tmp_path


def run_tests_of(package: Path, *only: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a package as its owner does."""
    paths = os.pathsep.join([str(package), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_contract.py", *only],
        cwd=package, env={**os.environ, "PYTHONPATH": paths}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip


def test_the_package_of_a_stranger_is_tested_by_its_own_tests(package: Path) -> None:
    for file in ("sides.py", "test_contract.py"):
        for node in ast.walk(ast.parse((package / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("reticent"):
                public = importlib.import_module(str(node.module)).__all__
                assert {name.name for name in node.names} <= set(public)
    found = run_tests_of(package)
    assert found.returncode == 0, found.stdout
    assert "12 passed" in found.stdout
