"""The place of a ledger's database: its URL without secrets, and for SQLite the one path to its
file.

SQLite keeps what is not yet in the file in a log whose name is the file's name and "-wal". A
file that is reached by two names, by a hard link or as the mount point of a single file, has two
such logs. Processes that use different names then do not see each other's charges. So a ledger's
file has one link, is no mount point, and is named by its real path. It is looked at, never
opened: closing any descriptor of it would drop the locks that SQLite holds on it in this
process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import quote, quote_plus

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from reticent.core.errors import InvalidInput, InvalidParameter, LedgerUnavailable, UnknownName

_MOUNTS = Path("/proc/self/mountinfo")
_SECRETS = (
    "password",
    "sslpassword",
    "oauth_client_secret",
    "scram_client_key",
    "scram_server_key",
)
"""Options of a PostgreSQL connection that nobody may read."""

_SHOWN = ("host", "port", "dbname", "user", "service")
"""Options that a message shows."""

_COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite appends to the name of a database for the files beside it."""


@dataclass(frozen=True)
class Location:
    """The place of a ledger.

    Attributes:
        url: URL for SQLAlchemy. Its only secret is ``password``, which SQLAlchemy shows to nobody.
        secrets: other connection options that nobody may read.
        anchor: the anchor's place as the URL says it, or "".
    """

    url: URL = field(repr=False)  # options that are shown to nobody may be among the unknown ones
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    anchor: str = ""

    @classmethod
    def of(cls, url: str | Path) -> Self:
        """Return the location that a path or a URL names.

        Args:
            url: path or URL, as ``Store`` takes it.

        Raises:
            InvalidInput: not a URL, or a database in memory, which would forget what was spent.
            InvalidParameter: an SQLite URL with options other than ``anchor``.
            UnknownName: neither SQLite nor PostgreSQL.
        """
        text = str(url)
        if "://" not in text:
            if text in (":memory:", ""):
                raise InvalidInput(
                    f"ledger={text!r}: expected a file or URL; a ledger in memory would forget "
                    "what was spent"
                )
            return cls(_sqlite_url(text))
        parsed = _parsed(text)
        backend = parsed.get_backend_name()
        if backend not in ("sqlite", "postgresql"):
            raise UnknownName(f"ledger: expected sqlite or postgresql, got {backend!r}")
        options = {
            name: value if isinstance(value, str) else ",".join(value)
            for name, value in parsed.query.items()
        }
        anchor = options.pop("anchor", "")
        if backend == "sqlite":
            if parsed.database in (None, "", ":memory:"):
                raise InvalidInput(
                    "ledger: expected sqlite:///path; a ledger in memory would forget what was "
                    "spent"
                )
            if options or str(parsed.database).startswith("file:"):
                raise InvalidParameter(
                    "ledger: expected sqlite:///path without options other than anchor=FOLDER"
                )
            return cls(_sqlite_url(str(parsed.database)), anchor=anchor)
        secrets = {name: options.pop(name) for name in _SECRETS if name in options}
        if "password" in secrets:
            parsed = parsed.set(password=secrets.pop("password"))
        kept = {name: value for name, value in parsed.query.items() if name in options}
        return cls(parsed.set(query=kept), secrets, anchor)

    @cached_property
    def is_sqlite(self) -> bool:
        """Whether the ledger is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    @cached_property
    def path(self) -> Path:
        """The real path of an SQLite ledger's file."""
        return Path(str(self.url.database))

    @property
    def name(self) -> str:
        """The URL for messages, with neither password nor unusual options."""
        shown = {name: value for name, value in self.url.query.items() if name in _SHOWN}
        return self.url.set(query=shown).render_as_string(hide_password=True)

    def without_secrets(self, text: str) -> str:
        """Return ``text`` with every secret of this location replaced by ``***``, however it is
        escaped.
        """
        for secret in (self.url.password, *self.secrets.values()):
            if secret:
                for form in sorted(
                    {str(secret), quote(str(secret)), quote_plus(str(secret)), repr(str(secret))},
                    key=len,
                )[::-1]:
                    text = text.replace(form, "***")
        return text


class FileIdentity(NamedTuple):
    """The file that a path leads to, by its device and its number there."""

    device: int
    inode: int


def checked_file(path: Path) -> FileIdentity:
    """Return the identity of a ledger's file, once it is certain that this path is its only name.

    Raises:
        LedgerUnavailable: there is none, it has another name as well, or it is no ordinary file.
            The message says what to do about it.
    """
    mounts = _mount_points(path)
    found = _ordinary(path, path, mounts)
    for suffix in _COMPANIONS:
        companion = path.with_name(path.name + suffix)
        if os.path.lexists(companion):
            try:
                _ordinary(companion, path, mounts)
            except FileNotFoundError:  # the last connection was closed, and SQLite tidied up
                continue
    return found


def _ordinary(path: Path, ledger: Path, mounts: frozenset[str] | None) -> FileIdentity:
    try:
        status = path.lstat()
    except FileNotFoundError:
        if path != ledger:
            raise
        raise LedgerUnavailable(
            f"{path}: no ledger here; create one with `reticent ledger init`"
        ) from None
    except OSError as error:
        raise LedgerUnavailable(f"{path}: cannot be reached ({error.strerror})") from None
    if not stat.S_ISREG(status.st_mode):
        raise LedgerUnavailable(f"{path}: expected an ordinary file; {_WHY}")
    if status.st_nlink > 1:
        raise several_names(path, ledger, status.st_nlink)
    mounted = (
        str(path) in mounts if mounts is not None else status.st_dev != path.parent.stat().st_dev
    )
    if mounted:
        raise LedgerUnavailable(
            f"{path}: is mounted by itself, which gives the ledger two names; mount its folder "
            f"instead; {_WHY}"
        )
    return FileIdentity(status.st_dev, status.st_ino)


def several_names(path: Path, ledger: Path, links: int) -> LedgerUnavailable:
    """Return the refusal of a file with several names.

    Args:
        path: the file.
        ledger: the ledger's file, which it is or stands beside.
        links: number of its names.
    """
    return LedgerUnavailable(
        f"{path}: has {links} links, expected one; find the others with `find / "
        f"-samefile {ledger}` and remove "
        f"them; {_WHY}"
    )


_WHY = (
    "processes that use different names of a ledger do not see each other's charges; "
    "nothing is released"
)


def _mount_points(path: Path) -> frozenset[str] | None:
    """Return the mount points in the file's folder, or None where the system does not list them."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return None
    # Device numbers alone do not tell: a file that is mounted from elsewhere on its own device has
    # its folder's.
    points = (
        os.fsdecode(_unescaped(line.split(b" ")[4])) for line in lines if line.count(b" ") > 4
    )
    return frozenset(point for point in points if os.path.dirname(point) == str(path.parent))


def _unescaped(point: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), point)


def _sqlite_url(path: str) -> URL:
    try:
        resolved = Path(path).resolve()
        if resolved.is_symlink():
            # From Python 3.13 on a loop of links is not an error to ``resolve``, but its result.
            raise OSError("a loop of links")
        return URL.create("sqlite", database=str(resolved))
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a null character
        raise InvalidInput(
            f"ledger={path!r:.200}: expected a path that leads to a file ({error})"
        ) from error


def _parsed(text: str) -> URL:
    # What SQLAlchemy says about a URL that it cannot read quotes it, with its password.
    try:
        return make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        pass
    raise InvalidInput(
        "ledger: expected a path or a URL such as sqlite:///budgets.db or "
        "postgresql://user@host/name"
    )
