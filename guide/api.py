"""The reference of classes and functions: a page for every public name, a page for every package.

Which names are public is what packages say in `__all__`; a name that several packages have is
described once, where it is first found, and linked from the others.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Any

import reticent

INTERNAL = frozenset({"cli", "demos", "grids", "pages"})
"""Packages that are no interface: commands have a page of their own, the rest may change."""


@dataclass(frozen=True)
class Package:
    """A package with the names that it offers.

    Attributes:
        name: dotted name.
        summary: the first paragraph of its docstring.
        names: what is described under this package, in alphabetical order.
        elsewhere: names that it offers too, with the dotted name that they are described under.
    """

    name: str
    summary: str
    names: tuple[str, ...]
    elsewhere: tuple[tuple[str, str], ...]


@cache
def packages() -> tuple[Package, ...]:
    """Every public package, `reticent` itself first."""
    found = [
        f"reticent.{module.name}"
        for module in pkgutil.iter_modules(reticent.__path__)
        if module.ispkg and module.name not in INTERNAL
    ]
    described: dict[int, str] = {}
    made = [_package(name, described) for name in [*found, "reticent"]]
    return (made[-1], *(package for package in made[:-1] if package.names))


def _package(name: str, described: dict[int, str]) -> Package:
    module = importlib.import_module(name)
    names, elsewhere = [], []
    for each in sorted(getattr(module, "__all__", ())):
        thing = getattr(module, each)
        place = described.get(id(thing))
        if place is not None and place.rsplit(".", 1)[1] == each:
            elsewhere.append((each, place))
        else:
            described[id(thing)] = f"{name}.{each}"
            names.append(each)
    summary = inspect.cleandoc(module.__doc__ or "").split("\n\n")[0]
    return Package(name, " ".join(summary.split()), tuple(names), tuple(elsewhere))


def directive(thing: Any) -> str:
    """The autodoc directive that describes ``thing``."""
    if isinstance(thing, type):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(thing) else "autodata"


def pages() -> dict[str, str]:
    """Every page of this part of the reference, by its path below the reference."""
    found = {}
    every = packages()
    for package in every:
        module = importlib.import_module(package.name)
        for name in package.names:
            kind = directive(getattr(module, name))
            found[f"reference/api/{package.name}.{name}.rst"] = _name_page(package.name, name, kind)
        found[f"reference/api/{package.name}.rst"] = _package_page(package)
    found["reference/api/index.rst"] = _index(every)
    return found


def _name_page(package: str, name: str, kind: str) -> str:
    options = _MEMBERS if kind == "autoclass" else ""
    return (
        f":orphan:\n\n{_head(name)}\n.. currentmodule:: {package}\n\n.. {kind}:: {name}\n{options}"
    )


_MEMBERS = "   :members:\n   :inherited-members:\n   :show-inheritance:\n"


def _package_page(package: Package) -> str:
    lines = [_head(package.name), package.summary, ""]
    lines += [f".. currentmodule:: {package.name}", ""]
    if package.names:
        lines += [".. autosummary::", "", *(f"   {name}" for name in package.names), ""]
    if package.elsewhere:
        lines += ["", "Also here, described where they come from:", ""]
        lines += [f"- :doc:`{name} <{place}>`" for name, place in package.elsewhere]
    return "\n".join(lines) + "\n"


def _index(every: tuple[Package, ...]) -> str:
    lines = [_head("Classes and functions"), "What most programs need is in `reticent` itself:", ""]
    lines += [".. currentmodule:: reticent", "", ".. autosummary::", ""]
    lines += [f"   {name}" for name in sorted(reticent.__all__) if not name.startswith("_")]
    lines += ["", "The packages have these, what extensions and studies need, and errors:", ""]
    lines += [".. list-table::", "", ""]
    for package in every:
        lines += [f"   * - :doc:`{package.name}`", f"     - {package.summary}"]
    lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {each.name}" for each in every)]
    return "\n".join(lines) + "\n"


def _head(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n"
