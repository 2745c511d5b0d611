"""`reticent methods`: which methods there are, a line each."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Plain JSON instead of lines.")] = False,
) -> None:
    """Every method that is installed: its name, what it protects, what it releases, whose it is.

    Packages add methods by an entry point in the group reticent.methods (docs/command-line.md). One
    that cannot be loaded is told on standard error.
    """
    from reticent.systems.methods import find_methods

    found = find_methods()
    for problem in found.problems:
        typer.echo(f"warning: {problem}", err=True)
    if as_json:
        fields = ("name", "role", "summary", "protects", "releases", "origin")
        rows = [{field: getattr(method, field) for field in fields} for method in found.methods]
        typer.echo(json.dumps(rows, indent=2))
        return
    for method in found.methods:
        typer.echo(method.describe())
