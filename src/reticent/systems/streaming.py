"""``release_stream``: answers for rows that do not fit into memory, for every estimator that
releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from reticent.bundles.booking import Books
from reticent.bundles.parts import Parts, opened, release_parts
from reticent.core.errors import InvalidInput
from reticent.core.releases import Release
from reticent.core.scopes import Scope
from reticent.core.signatures import check_signing_key
from reticent.tables.batches import LARGEST_BATCH, Batch, read_batches
from reticent.tables.feature_names import kept_names
from reticent.tables.schema import TabularSchema


class ReleasesStreams:
    """Mixin of a fitted system with ``release``: the same for files and streams of any length."""

    def release_stream(
        self,
        source: str | Path | Iterable[Any],
        output: str | Path,
        *,
        rows: int = LARGEST_BATCH,
        format: str = "parquet",
        ledger: Books | None = None,
        scope: Scope | None = None,
        ignore: Sequence[str] = (),
        subject_column: str | None = None,
        sampler: str = "exact",
        key: str | Path | None = None,
        report: Callable[[int], None] = lambda rows: None,
    ) -> Iterator[Release]:
        """Answers every row, part by part, into a folder; an interrupted run goes on where it was.

        A part is charged once, before it is answered, and stands in the folder whole or not at all.
        Repeat the same call after an interruption: parts that are there are neither charged nor
        answered again. What a killed run had charged and not written is lost, and charged again.

        Args:
            source: a CSV, Parquet or Arrow IPC file, whose columns are found by name; or data
                frames or arrays, each of them a part, the same ones when the call is repeated.
            output: folder for ``part-000000.parquet``, ... and a receipt for each.
            rows: of a part, where ``source`` is a file; 1 to 100,000. Memory grows with it.
            format: of the parts: "parquet", "csv" or "arrow".
            ledger, scope: where each part is booked, both or neither.
            ignore: columns of the file that are not read; each must be there.
            subject_column: a column of the file that says whose privacy each row spends.
            sampler: as for ``release``.
            key: private key file that signs every receipt.
            report: called with the number of rows after each part.

        Returns:
            An iterator over the answers of every part that this run writes, each once it is on the
            disk. Nothing is answered before it is asked for: iterate, or call ``list``.

        Raises:
            NotFittedYet, UnknownName, MissingExtra: nothing is answered.
            InvalidInput: rows that do not fit, or a folder of something else. Parts written before
                stay, as for every error.
            BudgetExceeded, LedgerUnavailable, WriteFailed: see ``release``.
        """
        if (ledger is None) != (scope is None):
            raise InvalidInput("ledger and scope: expected both or neither")
        if subject_column is not None and ledger is None:
            raise InvalidInput("subject_column: expected together with ledger and scope")
        if key is not None:
            check_signing_key(Path(key))
        path = Path(source) if isinstance(source, str | Path) else None
        columns = None if path is None else columns_of(self)
        bundle = str(getattr(self, "bundle_identity_", ""))
        identity = {"bundle": bundle, "source": _identity(path)}
        parts = Parts(Path(output), format, rows, identity)

        def answers() -> Iterator[Release]:
            with opened(parts) as start:
                if path is None or columns is None:
                    batches = _frames(source, start)  # type: ignore[arg-type]
                else:
                    batches = read_batches(
                        path,
                        columns,
                        rows=rows,
                        ignore=ignore,
                        subject_column=subject_column,
                        skip=start * rows,
                        name="source",
                    )
                yield from release_parts(
                    self,  # type: ignore[arg-type]
                    batches,
                    parts,
                    start=start,
                    ledger=ledger,
                    scope=scope,
                    sampler=sampler,
                    key=None if key is None else Path(key),
                    report=report,
                )

        return answers()


def columns_of(system: Any, *, name: str = "source") -> TabularSchema | list[str]:
    """What a fitted system reads from a file: its schema, or the names of its columns.

    Raises:
        InvalidInput: it was fitted on an array, so that nothing in a file can be found by name.
    """
    schema = getattr(getattr(system, "query_", None), "schema", None)
    if isinstance(schema, TabularSchema):
        return schema
    names = kept_names(system)
    if names is None:
        raise InvalidInput(
            f"{name}: this {type(system).__name__} was fitted on an array, without column names; "
            "fit it on a data frame, or pass arrays"
        )
    return names


def _identity(path: Path | None) -> dict[str, Any]:
    """What makes a file the same file: never its content, which is private."""
    if path is None:
        return {"kind": "frames"}
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidInput(f"source={str(path)!r}: cannot be read ({error.strerror})") from error
    return {"kind": "file", "bytes": found.st_size, "changed": found.st_mtime_ns}


def _frames(source: Iterable[Any], start: int) -> Iterator[Batch]:
    for number, rows in enumerate(source):
        if number >= start:
            yield Batch(rows, None)
