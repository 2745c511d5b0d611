"""`reticent train-model`: a model of released values, for a service to answer them with."""

from __future__ import annotations

import zipfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reticent.core.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class KindName(StrEnum):
    """Kinds of models that can be stored."""

    BOOSTED = "boosted"
    LINEAR = "linear"
    NETWORK = "network"
    CHANNEL = "channel"


def train_model(
    bundle: Annotated[Path, typer.Argument(help="Folder of the bundle that released the values.")],
    values: Annotated[
        list[Path],
        typer.Option(
            metavar="NPZ", help="Released values, as `reticent release` wrote them; repeatable."
        ),
    ],
    labels: Annotated[
        list[Path],
        typer.Option(metavar="NPY", help="Public labels of these rows; as many files, in order."),
    ],
    output: Annotated[Path, typer.Option(help="Folder of the model.")],
    kind: Annotated[
        KindName,
        typer.Option(
            help="boosted trees, logistic regression, a network (needs torch), or the posterior "
            "of a bundle of score codes."
        ),
    ] = KindName.BOOSTED,
    seed: Annotated[int, typer.Option(min=0, help="Seed of training.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model if it exists.")
    ] = False,
) -> None:
    """Learn a model from released values, and store it for `reticent serve --models`.

    Its predictions cost nothing: they are computed from values that were paid for when they were
    released. Rows themselves are never read.
    """
    import numpy as np

    from reticent.cli.arrays import read_array
    from reticent.client.pins import protects_input
    from reticent.systems.loading import load_answering
    from reticent.systems.value_models import train_value_model

    if len(values) != len(labels):
        raise InvalidInput(
            f"labels: expected a file for each of {len(values)} files of values, got {len(labels)}"
        )
    system = load_answering(bundle)
    if not protects_input(system.guarantee.adjacency):
        raise InvalidInput(
            f"bundle={str(bundle)!r}: protects records, and its answers are predictions already"
        )
    identity = system.bundle_identity_
    parts = [_released(path, identity) for path in values]
    targets = [read_array(path, name="labels") for path in labels]
    for path, part, target in zip(values, parts, targets, strict=True):
        if target.shape != part.shape[:1]:
            raise InvalidInput(
                f"labels: expected {len(part)} for values={str(path)!r}, got shape={target.shape}"
            )
    widths = {part.shape[1] for part in parts}
    if len(widths) != 1:
        raise InvalidInput(f"values: expected files of one width, got {sorted(widths)}")
    model = train_value_model(
        kind.value,
        np.concatenate(parts),
        np.concatenate(targets),
        seed=seed,
        bundle=identity,
        guarantee=system.guarantee,
        channel=system.channel_ if kind is KindName.CHANNEL else None,
    )
    typer.echo(f"model {model.identity}: {model.save(output, overwrite=overwrite)}")


def _released(path: Path, identity: str) -> npt.NDArray[np.float64]:
    """The values in a file that ``reticent release`` wrote, by the bundle of that identity."""
    import numpy as np

    from reticent.cli.arrays import read_signed_receipt
    from reticent.client.wire import receipt_of
    from reticent.core.strict_json import strict_loads

    receipt = receipt_of(strict_loads(read_signed_receipt(path)[0]))
    if receipt.bundle != identity:
        raise InvalidInput(
            f"values={str(path)!r}: were released by the bundle {receipt.bundle[:16]!r}, expected "
            f"{identity[:16]!r}"
        )
    try:
        with np.load(path, allow_pickle=False) as stored:
            values = np.asarray(stored["values"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"values={str(path)!r}: damaged; release them again") from error
    if values.ndim != 2 or values.dtype != np.float64:
        raise InvalidInput(
            f"values={str(path)!r}: expected vectors, shape (n, m), got shape={values.shape}; "
            "released labels need no model"
        )
    return values
