"""What a client's receipt claims about a ledger: it was there when its entry was written, and
nobody can take that back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from reticent.core.errors import InvalidInput
from reticent.core.releases import Receipt

_BOOKED = re.compile(
    r"([0-9a-f]{8})/([1-9][0-9]*)(?:-([1-9][0-9]*)|#([1-9][0-9]*)(?:-([1-9][0-9]*))?)?"
)


@dataclass(frozen=True)
class ReceiptClaim:
    """The entries that paid for a release, as its receipt names them.

    Attributes:
        identifier: name of the receipt.
        ledger: first eight letters of the ledger's name.
        first, last: positions of its entries.
        digest: of the last of them, 64 hexadecimal digits.
        leased: the first and the last answer of the entry, where that is a lease; else None.
    """

    identifier: str
    ledger: str
    first: int
    last: int
    digest: str
    leased: tuple[int, int] | None = None

    @classmethod
    def of(cls, receipt: Receipt | Mapping[str, Any]) -> Self:
        """The claim of a receipt, or of its ``to_dict``.

        Raises:
            InvalidInput: it was booked in no ledger, or does not say where.
        """
        values = receipt.to_dict() if isinstance(receipt, Receipt) else receipt
        identifier, digest, position = (
            values.get(name) for name in ("identifier", "digest", "position")
        )
        found = _BOOKED.fullmatch(str(values.get("booked", "")))
        if found is None:
            raise InvalidInput(
                f"receipt {identifier!r:.60}: expected one that is booked in a ledger, got "
                f"booked={values.get('booked')!r:.60}"
            )
        ledger, first, last = found[1], int(found[2]), int(found[3] or found[2])
        if (
            type(position) is not int
            or position != last
            or not re.fullmatch("[0-9a-f]{64}", str(digest))
        ):
            raise InvalidInput(
                f"receipt {identifier!r:.60}: expected position and digest of its last entry, "
                f"got position={position!r:.30}"
            )
        leased = (int(found[4]), int(found[5] or found[4])) if found[4] else None
        return cls(str(identifier), ledger, first, last, str(digest), leased)
