"""The hash chain: every entry of the ledger commits to everything before it.

The end of the chain stands in the database. Every transaction that appends begins by reading it
under a lock, and ends by writing it. Each entry's digest covers the state of the ledger behind it:
the root of the tree over its rows (see ``tree``), its totals and its policy. So whoever reads a
row or a total notices if it was changed by other means.

The end stands outside the database as well, in a small file elsewhere: the anchor. A database
cannot know that it is an old copy of itself: its chain is whole, its totals are right, and its
budgets are full again. A ledger that does not hold the entry that its anchor names is refused until
an operator accepts the loss.

The file holds the last two positions, each in a disk sector of its own with its checksum. A later
one takes the place of the earlier of them, under a lock, and before any answer leaves. Whenever a
process is killed or the power is cut, one of them is whole, and what the other would have vouched
for has not left yet. Commits move no anchor, since they spend nothing. Where database and anchor
are restored together nothing here can know. Receipts that clients hold can (see ``Ledger.verify``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from reticent.core.errors import CorruptLedger, InvalidInput, LedgerUnavailable
from reticent.core.scopes import PARTS, Policy
from reticent.ledger.charges import LARGEST
from reticent.ledger.schema import entries, head
from reticent.ledger.statements import Session, Statement, inserting, named
from reticent.ledger.tree import EMPTY, Tree

# A positional JSON list of scalars is the canonical form: no key order, no floats. One encoder:
# making one is the slow part.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def _canonical(values: Sequence[Any]) -> bytes:
    """Return the list as ``_encode`` writes it, whole numbers and texts without its detours."""
    parts = [
        encode_basestring_ascii(value)
        if type(value) is str
        else repr(value)
        if type(value) is int
        else _encode(value)
        for value in values
    ]
    return f"[{','.join(parts)}]".encode()


LOWERED = "lowered"
"""Stands in the place of a mechanism in the entry of a grant that takes back."""

Action = Literal["grant", "reserve", "commit", "policy", "gap", "accept", "note"]
"""What an entry does.

``grant`` adds to a budget; ``reserve`` spends; ``commit`` ties a reservation to a receipt.
``policy`` says what requests must name. ``accept`` says that an operator goes on with an older
copy: it takes a position after the lost entries, so that no two entries ever have one position,
and names the lost end of the chain. ``gap`` charges a budget for what the lost entries may have
spent. ``note`` says which other rows were changed: a key that was made or revoked, a plan that was
counted, answers that were removed.
"""


class Entry(NamedTuple):
    """One row of the ledger, with every number and name that it stands for spelled out.

    Attributes:
        seq: position, 1, 2, 3, ... Only "accept" leaves some out.
        at: microseconds since 1970, UTC.
        action: the kind of entry, an ``Action``.
        principal: principal of a ``Scope``: the budget's for a grant or gap, the request's for a
            reserve or commit, "" otherwise.
        subject: subject of the same ``Scope``.
        bundle: bundle of the same ``Scope``.
        statement: kind and adjacency of the cost, as canonical JSON, or "" for a policy or accept.
        epsilon: micro-epsilon granted or spent. For an accept, the amount that every later budget
            starts with. 0 for a commit or policy.
        delta: the same in pico-delta.
        answers: number of answers paid for, 0 for all but a reserve.
        mechanism: cause of the cost for a reserve, the required parts for a policy, the rows that
            changed for a note, "" otherwise.
        reservation: ``seq`` of what a commit commits, 0 otherwise.
        receipt: receipt of a commit, or for an accept the anchor of the lost end, as
            "position:digest", "" otherwise.
        state: digest of what the ledger held behind it, 64 hexadecimal digits, by ``state_of``.
            Entries that were appended together have that of the last of them.
    """

    seq: int
    at: int
    action: Action
    principal: str
    subject: str
    bundle: str
    statement: str
    epsilon: int
    delta: int
    answers: int
    mechanism: str
    reservation: int
    receipt: str
    state: str = ""

    def link(self, previous: bytes) -> bytes:
        """Return the SHA-256 of the entry without its state, and of the digest before it, 32
        bytes.
        """
        return hashlib.sha256(previous + _canonical(self[:-1])).digest()

    def digest(self, previous: bytes) -> bytes:
        """Return the SHA-256 of its link and its state, 32 bytes."""
        return linked(self.link(previous), bytes.fromhex(self.state))


def linked(link: bytes, state: bytes) -> bytes:
    """Return the digest of an entry, 32 bytes."""
    return hashlib.sha256(link + state).digest()


@lru_cache(maxsize=64)  # each head is checked by the next who reads it, mostly in this process
def state_of(root: bytes, spent: tuple[int, int], gap: tuple[int, int], policy: str) -> bytes:
    """Return the digest of what a ledger holds, 32 bytes.

    Args:
        root: root of the tree over its rows.
        spent: micro-epsilon and pico-delta of all charges.
        gap: amounts that every budget is charged for lost entries.
        policy: names that requests must have, as ``Policy.text``.
    """
    return hashlib.sha256(_canonical((root.hex(), *spent, *gap, policy))).digest()


def first_link(ledger: str, required: str) -> bytes:
    """Return the link of an empty ledger, 32 bytes.

    Args:
        ledger: the ledger's name.
        required: parts that its first policy requires, as ``Policy.text``.
    """
    requires = f" requires {required}" if required else ""
    return hashlib.sha256(f"reticent ledger {ledger}{requires}".encode()).digest()


def genesis(ledger: str, required: str) -> bytes:
    """Return the digest before the first entry of a ledger, 32 bytes, from its ``first_link``."""
    return linked(first_link(ledger, required), state_of(EMPTY, (0, 0), (0, 0), required))


class Tip(NamedTuple):
    """The end of the chain, and the state of the ledger as a whole.

    Attributes:
        ledger: the ledger's name.
        seq: position of the last entry.
        digest: its digest, 32 bytes.
        link: its link, 32 bytes, as ``Entry`` has it.
        root: root of the tree, 32 bytes.
        spent: micro-epsilon and pico-delta of all charges, whatever their scope.
        gap: amounts that every budget is charged for entries that a restored copy lost.
        policy: names that requests must have.
        first: the policy that the ledger was made with, as text.
    """

    ledger: str
    seq: int
    digest: bytes
    link: bytes
    root: bytes
    spent: tuple[int, int]
    gap: tuple[int, int]
    policy: Policy
    first: str

    @property
    def genesis(self) -> bytes:
        """The digest before the first entry, 32 bytes."""
        return genesis(self.ledger, self.first)

    @property
    def state(self) -> bytes:
        """The digest of what the ledger holds, 32 bytes."""
        return state_of(self.root, self.spent, self.gap, self.policy.text)

    @property
    def is_whole(self) -> bool:
        """Whether the digest is the one of what the head says."""
        return linked(self.link, self.state) == self.digest

    @property
    def anchor(self) -> Anchor:
        """The part of it that is kept outside the database."""
        return Anchor(self.ledger, self.seq, self.digest.hex(), *self.paid)

    @property
    def paid(self) -> tuple[int, int]:
        """The amounts that all charges spent, those of lost entries with them.

        An acceptance that is lost in its turn must not forget what it charged.
        """
        return (
            min(self.spent[0] + self.gap[0], LARGEST),
            min(self.spent[1] + self.gap[1], LARGEST),
        )

    @property
    def row(self) -> tuple[Any, ...]:
        """The row of the table ``head``, without its ``id``."""
        return (
            *(self.ledger, self.seq, self.digest, self.link, self.root),
            *(*self.spent, *self.gap, self.first, self.policy.text),
        )

    def holds(self, session: Session, anchor: Anchor) -> bool:
        """Return whether the ledger has the entry that ``anchor`` names."""
        return self.has(anchor, digest_at(session, anchor.seq))

    def has(self, anchor: Anchor, digest: Any) -> bool:
        """Return whether the ledger has the entry that ``anchor`` names.

        Args:
            anchor: an anchor.
            digest: what the database has as the digest of the entry at its position, or None.
        """
        if anchor.ledger != self.ledger or anchor.seq > self.seq:
            return False
        if anchor.seq == self.seq:
            return anchor.digest == self.digest.hex()
        if anchor.seq == 0:
            return anchor.digest == self.genesis.hex()
        return type(digest) is bytes and anchor.digest == digest.hex()


def read_tip(session: Session, *, check: bool = True) -> Tip:
    """Return the end of the chain.

    Args:
        session: connection of a transaction.
        check: whether to refuse a head that does not match its own digest. Verification does not.

    Raises:
        CorruptLedger: there is none, or something else than a ledger writes there.
    """
    return _tip(_HEAD.rows(session), check)


def read_end(session: Session, at: int = 0, *, lock: bool = False) -> tuple[Tip, Any]:
    """Return the end of the chain, where its last entry is the one that its head names.

    Args:
        session: connection of a transaction.
        at: position of an entry.
        lock: whether to take, on PostgreSQL, the lock that makes writers take turns. PostgreSQL
            takes what stands in one statement from before the wait, so it is a statement of its
            own.

    Returns:
        The end, and what the database has as the digest of entry ``at``, or None.

    Raises:
        CorruptLedger: the last entry is another one: entries were cut off, or the head was edited.
            Or the head is missing, or not what a ledger writes.
    """
    if lock and not session.is_sqlite:
        _LOCK.run(session, ())
    found = _END.rows(session, at)
    tip = _tip([row[:-3] for row in found], True)
    seq, digest, there = found[0][-3:]
    if (0, tip.genesis) != (tip.seq, tip.digest) if seq is None else (seq, digest) != tip[1:3]:
        raise CorruptLedger(
            f"the ledger's head names entry {tip.seq}, which is not the last one here as the "
            "head knows it; entries were cut off or the head was changed. Nothing is "
            "released; see `reticent ledger verify`"
        )
    return tip, there


class EndMoved(Exception):
    """The chain ends elsewhere than ``expect_end`` was told. The transaction was undone."""


def expect_end(session: Session, tip: Tip, anchor: Anchor) -> None:
    """Have a server undo the transaction unless ``read_end`` would return ``tip``.

    It takes the same lock. It is sent along with what follows, which is not executed where the end
    is another one.

    Args:
        session: connection of a transaction on a server.
        tip: the end that is expected.
        anchor: an entry that the ledger must have, at a position above 0.

    Raises:
        EndMoved: the end is another one, or the entry is not there. It is raised no later than the
            transaction ends.
    """
    _LOCK.run(session, ())
    vouched = anchor.seq, bytes.fromhex(anchor.digest)
    expected = tip.seq, *vouched, tip.seq, tip.digest, *tip.row
    _SAME_END.run(session, expected, otherwise=EndMoved)


def digest_at(session: Session, seq: int) -> Any:
    """Return what the database has as the digest of entry ``seq``, or None."""
    (found,) = _DIGEST_AT.rows(session, seq) or [(None,)]
    return found[0]


def _tip(rows: Sequence[tuple[Any, ...]], check: bool) -> Tip:
    if not rows:
        raise CorruptLedger(
            "the ledger's head is missing; nothing is released. Put a backup in its place by "
            "`reticent ledger restore`"
        )
    (row,) = rows
    if (written := _written.get(row)) is not None:
        return written
    ledger, seq, digest, link, root, *amounts, first, required = row
    if (
        not {int}.issuperset(map(type, (seq, *amounts)))
        or min(seq, *amounts) < 0
        or not {str}.issuperset(map(type, (ledger, first, required)))
        or not {bytes}.issuperset(map(type, (digest, link, root)))
        or not set(required.split(",")) <= {"", *PARTS}
        or not ledger.isprintable()
    ):
        raise _other_head()
    spent, gap = (amounts[0], amounts[1]), (amounts[2], amounts[3])
    tip = Tip(ledger, seq, digest, link, root, spent, gap, Policy.stored(required), first)
    if check and not tip.is_whole:
        raise _other_head()
    return tip


_written: dict[tuple[Any, ...], Tip] = {}
"""Ends that this process has written last, by the row of the head: whole, whatever reads them."""


def _other_head() -> CorruptLedger:
    return CorruptLedger(
        "the ledger's head was changed by other means than this library; nothing is released. See "
        "`reticent ledger verify`"
    )


class Line(NamedTuple):
    """An entry with the rows that it belongs to: its statement, its account, its budget."""

    entry: Entry
    statement_id: int | None = None
    account_id: int | None = None
    budget_id: int | None = None


@dataclass
class Page:
    """One transaction that appends entries, or that only reads.

    Attributes:
        connection: connection of the transaction, or of one that only reads.
        tip: the end of the chain. It moves with every entry, and ``write`` stores it.
        at: time of what is appended, microseconds since 1970, UTC.
        tree: the tree over the rows. A changed row is put there before the entry that says so.
    """

    connection: Session
    tip: Tip
    at: int
    tree: Tree

    @classmethod
    def of(cls, connection: Session, tip: Tip, at: int = 0) -> Self:
        """Return the page behind ``tip``."""
        return cls(connection, tip, at, Tree(connection, tip.root))

    def note(self, text: str) -> None:
        """Append an entry that says which rows were changed."""
        entry = Entry(self.tip.seq + 1, self.at, "note", "", "", "", "", 0, 0, 0, text, 0, "")
        append(self, [Line(entry)])

    def write(self) -> None:
        """Store the end of the chain and the tree, once for all that was posted."""
        assert self.tree.root == self.tip.root  # whatever changes a row appends an entry
        self.tree.write()
        write_tip(self.connection, self.tip)


def append(page: Page, lines: Sequence[Line]) -> list[bytes]:
    """Write entries, move the page's tip behind them, and return their digests."""
    tip, rows, digests = page.tip, [], []
    digest, link, spent = tip.digest, tip.link, tip.spent
    charged = [line.entry for line in lines if line.entry.action == "reserve"]
    if charged:
        spent = (
            min(spent[0] + sum([entry.epsilon for entry in charged]), LARGEST),
            min(spent[1] + sum([entry.delta for entry in charged]), LARGEST),
        )
    state = state_of(page.tree.root, spent, tip.gap, tip.policy.text)
    for entry, statement_id, account_id, budget_id in lines:
        link = entry.link(digest)
        digest = linked(link, state)
        digests.append(digest)
        rows.append(
            (
                *(entry.seq, entry.at, entry.action, budget_id, account_id, statement_id),
                *(entry.epsilon, entry.delta, entry.answers, entry.mechanism),
                *(entry.reservation or None, entry.receipt, state, digest),
            )
        )
    _APPEND.run(page.connection, *rows)
    end = lines[-1].entry.seq, digest, link, page.tree.root, spent
    page.tip = Tip(tip.ledger, *end, tip.gap, tip.policy, tip.first)
    return digests


def write_tip(session: Session, tip: Tip) -> None:
    """Write the end of the chain, once for all that a transaction has posted."""
    row = tip.row
    _MOVE_HEAD.run(session, row)
    if len(_written) > _MOST_WRITTEN:
        _written.clear()
    _written[row] = tip


_MOST_WRITTEN = 64
_ROW = [column.name for column in head.c if column.name != "id"]
_HEAD: Statement[Any] = Statement(f"SELECT {named(_ROW)} FROM head WHERE id = 1")
_LOCK: Statement[Any] = Statement("SELECT 1 FROM head WHERE id = 1 FOR UPDATE")
_END: Statement[Any] = Statement(
    f"SELECT {named(f'head.{name}' for name in _ROW)}, last.seq, last.digest, there.digest "
    "FROM head LEFT JOIN entries AS last ON last.seq = (SELECT max(seq) FROM entries) "
    "LEFT JOIN entries AS there ON there.seq = ? WHERE head.id = 1"
)
_SAME_END: Statement[Any] = Statement(
    "SELECT 1 FROM head WHERE (SELECT max(seq) FROM entries) = ? AND "
    "(SELECT digest FROM entries WHERE seq = ?) = ? AND "
    "(SELECT digest FROM entries WHERE seq = ?) = ? AND id = 1 AND "
    + " AND ".join(f"{name} = ?" for name in _ROW)
)
_MOVE_HEAD: Statement[Any] = Statement(
    f"UPDATE head SET {', '.join(f'{name} = ?' for name in _ROW)} WHERE id = 1"
)
_DIGEST_AT: Statement[Any] = Statement("SELECT digest FROM entries WHERE seq = ?")
_APPEND = inserting(entries)


ANCHOR_VARIABLE = "RETICENT_ANCHOR"
"""Environment variable with the folder, or the file, where anchors are kept."""

_SUFFIX = ".anchor"
_SECTOR = 512
"""Bytes that a disk writes whole or not at all."""

_SET = (
    f"Give permission on it and its folder, or choose another place by anchor= or {ANCHOR_VARIABLE}"
)


class Anchor(NamedTuple):
    """A position in a ledger's chain.

    Attributes:
        ledger: the ledger's name.
        seq: position of an entry, or 0 for the empty ledger.
        digest: its digest, 32 bytes in hexadecimal.
        epsilon: micro-epsilon charged by all entries up to there, whatever the scope, and by the
            lost ones that they accepted.
        delta: pico-delta charged by them.
    """

    ledger: str
    seq: int
    digest: str
    epsilon: int
    delta: int

    @property
    def text(self) -> str:
        """The text "position:digest", as reports print it."""
        return f"{self.seq}:{self.digest}"

    def encode(self) -> bytes:
        """Return the anchor and its checksum as lines of text, padded to 512 bytes."""
        ledger, digest = encode_basestring_ascii(self.ledger), encode_basestring_ascii(self.digest)
        content = (
            f'{{"ledger":{ledger},"seq":{self.seq},"digest":{digest},"epsilon":{self.epsilon},'
            f'"delta":{self.delta}}}'
        ).encode()
        checksum = hashlib.sha256(content).hexdigest().encode()
        return (content + b"\n" + checksum).ljust(_SECTOR, b"\n")

    @classmethod
    def decode(cls, sector: bytes) -> Self | None:
        """Return the anchor from the bytes of ``encode``, or None where they are not whole."""
        content, _, checksum = sector.rstrip(b"\n").partition(b"\n")
        if checksum != hashlib.sha256(content).hexdigest().encode():
            return None
        try:
            values = json.loads(content)
        except ValueError:
            return None
        if not isinstance(values, dict) or values.keys() != set(cls._fields):
            return None
        whole = all(
            type(values[name]) is int and values[name] >= 0 for name in ("seq", "epsilon", "delta")
        )
        named = all(isinstance(values[name], str) for name in ("ledger", "digest"))
        return cls(**values) if whole and named else None


@dataclass(frozen=True)
class AnchorFile:
    """The file that holds one ledger's anchor.

    Attributes:
        path: path of the file.
        durable: whether a written anchor survives a power cut.
        patience: seconds to wait for another process that is writing it.
    """

    path: Path
    durable: bool
    patience: float

    @cached_property
    def _seen(self) -> list[tuple[bytes, tuple[Anchor | None, int]]]:
        """The content that was read or written last, with what ``_latest`` says of it."""
        return [(b"", (None, 0))]

    @cached_property
    def _name(self) -> str:
        return str(self.path)

    @cached_property
    def _folder(self) -> str:
        return str(self.path.parent)

    def read(self, *, to_write: bool = False) -> Anchor | None:
        """Return the anchor, or None where the file is missing or empty.

        Args:
            to_write: whether to find out, before anything is charged, that a later one can be
                written.

        Raises:
            LedgerUnavailable: the file cannot be read, holds something else, or cannot be written.
        """
        if to_write and not os.access(self._folder, os.W_OK | os.X_OK):
            self._make_folder()
        try:
            handle = os.open(self._name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                content = os.read(handle, 2 * _SECTOR + 1)
                if not content:  # whoever is making the file lets go of it first
                    self._lock(handle)
                    content = os.read(handle, 2 * _SECTOR + 1)
            finally:
                os.close(handle)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerUnavailable(
                f"{self.path}: the ledger's anchor cannot be read ({error.strerror}); {_SET}"
            ) from error
        return self._latest(content)[0]

    def raise_to(self, anchor: Anchor) -> Anchor:
        """Write ``anchor`` unless the file holds a later one.

        Returns:
            The anchor that the file holds afterwards.

        Raises:
            LedgerUnavailable: it could not be written, or not within the time. What was charged
                stays charged.
        """
        try:
            handle = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._lock(handle)
                content = os.pread(handle, 2 * _SECTOR + 1, 0)
                standing, place = self._latest(content)
                if standing is not None and standing.seq >= anchor.seq:
                    return standing
                sector = anchor.encode()
                os.pwrite(handle, sector * (1 if content else 2), place)
                if self.durable and content:
                    os.fdatasync(handle)
                elif self.durable:
                    os.fsync(handle)
                    _flush_folder(self.path.parent)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._unwritable(error.strerror) from error
        after = content[:place] + sector + content[place + _SECTOR :] if content else sector * 2
        self._seen[0] = after, (anchor, _SECTOR - place if content else 0)
        return anchor

    def _latest(self, content: bytes) -> tuple[Anchor | None, int]:
        """Return the later of the two anchors in the file, and the place of the earlier one.

        The next anchor goes there.
        """
        if not content:  # just made, or emptied
            return None, 0
        seen, found = self._seen[0]  # each charge reads the same several times
        if content == seen:
            return found
        two = [Anchor.decode(content[at : at + _SECTOR]) for at in (0, _SECTOR)]
        seqs = [-1 if found is None else found.seq for found in two]
        if len(content) != 2 * _SECTOR or max(seqs) < 0:
            raise LedgerUnavailable(
                f"{self.path}: expected the ledger's anchor, got something else; nothing is "
                "released. If it is damaged, check "
                "the ledger by `reticent ledger verify --receipt` with clients' receipts, "
                "remove the file, and go on by `reticent ledger adopt`"
            )
        found = two[seqs.index(max(seqs))], _SECTOR * seqs.index(min(seqs))
        self._seen[0] = content, found
        return found

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error.strerror) from error
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise self._unwritable("no permission")

    def _lock(self, handle: int) -> None:
        """Wait until nobody else writes the file. It is free again once it is closed."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise self._unwritable(
                        f"another process held it for more than {self.patience:g} s"
                    ) from error
                time.sleep(0.001)
            else:
                return

    def _unwritable(self, reason: str | None) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.path}: the ledger's anchor cannot be written ({reason}); nothing is "
            f"released. {_SET}"
        )


def anchor_file(
    ledger: str, *, chosen: str | Path | None, database: Path | None, durable: bool, patience: float
) -> AnchorFile:
    """Return the file that holds the anchor of a ledger.

    Args:
        ledger: the ledger's name.
        chosen: a folder, or a file whose name ends in ".anchor". None takes ``RETICENT_ANCHOR``, or
            else the folder "reticent/anchors" of the user's state (``XDG_STATE_HOME``, or
            "~/.local/state").
        database: file of an SQLite ledger, which the anchor must not share a folder with, or None
            on a server.
        durable, patience: attributes of the ``AnchorFile``.

    Raises:
        InvalidInput: the anchor would be in the database's own folder. Whoever restores the one
            would restore the other.
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


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
