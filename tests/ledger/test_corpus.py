"""The schema is frozen, and real ledgers of every frozen schema are opened and spent on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded
from reticent.ledger import Ledger, PlanCounter, schema
from reticent.ledger.chain import Page, read_tip
from reticent.service import stored
from reticent.service.keys import KeyStore
from tests.ledger import corpus

CLIENT = Scope("acme", "ward 7")
ONE = PrivacyEvent("label", Guarantee(0.25, 0.0, AddRemove(1, data_set="ward 7")))
FROZEN = "ef49fb93e5f54c62dcc4aae75beb4e453159dda2d122c078e442d87b6b6687e6"


def described() -> str:
    """Every table, column, constraint and trigger, in words that no library chooses."""
    tables = {}
    for table in schema.metadata.sorted_tables:
        columns = [
            (
                column.name,
                column.type.__visit_name__,
                getattr(column.type, "length", None),
                column.nullable,
                column.primary_key,
                str(getattr(column.server_default, "arg", "")),
            )
            for column in table.columns
        ]
        constraints = [
            schema._expected_unique(table),
            {name: list(map(str, rest)) for name, rest in schema._expected_foreign(table).items()},
            schema._expected_checks(table),
        ]
        tables[table.name] = [columns, *constraints]
    triggers = [schema.SQLITE_TRIGGERS, schema.POSTGRESQL_TRIGGERS, schema.POSTGRESQL_FUNCTION_BODY]
    return json.dumps([tables, triggers], sort_keys=True)


def test_the_schema_is_frozen() -> None:
    """A change takes a step in migrations/versions, a ledger in the corpus, and then this hash."""
    assert hashlib.sha256(described().encode()).hexdigest() == FROZEN


@pytest.mark.parametrize("version", corpus.VERSIONS)
def test_a_ledger_of_each_schema_is_opened_and_spent_on(
    version: str, ledger_url: str, tmp_path: Path
) -> None:
    told = corpus.bring_back(version, ledger_url, tmp_path / "anchors")
    ledger = Ledger.create(ledger_url, synchronous="NORMAL", anchor=tmp_path / "anchors")
    before = {"anchor": told["anchor"], "receipts": told["receipts"]}
    assert ledger.verify(**before).problems == ()
    report = ledger.report()
    assert {one.scope.describe(): one.spent_epsilon for one in report.budgets} == told["spent"]
    assert sum(one.reservations - one.commits for one in report.accounts) == 3
    counter = PlanCounter.find(ledger, "neighbours", scope=CLIENT, event=ONE)
    assert counter is not None
    assert counter.take(4) == 3
    with pytest.raises(BudgetExceeded):
        counter.take(1)
    assert KeyStore(ledger).find(told["secret"]).principal == "acme"
    with ledger.store.read() as connection:
        page = Page.of(connection, read_tip(connection))
        kept, gone = (stored.find(page, "acme", name) for name in ("kept", "gone"))
    assert kept is not None
    assert bytes(kept["body"]).decode() == told["kept"]
    assert gone is not None
    assert (gone["state"], gone["body"]) == ("removed", None)
    with ledger.reserve(CLIENT, ONE, answers=2) as reservation:
        reservation.commit("a receipt of today")
    with pytest.raises(BudgetExceeded):
        ledger.reserve(CLIENT, ONE, answers=10**6)
    ledger.grant(Scope(subject="a new record"), ONE.guarantee)
    KeyStore(ledger).create("new", bundles=["*"], subjects=["ward 7"])
    (budget,) = (one for one in ledger.report().budgets if one.scope == Scope(subject="ward 7"))
    assert budget.spent_epsilon == told["spent"][budget.scope.describe()] + 500_000
    assert ledger.verify(**before).problems == ()
    with ledger.store.read() as connection:
        found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    assert found == corpus.VERSIONS[-1]
    ledger.close()
