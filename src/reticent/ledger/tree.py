"""A hash tree over every row that counts: budgets, accounts, counts of plans, keys and answers.

The last two are the service's. Each row is an item: a key from its names, and a digest of
everything that it holds. The tree is a trie over the bits of the keys, four at a time. A node is a
leaf of at most 16 items, or has 16 children, and is named by the SHA-256 of its content. The digest
of the root is in every entry of the chain. So whoever reads a row can tell in a few nodes whether
it is the row that the last entry knows, and that there is none where there is none.

Keys of 128 bits are digests, so that nobody makes the tree deep by choosing names. Rows are never
removed, so the shape of a tree depends on its items alone.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

import sqlalchemy as sa

from reticent.core.errors import CorruptLedger
from reticent.ledger.schema import nodes
from reticent.ledger.statements import AT_ONCE, Session, Statement, raw

EMPTY = bytes(32)
"""Digest of the root of a tree without items."""

_KEY, _DIGEST = 16, 32
_ITEM = _KEY + _DIGEST
_FANOUT = 16
_MOST_ITEMS = 16
"""Items of a leaf; one more makes it a node with children."""

_DEEPEST = 14
"""Levels below the root, so that places are whole numbers of 63 bits. A leaf there takes any
number of items; 17 keys with equal first 56 bits are not found by trying."""

_LEAF, _INNER = b"\0", b"\1"

_REMEMBERED = 1 << 14
"""Nodes that a process keeps, about 10 MB."""

_PLAIN = frozenset({int, str, type(None)})
"""Types of values that a row's digest covers as they are."""

_known: dict[bytes, bytes] = {}
"""Contents of nodes by their digests: right whatever the database says, in any ledger."""


class Kind:
    """The rows of one table, as items of the tree.

    Args:
        name: name of the table.
        key: columns that name a row.
        rest: columns with what else it holds. What may change without an entry is left out.
    """

    def __init__(self, name: str, key: Sequence[str], rest: Sequence[str]) -> None:
        self.name = name
        self.columns = (*key, *rest)
        self._key = tuple(key)
        self._values, self._fields = itemgetter(*self.columns), attrgetter(*self.columns)
        self.key = lru_cache(maxsize=1 << 14)(self._key_of)

    def _key_of(self, *names: str) -> bytes:
        """Return the key of the row with these names, 16 bytes."""
        return hashlib.sha256(ascii((self.name, *names)).encode()).digest()[:_KEY]

    def key_of(self, row: Mapping[Any, Any]) -> bytes:
        """Return the key of a row, 16 bytes."""
        return self.key(*(row[name] for name in self._key))

    def digest(self, row: Mapping[Any, Any] | tuple[Any, ...]) -> bytes:
        """Return the digest of a row, 32 bytes. Bytes in it count by their own digest.

        A tuple has its columns as attributes.
        """
        values = list(self._fields(row) if isinstance(row, tuple) else self._values(row))
        if not _PLAIN.issuperset(map(type, values)):
            for at, value in enumerate(values):
                if isinstance(value, bytes | memoryview):
                    values[at] = hashlib.sha256(value).hexdigest()
        # The same in every version of Python: ``ascii`` of whole numbers, texts and None.
        return hashlib.sha256(ascii((self.name, values)).encode()).digest()


_TOTALS = ("statement", "spent_epsilon", "spent_delta")
_SCOPE = ("principal", "subject", "bundle")

BUDGETS = Kind(
    "budgets",
    _SCOPE,
    ("id", *_TOTALS, "granted_epsilon", "granted_delta", "gap_epsilon", "gap_delta"),
)
ACCOUNTS = Kind("accounts", _SCOPE, ("id", *_TOTALS, "answers", "reservations", "last_at"))
"""All but ``commits``, which spend nothing."""

PLANS = Kind("plan_counts", ("name",), ("booked", "queries", "answers", "asked", "answered"))
KEYS = Kind(
    "api_keys",
    ("id",),
    ("digest", "principal", "role", "bundles", "subjects", "created", "expires", "revoked"),
)
ANSWERS = Kind(
    "service_answers",
    ("principal", "idempotency_key"),
    ("request", "state", "charged_at", "due", "booked", "receipt", "body"),
)


class Tree:
    """The tree at one entry of the chain, and the changes of a transaction in it.

    Args:
        connection: connection of the transaction.
        root: root in the last entry.
    """

    def __init__(self, connection: Session, root: bytes) -> None:
        self._connection = connection
        self._changed: dict[int, bytes] = {}
        self._put_there: dict[bytes, bytes] = {}
        self._root = root

    @property
    def root(self) -> bytes:
        """The digest of its root, 32 bytes, which moves with every ``put``.

        Raises:
            CorruptLedger: a node is missing or is not the one that the chain knows.
        """
        if self._put_there:
            self._root = self._put(1, self._root, self._put_there, 0)
            self._put_there = {}  # only now: a row that the tree cannot take undoes all
        return self._root

    def find(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return the digests of those of ``keys`` that are there.

        Raises:
            CorruptLedger: a node is missing or is not the one that the chain knows.
        """
        found: dict[bytes, bytes] = {}
        keys, root = list(keys), self.root
        for key in keys if root != EMPTY else ():
            leaf = self._leaf(key)
            if leaf is None:
                break
            at = _at(leaf, key)
            if at >= 0:
                found[key] = leaf[at + _KEY : at + _ITEM]
        else:
            return found
        level = {1: (root, keys)}
        depth = 0
        while level:
            below: dict[int, tuple[bytes, list[bytes]]] = {}
            contents = self._contents({place: digest for place, (digest, _) in level.items()})
            for place, (_, wanted) in level.items():
                content = contents[place]
                if content[:1] == _LEAF:
                    for key in wanted:
                        at = _at(content, key)
                        if at >= 0:
                            found[key] = content[at + _KEY : at + _ITEM]
                    continue
                for slot, mine in _by_slot(wanted, depth).items():
                    digest = content[1 + _DIGEST * slot : 1 + _DIGEST * (slot + 1)]
                    if digest != EMPTY:
                        below[_FANOUT * place + slot] = digest, mine
            level, depth = below, depth + 1
        return found

    def check(self, kind: Kind, key: bytes, row: Mapping[Any, Any] | None) -> None:
        """Refuse a row that is not the one of the last entry, or that is missing.

        Args:
            kind: kind of the row.
            key: key of the row.
            row: the row as the database has it, or None where it has none.

        Raises:
            CorruptLedger: it is another one.
        """
        known = self.find([key]).get(key)
        if known != (None if row is None else kind.digest(row)):
            raise changed(kind)

    def put(self, items: Mapping[bytes, bytes]) -> None:
        """Set the digests of rows that were added or changed. The next look at the root or at a
        row hashes them, all together.
        """
        self._put_there.update(items)

    def write(self) -> None:
        """Store the nodes that were changed."""
        if self._changed:
            _WRITE.run(self._connection, *self._changed.items())
            self._changed.clear()

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key with its digest, for verification. It reads each node once, in levels.

        Raises:
            CorruptLedger: a node is missing or is not the one that the chain knows.
        """
        level = {1: self.root} if self.root != EMPTY else {}
        while level:
            below: dict[int, bytes] = {}
            for place, content in self._contents(level, fresh=True).items():
                if content[:1] == _LEAF:
                    yield from _items(content).items()
                    continue
                for slot in range(_FANOUT):
                    digest = content[1 + _DIGEST * slot : 1 + _DIGEST * (slot + 1)]
                    if digest != EMPTY:
                        below[_FANOUT * place + slot] = digest
            level = below

    def _leaf(self, key: bytes) -> bytes | None:
        """Return the leaf where a key would be, or None where this process lacks a node on the way
        there.
        """
        place, digest = 1, self._root
        for depth in range(_DEEPEST + 1):
            content = self._changed.get(place) or _known.get(digest)
            if content is None or content[:1] == _LEAF:
                return content
            slot = _slot(key, depth)
            digest = content[1 + _DIGEST * slot : 1 + _DIGEST * (slot + 1)]
            if digest == EMPTY:
                return _LEAF
            place = _FANOUT * place + slot
        return None

    def _put(self, place: int, digest: bytes, items: Mapping[bytes, bytes], depth: int) -> bytes:
        """Return the digest of the node at ``place`` once it has these items."""
        content = _LEAF if digest == EMPTY else self._content(place, digest)
        if content[:1] == _LEAF:
            new = {}
            for key, value in items.items():
                at = _at(content, key)
                if at < 0:
                    new[key] = value
                else:
                    content = content[: at + _KEY] + value + content[at + _ITEM :]
            if new:
                content = _leaf_of({**_items(content), **new})
            if len(content) <= 1 + _MOST_ITEMS * _ITEM or depth >= _DEEPEST:
                return self._keep(place, content)
            content, items = _INNER + EMPTY * _FANOUT, _items(content)
        for slot, keys in _by_slot(items, depth).items():
            below, at = {key: items[key] for key in keys}, 1 + _DIGEST * slot
            digest = content[at : at + _DIGEST]
            digest = self._put(_FANOUT * place + slot, digest, below, depth + 1)
            content = content[:at] + digest + content[at + _DIGEST :]
        return self._keep(place, content)

    def _keep(self, place: int, node: bytes) -> bytes:
        digest = hashlib.sha256(node).digest()
        self._changed[place] = node
        _remember(digest, node)
        return digest

    def _content(self, place: int, digest: bytes) -> bytes:
        known = self._changed.get(place) or _known.get(digest)
        return known or self._contents({place: digest})[place]

    def _contents(self, wanted: Mapping[int, bytes], *, fresh: bool = False) -> dict[int, bytes]:
        """Return the nodes at these places, each of the digest that its parent names.

        Args:
            wanted: digests by place.
            fresh: whether to read nodes again that this process has seen.
        """
        found: dict[int, bytes] = {}
        for place, digest in wanted.items():
            known = None if fresh else self._changed.get(place) or _known.get(digest)
            if known is not None:
                found[place] = known
        missing = [place for place in wanted if place not in found]
        for start in range(0, len(missing), AT_ONCE):
            some = missing[start : start + AT_ONCE]
            stored = (
                _NODE.rows(self._connection, some[0])
                if len(some) == 1
                else self._connection.execute(_NODES, {"some": some})
            )
            for place, node in stored:
                if type(node) is bytes:
                    digest = hashlib.sha256(node).digest()
                    if digest == wanted[place]:
                        found[place] = node
                        _remember(digest, node)
        if len(found) != len(wanted):
            raise CorruptLedger(
                "the ledger's hash tree was changed by other means than this library; nothing is "
                "released. See `reticent ledger verify`"
            )
        return found


def changed(kind: Kind) -> CorruptLedger:
    """Return the refusal of a row that was changed behind the chain's back."""
    return CorruptLedger(
        f"a row of the table {kind.name} was added, changed or removed by other means than this "
        "library; nothing is released from it. See `reticent ledger verify`"
    )


def root_of(items: Mapping[bytes, bytes], depth: int = 0) -> bytes:
    """Return the digest of the root of a tree with these items, which need no database."""
    if not items:
        return EMPTY
    if len(items) <= _MOST_ITEMS or depth >= _DEEPEST:
        node = _leaf_of(items)
    else:
        parts = [EMPTY] * _FANOUT
        for slot, keys in _by_slot(items, depth).items():
            parts[slot] = root_of({key: items[key] for key in keys}, depth + 1)
        node = _INNER + b"".join(parts)
    return hashlib.sha256(node).digest()


def _by_slot(keys: Iterable[bytes], depth: int) -> dict[int, list[bytes]]:
    """Return the keys by the four bits that follow the first ``4 * depth``."""
    found: defaultdict[int, list[bytes]] = defaultdict(list)
    for key in keys:
        found[_slot(key, depth)].append(key)
    return found


def _slot(key: bytes, depth: int) -> int:
    """Return the four bits of a key that follow the first ``4 * depth``."""
    return key[depth >> 1] & 15 if depth & 1 else key[depth >> 1] >> 4


def _leaf_of(items: Mapping[bytes, bytes]) -> bytes:
    return _LEAF + b"".join(key + items[key] for key in sorted(items))


def _items(content: bytes) -> dict[bytes, bytes]:
    """Return the items of a leaf."""
    return {
        content[at : at + _KEY]: content[at + _KEY : at + _ITEM]
        for at in range(1, len(content), _ITEM)
    }


def _at(content: bytes, key: bytes) -> int:
    """Return an item's place in a leaf, or -1 where it is not there."""
    at = content.find(key)
    while at % _ITEM != 1 and at >= 0:  # part of other items looks like it
        at = content.find(key, at + 1)
    return at


def _remember(digest: bytes, node: bytes) -> None:
    if len(_known) >= _REMEMBERED:
        _known.clear()
    _known[digest] = node


_NODE: Statement[Any] = Statement("SELECT place, content FROM nodes WHERE place = ?")
_NODES = sa.select(nodes.c.place, raw(nodes.c.content)).where(
    nodes.c.place.in_(sa.bindparam("some", expanding=True))
)
_WRITE: Statement[Any] = Statement(
    "INSERT INTO nodes (place, content) VALUES (?, ?) "
    "ON CONFLICT (place) DO UPDATE SET content = excluded.content"
)
