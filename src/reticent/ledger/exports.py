"""Exports: every entry with its digest, for another program or another archive."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Literal

from reticent.core.errors import (
    CorruptLedger,
    InvalidInput,
    LedgerUnavailable,
    UnknownName,
    WriteFailed,
)
from reticent.core.files import check_replaceable, new_file_beside
from reticent.ledger.chain import Entry, read_tip
from reticent.ledger.store import Store
from reticent.ledger.verification import MalformedEntry, stored_entries

Format = Literal["jsonl", "csv"]
COLUMNS = (*Entry._fields, "previous", "digest")
"""Columns of an export: those of an entry, then the digest before it and its own, in
hexadecimal.
"""


def export_to(store: Store, path: str | Path, *, format: Format, overwrite: bool) -> int:
    """Writes every entry to ``path``, whole or not at all.

    Args:
        store: the ledger's database.
        path: the file, in a folder that exists.
        format: "jsonl" (one JSON object per line) or "csv" (with a header).
        overwrite: whether a file that stands there may be replaced.

    Returns:
        Number of entries.

    Raises:
        InvalidInput: ``path`` is there already and may not be replaced, or is no plain file.
        WriteFailed: the file could not be written; nothing is left half-written.
        LedgerUnavailable: the ledger cannot be read.
    """
    target = Path(path)
    check_replaceable(target, overwrite=overwrite)
    # Streamed, unlike core.files: the entries of a long-lived ledger need not fit into memory.
    try:
        descriptor, scratch = new_file_beside(target)
    except OSError as error:
        raise WriteFailed(
            f"{target}: expected a folder that can be written ({error.strerror})"
        ) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            written = write_entries(store, stream, format=format)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(target)
    except OSError as error:
        raise WriteFailed(
            f"{target}: could not be written whole ({error.strerror}); nothing is left of it"
        ) from error
    finally:
        scratch.unlink(missing_ok=True)
    return written


def check_output(target: Path, *, overwrite: bool) -> None:
    """Refuses to write where a file stands that may not be replaced, or something else than a file,
    which never may.

    Raises:
        InvalidInput: says which.
    """
    where = f"output={str(target)!r}"
    if not os.path.lexists(target):
        return
    if target.exists() and not target.is_file():
        raise InvalidInput(
            f"{where}: is a folder, device, pipe or socket, which is never replaced; expected "
            "the name of a file"
        )
    if not overwrite:
        raise InvalidInput(f"{where}: exists already; choose another name, or ask to overwrite it")


def write_entries(store: Store, stream: IO[str], *, format: Format) -> int:
    """Writes every entry to an open text stream and returns their number; see ``export_to``."""
    if format not in ("jsonl", "csv"):
        raise UnknownName(f"format={format!r}: expected 'jsonl' or 'csv'")
    written = 0
    if format == "csv":
        table = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in _rows(store):
            table.writerow(row)
            written += 1
        return written
    for row in _rows(store):
        stream.write(json.dumps(row, separators=(",", ":")) + "\n")
        written += 1
    return written


def check_export(lines: Iterable[str]) -> int:
    """Recomputes the chain of a JSON Lines export without its ledger; the number of entries.

    Raises:
        CorruptLedger: an entry does not match its digest or does not follow the one before.
        InvalidInput: a line is not an entry.

    References:
        - Haber and Stornetta (1991), "How to time-stamp a digital document",
          doi:10.1007/BF00196791, linked digests.
        - Schneier and Kelsey (1999), "Secure audit logs to support computer forensics",
          doi:10.1145/317087.317089.

    See Also:
        reticent.ledger.Ledger: writes exports.
        reticent.ledger.Verification: the same with the ledger at hand.
    """
    previous, seq = "", 0
    for line in lines:
        try:
            row: dict[str, Any] = json.loads(line)
            stored = bytes.fromhex(row.pop("digest"))
            before = bytes.fromhex(row.pop("previous"))
            entry = Entry(**row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(
                f"line {seq + 1}: expected an exported entry in JSON ({error})"
            ) from error
        if (
            not _follows(entry, seq)
            or (seq and before.hex() != previous)
            or entry.digest(before) != stored
        ):
            raise CorruptLedger(
                f"line {seq + 1}: entry {entry.seq} was changed, dropped or moved; export the "
                "ledger again"
            )
        previous, seq = stored.hex(), entry.seq
    return seq


def _follows(entry: Entry, before: int) -> bool:
    """Whether an entry may stand behind the one at ``before``; where lost entries were accepted
    it leaves their places out.
    """
    return entry.seq == before + 1 or (entry.action == "accept" and entry.seq > before)


def _rows(store: Store) -> Iterator[dict[str, Any]]:
    with store.read() as connection:
        top = read_tip(connection, lock=False)
        if top is None:
            raise LedgerUnavailable(
                f"{store.name}: no ledger here; create one with `reticent ledger init`"
            )
        previous = top.genesis
        for stored in stored_entries(connection):
            if isinstance(stored, MalformedEntry):
                raise CorruptLedger(
                    f"entry {stored.seq!r:.40} holds what no ledger writes; see `reticent "
                    "ledger verify`"
                )
            yield {
                **stored.entry._asdict(),
                "previous": previous.hex(),
                "digest": stored.digest.hex(),
            }
            previous = stored.digest
