from __future__ import annotations

import hashlib

import pytest

from reticent.ledger.chain import Entry, genesis

ENTRY = Entry(
    1, 1_700_000_000_000_000, "reserve", "acme", "ward-7", "", "{}", 100_000, 0, 1, "laplace", 0, ""
)


def test_the_digest_is_a_plain_hash_that_anybody_can_recompute() -> None:
    text = '[1,1700000000000000,"reserve","acme","ward-7","","{}",100000,0,1,"laplace",0,""]'
    assert ENTRY.digest(b"before") == hashlib.sha256(b"before" + text.encode()).digest()


@pytest.mark.parametrize("name", Entry._fields)
def test_every_field_counts(name: str) -> None:
    value = getattr(ENTRY, name)
    changed = ENTRY._replace(**{name: value + 1 if isinstance(value, int) else value + "x"})
    assert changed.digest(b"") != ENTRY.digest(b"")
    assert ENTRY.digest(b"a") != ENTRY.digest(b"b")


def test_ledgers_start_apart() -> None:
    assert len({genesis("one", ""), genesis("two", ""), genesis("one", "subject")}) == 3
