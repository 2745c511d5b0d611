"""Nothing but one file of the package charges a ledger for a release, and one makes receipts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.source import trees

CHARGING = {"reserve", "reserve_each", "lease", "charge_one", "charge_many", "charge_block"}


@cache
def nodes() -> list[tuple[str, ast.Call | ast.Compare]]:
    """Every call and comparison in the package, each with its file."""
    return [
        (name.removeprefix("src/reticent/"), node)
        for name, tree in trees().items()
        if name.startswith("src/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.Compare)
    ]


def calls() -> Iterator[tuple[str, str]]:
    """Every call in the package: its file, and the last name of what it calls."""
    for file, node in nodes():
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute):
                yield file, called.attr
            elif isinstance(called, ast.Name):
                yield file, called.id


def test_a_ledger_is_charged_in_one_file() -> None:
    found = {(file, name) for file, name in calls() if name in CHARGING}
    outside = {file for file, _ in found if not file.startswith("ledger/")}
    assert outside == {"release/paying.py"}
    assert {name for file, name in found if file.startswith("ledger/")} >= {"reserve", "lease"}


def test_receipts_are_made_in_one_file() -> None:
    assert {file for file, name in calls() if name == "Receipt"} == {"release/paying.py"}


def test_a_ledger_comes_with_its_scope_and_that_is_checked_in_one_file() -> None:
    found = set()
    for file, node in nodes():
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = (node.left, node.comparators[0])
            if all(isinstance(side, ast.Compare) for side in sides):
                text = {ast.unparse(side) for side in sides}
                if text & {"ledger is None", "scope is None"}:
                    found.add(file)
    assert found == {"release/paying.py"}
