"""Docstrings of this project, made ready for Sphinx: what its characters stand for, entries of
several names, and links for citations, pages and neighbouring names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_HEADING = re.compile(r"([A-Z][A-Za-z]*(?: [A-Z][a-z]+)?):")
_LITERAL = re.compile(r"(``.+?``|`[^`]+`)")
_UNESCAPED = re.compile(r"(?<!\\)(\||(?<=\w)_(?!\w)|(?<=\()\*(?=\w)|(?<=, )\*(?=\w))")
_PAGE = re.compile(r"docs/([\w/-]+)\.md")
_NEIGHBOUR = re.compile(r"    ([\w.]+): (.*)")
_WORK = re.compile(r'    - ([^"]+?) \((\d{4})\), "(.+?)",(.*)')


def prepared(
    lines: list[str], *, places: Mapping[str, str], cite: Callable[[str, str, str], str | None]
) -> list[str]:
    r"""A docstring as reStructuredText with Google's sections, which napoleon reads.

    Args:
        lines: the docstring, without its common indentation.
        places: dotted name to the dotted name that it is described under.
        cite: called with authors, year and title; the address of the work, or None where it has
            none.

    Returns:
        Lines in which bars and closing underscores stand for themselves, entries that name several
        arguments stand on one line, See Also is a list of links, and works are linked.

    Example:
        >>> text = ["The norm |v|.", "", "See Also:", "    a.B: the other."]
        >>> prepared(text, places={"a.B": "a.c.B"}, cite=lambda *work: None)
        ['The norm \\|v\\|.', '', 'See Also:', '    - :py:obj:`a.B <a.c.B>`: the other.']
        >>> prepared(["Proof: docs/noise.md."], places={}, cite=lambda *work: None)
        ['Proof: :doc:`docs/noise.md </noise>`.']
    """
    section, found = "", []
    for line, example in _whole_entries(lines):
        heading = _HEADING.fullmatch(line)
        if heading:
            section = heading[1]
        if not example:
            line = _escaped(line)
            if section == "See Also":
                line = _linked(line, places)
            elif section == "References":
                line = _cited(line, cite)
        found.append(line)
    return found


def _whole_entries(lines: list[str]) -> list[tuple[str, bool]]:
    """Each line, references and entries of several names joined to one, and whether it is part of
    an example.
    """
    section, example, open_entry = "", False, ""
    found: list[tuple[str, bool]] = []
    for line in lines:
        heading = _HEADING.fullmatch(line)
        if heading:
            section = heading[1]
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if section == "References" and line.startswith("      ") and found:
            found[-1] = f"{found[-1][0]} {line.strip()}", False
            continue
        if open_entry:
            line, open_entry = f"{open_entry} {line.strip()}", ""
        names = re.fullmatch(r"    \*{0,2}\w+(?:, \*{0,2}\w+)*,?(?: .*)?", line)
        if section in ("Args", "Attributes") and names and ":" not in line:
            open_entry = line
            continue
        found.append((line, example))
    return [*found, (open_entry, False)] if open_entry else found


def _escaped(line: str) -> str:
    return "".join(
        part
        if _LITERAL.fullmatch(part)
        else _PAGE.sub(r":doc:`docs/\1.md </\1>`", _UNESCAPED.sub(r"\\\1", part))
        for part in _LITERAL.split(line)
    )


def _linked(line: str, places: Mapping[str, str]) -> str:
    item = _NEIGHBOUR.fullmatch(line)
    if item:
        return f"    - :py:obj:`{item[1]} <{places.get(item[1], item[1])}>`: {item[2]}"
    return f"      {line.strip()}" if line.startswith("     ") else line


def _cited(line: str, cite: Callable[[str, str, str], str | None]) -> str:
    work = _WORK.fullmatch(line)
    address = cite(work[1], work[2], work[3]) if work else None
    if work is None or address is None:
        return line
    return f'    - {work[1]} ({work[2]}), `"{work[3]}" <{address}>`__,{work[4]}'
