"""Anchors: the furthest that a ledger was ever seen, kept outside its database.

A database cannot know that it is an old copy of itself: its chain is whole, its totals are right, and its budgets are full again.
So whoever writes to a ledger keeps the position and digest of its last entry in a small file elsewhere, and a ledger that does
not hold that entry is refused until an operator accepts the loss.

The file is replaced whole, only ever by a later position, under a lock, and before any answer leaves. Where database and anchor
are restored together nothing here can know; receipts that clients hold can (see ``Ledger.verify``).
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from reticent.core.errors import InvalidInput, LedgerUnavailable

ANCHOR_VARIABLE = "RETICENT_ANCHOR"
"""Environment variable with the folder, or the file, where anchors are kept."""

_SUFFIX = ".anchor"


@dataclass(frozen=True)
class Anchor:
    """A position in a ledger's chain.

    Attributes:
        ledger: the ledger's name.
        seq: position of an entry; 0 stands for the empty ledger.
        digest: its digest, 32 bytes in hexadecimal.
        epsilon: micro-epsilon charged by all entries up to there, whatever the scope.
        delta: pico-delta charged by them.
    """

    ledger: str
    seq: int
    digest: str
    epsilon: int
    delta: int

    @property
    def text(self) -> str:
        """ "position:digest", as reports print it."""
        return f"{self.seq}:{self.digest}"

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """The anchor that a file holds.

        Raises:
            ValueError: it holds none.
        """
        values = json.loads(content)
        if not isinstance(values, dict) or values.keys() != cls.__dataclass_fields__.keys():
            raise ValueError("other fields than an anchor's")
        numbers = (values["seq"], values["epsilon"], values["delta"])
        if not all(type(number) is int and number >= 0 for number in numbers) or not isinstance(values["ledger"], str):
            raise ValueError("fields of other types")
        if len(bytes.fromhex(values["digest"])) != 32:
            raise ValueError("not a digest")
        return cls(**values)


@dataclass(frozen=True)
class AnchorFile:
    """The file that holds one ledger's anchor.

    Attributes:
        path: of the file; beside it stands a lock of the same name and ".lock".
        durable: whether a written anchor survives a power cut.
        patience: seconds to wait for another process that is writing it.
    """

    path: Path
    durable: bool
    patience: float

    def read(self) -> Anchor | None:
        """The anchor, or None where this ledger was never written from here.

        Raises:
            LedgerUnavailable: the file cannot be read, or holds something else.
        """
        try:
            return Anchor.parse(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise LedgerUnavailable(
                f"{self.path}: expected the ledger's anchor ({error}); nothing is released. If it is damaged, check the ledger "
                "by `reticent ledger verify --receipt` with clients' receipts, and remove the file: the next charge makes one"
            ) from error

    def prepare(self) -> None:
        """Finds out whether an anchor can be written, before anything is charged.

        Raises:
            LedgerUnavailable: no, and what to do about it.
        """
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error.strerror) from error
        if not os.access(folder, os.W_OK | os.X_OK):
            raise self._unwritable("no permission")

    def raise_to(self, anchor: Anchor) -> Anchor:
        """Writes ``anchor`` unless the file holds a later one.

        Returns:
            What the file holds afterwards.

        Raises:
            LedgerUnavailable: it could not be written, or not within the time; what was charged stays charged.
        """
        standing = self.read()
        if standing is not None and standing.seq >= anchor.seq:
            return standing
        with self._locked():
            standing = self.read()
            if standing is not None and standing.seq >= anchor.seq:
                return standing
            self._write(anchor)
        return anchor

    def _write(self, anchor: Anchor) -> None:
        content = json.dumps(asdict(anchor), separators=(",", ":")).encode() + b"\n"
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}-", dir=self.path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fchmod(file.fileno(), self._mode())
                    if self.durable:
                        os.fsync(file.fileno())
                os.replace(name, self.path)
            finally:
                Path(name).unlink(missing_ok=True)
            if self.durable:
                _flush_folder(self.path.parent)
        except OSError as error:
            raise self._unwritable(error.strerror) from error

    def _mode(self) -> int:
        """As the lock was made: its creator's umask decides who else may keep anchors here."""
        return os.stat(self._lock_path).st_mode & 0o777

    @property
    def _lock_path(self) -> Path:
        return self.path.with_name(self.path.name + ".lock")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._unwritable(error.strerror) from error
        try:
            deadline = time.monotonic() + self.patience
            while not _try_lock(handle):
                if time.monotonic() > deadline:
                    raise self._unwritable(f"another process held it for more than {self.patience:g} s")
                time.sleep(0.001)
            yield
        finally:
            os.close(handle)

    def _unwritable(self, reason: str | None) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.path}: the ledger's anchor cannot be written ({reason}); nothing is released. Give write permission on its "
            f"folder, or choose another by anchor= or {ANCHOR_VARIABLE}"
        )


def anchor_file(ledger: str, *, chosen: str | Path | None, database: Path | None, durable: bool, patience: float) -> AnchorFile:
    """The file that holds the anchor of a ledger.

    Args:
        ledger: the ledger's name.
        chosen: a folder, or a file whose name ends in ".anchor"; None takes ``RETICENT_ANCHOR``, or else the folder
            "reticent/anchors" of the user's state (``XDG_STATE_HOME``, or "~/.local/state").
        database: the file of an SQLite ledger, which the anchor must not share a folder with; None on a server.
        durable, patience: see ``AnchorFile``.

    Raises:
        InvalidInput: in the database's own folder, where whoever restores the one restores the other.
    """
    if chosen is None or str(chosen) == "":
        chosen = os.environ.get(ANCHOR_VARIABLE) or _state_folder() / "reticent" / "anchors"
    path = Path(chosen).resolve()
    if path.suffix != _SUFFIX:
        path = path / f"{ledger}{_SUFFIX}"
    if database is not None and path.parent == database.parent:
        raise InvalidInput(
            f"anchor={str(chosen)!r}: expected a place outside the ledger's own folder {database.parent}, because what is "
            f"restored together vouches for nothing; choose another by anchor= or {ANCHOR_VARIABLE}"
        )
    return AnchorFile(path, durable, patience)


def _state_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
