"""Backups of SQLite ledgers, and the restoration of an older one.

A copy of the file alone misses what is still in the log beside it, and an older copy forgets
what was spent since. ``backup`` copies both in one consistent snapshot. ``restore`` checks the
copy and compares it with the ledger's anchor. It puts an older one in place only where the
operator says what is to become of the entries that are lost.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

from reticent.core.errors import CorruptLedger, InvalidInput, LedgerUnavailable, WriteFailed
from reticent.core.files import check_replaceable
from reticent.ledger.chain import Anchor
from reticent.ledger.ledger import Ledger
from reticent.ledger.store import Store
from reticent.ledger.verification import verify


@dataclass(frozen=True)
class Restoration:
    """The outcome of ``restore``.

    Attributes:
        anchor: "position:digest" of the backup's last entry.
        lost: number of entries that the backup lacks, as far as the anchor knows.
        charged: micro-epsilon and pico-delta that each budget was charged for them at most.
        aside: new place of the file that stood in the ledger's place, or None where none did.
    """

    anchor: str
    lost: int
    charged: tuple[int, int]
    aside: Path | None


def backup(store: Store, path: str | Path, *, overwrite: bool) -> str:
    """Copy a ledger into one file, while others write to it, and verify the copy.

    Args:
        store: store of an SQLite ledger.
        path: the file, in a folder that exists.
        overwrite: whether a file that stands there may be replaced.

    Returns:
        The anchor of the copy's last entry.

    Raises:
        InvalidInput: not SQLite, or ``path`` may not be replaced.
        CorruptLedger: the ledger does not match its entries. There is no backup of it.
        WriteFailed: the file could not be written. Nothing is left of it.
        LedgerUnavailable: the ledger cannot be read.
    """
    _need_file(store)
    target = Path(path)
    check_replaceable(target, overwrite=overwrite)
    if target.resolve() == store.location.path:
        raise InvalidInput(f"output={str(target)!r}: is the ledger itself; choose another name")
    store.check()
    copy = _copied(store.location.path, beside=target)
    try:
        anchor = _verified(copy, store).text
        _put(copy, target)
    finally:
        _remove(copy)
    return anchor


def restore(store: Store, source: str | Path, *, charge_lost: bool | None) -> Restoration:
    """Put a backup in the place of a ledger, and keep what stood there beside it under another
    name.

    Nobody else may have the ledger open. SQLite tidies up by the names of its files, and a process
    that closes the old file would take the new one's log away. Where the old file can be read this
    is checked. Where it is damaged, stop whatever uses it.

    Args:
        store: store of the SQLite ledger, whose file may be damaged or missing.
        source: the backup.
        charge_lost: whether every budget is charged what the lacking entries spent in all, where
            the backup is older than the ledger's anchor. ``Ledger.accept_rollback`` says more. None
            refuses an older backup.

    Raises:
        InvalidInput: not SQLite, an older backup without a choice, or the place holds another
            ledger.
        CorruptLedger: the backup does not match its own entries.
        LedgerUnavailable, WriteFailed: the backup cannot be read, or not be put in place.
    """
    _need_file(store)
    place = store.location.path
    if not place.parent.is_dir():
        raise LedgerUnavailable(
            f"{store.name}: expected the folder {place.parent} to exist; make it first"
        )
    copy = _copied(Path(source), beside=place)
    try:
        found = _verified(copy, store)
        standing = store.anchor_of(found.ledger).read()
        older = standing is not None and not _is_ancestor(standing, copy)
        if older and standing is not None and charge_lost is None:
            raise InvalidInput(
                f"source={str(source)!r}: ends at entry {found.seq}, and this ledger was seen "
                f"at entry {standing.seq}. Say what "
                "is to become of what was spent in between: --charge-lost charges every budget "
                "with all of it, --forget-lost "
                "gives it back, which is right only where nothing of it was released"
            )
        _check_place(store, found)
        aside = _put_aside(place)
        _put(copy, place)
    finally:
        _remove(copy)
    try:
        charged = Ledger(store).accept_rollback(charge=bool(charge_lost)) if older else (0, 0)
    finally:
        store.close()
    lost = max(0, standing.seq - found.seq) if older and standing is not None else 0
    return Restoration(found.text, lost, charged, aside)


def _need_file(store: Store) -> None:
    if not store.is_sqlite:
        raise InvalidInput(
            f"{store.name}: is on a PostgreSQL server; use pg_dump and pg_restore. A database "
            "that was put back to an older "
            "state is refused as older than its anchor; `reticent ledger accept-rollback` goes "
            "on with it"
        )


def _copied(source: Path, *, beside: Path) -> Path:
    """Return a new file beside ``beside`` with the content of the database ``source`` at one
    moment.
    """
    copy = beside.with_name(f".{beside.name[:50]}-{token_hex(8)}")
    try:
        connection = sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True)
        try:
            connection.execute("VACUUM INTO ?", (str(copy),))
        finally:
            connection.close()
    except sqlite3.Error as error:
        _remove(copy)
        raise LedgerUnavailable(
            f"{source}: could not be copied to {beside.parent} ({error})"
        ) from error
    return copy


def _verified(copy: Path, store: Store) -> Anchor:
    """Return the end of a copy, once it is certain that the copy is whole."""
    twin = Store(copy, anchor=store.anchor_of("any").path.parent)
    try:
        twin.check()
        found = verify(twin, kept=False)
        if not found.ok:
            raise CorruptLedger(
                f"{copy.name}: does not match its own entries, for one: {found.problems[0]}; "
                "use another copy"
            )
        return Ledger(twin).anchor()
    finally:
        twin.close()


def _is_ancestor(anchor: Anchor, copy: Path) -> bool:
    twin = Store(copy)
    try:
        return Ledger(twin).holds(anchor)
    finally:
        twin.close()


def _check_place(store: Store, found: Anchor) -> None:
    """Refuse a place that holds another ledger. One that cannot be read is what restoring is
    for.
    """
    try:
        standing = Ledger(store).anchor()
    except (LedgerUnavailable, CorruptLedger):
        return
    finally:
        store.close()
    if standing.ledger != found.ledger:
        raise InvalidInput(
            f"{store.name}: holds the ledger {standing.ledger}, the backup is of "
            f"{found.ledger}; choose another place"
        )
    _claim(store.location.path)


def _claim(place: Path) -> None:
    """Check that nobody has a readable ledger open, and move the content of its log into the
    file.
    """
    connection = sqlite3.connect(f"file:{quote(str(place))}?mode=rw", uri=True, timeout=1.0)
    try:
        (mode,) = connection.execute(
            "PRAGMA journal_mode = DELETE"
        ).fetchone()  # needs the file for itself
    except sqlite3.OperationalError as error:
        raise LedgerUnavailable(
            f"{place}: is in use by another process ({error}); stop it and restore again"
        ) from error
    finally:
        connection.close()
    if mode != "delete":
        raise LedgerUnavailable(f"{place}: is in use by another process; stop it and restore again")


def _put_aside(place: Path) -> Path | None:
    """Rename what stands at ``place``, and SQLite's files beside it."""
    aside = place.with_name(
        f"{place.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{token_hex(2)}"
    )
    moved = None
    try:
        for suffix in ("-wal", "-shm", ""):
            part = place.with_name(place.name + suffix)
            if os.path.lexists(part):
                part.rename(aside.with_name(aside.name + suffix))
                moved = aside
    except OSError as error:
        raise WriteFailed(f"{place}: could not be put aside ({error.strerror})") from error
    return moved


def _put(copy: Path, target: Path) -> None:
    """Rename a whole file to its name, and wait until the disk knows of both."""
    try:
        for path, flags in ((copy, os.O_RDONLY), (target.parent, os.O_RDONLY | os.O_DIRECTORY)):
            if path == target.parent:
                copy.replace(target)
            handle = os.open(path, flags)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except OSError as error:
        raise WriteFailed(f"{target}: could not be written ({error.strerror})") from error


def _remove(copy: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)
