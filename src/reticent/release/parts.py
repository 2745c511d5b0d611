"""Answers for a file of any size, in parts, with constant memory and one charge a part.

An interrupted run goes on after the last part that was written. One call of ``release`` charges and
answers a part. The part is then put into the output folder whole or not at all, after its receipt.
A run that is killed at any moment leaves every row of finished parts answered and charged once.
Rows of the part under way may be charged and not answered. They are charged again when they are
answered. No row is skipped, and none is answered twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from reticent.core.checks import count
from reticent.core.errors import InvalidInput
from reticent.core.files import output_file
from reticent.core.releases import Release
from reticent.core.scopes import Scope
from reticent.core.signatures import receipt_content, sign_receipt
from reticent.release.paying import Books
from reticent.tables.batches import Batch, check_format, encoded_columns

STATE = ".release.json"
"""Name of the file that identifies the source of a folder's parts."""

_BYTES_PER_CELL = 40  # in a part of any format, with room to spare


class Answering(Protocol):
    """A fitted system that answers rows."""

    bundle_identity_: str

    def release(
        self,
        X: Any,
        *,
        ledger: Books | None = ...,
        scope: Any = ...,
    ) -> Release:
        """Return one answer for each row."""


@dataclass(frozen=True)
class Parts:
    """A folder of answers that is being filled.

    Attributes:
        folder: folder of ``part-000000.parquet``, ``part-000000.receipt.json``, and so on.
        format: format of the parts: "parquet", "csv" or "arrow".
        rows: number of rows in a part. The last may have fewer.
        identity: identity of the answers' source, as plain JSON values that are equal for every run
            that fills this folder.
    """

    folder: Path
    format: str
    rows: int
    identity: dict[str, Any]

    def __post_init__(self) -> None:
        check_format(self.format)
        count(self.rows, name="rows")

    def name(self, part: int) -> Path:
        """Return the path of a part."""
        return self.folder / f"part-{part:06}.{self.format}"

    @property
    def written(self) -> int:
        """Return the number of parts that are there, from the first on."""
        part = 0
        while self.name(part).is_file():
            part += 1
        return part


@contextmanager
def opened(parts: Parts) -> Iterator[int]:
    """Yield the number of parts that are there already, and keep other runs from the folder.

    Raises:
        InvalidInput: the folder holds answers from another source or files of another kind, or
            another run is filling it.
        WriteFailed: it cannot be written.
    """
    stated = {**parts.identity, "format": parts.format, "rows": parts.rows}
    path = parts.folder / STATE
    empty = not parts.folder.exists() or (parts.folder.is_dir() and not any(parts.folder.iterdir()))
    if not empty and not path.is_file():
        raise InvalidInput(
            f"output={str(parts.folder)!r}: exists and holds something else; expected a new or "
            "empty folder, or one that an interrupted run left"
        )
    if path.is_file():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            found = None
        if found != stated:
            raise InvalidInput(
                f"output={str(parts.folder)!r}: holds answers of another bundle, input or size of "
                "parts; choose a new folder, or repeat the call that began it"
            )
    else:
        content = json.dumps(stated, indent=2).encode()
        with output_file(path, size=len(content), overwrite=False, private=True) as put:
            put(content)
    with _locked(path, parts.folder):
        yield parts.written


def release_parts(
    system: Answering,
    batches: Iterable[Batch],
    parts: Parts,
    *,
    start: int,
    ledger: Books | None,
    scope: Scope | None,
    key: Path | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> Iterator[Release]:
    """Answer batches one after the other, and write each before the next is read.

    Args:
        system: the fitted system.
        batches: batches of ``parts.rows`` rows each. The first is part number ``start``.
        parts: the folder, opened.
        start: number of parts that are there already.
        ledger, scope: ledger and scope of each part's charge, both or neither. If batches have
            subjects, each row is charged to its own.
        key: file of the private key that signs every receipt, or None.
        report: function that is called with the number of rows after each part.

    Yields:
        The answers of each part, once they are on the disk.

    Raises:
        InvalidInput: rows that the system does not take. Parts written before stay.
        BudgetExceeded, LedgerUnavailable, WriteFailed: errors of a part. Earlier parts stay.
    """
    for number, batch in enumerate(batches, start):
        room = _BYTES_PER_CELL * len(batch) * 8 + 2**16
        with output_file(parts.name(number), size=room, overwrite=False) as put:
            whole: Any = scope
            if scope is not None and batch.subjects is not None:
                whole = [replace(scope, subject=name) for name in batch.subjects]
            if ledger is None:
                release = system.release(batch.rows)
            else:
                release = system.release(batch.rows, ledger=ledger, scope=whole)
            _write_receipt(parts, number, release, key)
            put(encoded_columns(release.to_columns(), parts.format))
        report(len(batch))
        yield release


def _write_receipt(parts: Parts, number: int, release: Release, key: Path | None) -> None:
    stem = parts.name(number).with_suffix("")
    files = {".receipt.json": receipt_content(release.receipt)}
    if key is not None:
        files[".receipt.sig"] = sign_receipt(release.receipt, key=key)
    for suffix, content in files.items():
        # A killed run may leave a receipt without its part. The next run writes its own.
        with output_file(stem.with_suffix(suffix), size=len(content), overwrite=True) as put:
            put(content)


@contextmanager
def _locked(path: Path, folder: Path) -> Iterator[None]:
    """Keep other runs from the folder. The lock ends with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks: two runs then collide at the first part
        yield
        return
    descriptor = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(
                f"output={str(folder)!r}: another run is filling this folder; wait for it, or "
                "choose another"
            ) from None
        yield
    finally:
        os.close(descriptor)
