"""The ladder as a part: its rungs, and what it refuses."""

from __future__ import annotations

import pytest
from sklearn.base import clone
from torch import nn

from reticent.core.errors import InvalidParameter, NotFittedYet, UnknownName
from reticent.training.parts import Identity, Ladder, NoiseAware, PublicPCA
from reticent.training.parts.contract import Trained


def test_the_default_starts_at_identity_and_has_each_size_once() -> None:
    names = [type(part).__name__ for part in Ladder().variants()]
    assert names[0] == "Identity"
    assert names.count("PublicPCA") == 5
    assert names.count("NoiseAware") == 2
    assert {"LiveCoordinates", "PublicDiscriminants"} < set(names)


def test_rungs_are_names_parts_and_modules() -> None:
    rungs = Ladder(("identity", PublicPCA(outputs=(1, 2)), nn.Linear(3, 2))).variants()
    assert [type(rung) for rung in rungs] == [Identity, PublicPCA, PublicPCA, Trained]


def test_clones_have_rungs_of_their_own() -> None:
    ladder = Ladder((NoiseAware(outputs=3),))
    copy = clone(ladder)
    assert copy.rungs[0] is not ladder.rungs[0]
    assert copy.rungs[0].outputs == 3


def test_refusals() -> None:
    with pytest.raises(UnknownName, match="rungs='pcb'"):
        Ladder(("pcb",)).check()
    with pytest.raises(InvalidParameter, match="at least one part"):
        Ladder(()).check()
    with pytest.raises(InvalidParameter, match="no ladders themselves"):
        Ladder((Ladder(),)).check()
    with pytest.raises(InvalidParameter, match="scores its rungs"):
        Ladder().fit([[1.0]])
    with pytest.raises(NotFittedYet, match="chosen rung"):
        Ladder().network()
