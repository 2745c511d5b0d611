"""A client's result: the values of a release, and a receipt for every request that it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.errors import InvalidInput
from reticent.core.releases import Receipt, Release, Rows


@dataclass(frozen=True, eq=False)
class Answers(Release):
    """A batch of answers of a service, as a ``Release`` whose rows came in one or more requests.

    Attributes:
        receipts: one receipt for each request, in the order of the rows. ``receipt`` is the first
            of them.
        verified: whether every receipt was signed by the key that is trusted, with digests of this
            request and of these answers in it. It is False where the client was given no key.
        replayed: number of requests that were answered from what the service had stored. They
            were repeated, and charged once.
        request: name of the call. The same call under this name again gives the same bytes, at no
            cost, as long as the service keeps them.
    """

    receipts: tuple[Receipt, ...] = ()
    verified: bool = False
    replayed: int = 0
    request: str = field(default="", repr=False)

    @override
    def to_columns(self) -> dict[str, Any]:
        """Return the released columns, ``withheld``, and in ``receipt`` the receipt that paid
        for each row.
        """
        found = super().to_columns()
        found["receipt"] = [
            receipt.identifier for receipt in self.receipts for _ in range(receipt.answers)
        ]
        return found


def joined(parts: Sequence[Answers], *, rows: Rows) -> Answers:
    """Return the answers of several requests as one.

    Args:
        parts: at least one batch of answers, in the order of their rows.
        rows: the frame that was asked about.

    Raises:
        InvalidInput: the batches do not fit together.
    """
    first, parts = parts[0], _of_one_shape(parts)
    shapes = {(part.values.shape[1:], part.columns) for part in parts}
    if len(shapes) != 1:
        raise InvalidInput("reply: answers of two requests have different columns")
    kinds = {part.values.dtype.kind for part in parts}
    values = [
        part.values if len(kinds) == 1 else part.values.astype(object, copy=False) for part in parts
    ]
    together = np.concatenate(values)
    withheld = np.concatenate([part.withheld for part in parts])
    if len(kinds) > 1:
        together[withheld] = None
    return Answers(
        together,
        withheld,
        first.receipt,
        first.columns,
        rows,
        receipts=tuple(receipt for part in parts for receipt in part.receipts),
        verified=all(part.verified for part in parts),
        replayed=sum(part.replayed for part in parts),
        request=first.request,
    )


def _of_one_shape(parts: Sequence[Answers]) -> list[Answers]:
    """Return the same parts, all of vectors if some are.

    A part that was withheld whole becomes one of vectors where others released vectors.
    """
    widths = {part.values.shape[1] for part in parts if part.values.ndim == 2}
    if len(widths) != 1:
        return list(parts)
    width = widths.pop()
    return [
        replace(part, values=np.full((len(part), width), np.nan))
        if part.values.ndim == 1 and part.withheld.all()
        else part
        for part in parts
    ]
