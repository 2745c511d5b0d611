"""What guarantee cards assume, derived from what their systems compute with."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from sklearn.base import clone

from reticent.mechanisms import FiniteChannel
from reticent.mechanisms.mechanism import Mechanism
from reticent.systems.clauses import FLOAT64, FRESH_NOISE, MACHINE, UNTIMED
from reticent.testing import Case
from tests.systems.private_knn.test_contract import CASES as NEIGHBOURS
from tests.systems.test_contract import CASES as BY_ROW
from tests.systems.votes.test_contract import cases

POSTHOC = BY_ROW["posthoc labels"]
CASES = {
    **BY_ROW,
    **NEIGHBOURS,
    **cases(),
    "posthoc labels, whole numbers": replace(
        POSTHOC, estimator=clone(POSTHOC.estimator).set_params(mechanism="response")
    ),
}
FLOAT = re.compile(r"\*Floating point\.\* (\w+)")


def below(kind: type[Mechanism]) -> set[type[Mechanism]]:
    return {kind}.union(*(below(one) for one in kind.__subclasses__()))


def test_whole_numbers_are_claimed_where_the_proof_says_that_nothing_else_is_used() -> None:
    assert not FiniteChannel.rests_on_float64
    for kind in below(Mechanism):
        said = FLOAT.search(kind.__doc__ or "")
        assert kind.rests_on_float64 != (said is not None and said[1] == "None"), kind


@pytest.mark.filterwarnings("ignore:X:UserWarning")  # of rows that were cut to a public bound
@pytest.mark.parametrize("name", CASES)
def test_a_card_states_what_its_guarantee_rests_on(name: str) -> None:
    case: Case = CASES[name]
    fitted = case.fitted()
    stated = fitted.card().assumptions
    assert {str(FRESH_NOISE), str(UNTIMED), str(MACHINE)} <= set(stated)
    # Records are clipped, compared and added up in float64; an input's release is as its proof
    # says, and a certificate is computed in float64.
    needed = case.kind != "input" or (
        fitted.query_.certificate != "none" or fitted.query_.mechanism.rests_on_float64
    )
    assert needed == (str(FLOAT64) in stated)
    if "whole numbers" in name or name == "score codes":
        assert not needed
