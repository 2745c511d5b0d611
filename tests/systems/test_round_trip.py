"""Every estimator, fitted, stored, read back and asked: what a change of Python or of a package
that others wrote would break first. And what its card assumes.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reticent
from reticent.core import Replace
from reticent.systems.clauses import (
    FLOAT64,
    FRESH_NOISE,
    HOW_MANY,
    MACHINE,
    REFUSED_RECORD,
    UNTIMED,
)
from reticent.testing import Case


def cases_of(room: str) -> dict[str, Case]:
    """The cases of a contract suite; imported late, since some packages may not be there."""
    suite = import_module(f"tests.systems.{room}test_contract")
    found: dict[str, Case] = suite.cases() if hasattr(suite, "cases") else suite.CASES
    return found


def check_assumptions(name: str, case: Case, fitted: Any) -> None:
    """Records are clipped, compared and added up in float64, and certificates computed in it. Of
    inputs without one, the mechanism says whether its proof rests on float64. That a record is
    refused shows to whoever sees it, and with ``Replace`` so does the number of records.
    """
    stated = fitted.card().assumptions
    assert {FRESH_NOISE, UNTIMED, MACHINE} <= set(stated), name
    needed = case.kind != "input" or (
        fitted.query_.certificate != "none" or fitted.query_.mechanism.rests_on_float64
    )
    assert needed == (FLOAT64 in stated), name
    assert not (needed and name == "score codes")
    if case.kind != "input":
        shown = fitted.card().not_protected
        assert REFUSED_RECORD in shown, name
        assert (HOW_MANY in shown) == isinstance(fitted.guarantee.adjacency, Replace), name


@pytest.mark.filterwarnings("ignore:X:UserWarning")  # of rows that were cut to a public bound
@pytest.mark.parametrize("room", ["", "votes.", "private_knn."], ids=["inputs", "votes", "knn"])
def test_what_is_read_back_is_what_was_fitted(room: str, tmp_path: Path) -> None:
    for name, case in cases_of(room).items():
        fitted = case.fitted()
        check_assumptions(name, case, fitted)
        if hasattr(fitted, "save"):
            again = reticent.load(fitted.save(tmp_path / name))
            assert type(again) is type(fitted), name
            assert again.guarantee == fitted.guarantee, name
            assert again.card() == fitted.card(), name
            if case.kind == "model":
                asked = [one.predict(case.asking) for one in (fitted, again)]
            else:
                asked = [one.simulate(case.asking, seed=3).values for one in (fitted, again)]
            assert np.array_equal(*asked), name
            fitted = again
        if case.kind != "model":
            assert len(fitted.release(case.asking).values) == len(case.asking), name
