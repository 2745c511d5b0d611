"""The shuffler: takes sealed reports, and forwards them once, in a random order, to be opened."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from reticent.core.errors import InvalidInput, UntrustedSignature
from reticent.core.extras import require
from reticent.core.signatures import opening_key, signature_values, signed_bytes, signing_key
from reticent.core.strict_json import strict_dumps, strict_loads
from reticent.fleet.posts import BATCH, CLOSED, DONE, OPEN, VOID, Posts, batches, reports
from reticent.fleet.rounds import Round
from reticent.fleet.sealing import ENVELOPE, SEALED, enrolled, opened_envelope

SIGNING, SEALING = "signing-key.pem", "sealing-key.pem"
"""Private keys in the home of a shuffler or an aggregator."""

DATABASE = "reports.sqlite"

TAKEN, SECOND, LATE, LENGTH, FOREIGN = "taken", "second", "late", "length", "foreign"
"""What becomes of a report. A foreign one has no token of this round, or was changed."""

_SIZE = BATCH * SEALED

ACKNOWLEDGEMENT, STATEMENT, FORWARDED = "acknowledgement", "statement", "batch"
"""Purposes of the shuffler's signatures."""


class Shuffler:
    """Keeps the sealed reports of one round, and gives them out once, in a random order.

    It cannot open a report. It knows which enrolment sent which sealed report, until the round
    closes. Then one transaction permutes the reports, and deletes who sent them.

    Args:
        round_: the round, as its aggregator signed it.
        home: folder with the two private keys.
        database: file or URL of the database, by default a file in ``home``.

    Raises:
        InvalidInput: keys that are not those of the round.
        LedgerUnavailable: the database cannot be used.

    Guarantee:
        Each report that was taken is forwarded once or never, whenever the process is killed.
        Nothing is forwarded before ``least`` different enrolments of the round have sent a report.
        Then the reports leave in a uniformly random order, drawn from the operating system.
    """

    def __init__(self, round_: Round, home: str | Path, *, database: str | None = None) -> None:
        home = Path(home)
        self.round = round_
        self._signer = signing_key(home / SIGNING)
        self._key = opening_key(home / SEALING)
        own = self._key.public_key().public_bytes_raw().hex()
        if (own, self._signer.public_key().public_bytes_raw().hex()) != (
            round_.shuffler,
            round_.signer,
        ):
            raise InvalidInput(f"home={str(home)!r}: its keys are not the round's")
        self._posts = Posts(str(home / DATABASE) if database is None else database)
        self._posts.begin(round_.digest)

    def close(self) -> None:
        """Close the database."""
        self._posts.close()

    def tokens(self, devices: int) -> list[bytes]:
        """Return one enrolment token for each of so many devices. Each may be spent once."""
        return enrolled(self.round, key=self._signer, devices=devices)

    def take(self, envelopes: Sequence[bytes], *, now: float) -> dict[str, Any]:
        """Keep new reports of the round, and say what became of each.

        The same envelope may be sent again, for instance where the answer was lost. It is counted
        once.

        Args:
            envelopes: what devices sent, in any number.
            now: time, in seconds since 1970.

        Returns:
            The verdict on each envelope, how many were taken, and a digest of the envelopes, with a
            signature for the purpose "acknowledgement".
        """
        verdicts = [LENGTH] * len(envelopes)
        opened: dict[int, tuple[bytes, bytes]] = {}
        for place, content in enumerate(envelopes):
            if len(content) != ENVELOPE:
                continue
            try:
                opened[place] = opened_envelope(content, key=self._key, round_=self.round)
            except (InvalidInput, UntrustedSignature):
                verdicts[place] = FOREIGN
        kept = self._posts.retried(lambda: self._keep(list(opened.values()), now))
        for place, verdict in zip(opened, kept, strict=True):
            verdicts[place] = verdict
        stated = {
            "round": self.round.digest.hex(),
            "verdicts": verdicts,
            "taken": len({opened[at][0] for at in opened if verdicts[at] == TAKEN}),
            "envelopes": hashlib.sha256(b"".join(envelopes)).hexdigest(),
        }
        return self._signed(stated, ACKNOWLEDGEMENT)

    def _keep(self, opened: Sequence[tuple[bytes, bytes]], now: float) -> list[str]:
        """Store what is new of pairs of a token and a sealed report, and judge each."""
        digest, verdicts = self.round.digest, list[str]()
        new: list[dict[str, bytes]] = []
        with self._posts.write() as connection:
            state, held, _ = self._posts.state(connection, self.round.digest)
            if state != OPEN or now >= self.round.closes:
                return [LATE] * len(opened)
            query = sa.select(reports.c.token, reports.c.sealed).where(
                reports.c.round == digest, reports.c.token.in_([name for name, _ in opened])
            )
            spent = {row.token: row.sealed for row in connection.execute(query)}
            for name, sealed in opened:
                if name in spent:
                    verdicts.append(TAKEN if spent[name] == sealed else SECOND)
                elif held + len(new) < self.round.most:
                    spent[name] = sealed
                    new.append({"round": digest, "token": name, "sealed": sealed})
                    verdicts.append(TAKEN)
                else:
                    verdicts.append(LATE)
            if new:
                connection.execute(reports.insert(), new)
                self._posts.change(connection, digest, reports=held + len(new))
        return verdicts

    def finish(self, *, now: float) -> str:
        """Close the round where it is time to, and return its state.

        A round closes when ``most`` reports are there, or at its end. With fewer than ``least`` it
        is void: its reports are deleted, and none is forwarded.
        """
        digest = self.round.digest
        with self._posts.write() as connection:
            state, held, _ = self._posts.state(connection, self.round.digest)
            if state != OPEN or (held < self.round.most and now < self.round.closes):
                return state
            enough = held >= self.round.least
            if enough:
                query = sa.select(reports.c.sealed).where(reports.c.round == digest)
                content = permuted(connection.execute(query).scalars().all())
                rows = [
                    {"round": digest, "number": number, "content": content[start : start + _SIZE]}
                    for number, start in enumerate(range(0, len(content), _SIZE))
                ]
                connection.execute(batches.insert(), rows)
            connection.execute(reports.delete().where(reports.c.round == digest))
            stated = {"round": digest.hex(), "reports": held if enough else 0}
            statement = strict_dumps(self._signed(stated, STATEMENT))
            state = CLOSED if enough else VOID
            self._posts.change(connection, digest, state=state, kept=statement)
        self._posts.checkpoint()
        return state

    def batch(self) -> tuple[dict[str, Any], bytes] | None:
        """Return the next batch to forward: what is signed of it, and its sealed reports, one
        behind the other. None where there is none.
        """
        with self._posts.read() as connection:
            _, held, _ = self._posts.state(connection, self.round.digest)
            query = sa.select(batches.c.number, batches.c.content)
            query = query.where(batches.c.round == self.round.digest).order_by(batches.c.number)
            found = connection.execute(query.limit(1)).first()
        if found is None:
            return None
        number, content = found
        stated = {
            "round": self.round.digest.hex(),
            "number": number,
            "total": held,
            "digest": hashlib.sha256(content).hexdigest(),
        }
        return self._signed(stated, FORWARDED), content

    def forwarded(self, number: int) -> None:
        """Delete a batch, once the aggregator has said that it keeps it."""
        digest = self.round.digest
        mine = batches.c.round == digest
        with self._posts.write() as connection:
            connection.execute(batches.delete().where(mine, batches.c.number == number))
            left = connection.execute(sa.select(batches.c.number).where(mine).limit(1)).first()
            if left is None:
                self._posts.change(connection, digest, state=DONE)
        if left is None:
            self._posts.checkpoint()

    def status(self) -> dict[str, Any]:
        """Return the round's state, the number of reports taken, and the signed statement of how
        many were forwarded, once it is closed.
        """
        with self._posts.read() as connection:
            state, held, statement = self._posts.state(connection, self.round.digest)
        told = strict_loads(statement) if statement else None
        return {"state": state, "reports": held, "statement": told}

    def _signed(self, stated: dict[str, Any], purpose: str) -> dict[str, Any]:
        signature = signature_values(strict_dumps(stated), purpose=purpose, key=self._signer)
        return {**stated, "signature": signature["signature"]}


def permuted(sealed: Sequence[bytes]) -> bytes:
    """Return reports of one length behind each other, in a uniformly random order.

    The order is that of 128 random bits for each report, drawn from the operating system. Where two
    have the same bits, all are drawn again.
    """
    count = len(sealed)
    while True:
        keys = np.frombuffer(os.urandom(16 * count), dtype=np.uint64).reshape(2, count)
        order = np.lexsort(keys)
        drawn = keys[:, order]
        if not (drawn[:, 1:] == drawn[:, :-1]).all(axis=0).any():
            return b"".join([sealed[place] for place in order.tolist()])


def check_counts(
    round_: Round, acknowledgements: Sequence[dict[str, Any]], statement: dict[str, Any]
) -> None:
    """Refuse a shuffler that forwarded fewer or more reports than it took.

    Args:
        round_: the round.
        acknowledgements: of all gateways. A post that was repeated unchanged counts once.
        statement: of the closed round.

    Raises:
        UntrustedSignature: a signature that is not the shuffler's, or numbers that differ.
    """
    for stated, purpose in [(one, ACKNOWLEDGEMENT) for one in acknowledgements] + [
        (statement, STATEMENT)
    ]:
        check_signed(round_, stated, purpose)
    posts = Counter[str]()
    for one in acknowledgements:  # a post that came again after the end took nothing
        posts |= Counter({one["envelopes"]: one["taken"]})
    taken = sum(posts.values())
    if taken != statement["reports"]:
        raise UntrustedSignature(
            f"statement: the shuffler took {taken} reports in {len(posts)} posts, and states "
            f"{statement['reports']}"
        )


def check_signed(round_: Round, stated: dict[str, Any], purpose: str) -> None:
    """Refuse what the shuffler of a round did not sign.

    Raises:
        UntrustedSignature: another signature, another round or something else.
    """
    InvalidSignature = require("cryptography.exceptions", extra="fleet").InvalidSignature

    try:
        content = {name: value for name, value in stated.items() if name != "signature"}
        message = signed_bytes(strict_dumps(content), purpose=purpose)
        round_.signer_key.verify(bytes.fromhex(stated["signature"]), message)
        if stated["round"] != round_.digest.hex():
            raise InvalidSignature
    except (InvalidSignature, KeyError, TypeError, ValueError) as error:
        raise UntrustedSignature(
            f"{purpose}: expected one that this round's shuffler signed"
        ) from error
