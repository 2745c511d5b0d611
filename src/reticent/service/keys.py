"""Keys of the service: who asks, for which bundles, about whom, and until when.

A key is 256 random bits, which nobody can guess, so one SHA-256 of it is stored and no slow hash.
Whoever reads the database learns no key.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from reticent.core.checks import one_of
from reticent.core.errors import InvalidInput, NotAuthenticated, NotPermitted, UnknownName
from reticent.core.names import checked_name
from reticent.ledger.chain import read_tip
from reticent.ledger.schema import Prepared, api_keys
from reticent.ledger.store import Store

Role = Literal["client", "owner"]
ROLES = ("client", "owner")
"""A client asks for answers; an owner looks at budgets, keys and metrics, and asks for none."""

PREFIX = "reticent_"
"""What every key begins with, so that programs that look for leaked keys can find it."""

ANY = "*"
"""At the end of a granted name: whatever stands there."""

_SECRET_BYTES = 32
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class ApiKey:
    """What a key may do; the key itself is not in here.

    Attributes:
        id: 16 hexadecimal digits, drawn at random; names the key in commands and logs.
        principal: who asks with it, as ledgers know them.
        role: see ``ROLES``.
        bundles: identities or names of bundles; "*" for all.
        subjects: who may be charged: names, or beginnings of names that end in "*".
        created, expires, revoked: seconds since 1970; None for never.

    Example:
        >>> key = ApiKey("0" * 16, "acme", "client", ("*",), ("ward-7/*",), 0.0, None, None)
        >>> key.may_charge("ward-7/bed-3"), key.may_charge("ward-8/bed-1")
        (True, False)
    """

    id: str
    principal: str
    role: Role
    bundles: tuple[str, ...]
    subjects: tuple[str, ...]
    created: float
    expires: float | None
    revoked: float | None

    @classmethod
    def of_row(cls, row: RowMapping | dict[str, Any]) -> Self:
        """What a row of the table ``api_keys`` holds."""
        return cls(
            row["id"],
            row["principal"],
            cast("Role", row["role"]),
            tuple(json.loads(row["bundles"])),
            tuple(json.loads(row["subjects"])),
            row["created"] / _MICROSECONDS,
            _seconds(row["expires"]),
            _seconds(row["revoked"]),
        )

    def state(self, now: float) -> str:
        """ "valid", "expired" or "revoked" at a time in seconds since 1970."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "valid"

    def may_ask(self, *names: str) -> bool:
        """Whether a bundle of any of these names was granted."""
        return any(_granted(name, self.bundles) for name in names)

    def may_charge(self, subject: str) -> bool:
        """Whether ``subject`` was granted."""
        return _granted(subject, self.subjects)

    def check_subjects(self, subjects: Iterable[str]) -> None:
        """Refuses subjects that the key was not granted.

        Raises:
            NotPermitted: names none of them.
        """
        lacking = sum(not self.may_charge(subject) for subject in set(subjects))
        if lacking:
            raise NotPermitted(
                f"subject: this key was not granted {lacking} of the subjects that the request "
                "names; ask the owner of the service"
            )


class KeyStore:
    """The keys in a ledger's database.

    Args:
        store: of the ledger.
        clock: seconds since 1970.

    Example:
        >>> import tempfile
        >>> from reticent.ledger import Ledger
        >>> with (
        ...     tempfile.TemporaryDirectory() as folder,
        ...     tempfile.TemporaryDirectory() as elsewhere,
        ... ):
        ...     ledger = Ledger.create(f"{folder}/budgets.db", anchor=elsewhere)
        ...     keys = KeyStore(ledger.store)
        ...     made, secret = keys.create("acme", bundles=["*"], subjects=["ward-7"])
        ...     found = keys.find(secret)
        ...     _ = keys.revoke(made.id)
        ...     ledger.close()
        >>> found.principal, len(secret)
        ('acme', 52)
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def create(
        self,
        principal: str,
        *,
        bundles: Iterable[str],
        subjects: Iterable[str],
        role: Role = "client",
        lasts: float | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key, and its secret, which is kept nowhere.

        Args:
            principal: who will ask with it.
            bundles: identities or names of the bundles that it may ask, at least one; "*" for all.
            subjects: whom it may charge; a name that ends in "*" stands for all that begin so. Only
                an owner's key has none.
            role: "client", or "owner" for one that looks and does not ask.
            lasts: seconds until it expires, above 0; None for never.

        Raises:
            InvalidInput: no principal, a name that could be mistaken for another, no bundle or no
                subject.
            LedgerUnavailable: could not be written.
        """
        one_of(role, ROLES, name="role")
        granted = _names(bundles, name="bundle"), _names(subjects, name="subject")
        if not checked_subject(principal, name="principal"):
            raise InvalidInput("principal: expected a name, got none")
        if role == "client" and not all(granted):
            raise InvalidInput(
                "bundles, subjects: expected at least one of each; '*' grants all of them"
            )
        if lasts is not None and not 0 < lasts < 2**40:
            raise InvalidInput(f"lasts={lasts!r}: expected seconds above 0")
        secret = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        now = self._clock()
        row = {
            "id": secrets.token_hex(8),
            "digest": digest_of(secret),
            "principal": checked_subject(principal, name="principal"),
            "role": role,
            "bundles": json.dumps(granted[0]),
            "subjects": json.dumps(granted[1]),
            "created": int(now * _MICROSECONDS),
            "expires": None if lasts is None else int((now + lasts) * _MICROSECONDS),
            "revoked": None,
        }
        with self._store.write() as connection:
            connection.execute(api_keys.insert().values(row))
        return ApiKey.of_row(row), secret

    def list(self) -> tuple[ApiKey, ...]:
        """All keys, oldest first, with those that are no longer valid.

        Raises:
            LedgerUnavailable: cannot be read.
        """
        query = sa.select(api_keys).order_by(api_keys.c.created, api_keys.c.id)
        with self._store.read() as connection:
            return tuple(ApiKey.of_row(row) for row in connection.execute(query).mappings())

    def revoke(self, identifier: str) -> ApiKey:
        """Takes a key back: nothing is charged by it once this returns.

        Raises:
            UnknownName: there is no such key.
            LedgerUnavailable: could not be written.
        """
        where = api_keys.c.id == identifier
        with self._store.write() as connection:
            if not self._store.is_sqlite:  # charges take this lock, and look at the key within it
                read_tip(connection, lock=True)
            connection.execute(
                api_keys.update()
                .where(where, api_keys.c.revoked.is_(None))
                .values(revoked=int(self._clock() * _MICROSECONDS))
            )
            row = connection.execute(sa.select(api_keys).where(where)).mappings().first()
        if row is None:
            raise UnknownName(
                f"key={identifier!a:.40}: expected the identifier of a key, as `reticent keys "
                "list` shows it"
            )
        return ApiKey.of_row(row)

    def find(self, secret: str) -> ApiKey:
        """The key that ``secret`` is, if it is valid now.

        Raises:
            NotAuthenticated: unknown, expired or revoked; not said which.
            LedgerUnavailable: cannot be read.
        """
        query = sa.select(api_keys).where(api_keys.c.digest == digest_of(secret))
        with self._store.read() as connection:
            row = connection.execute(query).mappings().first()
        if row is None:
            raise _refused()
        return self._valid(ApiKey.of_row(row))

    def named(self, identifier: str) -> ApiKey:
        """The key of this identifier, if it is valid now.

        Raises:
            NotAuthenticated: unknown, expired or revoked; not said which.
            LedgerUnavailable: cannot be read.
        """
        with self._store.read() as connection:
            row = connection.execute(_BY_ID, {"key": identifier}).mappings().first()
        if row is None:
            raise _refused()
        return self._valid(ApiKey.of_row(row))

    def check(self, connection: Connection, key: ApiKey) -> None:
        """Refuses a key that has stopped being valid since it was found, in a transaction that
        charges.

        Raises:
            NotAuthenticated: it has.
        """
        rows = _TIMES.rows(connection, {"key": key.id})
        if not rows:
            raise _refused()
        (row,) = rows
        self._valid(replace(key, expires=_seconds(row.expires), revoked=_seconds(row.revoked)))

    def _valid(self, key: ApiKey) -> ApiKey:
        if key.state(self._clock()) != "valid":
            raise _refused()
        return key


def checked_subject(value: str, *, name: str = "subject") -> str:
    """A name in the composed normal form, where it cannot be mistaken for another.

    Raises:
        InvalidInput: it has invisible or confusable characters, or is too long.

    Example:
        >>> checked_subject("Zoe\\u0308") == "Zo\\u00eb"
        True
    """
    return checked_name(unicodedata.normalize("NFC", value), name=name)


def digest_of(secret: str) -> bytes:
    """What is stored of a key."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _refused() -> NotAuthenticated:
    return NotAuthenticated(
        "key: expected one that is valid now; it is unknown, has expired, or was revoked"
    )


def _names(values: Iterable[str], *, name: str) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InvalidInput(f"{name}: expected a list of names, got one text")
    found = tuple(dict.fromkeys(values))
    for value in found:
        if not value:
            raise InvalidInput(f"{name}: expected a name, got an empty one")
    return tuple(checked_subject(value, name=name) for value in found)


def _granted(name: str, grants: tuple[str, ...]) -> bool:
    return any(
        name.startswith(grant[:-1]) if grant.endswith(ANY) else name == grant for grant in grants
    )


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / _MICROSECONDS


_BY_ID = sa.select(api_keys).where(api_keys.c.id == sa.bindparam("key"))
_TIMES = Prepared(
    sa.select(api_keys.c.expires, api_keys.c.revoked).where(api_keys.c.id == sa.bindparam("key"))
)
