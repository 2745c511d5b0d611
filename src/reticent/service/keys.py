"""Keys of the service: who asks, for which bundles, about whom, and until when.

A key is 256 random bits, which nobody can guess. So one SHA-256 of it is stored, and no slow hash.
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
from sqlalchemy.engine import RowMapping

from reticent.core.checks import one_of
from reticent.core.errors import (
    InvalidInput,
    NotAuthenticated,
    NotPermitted,
    ReticentError,
    UnknownName,
)
from reticent.core.names import checked_name
from reticent.ledger.chain import Page, read_tip
from reticent.ledger.ledger import Ledger
from reticent.ledger.schema import api_keys
from reticent.ledger.statements import Session, Statement, named
from reticent.ledger.tree import KEYS, Tree, changed

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
    """The rights of a key, without the key itself.

    Attributes:
        id: 16 hexadecimal digits, drawn at random, that name the key in commands and logs.
        principal: name of whoever asks with it, as ledgers know it.
        role: one of ``ROLES``.
        bundles: identities or names of bundles, or "*" for all.
        subjects: names of those who may be charged. A name that ends in "*" stands for all that
            begin so.
        created, expires, revoked: seconds since 1970, or None for never.

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
        """Return what a row of the table ``api_keys`` holds."""
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
        """Return "valid", "expired" or "revoked", at a time in seconds since 1970."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "valid"

    def may_ask(self, *names: str) -> bool:
        """Return whether a bundle of any of these names was granted."""
        return any(_granted(name, self.bundles) for name in names)

    def may_charge(self, subject: str) -> bool:
        """Return whether ``subject`` was granted."""
        return _granted(subject, self.subjects)

    def check_subjects(self, subjects: Iterable[str]) -> None:
        """Refuse subjects that the key was not granted.

        Raises:
            NotPermitted: a subject was not granted. The message names none.
        """
        lacking = sum(not self.may_charge(subject) for subject in set(subjects))
        if lacking:
            raise NotPermitted(
                f"subject: this key was not granted {lacking} of the subjects that the request "
                "names; ask the owner of the service"
            )


class KeyStore:
    """The keys in a ledger's database.

    A key counts only as the ledger's last entry knows it. Making or revoking a key is an entry of
    the chain. A row that was added or changed by other means opens nothing.

    Args:
        ledger: the ledger whose database holds them.
        clock: seconds since 1970.

    Example:
        >>> import tempfile
        >>> from reticent.ledger import Ledger
        >>> with (
        ...     tempfile.TemporaryDirectory() as folder,
        ...     tempfile.TemporaryDirectory() as elsewhere,
        ... ):
        ...     ledger = Ledger.create(f"{folder}/budgets.db", anchor=elsewhere)
        ...     keys = KeyStore(ledger)
        ...     made, secret = keys.create("acme", bundles=["*"], subjects=["ward-7"])
        ...     found = keys.find(secret)
        ...     _ = keys.revoke(made.id)
        ...     ledger.close()
        >>> found.principal, len(secret)
        ('acme', 52)
    """

    def __init__(self, ledger: Ledger, *, clock: Callable[[], float] = time.time) -> None:
        self._ledger, self._clock = ledger, clock
        self._checked: dict[str, tuple[bytes | None, ApiKey]] = {}

    def create(
        self,
        principal: str,
        *,
        bundles: Iterable[str],
        subjects: Iterable[str],
        role: Role = "client",
        lasts: float | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key, and return it with its secret, which is kept nowhere.

        Args:
            principal: name of whoever will ask with it.
            bundles: identities or names of the bundles that it may ask, at least one, or "*" for
                all.
            subjects: names that it may charge. A name that ends in "*" stands for all that begin
                so. Only an owner's key has none.
            role: "client", or "owner" for one that looks and does not ask.
            lasts: seconds until it expires, above 0 and below 2**40, or None for never.

        Raises:
            InvalidInput: no principal, a name that could be mistaken for another, no bundle or no
                subject.
            LedgerUnavailable: the ledger could not be written.
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
            raise InvalidInput(f"lasts={lasts!r}: expected seconds, above 0 and below 2**40")
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

        def make(page: Page) -> None:
            page.connection.execute(api_keys.insert().values(row))
            page.tree.put({KEYS.key_of(row): KEYS.digest(row)})
            page.note(f"key {row['id']} was made")

        self._ledger.post_together([make])
        return ApiKey.of_row(row), secret

    def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, oldest first, with those that are no longer valid.

        Raises:
            LedgerUnavailable: the ledger cannot be read.
        """
        query = sa.select(api_keys).order_by(api_keys.c.created, api_keys.c.id)
        with self._ledger.store.read() as connection:
            rows = connection.execute(query).mappings().all()
            items = {KEYS.key_of(row): KEYS.digest(row) for row in rows}
            if Tree(connection, read_tip(connection).root).find(items) != items:
                raise changed(KEYS)
        return tuple(map(ApiKey.of_row, rows))

    def revoke(self, identifier: str) -> ApiKey:
        """Revoke a key. Nothing is charged by it once this returns.

        Raises:
            UnknownName: there is no such key.
            LedgerUnavailable: the ledger could not be written.
        """

        def take_back(page: Page) -> ApiKey:
            row = _row(page, identifier)
            if row is None:
                raise UnknownName(
                    f"key={identifier!a:.40}: expected the identifier of a key, as `reticent keys "
                    "list` shows it"
                )
            if row["revoked"] is None:
                row["revoked"] = int(self._clock() * _MICROSECONDS)
                where = api_keys.c.id == identifier
                values = {"revoked": row["revoked"]}
                page.connection.execute(api_keys.update().where(where).values(values))
                page.tree.put({KEYS.key_of(row): KEYS.digest(row)})
                page.note(f"key {identifier} was revoked")
            return ApiKey.of_row(row)

        (done,) = self._ledger.post_together([take_back])
        if isinstance(done, ReticentError):
            raise done
        return done

    def find(self, secret: str) -> ApiKey:
        """Return the key that ``secret`` stands for, if it is valid now.

        Raises:
            NotAuthenticated: it is unknown, expired or revoked. The message does not say which.
            LedgerUnavailable: the ledger cannot be read.
        """
        query = sa.select(api_keys.c.id).where(api_keys.c.digest == digest_of(secret))
        with self._ledger.store.read() as connection:
            return self._current(connection, connection.execute(query).scalar())

    def named(self, identifier: str) -> ApiKey:
        """Return the key of this identifier, if it is valid now.

        Raises:
            NotAuthenticated: it is unknown, expired or revoked. The message does not say which.
            LedgerUnavailable: the ledger cannot be read.
        """
        with self._ledger.store.read() as connection:
            return self._current(connection, identifier)

    def check(self, page: Page, key: ApiKey) -> None:
        """Refuse, in a transaction that charges, a key that is no longer valid since it was found.

        Raises:
            NotAuthenticated: the key is no longer valid.
            CorruptLedger: its row was changed by other means.
        """
        name = KEYS.key(key.id)
        known = page.tree.find([name]).get(name)
        if known is None or self._checked.get(key.id) != (known, key):
            row = _row(page, key.id)
            if row is None:
                raise _refused()
            found = ApiKey.of_row(row)
            if replace(key, revoked=None) != replace(found, revoked=None):
                raise _refused()
            self._valid(found)
            self._checked[key.id] = known, key  # of this digest it is right whatever a row says
        self._valid(key)

    def _current(self, connection: Session, identifier: str | None) -> ApiKey:
        page = Page.of(connection, read_tip(connection))
        row = None if identifier is None else _row(page, identifier)
        if row is None:
            raise _refused()
        return self._valid(ApiKey.of_row(row))

    def _valid(self, key: ApiKey) -> ApiKey:
        if key.state(self._clock()) != "valid":
            raise _refused()
        return key


def checked_subject(value: str, *, name: str = "subject") -> str:
    """Return a name in the composed normal form, if it cannot be mistaken for another.

    Raises:
        InvalidInput: it has invisible or confusable characters, or is too long.

    Example:
        >>> checked_subject("Zoe\\u0308") == "Zo\\u00eb"
        True
    """
    return checked_name(unicodedata.normalize("NFC", value), name=name)


def digest_of(secret: str) -> bytes:
    """Return what is stored of a key."""
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


def _row(page: Page, identifier: str) -> dict[str, Any] | None:
    """Return the row of a key, as the chain knows it."""
    rows = _BY_ID.rows(page.connection, identifier)
    found: dict[str, Any] | None = rows[0] if rows else None
    page.tree.check(KEYS, KEYS.key(identifier), found)
    return found


_COLUMNS = tuple(column.name for column in api_keys.c)
_BY_ID = Statement(
    f"SELECT {named(_COLUMNS)} FROM api_keys WHERE id = ?",
    lambda row: dict(zip(_COLUMNS, row, strict=True)),
)
