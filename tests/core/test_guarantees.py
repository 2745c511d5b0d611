from __future__ import annotations

import json

import pytest

from reticent.core import (
    AddRemove,
    Guarantee,
    GuaranteeCard,
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
    ("first", "second", "message"),
    [
        (
            Guarantee(1, 0, NEAR),
            Guarantee(1, 0, AddRemove()),
            "costs compose only within one adjacency",
        ),
        (
            Guarantee(1, 0, NEAR),
            Guarantee(1, 0, Neighborhood(Norm.LINF, 0.4, "embedding")),
            "costs compose only",
        ),
        (
            Guarantee(1, 0, NEAR),
            Guarantee(1, 0, Neighborhood(Norm.L1, 0.5, "embedding")),
            "costs compose only",
        ),
        (
            Guarantee(1, 0, NEAR),
            Guarantee(1, 0, Neighborhood(Norm.LINF, 0.5, "embedding", "6f1c")),
            r"\(identity 6f1c\)",
        ),
        (
            Guarantee(1, 0, AddRemove()),
            Guarantee(1, 0, AddRemove(unit=Unit.PERSON)),
            r"all records of 1 person\(s\)",
        ),
        (
            Guarantee(1, 0, AddRemove(data_set="a")),
            Guarantee(1, 0, AddRemove(data_set="b")),
            "data set 'a' is not .* data set 'b'",
        ),
        (
            Guarantee(1, 0, NEAR),
            Guarantee(1, 0, NEAR, GuaranteeKind.LIPSCHITZ_PRIVACY),
            "cannot add differential privacy",
        ),
        (
            Guarantee(1, 0, NEAR, GuaranteeKind.NO_PRIVACY),
            Guarantee(1, 0, NEAR, GuaranteeKind.NO_PRIVACY),
            "promise no differential privacy",
        ),
    ],
)
def test_what_does_not_add_up(first, second, message):
    with pytest.raises(IncompatibleGuarantees, match=message):
        first.compose(second)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: Guarantee(0.0, 0.0, NEAR), InvalidParameter, "epsilon=0.0"),
        (lambda: Guarantee(float("inf"), 0.0, NEAR), InvalidParameter, "epsilon=inf"),
        (lambda: Guarantee(1.0, 1.0, NEAR), InvalidParameter, "delta=1.0"),
        (lambda: Neighborhood(Norm.L1, -1.0, "x"), InvalidParameter, "radius=-1.0"),
        (lambda: Neighborhood("l9", 1.0, "x"), UnknownName, "norm='l9'"),  # type: ignore[arg-type]
        (lambda: AddRemove(unit="family"), UnknownName, "unit='family'"),  # type: ignore[arg-type]
        (lambda: AddRemove(data_set="a\nb"), InvalidParameter, "data_set: expected"),
        (lambda: AddRemove(data_set=3), InvalidParameter, "data_set: expected .* got int"),  # type: ignore[arg-type]
        (lambda: Neighborhood(Norm.L1, 1.0, ""), InvalidParameter, "space: expected"),
        (
            lambda: Neighborhood(Norm.L1, 1.0, "x", "y" * 201),
            InvalidParameter,
            "identity: expected .* got 201 characters",
        ),
        (lambda: data_set_name(""), InvalidParameter, "data_set: expected"),
        (
            lambda: data_set_name(data_set_name(None)),
            InvalidParameter,
            "stand for data sets without one",
        ),
        (lambda: AddRemove(0), InvalidParameter, "records=0"),
        (lambda: Replace(1.5), InvalidParameter, "records=1.5"),  # type: ignore[arg-type]
    ],
)
def test_bad_guarantees(build, error, message):
    with pytest.raises(error, match=message):
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


def test_words():
    assert "within linf distance 0.5 in the embedding" in Guarantee(1.0, 0.0, NEAR).describe()
    assert (
        Guarantee(1.0, 0.0, NEAR, GuaranteeKind.NO_PRIVACY).describe() == "no differential privacy"
    )
    card = GuaranteeCard("T", "P", "W", Guarantee(1.0, 0.0, NEAR), ("a1",), ("n1",), (("k", "v"),))
    for text in ("# T", "**Protected:** P", "- a1", "- n1", "| k | v |"):
        assert text in card.to_markdown()
    assert json.loads(json.dumps(card.to_dict()))["details"] == {"k": "v"}
