"""Statements: the kind and adjacency of a cost, which never mix within one scope."""

from __future__ import annotations

import json
from functools import lru_cache

from reticent.core.errors import IncompatibleGuarantees
from reticent.core.guarantees import Adjacency, Guarantee, GuaranteeKind


def statement_of(guarantee: Guarantee) -> str:
    """Kind and adjacency as canonical JSON.

    Raises:
        IncompatibleGuarantees: it promises no privacy.
    """
    if guarantee.kind is GuaranteeKind.NO_PRIVACY:
        raise IncompatibleGuarantees(
            "expected a cost with a privacy guarantee, got kind='no differential privacy': "
            "a ledger cannot book what promises nothing"
        )
    return _canonical(guarantee.kind, guarantee.adjacency)


@lru_cache(maxsize=1024)
def _canonical(kind: GuaranteeKind, adjacency: Adjacency) -> str:
    described = Guarantee(1.0, 0.0, adjacency, kind).to_dict()
    return json.dumps(
        {"adjacency": described["adjacency"], "kind": described["kind"]},
        sort_keys=True,
        separators=(",", ":"),
    )


def describe_statement(statement: str) -> str:
    """A stored statement as one phrase.

    A statement is compared as text. One that was stored before adjacencies had identities lacks
    their fields, so that it equals no newer one, whatever its words; the phrase says so.
    """
    guarantee = Guarantee.from_dict({"epsilon": 1.0, "delta": 0.0, **json.loads(statement)})
    phrase = f"{guarantee.kind.value} for {guarantee.adjacency.describe()}"
    if _canonical(guarantee.kind, guarantee.adjacency) == statement:
        return phrase
    return (
        f"{phrase} (stated before adjacencies had identities, so it is not the same as "
        "any later statement)"
    )
