"""Every conversation that a client has with a service, without a network.

It says what is asked, what is repeated, and what is believed of the replies.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from reticent.client.answers import Answers, joined
from reticent.client.steps import Advance, Call, Reply, Retries, Steps, error_of, persistent
from reticent.client.wire import (
    arrow_bytes,
    arrow_columns,
    checked_subjects,
    json_bytes,
    json_cells,
    loaded,
    receipt_of,
    values_of,
)
from reticent.core.addresses import is_loopback
from reticent.core.arrow_bodies import ARROW
from reticent.core.bindings import answers_digest, request_digest
from reticent.core.checks import count
from reticent.core.errors import (
    BudgetExceeded,
    InvalidInput,
    InvalidParameter,
    ReticentError,
    UnknownName,
    UntrustedSignature,
)
from reticent.core.guarantees import Guarantee
from reticent.core.releases import Receipt, Rows
from reticent.core.signatures import verify_receipt
from reticent.core.strict_json import strict_dumps
from reticent.tables.frames import rows_of

ROWS_PER_REQUEST = 1000
"""Rows that a client sends in one request, unless it is told otherwise."""

LONGEST_REQUEST_NAME = 100

_REQUEST_NAME = re.compile(rf"[A-Za-z0-9_.~+/=-]{{8,{LONGEST_REQUEST_NAME}}}")
_API_KEY = re.compile(r"[\x21-\x7e]{8,512}")
_IDENTITY = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Offer:
    """A bundle that a service answers from.

    Attributes:
        id: its identity, 64 hexadecimal digits.
        name: its owner's name for it.
        system: the estimator that was fitted.
        protects: "records" or "input".
        route: "answers" (send rows to the service), "free" (the same, at no cost and without a
            receipt) or "device" (release on the device).
        subject: the name that is charged where records are protected, or None where every request
            names its own.
        features: cells of a row.
        columns: names of the cells, where it was fitted on a data frame.
        guarantee: cost of one answer.
        most_rows: rows of one request at most.
        signed: whether the bundle is signed.
        files: names of the files that a device may download.
    """

    id: str
    name: str
    system: str
    protects: str
    route: str
    subject: str | None
    features: int
    columns: tuple[str, ...]
    guarantee: Guarantee
    most_rows: int
    signed: bool
    files: tuple[str, ...]


@dataclass(frozen=True)
class Cost:
    """The cost of a request that was not made. Asking is free.

    Attributes:
        answers: rows that it asks about.
        fits: whether the budgets allow it now.
        epsilon, delta: its charge.
        largest: the largest number of answers that fits, or None where each row has its own
            subject.
        reason: the reason why it does not fit, or "".
    """

    answers: int
    fits: bool
    epsilon: float
    delta: float
    largest: int | None
    reason: str


@dataclass(frozen=True)
class BudgetLine:
    """One budget that a client's requests count against.

    Attributes:
        scope: principal, subject and bundle by name, with "" for any.
        statement: meaning of its costs, in words.
        granted, spent, left: pairs (epsilon, delta).
    """

    scope: Mapping[str, str]
    statement: str
    granted: tuple[float, float]
    spent: tuple[float, float]
    left: tuple[float, float]


class Session:
    """A key, and what its client must be able to verify. It makes conversations for either client.

    Args:
        url: address of the service, https, or http on this machine.
        key: the client's API key.
        trusted_key: file with the public key that must have signed every receipt, or None.
        retries: settings of repetition, a ``Retries``.
        insecure: whether to send the key over plain http to another machine.
        arrow: whether rows are sent as an Arrow stream.

    Raises:
        InvalidParameter: a URL or key that cannot be used.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        trusted_key: str | Path | None,
        retries: Retries,
        insecure: bool,
        arrow: bool = False,
    ) -> None:
        self.arrow = arrow
        self.url = checked_url(url, insecure=insecure)
        if not isinstance(key, str) or not _API_KEY.fullmatch(key):
            raise InvalidParameter(
                "key: expected an API key as `reticent keys create` prints it, without spaces"
            )
        self.key, self.trusted_key, self.retries = key, trusted_key, retries
        self._offers: dict[str, Offer] = {}

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {"Authorization": f"Bearer {self.key}", "Accept": "application/json"}

    def bundles(self) -> Steps[tuple[Offer, ...]]:
        """Return the bundles that the key may ask."""
        found = yield from self._get("/v1/bundles")
        with _reading("/v1/bundles"):
            offers = tuple(_offer(entry) for entry in found["bundles"])
        if len({offer.id for offer in offers}) != len(offers):
            raise UntrustedSignature("bundles: the service lists two bundles under one identity")
        # A server chooses names: none of them may stand for an identity.
        named = {offer.name: offer for offer in offers if not _IDENTITY.fullmatch(offer.name)}
        self._offers = named | {offer.id: offer for offer in offers}
        return offers

    def offer(self, bundle: str | None) -> Steps[Offer]:
        """Return one bundle by identity or name, or by None where the key may ask one bundle only.

        Raises:
            UnknownName: no such bundle, or a choice among several.
        """
        if bundle is None or bundle not in self._offers:
            offers = yield from self.bundles()
            if bundle is None and len(offers) == 1:
                return offers[0]
            if bundle is None or bundle not in self._offers:
                known = ", ".join(repr(offer.name) for offer in offers[:8]) or "none"
                raise UnknownName(
                    f"bundle={bundle!r:.80}: expected one that this key may ask: {known}"
                )
        return self._offers[bundle]

    def card(self, bundle: str | None) -> Steps[dict[str, Any]]:
        """Return the guarantee card, as the service shows it."""
        offer = yield from self.offer(bundle)
        found = yield from self._get(f"/v1/bundles/{offer.id}/card")
        with _reading("card"):
            return dict(found["card"])

    def budget(self, *, subject: str | None, bundle: str | None) -> Steps[tuple[BudgetLine, ...]]:
        """Return the budgets that the key's requests count against."""
        asked = {"subject": subject, "bundle": bundle}
        query = urlencode({name: value for name, value in asked.items() if value})
        found = yield from self._get(f"/v1/budget{'?' if query else ''}{query}")
        with _reading("/v1/budget"):
            return tuple(
                BudgetLine(
                    {str(name): str(value) for name, value in line["scope"].items()},
                    str(line["statement"]),
                    *(
                        (float(line[part]["epsilon"]), float(line[part]["delta"]))
                        for part in ("granted", "spent", "left")
                    ),
                )
                for line in found["budgets"]
            )

    def preview(
        self, answers: int, *, subject: str | Sequence[str] | None, bundle: str | None
    ) -> Steps[Cost]:
        """Return what so many answers would cost. It is free."""
        answers = count(answers, name="answers")
        one, each = checked_subjects(subject, answers)
        offer = yield from self.offer(bundle)
        body: dict[str, Any] = {"subjects": list(each)} if each else {"answers": answers}
        if one is not None:
            body["subject"] = one
        call = json_post(f"/v1/bundles/{offer.id}/preview", body)
        values = value_of((yield from persistent(call, self.retries)))
        with _reading("preview"):
            largest = values["largest"]
            return Cost(
                int(values["answers"]),
                bool(values["fits"]),
                float(values["epsilon"]),
                float(values["delta"]),
                None if largest is None else int(largest),
                str(values["reason"]),
            )

    def receipt(self, identifier: str) -> Steps[Receipt]:
        """Return the receipt of an earlier answer, its signature checked where a key is trusted."""
        values = yield from self._get(f"/v1/receipts/{quote(identifier, safe='')}")
        with _reading("receipt"):
            receipt, signature = receipt_of(values["receipt"]), values["signature"]
        if receipt.identifier != identifier:
            raise UntrustedSignature("receipt: the service sent another receipt than was asked for")
        self._check(receipt, signature)
        return receipt

    def answers(
        self,
        X: Any,
        *,
        subject: str | Sequence[str] | None,
        bundle: str | None,
        rows_per_request: int | None,
        request: str | None,
    ) -> Steps[Answers]:
        """Return one answer for each row. A large table takes several requests.

        Every request has a key of its own, made from the name of the call. Before the first of
        several, one preview asks whether all of them fit.
        """
        cells, columns = arrow_columns(X) if self.arrow else json_cells(X)
        rows = len(cells[0] if self.arrow else cells)
        one, each = checked_subjects(subject, rows)
        name = request_name(request)
        offer = yield from self.offer(bundle)
        if offer.route == "free":
            raise InvalidInput(
                f"bundle={offer.name!r}: was paid for when it was fitted, and its answers have no "
                "receipt that could be checked; POST its rows with any client of HTTP"
            )
        if offer.route != "answers":
            raise InvalidInput(
                f"bundle={offer.name!r}: protects its input, and takes released values only; "
                "release on the device: Device(url, key, bundle=...)"
            )
        most = offer.most_rows if rows_per_request is None else count(rows_per_request, name="rows")
        size = min(most, offer.most_rows, ROWS_PER_REQUEST if rows_per_request is None else most)
        if rows > size:
            cost = yield from self.preview(rows, subject=subject, bundle=offer.id)
            if not cost.fits:
                raise BudgetExceeded(f"{cost.reason} Nothing was charged.")
        parts: list[Answers] = []
        for number, start in enumerate(range(0, rows, size)):
            part = slice(start, min(start + size, rows))
            about: dict[str, Any] = {} if one is None else {"subject": one}
            if each is not None:
                about["subjects"] = list(each[part])
            key = f"{name}-{number}"
            path, nonce = f"/v1/bundles/{offer.id}/answers", nonce_of(self.key, key)
            if self.arrow:
                named = offer.columns if columns is None else columns
                content = arrow_bytes([column[part] for column in cells], named, about)
                call = _post(path, content, ARROW, key=key, nonce=nonce)
            else:
                body = {"rows": cells[part]} | ({} if columns is None else {"columns": columns})
                call = json_post(path, body | about, key=key, nonce=nonce)
            try:
                parts.append((yield from self._answered(call, offer, part.stop - start, name)))
            except ReticentError as error:
                if start:
                    error.add_note(
                        f"{start} of {rows} rows were answered. The same call with "
                        f"request={name!r} goes on from there; they are not charged again."
                    )
                raise
            yield Advance(part.stop, rows)
        return joined(parts, rows=rows_of(X))

    def models(self) -> Steps[tuple[dict[str, Any], ...]]:
        """Return the models that learnt from released values."""
        found = yield from self._get("/v1/models")
        with _reading("/v1/models"):
            return tuple(
                {**entry, "id": str(entry["id"]), "bundle": str(entry["bundle"])}
                for entry in found["models"]
            )

    def predictions(
        self, model: str, values: Any, receipts: Sequence[str]
    ) -> Steps[tuple[str, list[Any]]]:
        """Return the bundle that a model learnt from, and its predictions for released values.
        It is free.
        """
        body: dict[str, Any] = {"values": values}
        if receipts:
            body["receipts"] = list(receipts)
        call = json_post(f"/v1/models/{quote(model, safe='')}/predictions", body)
        found = value_of((yield from persistent(call, self.retries)))
        with _reading("predictions"):
            return str(found["bundle"]), list(found["predictions"])

    def anchor(self) -> Steps[dict[str, Any]]:
        """Return the ledger's last position, signed."""
        found = yield from self._get("/v1/anchor")
        with _reading("/v1/anchor"):
            return dict(found)

    def file(self, bundle: str, name: str, *, most: int) -> Steps[bytes | None]:
        """Return a file of a bundle as bytes, or None where there is none.

        Raises:
            InvalidInput: the file is larger than ``most``.
        """
        path = f"/v1/bundles/{bundle}/files/{name}"
        reply = yield from persistent(Call("GET", path, most=most), self.retries)
        if reply.status == 404:
            return None
        return _checked(reply).content

    def _answered(self, call: Call, offer: Offer, rows: int, name: str) -> Steps[Answers]:
        hint = f"repeat the call with request={name!r}, which is charged once at most"
        reply = yield from persistent(call, self.retries, hint=hint)
        found = value_of(reply)
        with _reading("answers"):
            receipt, signature = receipt_of(found["receipt"]), found["signature"]
            values, withheld = values_of(found["answers"], found["withheld"], rows)
            columns = tuple(str(column) for column in found["columns"])
            reply_digest = answers_digest(
                found["salt"], offer.id, columns, found["answers"], found["withheld"]
            )
        asked_digest = request_digest(dict(call.headers)["Request-Nonce"], offer.id, call.content)
        if (receipt.request, receipt.reply) != (asked_digest, reply_digest):
            raise UntrustedSignature(
                f"receipt {receipt.identifier}: is of another request, or of other answers than "
                "came with it; they were changed on the way or by the service"
            )
        if (receipt.bundle, receipt.answers, receipt.seeded) != (offer.id, rows, False):
            raise UntrustedSignature(
                f"receipt {receipt.identifier}: is for another bundle or another number of rows "
                "than were asked about, or for seeded answers; keep it, and ask the service's owner"
            )
        if receipt.guarantee != offer.guarantee:
            raise UntrustedSignature(
                f"receipt {receipt.identifier}: states another guarantee than the bundle did"
            )
        self._check(receipt, signature)
        return Answers(
            values,
            withheld,
            receipt,
            columns,
            Rows(),
            receipts=(receipt,),
            verified=self.trusted_key is not None,
            replayed=int(reply.headers.get("idempotent-replayed", "") == "true"),
            request=name,
        )

    def _check(self, receipt: Receipt, signature: Any) -> None:
        if self.trusted_key is not None:
            written = None if signature is None else strict_dumps(signature)
            verify_receipt(receipt, written, trusted_key=self.trusted_key)

    def _get(self, path: str) -> Steps[Any]:
        return value_of((yield from persistent(Call("GET", path), self.retries)))


def checked_url(url: str, *, insecure: bool) -> str:
    """Return the address of a service without its last slash.

    Raises:
        InvalidParameter: no address of the web, or plain http to another machine.

    Example:
        >>> checked_url("http://127.0.0.1:8000/", insecure=False)
        'http://127.0.0.1:8000'
    """
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidParameter("url: expected an address such as https://answers.example.org")
    if parts.username or parts.password:
        raise InvalidParameter("url: expected no name or password in it; the key is an argument")
    if parts.scheme == "http" and not is_loopback(parts.hostname) and not insecure:
        raise InvalidParameter(
            f"url: expected https for {parts.hostname}, since the key and the rows could be read "
            "on the way; insecure=True allows http in a network of your own"
        )
    return url.rstrip("/")


def is_local(url: str) -> bool:
    """Return whether a service is on this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def request_name(given: str | None) -> str:
    """Return the name of a call, which begins the idempotency keys of its requests.

    Raises:
        InvalidParameter: not 8 to 100 of the characters that such a key may have.
    """
    if given is None:
        return token_hex(16)
    if not isinstance(given, str) or not _REQUEST_NAME.fullmatch(given):
        raise InvalidParameter(
            f"request: expected 8 to {LONGEST_REQUEST_NAME} letters, digits or any of -_.~+/="
        )
    return given


class _reading:  # noqa: N801  (reads as a statement)
    """Turn what a reply lacks into one error that says which reply it was."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if isinstance(error, KeyError | TypeError | AttributeError | OverflowError) or (
            isinstance(error, ValueError) and not isinstance(error, ReticentError)
        ):
            raise InvalidInput(
                f"{self.what}: the reply has not the fields that this version expects "
                f"({type(error).__name__}); compare the versions of service and client"
            ) from error


def _offer(entry: Any) -> Offer:
    texts = {name: entry[name] for name in ("id", "name", "system", "protects", "route")}
    if any(not isinstance(text, str) for text in texts.values()):
        raise TypeError("text")
    if not _IDENTITY.fullmatch(texts["id"]):
        raise ValueError("id")
    return Offer(
        **texts,
        subject=None if entry["subject"] is None else str(entry["subject"]),
        features=int(entry["features"]),
        columns=tuple(str(column) for column in entry["columns"] or ()),
        guarantee=Guarantee.from_dict(entry["guarantee"]),
        most_rows=count(entry["most_rows"], name="most_rows"),
        signed=bool(entry["signed"]),
        files=tuple(str(name) for name in entry["files"]),
    )


def nonce_of(api_key: str, idempotency_key: str) -> str:
    """Return the nonce of a request, 32 hexadecimal digits.

    It is the same whenever the request is repeated, and known to nobody else but the service.
    """
    told = b"reticent nonce\0" + idempotency_key.encode()
    return hmac.digest(api_key.encode(), told, "sha256")[:16].hex()


def json_post(path: str, body: Any, *, key: str | None = None, nonce: str | None = None) -> Call:
    """Return the call that posts ``body`` as JSON."""
    return _post(path, json_bytes(body), "application/json", key=key, nonce=nonce)


def _post(path: str, content: bytes, kind: str, *, key: str | None, nonce: str | None) -> Call:
    headers = [("Content-Type", kind)]
    if nonce is not None:
        headers.append(("Request-Nonce", nonce))
    if key is not None:
        headers.append(("Idempotency-Key", key))
    return Call("POST", path, tuple(headers), content)


def _checked(reply: Reply) -> Reply:
    if reply.status != 200:
        try:
            problem = loaded(reply.content)
        except ReticentError:
            problem = None
        raise error_of(reply.status, problem)
    return reply


def value_of(reply: Reply) -> Any:
    """Return the JSON value of a reply.

    Raises:
        ReticentError: the error that the reply stands for.
    """
    return loaded(_checked(reply).content)


Watch = Callable[[int, int], None]
"""Told after every request how many rows are done, and how many there are."""
