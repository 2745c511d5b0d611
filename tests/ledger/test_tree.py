"""The tree of a transaction against a dictionary, and its root against the tree made at once."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.ledger.tree import EMPTY, Tree, root_of

ITEMS = st.dictionaries(st.integers(0, 60), st.integers(0, 3), max_size=30)


def name_of(key: int) -> bytes:
    return sha256(b"%d" % key).digest()[:16]


def items_of(numbers: dict[int, int]) -> dict[bytes, bytes]:
    """Some digests look like another item's key."""
    return {
        name_of(key): sha256(b"%d, %d" % (key, value)).digest() if value else 2 * name_of(key + 1)
        for key, value in numbers.items()
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ITEMS, st.booleans()), max_size=6))
def test_what_was_put_is_found_at_once_and_one_root_names_it(steps: list[tuple[Any, bool]]) -> None:
    """Whether or not the root is asked for between."""
    nothing: Any = None  # no node is read from a database
    tree, there = Tree(nothing, EMPTY), dict[bytes, bytes]()
    asked = list(items_of(dict.fromkeys(range(70), 0)))
    for numbers, rooted in steps:
        tree.put(items_of(numbers))
        there |= items_of(numbers)
        if rooted:
            assert tree.root == root_of(there)
        assert tree.find(asked) == {key: there[key] for key in asked if key in there}
    assert tree.root == root_of(there)
