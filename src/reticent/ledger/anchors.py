"""Anchors: the furthest that a ledger was ever seen, kept outside its database.

A database cannot know that it is an old copy of itself: its chain is whole, its totals are right,
and its budgets are full again. So whoever writes to a ledger keeps the position and digest of its
last entry in a small file elsewhere, and a ledger that does not hold that entry is refused until an
operator accepts the loss.

The file holds the last two positions, each in a disk sector of its own with its checksum. A later
one takes the place of the earlier of them, under a lock, and before any answer leaves: whenever a
process is killed or the power is cut, one of them is whole, and what the other would have vouched
for has not left yet. Commits move no anchor, since they spend nothing.

Where database and anchor are restored together nothing here can know; receipts that clients hold
can (see ``Ledger.verify``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from reticent.core.errors import InvalidInput, LedgerUnavailable

ANCHOR_VARIABLE = "RETICENT_ANCHOR"
"""Environment variable with the folder, or the file, where anchors are kept."""

_SUFFIX = ".anchor"
_SECTOR = 512
"""Bytes that a disk writes whole or not at all."""

_SET = (
    f"Give permission on it and its folder, or choose another place by anchor= or {ANCHOR_VARIABLE}"
)


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

    def encode(self) -> bytes:
        """The anchor and its checksum as lines of text, padded to 512 bytes."""
        content = json.dumps(asdict(self), separators=(",", ":")).encode()
        return (content + b"\n" + _checksum(content)).ljust(_SECTOR, b"\n")

    @classmethod
    @lru_cache(maxsize=16)  # each charge reads the two sectors several times
    def decode(cls, sector: bytes) -> Self | None:
        """The anchor that ``encode`` made of it, or None where it is not whole."""
        content, _, checksum = sector.rstrip(b"\n").partition(b"\n")
        if checksum != _checksum(content):
            return None
        try:
            values = json.loads(content)
        except ValueError:
            return None
        if not isinstance(values, dict) or values.keys() != cls.__dataclass_fields__.keys():
            return None
        whole = all(
            type(values[name]) is int and values[name] >= 0 for name in ("seq", "epsilon", "delta")
        )
        named = all(isinstance(values[name], str) for name in ("ledger", "digest"))
        return cls(**values) if whole and named else None


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


@dataclass(frozen=True)
class AnchorFile:
    """The file that holds one ledger's anchor.

    Attributes:
        path: of the file.
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
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerUnavailable(
                f"{self.path}: the ledger's anchor cannot be read ({error.strerror}); {_SET}"
            ) from error
        return self._latest(content)

    def _latest(self, content: bytes) -> Anchor | None:
        if not content:  # made, and not yet written
            return None
        whole = [anchor for anchor in map(Anchor.decode, _sectors(content)) if anchor is not None]
        if len(content) != 2 * _SECTOR or not whole:
            raise LedgerUnavailable(
                f"{self.path}: expected the ledger's anchor, got something else; nothing is "
                "released. If it is damaged, check "
                "the ledger by `reticent ledger verify --receipt` with clients' receipts, and "
                "remove the file: the next charge "
                "makes one"
            )
        return max(whole, key=lambda anchor: anchor.seq)

    def prepare(self) -> None:
        """Finds out whether an anchor can be written, before anything is charged.

        Raises:
            LedgerUnavailable: no, and what to do about it.
        """
        folder = self.path.parent
        if not folder.is_dir():
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
            LedgerUnavailable: it could not be written, or not within the time; what was charged
                stays charged.
        """
        standing = self.read()
        if standing is not None and standing.seq >= anchor.seq:
            return standing
        with self._locked() as handle:
            content = os.pread(handle, 2 * _SECTOR + 1, 0)
            standing = self._latest(content)
            if standing is not None and standing.seq >= anchor.seq:
                return standing
            try:
                self._write(handle, content, anchor)
            except OSError as error:
                raise self._unwritable(error.strerror) from error
        return anchor

    def _write(self, handle: int, content: bytes, anchor: Anchor) -> None:
        """Puts the anchor in the place of the earlier one of the two."""
        if not content:
            os.pwrite(handle, anchor.encode() * 2, 0)
            if self.durable:
                os.fsync(handle)
                _flush_folder(self.path.parent)
            return
        seqs = [
            -1 if found is None else found.seq for found in map(Anchor.decode, _sectors(content))
        ]
        os.pwrite(handle, anchor.encode(), _SECTOR * seqs.index(min(seqs)))
        if self.durable:
            os.fdatasync(handle)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """An open descriptor of the file, which nobody else writes meanwhile."""
        try:
            handle = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666
            )  # less the umask
        except OSError as error:
            raise self._unwritable(error.strerror) from error
        try:
            deadline = time.monotonic() + self.patience
            while not _try_lock(handle):
                if time.monotonic() > deadline:
                    raise self._unwritable(
                        f"another process held it for more than {self.patience:g} s"
                    )
                time.sleep(0.001)
            yield handle
        finally:
            os.close(handle)

    def _unwritable(self, reason: str | None) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.path}: the ledger's anchor cannot be written ({reason}); nothing is "
            f"released. {_SET}"
        )


def anchor_file(
    ledger: str, *, chosen: str | Path | None, database: Path | None, durable: bool, patience: float
) -> AnchorFile:
    """The file that holds the anchor of a ledger.

    Args:
        ledger: the ledger's name.
        chosen: a folder, or a file whose name ends in ".anchor"; None takes ``RETICENT_ANCHOR``, or
            else the folder "reticent/anchors" of the user's state (``XDG_STATE_HOME``, or
            "~/.local/state").
        database: the file of an SQLite ledger, which the anchor must not share a folder with; None
            on a server.
        durable, patience: see ``AnchorFile``.

    Raises:
        InvalidInput: in the database's own folder, where whoever restores the one restores the
            other.
    """
    if chosen is None or str(chosen) == "":
        chosen = os.environ.get(ANCHOR_VARIABLE) or _state_folder() / "reticent" / "anchors"
    path = Path(chosen).resolve()
    if path.suffix != _SUFFIX:
        path = path / f"{ledger}{_SUFFIX}"
    if database is not None and path.parent == database.parent:
        raise InvalidInput(
            f"anchor={str(chosen)!r}: expected a place outside the ledger's own folder "
            f"{database.parent}, because what is "
            f"restored together vouches for nothing; choose another by anchor= or {ANCHOR_VARIABLE}"
        )
    return AnchorFile(path, durable, patience)


def _state_folder() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def _sectors(content: bytes) -> tuple[bytes, bytes]:
    return content[:_SECTOR], content[_SECTOR : 2 * _SECTOR]


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
