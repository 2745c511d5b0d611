from __future__ import annotations

import json

import pytest

from reticent.core import (
    AddRemove,
    Guarantee,
    GuaranteeKind,
    Neighborhood,
    Norm,
    Replace,
    Unit,
)
from reticent.core.errors import IncompatibleGuarantees, InvalidInput, InvalidParameter, UnknownName
from reticent.core.guarantees import data_set_name

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
ADJACENCIES = [
    *(NEAR, AddRemove(), AddRemove(3), Replace(2)),
    Neighborhood(Norm.LINF, 0.5, "embedding", identity="6f1c"),
    AddRemove(1, Unit.PERSON, "ward 7"),
    Replace(1, Unit.RECORD, data_set_name(None)),
]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", list(GuaranteeKind))
def test_guarantees_survive_json(adjacency, kind):
    guarantee = Guarantee(1.5, 1e-5, adjacency, kind)
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


def test_composition_adds_within_one_adjacency_and_kind():
    total = Guarantee(1.0, 1e-5, NEAR).compose(Guarantee(0.5, 1e-6, NEAR))
    assert (total.epsilon, total.delta) == (1.5, pytest.approx(1.1e-5))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (NEAR, AddRemove()),
        (NEAR, Neighborhood(Norm.LINF, 0.4, "embedding")),
        (NEAR, Neighborhood(Norm.L1, 0.5, "embedding")),
        (NEAR, Neighborhood(Norm.LINF, 0.5, "embedding", "6f1c")),
        (AddRemove(), AddRemove(unit=Unit.PERSON)),
        (AddRemove(data_set="a"), AddRemove(data_set="b")),
    ],
)
def test_guarantees_of_different_adjacencies_do_not_add_up(first, second):
    with pytest.raises(IncompatibleGuarantees, match="adjacency"):
        Guarantee(1, 0, first).compose(Guarantee(1, 0, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (GuaranteeKind.DIFFERENTIAL_PRIVACY, GuaranteeKind.LIPSCHITZ_PRIVACY),
        (GuaranteeKind.NO_PRIVACY, GuaranteeKind.NO_PRIVACY),
    ],
)
def test_guarantees_of_different_kinds_do_not_add_up(first, second):
    with pytest.raises(IncompatibleGuarantees, match="differential privacy"):
        Guarantee(1, 0, NEAR, first).compose(Guarantee(1, 0, NEAR, second))


@pytest.mark.parametrize(
    ("build", "error", "word"),
    [
        (lambda: Guarantee(0.0, 0.0, NEAR), InvalidParameter, "epsilon="),
        (lambda: Guarantee(float("inf"), 0.0, NEAR), InvalidParameter, "epsilon="),
        (lambda: Guarantee(1.0, 1.0, NEAR), InvalidParameter, "delta="),
        (lambda: Neighborhood(Norm.L1, -1.0, "x"), InvalidParameter, "radius="),
        (lambda: Neighborhood("l9", 1.0, "x"), UnknownName, "norm="),
        (lambda: Neighborhood(Norm.L1, 1.0, ""), InvalidParameter, "space"),
        (lambda: Neighborhood(Norm.L1, 1.0, "x", "y" * 201), InvalidParameter, "identity"),
        (lambda: AddRemove(unit="family"), UnknownName, "unit="),
        (lambda: AddRemove(data_set="a\nb"), InvalidParameter, "data_set"),
        (lambda: AddRemove(data_set=3), InvalidParameter, "data_set"),
        (lambda: AddRemove(0), InvalidParameter, "records="),
        (lambda: Replace(1.5), InvalidParameter, "records="),
        (lambda: data_set_name(""), InvalidParameter, "data_set"),
        (lambda: data_set_name(data_set_name(None)), InvalidParameter, "data sets without"),
    ],
)
def test_bad_guarantees(build, error, word):
    with pytest.raises(error, match=word):
        build()


@pytest.mark.parametrize(
    "change",
    [{"epsilon": None}, {"kind": "strong"}, {"adjacency": {"type": "Near"}}, {"adjacency": 3}],
)
def test_bad_descriptions(change):
    with pytest.raises(InvalidInput):
        Guarantee.from_dict({**Guarantee(1.0, 0.0, NEAR).to_dict(), **change})
    with pytest.raises(InvalidInput):
        Guarantee.from_dict({})


def test_a_data_set_without_a_name_is_no_other():
    first, second = (AddRemove(data_set=data_set_name(None)) for _ in range(2))
    assert first != second
    assert first.unnamed
    assert not AddRemove(data_set=data_set_name("ward 7")).unnamed
    assert not AddRemove().unnamed
    assert "a data set that its owner has not named (serial " in first.describe()
