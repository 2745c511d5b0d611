"""What comes out of a release: values, a mask of what was withheld, and a receipt."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from reticent.core.guarantees import Guarantee

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Receipt:
    """The record of one call of ``release``: what was spent, how, and whether it was booked.

    Attributes:
        mechanism: name of the mechanism.
        guarantee: cost of *each* answer, withheld ones included.
        answers: number of inputs in the call, withheld ones included.
        bundle: identity of the bundle that answered, from nothing that is private, or "" for a bare
            mechanism.
        certificate: kind of certificate ("enumeration", "interval", "exact", "global", "none").
        sampler: where the noise came from.
        seeded: whether a caller's seed drove the noise; such values are *not private*.
        booked: ledger entry, or the first and last of those that charged every row to a scope of
            its own; "" when no ledger was given.
        position: of the last of these entries in the ledger's chain; 0 when no ledger was given.
        digest: of that entry, 64 hexadecimal digits, or "". Whoever keeps the receipt can show
            later that the entry was there: a ledger that does not hold it was rewritten, or is an
            older copy.
        identifier: random name of this receipt.
    """

    mechanism: str
    guarantee: Guarantee
    answers: int
    bundle: str
    certificate: str
    sampler: str
    seeded: bool
    booked: str = ""
    position: int = 0
    digest: str = ""
    identifier: str = field(default_factory=lambda: token_hex(8))

    def describe(self) -> str:
        """The receipt as one line."""
        privacy = "seeded: not private" if self.seeded else self.guarantee.describe()
        ledger = f"booked as {self.booked}" if self.booked else "not booked in any ledger"
        return f"{self.answers} answer(s) by {self.mechanism}; {privacy}; {ledger}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "mechanism": self.mechanism,
            "guarantee": self.guarantee.to_dict(),
            "answers": self.answers,
            "bundle": self.bundle,
            "certificate": self.certificate,
            "sampler": self.sampler,
            "seeded": self.seeded,
            "booked": self.booked,
            "position": self.position,
            "digest": self.digest,
            "identifier": self.identifier,
        }


@dataclass(frozen=True, eq=False)
class Release:
    """A batch of answers.

    Attributes:
        values: shape (n, m) float64 for vectors, (n,) for labels. Rows of ``withheld`` hold NaN
            (vectors) or -1 (labels) and carry no information beyond having been withheld.
        withheld: shape (n,) bool.
        receipt: what was spent.
    """

    values: npt.NDArray[Any]
    withheld: npt.NDArray[np.bool_]
    receipt: Receipt

    def __len__(self) -> int:
        return len(self.withheld)

    @property
    def released(self) -> npt.NDArray[Any]:
        """The rows that were not withheld."""
        return self.values[~self.withheld]
