"""The reference of configuration: keys of files, arguments of estimators, environment variables."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from pydantic import BaseModel

from guide import api
from reticent.cli.fit_config import DataFiles, FitConfig
from reticent.service.settings import Settings
from reticent.systems.methods import Method, find_methods

VARIABLES = {
    "RETICENT_ANCHOR": "Folder or file that keeps the position of a ledger's last charge outside "
    "its database; see [ledger](../ledger.md#one-name-one-copy-no-way-back).",
    "RETICENT_DATA": "Folder of the data sets that tables of results read; see "
    "[training](../training.md#data-sets).",
    "RETICENT_LEDGER": "The ledger, where a command is given no `--ledger`.",
    "RETICENT_SERVE_": "Begins the names of variables for keys of the file of `reticent serve`: "
    "`RETICENT_SERVE_WORKERS=2`.",
    "RETICENT_SERVICE_SETTINGS": "Set by `reticent serve` for its own workers, and by nobody else.",
    "RETICENT_TRACEBACK": "1 lets the traceback of an internal error through, which may hold "
    "private values.",
}
"""Environment variables, in alphabetical order."""

TABLES: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("The file of `reticent fit`", "", FitConfig),
    ("Its table `[data]`", "data.", DataFiles),
    ("The file of `reticent serve`", "", Settings),
)
"""Tables of configuration files: a heading, what keys begin with, and the model."""

_BASES = {
    "ReleasedModel": "reticent.systems.votes.released_model",
    "ReleasedClassifier": "reticent.systems.votes.released_classifier",
    "ReleasedRegressor": "reticent.systems.votes.released_regressor",
}
"""Classes that are no public names, and that docstrings point at for arguments of theirs."""

_INTERNAL = frozenset({"folder"})


def keys(model: type[BaseModel], prefix: str = "") -> dict[str, str]:
    """Keys of a table of a configuration file, with what their docstring says."""
    said = described(model)
    return {
        f"{prefix}{field.alias or name}": said[name].removeprefix(f'"{field.alias}" in the file: ')
        for name, field in model.model_fields.items()
        if name not in _INTERNAL
    }


def described(thing: type) -> dict[str, str]:
    """What the Args or Attributes sections of docstrings of a class and its bases say, by name."""
    found: dict[str, str] = {}
    for each in reversed(thing.__mro__):
        text = inspect.cleandoc(each.__doc__ or "")
        section = re.search(r"^(?:Args|Attributes):\n((?:(?: .*)?\n|\Z)+)", text + "\n", re.M)
        for item in re.split(r"\n    (?=\S)", "\n" + section[1] if section else ""):
            names, colon, meaning = item.partition(":")
            if colon:
                for name in re.findall(r"\w+", names):
                    found[name] = _followed(" ".join(meaning.split()), name, found.get(name))
    return found


def _followed(meaning: str, name: str, above: str | None) -> str:
    """What is said elsewhere of a name whose own docstring only points there."""
    pointer = re.match(r"(?:see|as for|arguments? of) ``(\w+)``", meaning)
    if pointer is None:
        return meaning
    places = _BASES | {each: package.name for package in api.packages() for each in package.names}
    if above is None and pointer[1] in places:
        other = getattr(importlib.import_module(places[pointer[1]]), pointer[1])
        above = described(other).get(name)
    return above or meaning


def arguments(method: Method) -> dict[str, tuple[str, str]]:
    """Default ("required" for none) and meaning of every argument of an estimator or a part."""
    target = method.load()
    said = described(target) if isinstance(target, type) else {}
    parameters = inspect.signature(target).parameters.values()
    return {
        each.name: (
            _default(each),
            said.get(each.name, ""),
        )
        for each in parameters
        if each.kind != each.VAR_KEYWORD
    }


def _default(parameter: inspect.Parameter) -> str:
    if parameter.kind == parameter.VAR_POSITIONAL:
        return "`()`"
    empty = parameter.default is inspect.Parameter.empty
    return "required" if empty else f"`{_shown(parameter.default)}`"


def own_methods() -> list[Method]:
    """Methods of this package, estimators first, by name."""
    own = [method for method in find_methods().methods if method.origin.startswith("reticent ")]
    return sorted(own, key=lambda method: (method.role == "part", method.name))


def page() -> str:
    """Everything that can be set, without the options of commands, which have their own page."""
    parts = [_INTRODUCTION]
    for title, prefix, model in TABLES:
        parts += [f"## {title}", "", "| key | |", "|---|---|"]
        parts += [f"| `{key}` | {_cell(text)} |" for key, text in keys(model, prefix).items()]
        parts.append("")
    for method in own_methods():
        role = "Part" if method.role == "part" else "Estimator"
        parts += [f"## {method.name}", "", f"{role}: {_cell(method.summary)}.", ""]
        rows = arguments(method)
        if rows:
            parts += ["| argument | default | |", "|---|---|---|"]
            parts += [f"| `{name}` | {row[0]} | {_cell(row[1])} |" for name, row in rows.items()]
            parts.append("")
    parts += ["## Environment variables", "", "| variable | |", "|---|---|"]
    parts += [f"| `{name}` | {text} |" for name, text in VARIABLES.items()]
    return "\n".join(parts) + "\n"


def _shown(value: Any) -> str:
    return re.sub(r" object at 0x\w+", "", repr(value)).replace("|", "\\|")


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|").rstrip(".")


_INTRODUCTION = """# Configuration

What can be set in files, in constructors and by environment variables. Arguments below stand in the
table `[parameters]` of the file of `reticent fit`, or in the constructor of the class of that name.
Options of commands have [their own page](commands.md); what the file of `reticent fit` looks like
is shown on [the page about the command line](../command-line.md#fitting-from-a-file).
"""
