"""Docstrings say where things come from, what to compare them with, how good they are and what
they cost; and what they cite is in the bibliography, word for word.

What needs which section follows from where it is published: everything but a *value* needs
References and See Also; mechanisms and bounds need Utility and Runtime as well. A value is an
constant, an exception, an enum, or a dataclass whose public names are fields and properties alone.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from guide.bibliography import works

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "mechanisms",
    "lipschitz",
    "retraining",
    "accounting",
    "noise",
    "ledger",
    "systems",
    "published",
)
MEASURED = ("mechanisms", "lipschitz", "retraining")
"""Packages whose public names say how good an answer is and how long it takes."""

SECTIONS = ("Utility", "Runtime", "References", "See Also")


def public() -> list[tuple[str, str, Any]]:
    """(package, name, object) for every public name that is not a value."""
    found = []
    for package in PACKAGES:
        module = importlib.import_module(f"reticent.{package}")
        objects = [(name, getattr(module, name)) for name in module.__all__]
        found += [(package, name, value) for name, value in objects if not is_value(value)]
    return found


def is_value(thing: Any) -> bool:
    """Whether ``thing`` is a value: nothing can be asked of it but what it holds."""
    if not isinstance(thing, type):
        return not inspect.isroutine(thing)
    if issubclass(thing, Exception | enum.Enum):
        return True
    names = [name for name in dir(thing) if not name.startswith("_")]
    asks = any(inspect.isroutine(inspect.getattr_static(thing, name)) for name in names)
    return not asks and (dataclasses.is_dataclass(thing) or not names)


def section(doc: str, head: str) -> str:
    """The text below ``head:`` in a docstring, dedented; "" where there is none."""
    match = re.search(rf"^{head}:\n((?:(?: .*)?\n|\Z)+)", inspect.cleandoc(doc) + "\n", re.M)
    return textwrap.dedent(match[1]).strip() if match else ""


def entries(text: str) -> list[str]:
    """The items of a References section, one line each."""
    return [" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.M) if item.strip()]


def neighbours(text: str) -> list[str]:
    """The dotted names of a See Also section."""
    return re.findall(r"^([\w.]+):", text, re.M)


def cited(item: str) -> tuple[str, str, str] | None:
    """First author, year and title of a reference, or None for a pointer into this project."""
    match = re.match(r'([^("]+?) \((\d{4})\), "(.+?)", ', item)
    if not match:
        return None
    authors = re.sub(r" et al\.$", "", match[1])
    return re.split(r", | and ", authors)[0], match[2], match[3]


def identifier(fields: dict[str, str]) -> str:
    """What a reference to an entry ends with, details aside."""
    if "doi" in fields:
        return f"doi:{fields['doi']}"
    if "eprint" in fields:
        return f"arXiv:{fields['eprint']}"
    return fields.get("booktitle") or fields.get("journal") or fields["publisher"]


def resolves(name: str) -> bool:
    """Whether a dotted name can be imported, or is an attribute of what can."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


def wrong_citation(item: str) -> str | None:
    """What is wrong with one reference, or None."""
    work = cited(item)
    if work is None:
        page = re.search(r"docs/[\w-]+\.md", item)
        if page and (ROOT / page[0]).is_file():
            return None
        return f"neither a citation nor a page of docs: {item}"
    author, year, title = work
    same = [
        fields
        for fields in works().values()
        if (fields["author"].split(",")[0], fields["year"]) == (author, year)
        and fields["title"] == title
    ]
    if len(same) != 1:
        return f"not in the bibliography: {item}"
    if identifier(same[0]) not in item:
        return f"expected {identifier(same[0])!r}: {item}"
    return None


def faults(doc: str, *, measured: bool) -> list[str]:
    """What a docstring lacks."""
    heads = SECTIONS if measured else SECTIONS[2:]
    found = [f"no {head}" for head in heads if not section(doc, head)]
    items = entries(section(doc, "References"))
    found += [wrong for wrong in map(wrong_citation, items) if wrong]
    if items and not any(map(cited, items)):
        found.append("no reference has authors, a year and a title")
    names = neighbours(section(doc, "See Also"))
    if section(doc, "See Also") and not names:
        found.append("See Also names nothing")
    found += [f"See Also does not resolve: {name}" for name in names if not resolves(name)]
    if re.search(r"^Reference:", inspect.cleandoc(doc), re.M):
        found.append("Reference: is spelled References:")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_say_where_things_come_from(package: str) -> None:
    missing = [
        f"{package}.{name}: {fault}"
        for where, name, thing in public()
        if where == package
        for fault in faults(inspect.getdoc(thing) or "", measured=package in MEASURED)
    ]
    assert not missing, "\n" + "\n".join(missing)


@pytest.mark.parametrize("page", ["certified.md", "exact-search.md", "milp.md"])
def test_pages_cite_what_is_in_the_bibliography(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    items = entries(text.split("## References\n")[1])
    assert items
    assert [wrong for wrong in map(wrong_citation, items) if wrong] == []


def test_every_citation_is_in_the_works() -> None:
    items = [
        item
        for path in sorted(ROOT.glob("src/reticent/**/*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        for item in entries(section(ast.get_docstring(node) or "", "References"))
    ]
    assert len(items) > 150
    assert [wrong for wrong in map(wrong_citation, items) if wrong] == []


def test_what_is_looked_at() -> None:
    names = {name for _, name, _ in public()}
    assert {"LaplaceMechanism", "ExactBound", "RdpFilter", "SecureSampler", "Ledger"} <= names
    assert {"CertifiedClassifier", "PosthocEncoder", "optimal_test", "snap"} <= names
    assert not {"ExactResult", "GaussianCost", "Composition", "Limits", "Output", "Cost"} & names


def test_bibliography_is_complete_and_sorted() -> None:
    found = works()
    assert len(found) > 50
    assert list(found) == sorted(found)
    for key, fields in found.items():
        assert {"author", "title", "year"} <= set(fields), key
        assert {"booktitle", "journal", "doi", "eprint", "publisher", "url"} & set(fields), key
        assert re.fullmatch(r"(19|20)\d\d", fields["year"]), key
        assert fields["year"] in key, key
        assert re.fullmatch(r"10\.\d{4,}/\S+", fields.get("doi", "10.1000/none")), key
        assert re.fullmatch(r"\d{4}\.\d{4,5}", fields.get("eprint", "0000.0000")), key


GOOD = """What comes out.

Utility:
    Right with probability 0.99.

Runtime:
    O(1); 1 microsecond.

References:
    - Mironov (2017), "Rényi differential privacy", arXiv:1702.07476, proposition 3.
    - The proof: docs/mechanisms.md.

See Also:
    reticent.mechanisms.LaplaceMechanism: l1.
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Utility:", "Use:", "no Utility"),
        ("Runtime:", "Time:", "no Runtime"),
        ("References:", "Reference:", "no References"),
        ("See Also:", "Beside:", "no See Also"),
        ("(2017)", "(2018)", "not in the bibliography"),
        ("(2017)", "", "neither a citation"),
        ("Mironov", "Miranov", "not in the bibliography"),
        ("Rényi differential", "Renyi differential", "not in the bibliography"),
        ("1702.07476", "1702.07477", "expected 'arXiv:1702.07476'"),
        ('Mironov (2017), "Rényi differential privacy"', "the paper", "neither a citation"),
        ("LaplaceMechanism:", "LaplaceMechanisms:", "does not resolve"),
        ("reticent.mechanisms.LaplaceMechanism: l1.", "the Laplace mechanism.", "names nothing"),
    ],
)
def test_a_fault_is_found(old: str, new: str, fault: str) -> None:
    assert faults(GOOD, measured=True) == []
    assert old in GOOD
    found = faults(GOOD.replace(old, new), measured=True)
    assert any(fault in line for line in found), found


def test_utility_and_runtime_are_asked_of_mechanisms_and_bounds_alone() -> None:
    bare = GOOD[: GOOD.index("Utility")] + GOOD[GOOD.index("References") :]
    assert faults(bare, measured=False) == []
    assert faults(bare, measured=True) == ["no Utility", "no Runtime"]
