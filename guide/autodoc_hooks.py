"""What autodoc is told about this project: whose members count, and how to read its docstrings."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain

from guide import api, bibliography
from guide.docstrings import prepared


class QuickPythonDomain(PythonDomain):
    """Python's domain, which does not go through all names for one that nothing is called.

    Types of other packages and of Python itself stand in thousands of signatures. For each of them
    Sphinx compares the ends of all names that are described: a fifth of the whole build.
    """

    _ends: frozenset[str] = frozenset()
    _counted = 0

    def find_obj(self, env: Any, modname: Any, classname: Any, name: str, *rest: Any) -> Any:
        """The names that ``name`` may mean."""
        if self._counted != len(self.objects):
            self._ends = frozenset(known.rpartition(".")[2] for known in self.objects)
            self._counted = len(self.objects)
        if name.removesuffix("()").rpartition(".")[2] not in self._ends:
            return []
        return super().find_obj(env, modname, classname, name, *rest)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the hooks."""
    app.add_domain(QuickPythonDomain, override=True)
    app.connect("autodoc-skip-member", skip_foreign)
    # Before napoleon, which makes fields of the sections.
    app.connect("autodoc-process-docstring", rewrite, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def skip_foreign(
    _app: Sphinx, _kind: str, name: str, member: object, skip: bool, _options: object
) -> bool | None:
    """True for members that come from scikit-learn, torch or the standard library."""
    if skip or re.fullmatch(r"set_\w+_request|get_metadata_routing", name):
        return True
    plain: Any = getattr(member, "fget", None) or getattr(member, "__func__", member)
    plain = inspect.unwrap(plain)
    if not inspect.isroutine(plain):
        return None
    module = getattr(plain, "__module__", None) or ""
    return None if module.startswith("reticent") else True


def rewrite(
    _app: Sphinx, kind: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Docstrings as Sphinx reads them, in place."""
    lines[:] = prepared(lines, places=places(), cite=cite)
    if kind in ("attribute", "data", "property"):
        # Napoleon takes what stands before a colon in the first line for a type; an empty
        # comment has no colon.
        lines[:0] = ["..", ""]


@cache
def places() -> dict[str, str]:
    """Every public dotted name, and the one that it is described under."""
    return {
        f"{package.name}.{name}": place
        for package in api.packages()
        for name, place in package.elsewhere
    }


def cite(authors: str, year: str, title: str) -> str | None:
    """Where a cited work stands, as seen from a page of the reference of classes."""
    key = bibliography.key_of(authors, year, title)
    return None if key is None else f"../../bibliography.html#{key}"
