"""The generated reference names every command, option, error, key, argument and variable."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
import typer.main
from pydantic import BaseModel

from guide import commands, settings
from reticent.cli.main import app
from reticent.systems.methods import find_methods

ROOT = Path(__file__).parents[2]


def test_every_command_stands_with_every_option() -> None:
    pytest.importorskip("sphinx", reason="parameters are described as the typer of the lock does")
    page = commands.page()
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.M))

    def walk(command: object, name: str) -> int:
        below = getattr(command, "commands", None)
        if below:
            return sum(walk(below[word], f"{name} {word}") for word in below)
        for parameter in command.params:  # type: ignore[attr-defined]
            if parameter.name == "help" or getattr(parameter, "hidden", False):
                continue
            option = parameter.param_type_name == "option"
            for word in parameter.opts if option else [parameter.name.upper()]:
                assert f"`{word}`" in sections[name], (name, word)
        return 1

    assert walk(typer.main.get_command(app), "reticent") == len(sections) > 15


def test_every_model_of_a_file_is_there_with_all_its_keys() -> None:
    """Models of configuration files are those that refuse keys which they do not know."""
    models = {
        value
        for name in ("reticent.cli.fit_config", "reticent.service.settings")
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, type) and issubclass(value, BaseModel) and value.model_fields
    }
    bases = {base for model in models for base in model.__mro__[1:]}
    assert models - bases == {model for _, _, model in settings.TABLES}
    page = settings.page()
    for _, prefix, model in settings.TABLES:
        for name, field in model.model_fields.items():
            if not field.exclude:
                assert f"| `{prefix}{field.alias or name}` | " in page, name


def test_every_argument_of_every_method_stands_there_and_says_what_it_is() -> None:
    page = settings.page()
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.M))
    methods = [each for each in find_methods().methods if each.origin.startswith("reticent ")]
    assert len(methods) > 20
    silent = []
    for method in methods:
        for name in inspect.signature(method.load()).parameters:
            row = re.search(rf"^\| `{name}` \| .* \| (.*) \|$", sections[method.name], re.M)
            assert row, (method.name, name)
            if not row[1].strip() or row[1].startswith(("see `", "as for `", "argument")):
                silent.append((method.name, name))
    assert silent == []


def test_every_environment_variable_stands_there() -> None:
    named = {
        word
        for path in ROOT.glob("src/reticent/**/*.py")
        for word in re.findall(r"\bRETICENT_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
    # One variable for each key of the service, all described together.
    named -= {word for word in named if word.startswith("RETICENT_SERVE_")} - {"RETICENT_SERVE_"}
    assert named == set(settings.VARIABLES)
