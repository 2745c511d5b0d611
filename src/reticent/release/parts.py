"""Answers for a file of any size, in parts: constant memory, one charge a part, and an interrupted
run that goes on after the last part that was written.

A part is answered and charged by one call of ``release``, then put into the output folder whole
or not at all, after its receipt. A run that is killed at any moment leaves every row answered and
charged once, or, in the part that it was at, charged and not answered: those rows are charged again
when they are answered. No row is skipped, and none is answered twice.
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
"""Name of the file that says what the parts of a folder are answers of."""

_BYTES_PER_CELL = 40  # of a part of any format, with room to spare


class Answering(Protocol):
    """A fitted system that answers rows."""

    bundle_identity_: str

    def release(
        self,
        X: Any,
        *,
        ledger: Books | None = ...,
        scope: Any = ...,
        sampler: str = ...,
    ) -> Release:
        """One answer for each row."""


@dataclass(frozen=True)
class Parts:
    """A folder of answers that is being filled.

    Attributes:
        folder: holds ``part-000000.parquet``, ``part-000000.receipt.json``, and so on.
        format: of the parts: "parquet", "csv" or "arrow".
        rows: in a part; the last may have fewer.
        identity: what the answers are of: plain JSON values, equal for every run that fills this
            folder.
    """

    folder: Path
    format: str
    rows: int
    identity: dict[str, Any]

    def __post_init__(self) -> None:
        check_format(self.format)
        count(self.rows, name="rows")

    def name(self, part: int) -> Path:
        """Where a part stands."""
        return self.folder / f"part-{part:06}.{self.format}"

    @property
    def written(self) -> int:
        """How many parts stand there, from the first on."""
        part = 0
        while self.name(part).is_file():
            part += 1
        return part


@contextmanager
def opened(parts: Parts) -> Iterator[int]:
    """The number of parts that are there already, while no other run may fill the folder.

    Raises:
        InvalidInput: the folder holds answers of something else, files of another kind, or another
            run is filling it.
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
    sampler: str = "exact",
    key: Path | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> Iterator[Release]:
    """Answers batches one after the other, and writes each before the next is looked at.

    Args:
        system: fitted.
        batches: of ``parts.rows`` rows each; the first is part number ``start``.
        parts: the folder, opened.
        start: how many parts are there already.
        ledger, scope: where each part is booked, both or neither; where batches have subjects,
            each row is charged to its own.
        sampler: see ``release`` of the system.
        key: signs every receipt, or None.
        report: called with the number of rows after each part.

    Yields:
        The answers of each part, once they are on the disk.

    Raises:
        InvalidInput: rows that the system does not take; parts written before stay.
        BudgetExceeded, LedgerUnavailable, WriteFailed: the same.
    """
    for number, batch in enumerate(batches, start):
        room = _BYTES_PER_CELL * len(batch) * 8 + 2**16
        with output_file(parts.name(number), size=room, overwrite=False) as put:
            whole: Any = scope
            if scope is not None and batch.subjects is not None:
                whole = [replace(scope, subject=name) for name in batch.subjects]
            if ledger is None:
                release = system.release(batch.rows, sampler=sampler)
            else:
                release = system.release(batch.rows, ledger=ledger, scope=whole, sampler=sampler)
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
        # A receipt without its part is what a killed run leaves; the next one writes its own.
        with output_file(stem.with_suffix(suffix), size=len(content), overwrite=True) as put:
            put(content)


@contextmanager
def _locked(path: Path, folder: Path) -> Iterator[None]:
    """Nobody else fills the folder meanwhile; a lock ends with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows; two runs then collide at the first part
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
