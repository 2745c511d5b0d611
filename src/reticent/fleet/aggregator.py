"""The aggregator: opens what a shuffler forwarded, counts it, and books the central cost."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from reticent.accounting.events import PrivacyEvent
from reticent.core.arrays import Integers
from reticent.core.errors import InvalidInput, RequestUnderWay, UntrustedSignature
from reticent.core.releases import Receipt
from reticent.core.scopes import Scope
from reticent.core.signatures import opening_key
from reticent.core.strict_json import strict_dumps, strict_loads
from reticent.fleet.estimates import Shares, label_shares, node_shares
from reticent.fleet.posts import BATCH, DONE, OPEN, Posts, batches
from reticent.fleet.rounds import Round
from reticent.fleet.sealing import SEALED, opened_report
from reticent.fleet.shuffler import DATABASE, FORWARDED, SEALING, check_signed
from reticent.noise import SecureSampler
from reticent.release.paying import Price, paid
from reticent.systems.power.code_query import LABEL

if TYPE_CHECKING:
    from reticent.ledger.ledger import Ledger
    from reticent.systems.power.code_encoder import CodeEncoder

_MECHANISM = "shuffled reports"


@dataclass(frozen=True, eq=False)
class Counted:
    """The counted reports of a round.

    Attributes:
        round: the round.
        counts: shape (outputs,), how often each code was reported.
        refused: forwarded reports that could not be opened, or were there twice.
        receipt: receipt of the central cost.
    """

    round: Round
    counts: Integers
    refused: int
    receipt: Receipt

    def nodes(self, encoder: CodeEncoder) -> Shares:
        """Return the estimated share of devices in each node of the bundle."""
        query = encoder.query_
        return node_shares(self.counts, encoder.channel_, masses=query.masses, rows=query.rows)

    def shares(self, encoder: CodeEncoder, target: str) -> Shares:
        """Return the estimated share of devices with each label of a target."""
        return label_shares(self.counts, encoder, target)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "counts": self.counts.tolist(),
            "refused": self.refused,
            "receipt": self.receipt.to_dict(),
        }

    def report(self, encoder: CodeEncoder) -> dict[str, Any]:
        """Return counts, shares of nodes and labels, and what each code says of each label, as
        plain values for JSON.
        """
        labels = [target.name for target in encoder.query_.served if target.kind == LABEL]
        return {
            **self.to_dict(),
            "round": self.round.digest.hex(),
            "central": self.round.guarantee.to_dict(),
            "local_epsilon": self.round.epsilon,
            "nodes": self.nodes(encoder).to_dict(),
            "labels": {name: self.shares(encoder, name).to_dict() for name in labels},
            "posteriors": {name: encoder.posterior(name).tolist() for name in labels},
        }


class Aggregator:
    """Takes the batches that the shuffler of a round forwards, and counts them when all are there.

    Args:
        round_: the round, which the aggregator itself has signed.
        encoder: the bundle that devices draw from.
        home: folder with the private key that opens reports.
        ledger: books of the central cost. The campaign needs a budget for ``round_.guarantee``
            under ``scope_of(round_)``.
        database: file or URL of the database, by default a file in ``home``.

    Raises:
        InvalidInput: another bundle or key than the round's, or a central cost that is too small.
        LedgerUnavailable: the database cannot be used.

    Guarantee:
        ``round_.guarantee``, charged before the first report is opened. If the process is killed
        while it counts, it charges again when it counts again.
    """

    def __init__(
        self,
        round_: Round,
        encoder: CodeEncoder,
        home: str | Path,
        *,
        ledger: Ledger,
        database: str | None = None,
    ) -> None:
        home = Path(home)
        round_.check(encoder)
        self.round, self.encoder, self._ledger = round_, encoder, ledger
        self._key = opening_key(home / SEALING)
        if self._key.public_key().public_bytes_raw().hex() != round_.aggregator:
            raise InvalidInput(f"home={str(home)!r}: its key is not the round's")
        self._posts = Posts(str(home / DATABASE) if database is None else database)
        self._posts.begin(round_.digest)

    def close(self) -> None:
        """Close the database. The ledger is the caller's."""
        self._posts.close()

    def take(self, stated: dict[str, Any], content: bytes) -> None:
        """Keep a batch. The same batch may be sent again.

        Args:
            stated: what the shuffler signed of it.
            content: its sealed reports, one behind the other.

        Raises:
            UntrustedSignature: a batch that the shuffler did not sign, of fewer reports than the
                round needs, or one that differs from an earlier one.
        """
        check_signed(self.round, stated, FORWARDED)
        number, total = stated["number"], stated["total"]
        last = -(-total // BATCH) - 1
        size = BATCH if number < last else total - BATCH * last
        if not (
            self.round.least <= total <= self.round.most
            and 0 <= number <= last
            and len(content) == size * SEALED
            and hashlib.sha256(content).hexdigest() == stated["digest"]
        ):
            raise UntrustedSignature("batch: expected a part of a whole round")
        digest = self.round.digest
        with self._posts.write() as connection:
            state, held, _ = self._posts.state(connection, digest)
            if held not in (0, total):
                raise UntrustedSignature("batch: of another number of reports than earlier ones")
            if state != OPEN:
                return
            mine = sa.select(batches.c.content)
            mine = mine.where(batches.c.round == digest, batches.c.number == number)
            earlier = connection.execute(mine).scalar()
            if earlier is None:
                row = {"round": digest, "number": number, "content": content}
                connection.execute(batches.insert().values(row))
                self._posts.change(connection, digest, reports=total)
            elif earlier != content:
                raise UntrustedSignature("batch: differs from an earlier one of its number")

    def finish(self) -> bool:
        """Count the reports if all are there, and return whether they are counted.

        Raises:
            BudgetExceeded: the campaign has too little left. Nothing was opened.
        """
        digest = self.round.digest
        with self._posts.read() as connection:
            state, total, _ = self._posts.state(connection, digest)
            if state == DONE:
                return True
            mine = batches.c.round == digest
            query = sa.select(batches.c.content).where(mine).order_by(batches.c.number)
            content = bytearray()  # the only copy of them
            for part in connection.execute(query).scalars():
                content += part
        if not total or len(content) < total * SEALED:
            return False
        price = Price(
            PrivacyEvent(_MECHANISM, self.round.guarantee), 1, _MECHANISM, self.round.bundle
        )
        with paid(
            price, sampler=SecureSampler(), ledger=self._ledger, scope=scope_of(self.round)
        ) as payment:
            counts, refused = self._opened(content)
            counted = Counted(self.round, counts, refused, payment.receipt)
            with self._posts.write() as connection:
                connection.execute(batches.delete().where(mine))
                kept = strict_dumps(counted.to_dict())
                self._posts.change(connection, digest, state=DONE, kept=kept)
        self._posts.checkpoint()
        return True

    def _opened(self, content: bytes | bytearray) -> tuple[Integers, int]:
        counts = [0] * self.round.outputs
        for one in np.unique(np.frombuffer(content, dtype=f"V{SEALED}")):
            try:
                counts[opened_report(bytes(one), key=self._key, round_=self.round)] += 1
            except InvalidInput:
                continue
        return np.array(counts), len(content) // SEALED - sum(counts)

    @property
    def counted(self) -> Counted:
        """The counted reports; see ``counted``."""
        return _counted(self._posts, self.round)

    def status(self) -> dict[str, Any]:
        """Return whether the reports are counted, and how many the shuffler stated."""
        with self._posts.read() as connection:
            state, total, _ = self._posts.state(connection, self.round.digest)
        return {"state": state, "reports": total}


def counted(round_: Round, home: str | Path, *, database: str | None = None) -> Counted:
    """Return the counted reports of a round, which cost nothing more.

    Args:
        round_: the round.
        home: the aggregator's folder.
        database: file or URL of the database, by default a file in ``home``.

    Raises:
        RequestUnderWay: not all reports have come.
        LedgerUnavailable: no such database.
        UnknownName: it does not hold this round.
    """
    posts = Posts(str(Path(home) / DATABASE) if database is None else database)
    try:
        return _counted(posts, round_)
    finally:
        posts.close()


def _counted(posts: Posts, round_: Round) -> Counted:
    with posts.read() as connection:
        state, _, kept = posts.state(connection, round_.digest)
    if state != DONE:
        raise RequestUnderWay("round: not all reports have come")
    values = strict_loads(kept)
    receipt = Receipt.from_dict(values["receipt"])
    return Counted(round_, np.array(values["counts"]), values["refused"], receipt)


def scope_of(round_: Round) -> Scope:
    """Return the scope that pays for a round: its campaign."""
    return Scope(subject=round_.campaign)
