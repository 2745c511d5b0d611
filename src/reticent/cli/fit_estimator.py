"""The estimator that a configuration describes, its parts included, made through the registry."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from reticent.cli.fit_config import FitConfig
from reticent.core.errors import InvalidInput, InvalidParameter, ReticentError
from reticent.systems.methods import FoundMethods, Role, find_methods
from reticent.tables.schema import TabularSchema

_NONE = "none"
_PART = "part"
_NEEDED = ("fit", "save", "card")


def estimator_of(config: FitConfig, schema: TabularSchema | None, *, bundled: bool = True) -> Any:
    """The estimator, not fitted.

    Args:
        config: what the file says.
        schema: for the estimator's parameter ``schema``, or None.
        bundled: whether it has to leave a bundle.

    Raises:
        UnknownName: an estimator or part that no installed package offers.
        InvalidInput: an estimator that writes no bundle; parameters that are missing, unknown or
            cannot be used.
    """
    found = find_methods()
    method = found.named(config.estimator, role="estimator")
    kind = method.load()
    for needed in _NEEDED if bundled else ():
        if not callable(getattr(kind, needed, None)):
            raise InvalidInput(
                f"estimator={config.estimator!r}: has no {needed} and leaves no bundle; use it "
                f"from Python{_why(kind)}"
            )
    values = dict(config.parameters)
    if schema is not None:
        if "schema" in values:
            raise InvalidInput("parameters.schema, data.schema: expected one of them")
        if "schema" not in inspect.signature(kind).parameters:
            raise InvalidInput(
                f"data.schema: a {config.estimator} takes no schema; leave it out, columns of "
                "numbers need none"
            )
        values["schema"] = schema
    return _made(config.estimator, "estimator", values, found, "parameters")


def _why(kind: Any) -> str:
    """Why a system of labels leaves no bundle; "" for others."""
    if not callable(getattr(kind, "release", None)):
        return ""
    return (
        ". It answers from the private records themselves, query by query, and a bundle would be "
        "their copy; CellsClassifier, MomentClassifier and NoisyGradientClassifier are paid for "
        "once and leave a bundle that may be published"
    )


def _made(name: str, role: Role, values: Mapping[str, Any], found: FoundMethods, where: str) -> Any:
    """What the class called ``name`` makes of ``values``."""
    kind = found.named(name, role=role).load()
    known = inspect.signature(kind).parameters
    listed = [key for key, field in known.items() if field.kind is not field.VAR_KEYWORD]
    unknown = [key for key in values if key not in listed]
    if unknown and len(listed) == len(known):
        raise InvalidParameter(
            f"{where}.{unknown[0]}: {name} has no such parameter; expected {', '.join(listed)}"
        )
    missing = [
        key
        for key in listed
        if known[key].default is inspect.Parameter.empty
        and known[key].kind is not inspect.Parameter.VAR_POSITIONAL
        and key not in values
    ]
    if missing:
        raise InvalidParameter(
            f"{where}: {name} needs {', '.join(missing)}; such parameters have no defaults"
        )
    named = {key: _value(value, found, f"{where}.{key}") for key, value in values.items()}
    several = [key for key in listed if known[key].kind is inspect.Parameter.VAR_POSITIONAL]
    listing = named.pop(several[0], ()) if several else ()
    if not isinstance(listing, tuple):
        raise InvalidParameter(f"{where}.{several[0]}: expected a list")
    try:
        return kind(*listing, **named)
    except ReticentError as error:
        raise InvalidParameter(f"{where}: {error}") from error
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"{where}: {name} does not take these values ({type(error).__name__})"
        ) from error


def _value(value: Any, found: FoundMethods, where: str) -> Any:
    """A TOML value as an argument: tables are parts, or numbers by name; lists are tuples, and
    "none" is None.
    """
    if isinstance(value, dict):
        fields = dict(value)
        if fields and all(type(entry) in (int, float) for entry in fields.values()):
            return fields
        name = fields.pop(_PART, None)
        if not isinstance(name, str):
            raise InvalidInput(
                f"{where}: a table here is a part; expected {_PART} = NAME in it, or numbers alone"
            )
        return _made(name, "part", fields, found, where)
    if isinstance(value, list):
        return tuple(_value(entry, found, f"{where}[{at}]") for at, entry in enumerate(value))
    return None if value == _NONE else value
