"""What neighbours are, on the command line: taken from a bundle, or said option by option."""

from __future__ import annotations

from enum import StrEnum
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


class AdjacencyName(StrEnum):
    """What neighbours are, on the command line."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"
    NEIGHBORHOOD = "neighborhood"


class KindName(StrEnum):
    """What is promised, on the command line."""

    DP = "dp"
    LIPSCHITZ = "lipschitz"


AdjacencyOf = Annotated[
    Path | None,
    typer.Option(
        metavar="BUNDLE",
        help="Folder of a bundle: kind and adjacency are those of its answers; for --adjacency.",
    ),
]
AdjacencyOption = Annotated[AdjacencyName | None, typer.Option(help="What neighbours are.")]
Records = Annotated[
    int, typer.Option(help="Records that neighbours differ in (add-remove, replace).")
]
UnitOption = Annotated[
    Unit, typer.Option("--unit", help="What counts as one: a record, or all records of a person.")
]
DataSet = Annotated[
    str, typer.Option(help="The owner's name of the protected data set (add-remove, replace).")
]
Metric = Annotated[Norm | None, typer.Option(help="Norm of a neighborhood.")]
Radius = Annotated[float | None, typer.Option(help="Radius of a neighborhood.")]
Space = Annotated[str, typer.Option(help="What the points of a neighborhood are, in plain words.")]
Identity = Annotated[
    str, typer.Option(help="Identity of the space, as `reticent card --json` shows it.")
]
Kind = Annotated[
    KindName, typer.Option(help="Differential privacy, or Lipschitz (metric) privacy.")
]


def stated_guarantee(
    epsilon: float,
    delta: float,
    *,
    adjacency_of: Path | None,
    adjacency: AdjacencyName | None,
    records: int,
    unit: Unit,
    data_set: str,
    metric: Norm | None,
    radius: float | None,
    space: str,
    identity: str,
    kind: KindName,
) -> Guarantee:
    """The guarantee of (epsilon, delta) that the options state.

    Raises:
        InvalidInput: neither a bundle nor an adjacency, both, options of another adjacency, or a
            bundle of records of a data set without a name.
        CorruptBundle: the bundle is damaged.
    """
    if (adjacency_of is None) == (adjacency is None):
        raise InvalidInput(
            "adjacency: expected --adjacency-of with a bundle, or --adjacency, and not both"
        )
    of_points = metric is not None or radius is not None or bool(identity)
    of_records = records != 1 or unit is not Unit.RECORD or bool(data_set)
    if adjacency_of is not None:
        if of_points or of_records or kind is not KindName.DP:
            raise InvalidInput(
                "adjacency_of: a bundle says all about its adjacency; expected no other option "
                "about it"
            )
        from reticent.cli.bundles import open_bundle
        from reticent.release.paying import check_bookable

        found = open_bundle(adjacency_of).guarantee
        check_bookable(found.adjacency)
        return Guarantee(epsilon, delta, found.adjacency, found.kind)
    neighbours: Adjacency
    if adjacency is AdjacencyName.NEIGHBORHOOD:
        if metric is None or radius is None:
            raise InvalidInput("adjacency='neighborhood': expected --metric and --radius with it")
        if of_records:
            raise InvalidInput(
                "adjacency='neighborhood': expected neither --records, --unit nor --data-set "
                "with it"
            )
        neighbours = Neighborhood(metric, radius, space, identity)
    elif of_points:
        raise InvalidInput(
            f"adjacency={str(adjacency)!r}: expected neither --metric, --radius nor --identity "
            "with it"
        )
    else:
        make = AddRemove if adjacency is AdjacencyName.ADD_REMOVE else Replace
        neighbours = make(records, unit, data_set)
    kinds = {
        KindName.DP: GuaranteeKind.DIFFERENTIAL_PRIVACY,
        KindName.LIPSCHITZ: GuaranteeKind.LIPSCHITZ_PRIVACY,
    }
    return Guarantee(epsilon, delta, neighbours, kinds[kind])
