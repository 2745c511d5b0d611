"""What carries reports to a shuffler, and batches to an aggregator, over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, TypeVar

from reticent.client.client import TIMEOUT, Plain
from reticent.client.sessions import checked_url, json_post, value_of
from reticent.client.steps import Call, Retries, Steps, persistent
from reticent.core.errors import InvalidInput, ServiceUnreachable
from reticent.core.extras import require
from reticent.fleet.posts import BATCH
from reticent.fleet.rounds import Round
from reticent.fleet.shuffler import ACKNOWLEDGEMENT, check_counts, check_signed

T = TypeVar("T")


class Carrier(Plain):
    """Speaks with the shuffler or the aggregator of one round.

    Args:
        url: address of the server: https, or http on this machine.
        round_: the round.
        retries: how often a post is repeated. A repeated post counts once.
        timeout: seconds that one post may take, above 0.
        insecure: whether to allow plain http to other machines. Reports are sealed, and who sends
            them can be seen.

    Raises:
        InvalidParameter: an address that cannot be used.
    """

    def __init__(
        self,
        url: str,
        round_: Round,
        *,
        retries: Retries | None = None,
        timeout: float = TIMEOUT,
        insecure: bool = False,
    ) -> None:
        address = checked_url(url, insecure=insecure)
        library = require("httpx", extra="client")
        self.round, self._retries = round_, Retries() if retries is None else retries
        self._http = library.Client(base_url=address, timeout=timeout, trust_env=False)
        self._path = f"/v1/rounds/{round_.digest.hex()}"

    def status(self) -> dict[str, Any]:
        """Return what the server says of the round: its state and the number of its reports.

        Raises:
            ServiceUnreachable: nothing answers there.
        """
        return self._told(Call("GET", self._path))

    def forward(self, stated: dict[str, Any], content: bytes) -> None:
        """Give a batch of the shuffler to the aggregator.

        Raises:
            UntrustedSignature: the aggregator refuses it.
            ServiceUnreachable: nothing answers there.
        """
        body = {**stated, "reports": base64.b64encode(content).decode()}
        self._told(json_post(f"{self._path}/batches", body))

    def _told(self, call: Call) -> dict[str, Any]:
        found = self._run(self._steps(call))
        if not isinstance(found, dict):
            raise ServiceUnreachable("service: expected a round's server at this address")
        return found

    def _steps(self, call: Call) -> Steps[Any]:
        return value_of((yield from persistent(call, self._retries)))


class Gateway(Carrier):
    """Carries the envelopes of many devices to the shuffler, and keeps what it signed.

    A gateway sees which device sends, and nothing of what it sends. It can drop envelopes. It can
    neither open one nor give its token to another report.

    Attributes:
        acknowledgements: what the shuffler signed of each post.

    Example:
        >>> from reticent.client import Gateway
        >>> Gateway("ftp://example.org", None)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reticent.core.errors.InvalidParameter: url: expected an address such as ...

    See Also:
        reticent.client.Device: makes the envelopes.
    """

    def __init__(self, url: str, round_: Round, **options: Any) -> None:
        super().__init__(url, round_, **options)
        self.acknowledgements: list[dict[str, Any]] = []

    def send(self, envelopes: Sequence[bytes]) -> list[str]:
        """Post envelopes, a thousand at a time, and return the shuffler's verdict on each.

        Returns:
            For each envelope "taken", "second" (the device has sent another one), "late", "length"
            or "foreign" (of another round, or changed).

        Raises:
            UntrustedSignature: the answer is not the shuffler's.
            ServiceUnreachable: nothing answers there. The same call may be repeated.
        """
        verdicts: list[str] = []
        for start in range(0, len(envelopes), BATCH):
            part = [base64.b64encode(one).decode() for one in envelopes[start : start + BATCH]]
            told = self._told(json_post(f"{self._path}/reports", {"reports": part}))
            check_signed(self.round, told, ACKNOWLEDGEMENT)
            if len(told["verdicts"]) != len(part):
                raise InvalidInput("reply: expected a verdict on each envelope")
            self.acknowledgements.append(told)
            verdicts += told["verdicts"]
        return verdicts

    def check(self) -> dict[str, Any]:
        """Return the shuffler's signed statement of a closed round, compared with this gateway's
        acknowledgements.

        The counts agree only where this is the round's one gateway. Several compare theirs
        together, by ``reticent.fleet.check_counts``.

        Raises:
            InvalidInput: the round is still open.
            UntrustedSignature: a statement of another number of reports than were taken.
        """
        statement = self.status()["statement"]
        if statement is None:
            raise InvalidInput("round: is still open")
        check_counts(self.round, self.acknowledgements, statement)
        return dict(statement)
