"""The neighbouring relation as one word of the command line: ``--neighbours add-remove``.

    add-remove[:UNIT[:RECORDS[:DATA SET]]]      data sets of which one has more
    replace[:UNIT[:RECORDS[:DATA SET]]]         data sets of one size
    within:NORM:RADIUS[:IDENTITY[:SPACE]]       two points of a space
    bundle:FOLDER                               as a bundle says of its answers
    receipt:FILE                                as the receipt of released values says

UNIT is ``record`` or ``person``. RECORDS is how many of them neighbours differ in (1). DATA SET is
the owner's name for the data. NORM is ``l1``, ``l2`` or ``linf``. IDENTITY is the identity of the
space as ``reticent card --json`` shows it, and may be empty. SPACE names the points of the space.
The last part may contain colons. ``lipschitz:`` before the first three states metric privacy in
place of differential privacy.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from reticent.core.errors import InvalidInput
from reticent.core.guarantees import (
    AddRemove,
    Adjacency,
    Guarantee,
    GuaranteeKind,
    Neighborhood,
    Replace,
    Unit,
)
from reticent.core.norms import Norm

GRAMMAR = (
    "add-remove[:UNIT[:RECORDS[:DATA SET]]], replace[:UNIT[:RECORDS[:DATA SET]]], "
    "within:NORM:RADIUS[:IDENTITY[:SPACE]], bundle:FOLDER or receipt:FILE"
)
NeighboursOption = Annotated[
    str, typer.Option(metavar="STATEMENT", help=f"What neighbours are: {GRAMMAR}.")
]
_METRIC_PRIVACY = "lipschitz"
_RECORDS: dict[str, type[AddRemove] | type[Replace]] = {
    "add-remove": AddRemove,
    "replace": Replace,
}


def guarantee_for(text: str, epsilon: float, delta: float) -> Guarantee:
    """Return the guarantee of (epsilon, delta) for the neighbours that ``text`` states.

    Raises:
        InvalidInput: not in the grammar, or a bundle or receipt of records of a data set without
            a name.
        CorruptBundle: the bundle is damaged.

    Example:
        >>> guarantee_for("replace:person:2:ward 7, 2024", 1.0, 0.0).adjacency
        Replace(records=2, unit=<Unit.PERSON: 'person'>, data_set='ward 7, 2024')
        >>> guarantee_for("within:l2:0.5::embedding", 1.0, 0.0).adjacency.radius
        0.5
    """
    word, _, rest = text.partition(":")
    if word in ("bundle", "receipt"):
        if not rest:
            raise _refused(text, f"{word} of what")
        from reticent.release.paying import check_bookable

        found = _of_bundle(Path(rest)) if word == "bundle" else _of_receipt(Path(rest))
        check_bookable(found.adjacency)
        return Guarantee(epsilon, delta, found.adjacency, found.kind)
    kind = GuaranteeKind.DIFFERENTIAL_PRIVACY
    if word == _METRIC_PRIVACY:
        kind = GuaranteeKind.LIPSCHITZ_PRIVACY
        word, _, rest = rest.partition(":")
    return Guarantee(epsilon, delta, _adjacency(word, rest, text), kind)


def statement(guarantee: Guarantee) -> str:
    """Return the text that ``guarantee_for`` reads as the neighbours and kind of ``guarantee``.

    Example:
        >>> statement(Guarantee(1.0, 0.0, AddRemove(data_set="ward 7")))
        'add-remove:record:1:ward 7'
    """
    near = guarantee.adjacency
    if isinstance(near, Neighborhood):
        parts = ["within", near.metric.value, repr(near.radius), near.identity, near.space]
    else:
        word = next(word for word, made in _RECORDS.items() if type(near) is made)
        parts = [word, near.unit.value, str(near.records)]
        parts += [near.data_set] if near.data_set else []
    if guarantee.kind is GuaranteeKind.LIPSCHITZ_PRIVACY:
        parts.insert(0, _METRIC_PRIVACY)
    return ":".join(parts)


def record_adjacency(text: str) -> str:
    """Return "add-remove" or "replace", for commands that plan for any data set.

    Raises:
        InvalidInput: anything else.
    """
    if text not in _RECORDS:
        raise InvalidInput(f"neighbours={text!r}: expected add-remove or replace here")
    return text


def _adjacency(word: str, rest: str, text: str) -> Adjacency:
    if word in _RECORDS:
        unit, records, data_set = _parts(rest, 3)
        if unit not in ("", *Unit):
            raise _refused(text, "UNIT is record or person")
        if records and not (records.isascii() and records.isdecimal() and int(records) > 0):
            raise _refused(text, "RECORDS is a whole number above 0")
        return _RECORDS[word](int(records or 1), Unit(unit or "record"), data_set)
    if word != "within":
        raise _refused(text)
    norm, radius, identity, space = _parts(rest, 4)
    if norm not in list(Norm):
        raise _refused(text, "NORM is l1, l2 or linf")
    try:
        size = float(radius)
    except ValueError:
        size = math.nan
    if not (math.isfinite(size) and size > 0):
        raise _refused(text, "RADIUS is a number above 0")
    return Neighborhood(Norm(norm), size, space or "embedding", identity)


def _parts(rest: str, most: int) -> list[str]:
    """Return ``most`` parts. Missing ones are empty."""
    found = rest.split(":", most - 1)
    return found + [""] * (most - len(found))


def _refused(text: str, why: str = "") -> InvalidInput:
    return InvalidInput(
        f"neighbours={text!r}: {f'{why}; ' if why else ''}expected {GRAMMAR}, with lipschitz: "
        "before the first three for metric privacy"
    )


def _of_bundle(folder: Path) -> Guarantee:
    from reticent.cli.bundles import open_bundle

    found: Guarantee = open_bundle(folder).guarantee
    return found


def _of_receipt(path: Path) -> Guarantee:
    from reticent.cli.files import read_receipt

    found = read_receipt(path, name="neighbours").get("guarantee")
    if not isinstance(found, dict):
        raise InvalidInput(f"neighbours={str(path)!r}: its receipt has no guarantee")
    return Guarantee.from_dict(found)
