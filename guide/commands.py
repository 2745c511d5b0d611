"""The reference of the command line, read off the commands themselves."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from reticent.cli.main import app


def commands(command: Any = None, name: str = "reticent") -> Iterator[tuple[str, Any]]:
    """Every command with its whole name; groups, which only hold commands, are left out."""
    command = typer.main.get_command(app) if command is None else command
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for word in sorted(below):
        yield from commands(below[word], f"{name} {word}")


def page() -> str:
    """Every command with its arguments and options."""
    parts = [_INTRODUCTION]
    for name, command in commands():
        parts += [f"## {name}", "", " ".join((command.help or "").split("\f")[0].split()), ""]
        rows = [_row(parameter) for parameter in command.params if not _hidden(parameter)]
        if rows:
            parts += ["| | takes | default | |", "|---|---|---|---|", *rows, ""]
    return "\n".join(parts) + "\n"


def _hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False)) or parameter.name == "help"


def _row(parameter: Any) -> str:
    option = parameter.param_type_name == "option"
    shown = [*parameter.opts, *parameter.secondary_opts] if option else [parameter.name.upper()]
    names = ", ".join(f"`{each}`" for each in shown)
    default = "required" if parameter.required else _default(parameter)
    variable = f" (or the variable `{parameter.envvar}`)" if parameter.envvar else ""
    return (
        f"| {names} | {_takes(parameter)} | {default} | {_cell(parameter.help or '')}{variable} |"
    )


def _takes(parameter: Any) -> str:
    """What may be given: choices, or a word for the type."""
    if getattr(parameter, "is_flag", False):
        return "nothing"
    wanted = parameter.type_descriptor.annotation
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return ", ".join(f"`{each.value}`" for each in wanted)
    return _WORDS.get(wanted, getattr(wanted, "__name__", "text"))


_WORDS = {Path: "path", str: "text", float: "number", int: "whole number"}


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or callable(value) or getattr(parameter, "is_flag", False) or value == ():
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


_INTRODUCTION = """# Commands

Every command with its arguments and options, as `reticent COMMAND --help` shows them. What they are
for, with examples, is on [the page about the command line](../command-line.md). The exit status is
0, or [the code of the error](errors.md).
"""
