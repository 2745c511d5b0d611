"""Statements are compared as text, so what an older version stored never composes with what a
newer one states.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from reticent.accounting import PrivacyEvent
from reticent.core import (
    AddRemove,
    Adjacency,
    Guarantee,
    GuaranteeKind,
    Neighborhood,
    Norm,
    Replace,
    Scope,
)
from reticent.core.errors import IncompatibleGuarantees
from reticent.ledger import Ledger
from reticent.ledger.charges import describe_statement, statement_of
from reticent.ledger.schema import statements

PAIRS: list[tuple[Adjacency, Adjacency]] = [
    (
        Neighborhood(Norm.LINF, 0.5, "embedding", "aa"),
        Neighborhood(Norm.LINF, 0.5, "embedding", "bb"),
    ),
    (Neighborhood(Norm.LINF, 0.5, "embedding", "aa"), Neighborhood(Norm.LINF, 0.5, "embedding")),
    (AddRemove(data_set="ward 7"), AddRemove(data_set="ward 8")),
    (AddRemove(data_set="ward 7"), AddRemove()),
    (AddRemove(unit="person"), AddRemove(unit="record")),  # type: ignore[arg-type]
    (Replace(data_set="ward 7"), AddRemove(data_set="ward 7")),
]


def event(adjacency: Adjacency) -> PrivacyEvent:
    return PrivacyEvent("test", Guarantee(1.0, 0.0, adjacency))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_adjacencies_with_different_identities_do_not_add_up(
    first: Adjacency, second: Adjacency, tmp_path: Path
) -> None:
    with pytest.raises(IncompatibleGuarantees, match="costs compose only within one adjacency"):
        Guarantee(1.0, 0.0, first).compose(Guarantee(1.0, 0.0, second))
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(Scope(subject="s"), Guarantee(10.0, 0.0, first))
        with pytest.raises(IncompatibleGuarantees):
            ledger.reserve(Scope(subject="s"), event(second), answers=1)
        with pytest.raises(IncompatibleGuarantees):
            ledger.grant(Scope(subject="s"), Guarantee(10.0, 0.0, second))


OLD = [
    (AddRemove(), {"records": 1, "type": "AddRemove"}),
    (Replace(), {"records": 1, "type": "Replace"}),
    (
        Neighborhood(Norm.LINF, 0.5, "embedding"),
        {"metric": "linf", "radius": 0.5, "space": "embedding", "type": "Neighborhood"},
    ),
]


@pytest.mark.parametrize(("now", "before"), OLD)
def test_what_was_stated_without_identities_keeps_its_own_text(
    now: Adjacency, before: dict[str, object], tmp_path: Path
) -> None:
    kind = GuaranteeKind.DIFFERENTIAL_PRIVACY.value
    text = json.dumps({"adjacency": before, "kind": kind}, sort_keys=True, separators=(",", ":"))
    assert statement_of(Guarantee(1.0, 0.0, now)) != text
    assert describe_statement(text).endswith(
        "(stated before adjacencies had identities, so it is not the same as any later statement)"
    )
    assert "stated before" not in describe_statement(statement_of(Guarantee(1.0, 0.0, now)))
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(Scope(subject="s"), Guarantee(10.0, 0.0, now))
        with ledger.store.write() as connection:  # as an older version left it
            connection.execute(sa.update(statements).values(statement=text))
        with pytest.raises(
            IncompatibleGuarantees, match="stated before adjacencies had identities"
        ):
            ledger.reserve(Scope(subject="s"), event(now), answers=1)
