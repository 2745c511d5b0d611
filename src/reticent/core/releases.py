"""The result of a release: values, a mask of withheld rows, and a receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self

from reticent.core.errors import InvalidInput
from reticent.core.extras import require
from reticent.core.guarantees import Guarantee

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_SHOWN = 10
"""Answers of a release that a notebook shows."""


@dataclass(frozen=True)
class Receipt:
    """The record of one call of ``release``: its cost, its noise, and its ledger entry.

    Attributes:
        mechanism: name of the mechanism.
        guarantee: cost of *each* answer, withheld ones included, or of all answers of a plan.
        answers: number of inputs in the call, withheld ones included.
        bundle: identity of the bundle that answered, made from nothing private, or "" for a bare
            mechanism.
        certificate: kind of certificate ("layered", "interval", "global", "none").
        sampler: source of the noise.
        seeded: whether a caller's seed drove the noise. Such values are *not private*.
        booked: ledger entry, or the first and last of those that charged every row to a scope of
            its own. "" when no ledger was given.
        position: position of the last of these entries in the ledger's chain, 0 when no ledger was
            given.
        digest: digest of that entry, 64 hexadecimal digits, or "". Whoever keeps the receipt can
            show later that the entry was there. A ledger that does not hold it was rewritten, or is
            an older copy.
        identifier: random name of this receipt.
        request: digest of the request, keyed by the client's nonce, 64 hexadecimal digits, or ""
            where no service answered (``core.bindings``).
        reply: digest of the answers, keyed by a salt that the client alone was sent, or "" where no
            service answered.
        together: whether the guarantee is that of a plan: of all its answers, in this call and in
            others.
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
    request: str = ""
    reply: str = ""
    together: bool = False

    def describe(self) -> str:
        """Return the receipt as one line."""
        privacy = self.guarantee.describe()
        if self.seeded:
            privacy = "seeded: not private"
        elif self.together:
            privacy = f"all answers of the plan together: {privacy}"
        elif self.answers > 1:
            privacy = f"each of them: {privacy}"
        ledger = f"booked as {self.booked}" if self.booked else "not booked in any ledger"
        return f"{self.answers} answer(s) by {self.mechanism}; {privacy}; {ledger}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the two digests only where a service answered, and
        ``together`` only where it holds.
        """
        bound = {"request": self.request, "reply": self.reply}
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
            **(bound if self.request or self.reply else {}),
            **({"together": True} if self.together else {}),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the receipt that ``to_dict`` described. It records a payment and pays for nothing.

        Raises:
            InvalidInput: an invalid guarantee or flag.
            KeyError, TypeError: a field is missing or unknown.
        """
        fields = dict(values)
        guarantee = Guarantee.from_dict(fields.pop("guarantee"))
        if type(fields["seeded"]) is not bool:
            raise InvalidInput(f"seeded: expected true or false, got {fields['seeded']!r:.20}")
        if type(fields.get("together", False)) is not bool:
            raise InvalidInput(f"together: expected true or false, got {fields['together']!r:.20}")
        return cls(guarantee=guarantee, **fields)


@dataclass(frozen=True)
class Rows:
    """The queried rows, as their frame knew them.

    Attributes:
        library: "pandas", "polars" or "pyarrow", or "" for an array.
        index: the frame's own index, or None where it has none.
    """

    library: str = ""
    index: Any = None


@dataclass(frozen=True, eq=False)
class Release:
    """A batch of answers.

    Attributes:
        values: shape (n, m) float64 for vectors, (n,) for labels. Rows of ``withheld`` hold NaN
            (vectors) or -1 (labels) and carry no information beyond having been withheld.
        withheld: shape (n,) bool.
        receipt: record of the cost.
        columns: names of the released columns, for ``to_frame``, or () for "value", or "value0" and
            so on.
        rows: library and index of the queried frame.
    """

    values: npt.NDArray[Any]
    withheld: npt.NDArray[np.bool_]
    receipt: Receipt
    columns: tuple[str, ...] = ()
    rows: Rows = field(default_factory=Rows)

    def __len__(self) -> int:
        return len(self.withheld)

    @property
    def released(self) -> npt.NDArray[Any]:
        """Rows that were not withheld."""
        return self.values[~self.withheld]

    def to_frame(self, library: str | None = None) -> Any:
        """Return the answers as a data frame: released columns, ``withheld`` and ``receipt``.

        Args:
            library: "pandas", "polars" or "pyarrow", or None for the library of the queried frame,
                which is pandas for an array.

        Returns:
            One row for each queried row, in its order and with its index (pandas).
            Withheld vectors are NaN, withheld labels missing. ``receipt`` is the identifier of the
            receipt, the same in every row.

        Raises:
            InvalidInput: another library.
            MissingExtra: it is not installed.
        """
        chosen = library or self.rows.library or "pandas"
        if chosen not in ("pandas", "polars", "pyarrow"):
            raise InvalidInput(f"library={chosen!r}: expected one of pandas, polars, pyarrow")
        if chosen == "pandas":
            require("pandas", extra="pandas")
        elif chosen == "polars":
            require("polars", extra="polars")
        else:
            require("pyarrow", extra="arrow")
        from narwhals.stable.v1 import Implementation, from_dict

        library_of = Implementation.from_backend(chosen)  # type: ignore[arg-type]
        frame: Any = from_dict(self.to_columns(), backend=library_of).to_native()  # type: ignore[arg-type]
        if chosen == "pandas" and self.rows.index is not None:
            frame.index = self.rows.index
        return frame

    def _repr_html_(self) -> str:
        """Return the first answers and their cost as HTML, which notebooks show."""
        columns = self.to_columns()
        heads = "".join(f"<th>{escape(name)}</th>" for name in columns)
        lines = zip(*(column[:_SHOWN] for column in columns.values()), strict=True)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in line) + "</tr>"
            for line in lines
        )
        return (
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{len(self):,} answers, {int(self.withheld.sum()):,} withheld. "
            f"Receipt: {escape(self.receipt.describe())}</p>"
        )

    def to_columns(self) -> dict[str, Any]:
        """Return the released columns, ``withheld`` and ``receipt`` of ``to_frame``, by name."""
        values = self.values if self.values.ndim == 2 else self.values[:, None]
        names = self.columns
        if len(names) != values.shape[1]:
            single = values.shape[1] == 1
            names = ("value",) if single else tuple(f"value{n}" for n in range(values.shape[1]))
        found: dict[str, Any] = {}
        for place, name in enumerate(names):
            column = values[:, place]
            label = self.values.ndim == 1 and self.withheld.any()
            found[name] = _present(column, self.withheld) if label else column
        found["withheld"] = self.withheld
        found["receipt"] = [self.receipt.identifier] * len(self)
        return found


def _present(labels: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> list[Any]:
    """Return labels as a list, with None where withheld."""
    return [None if left else label for label, left in zip(labels.tolist(), withheld, strict=True)]
