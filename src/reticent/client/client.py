"""``Client``: answers of a service, charged once however often the network fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from reticent.client.answers import Answers
from reticent.client.sessions import BudgetLine, Cost, Offer, Session, Watch, is_local
from reticent.client.steps import Call, Lost, Pause, Reply, Retries, Steps
from reticent.core.extras import require
from reticent.core.releases import Receipt

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

T = TypeVar("T")

TIMEOUT = 60.0
"""Seconds that one request may take."""


class Plain:
    """Carry out the steps of a conversation over ``_http``, one after the other."""

    _http: httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def _run(self, steps: Steps[T], watch: Watch | None = None) -> T:
        outcome: Reply | Lost | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            outcome = None
            if isinstance(step, Call):
                outcome = self._call(step)
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            elif watch is not None:
                watch(step.done, step.total)

    def _call(self, call: Call) -> Reply | Lost:
        library = require("httpx", extra="client")
        request = self._http.build_request(
            call.method, call.path, headers=list(call.headers), content=call.content or None
        )
        try:
            with closing(self._http.send(request, stream=True)) as response:
                content = bytearray()
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > call.most:
                        return Lost(f"a reply of more than {call.most} bytes")
                return Reply(response.status_code, small_headers(response), bytes(content))
        except library.HTTPError as error:
            return Lost(type(error).__name__)


class Connected:
    """The common part of both clients: a session, and connections that ``_open`` makes.

    Args:
        url, key, trusted_key, retries, timeout, insecure, proxy, arrow: the arguments of
            ``Client``.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        trusted_key: str | Path | None = None,
        retries: Retries | None = None,
        timeout: float = TIMEOUT,
        insecure: bool = False,
        proxy: str | None = None,
        arrow: bool = False,
    ) -> None:
        self._session = Session(
            url,
            key,
            trusted_key=trusted_key,
            retries=Retries() if retries is None else retries,
            insecure=insecure,
            arrow=arrow,
        )
        library = require("httpx", extra="client")
        # A proxy of the environment would see key and rows in plain, and knows no way back here.
        secret = urlsplit(self.url).scheme == "https" and not is_local(self.url)
        self._open(
            library,
            base_url=self.url,
            headers=self._session.headers,
            timeout=timeout,
            trust_env=secret and proxy is None,
            proxy=proxy,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._session.url

    def _open(self, library: Any, **options: Any) -> None:
        raise NotImplementedError


class Client(Plain, Connected):
    """Ask a service for answers, and for what they cost.

    Every request has an idempotency key, and so have all its repetitions. The client asks again if
    a connection breaks, or the service is busy or still answering. It gets the answer that was
    drawn and charged the first time.

    Args:
        url: address of the service: https, or http on this machine.
        key: API key, as ``reticent keys create`` printed it.
        trusted_key: file with the service's public key. Every receipt must then be signed by it.
            None believes the service.
        retries: number of times that a request is repeated.
        timeout: seconds that one request may take, above 0.
        insecure: whether to allow plain http to other machines, in a network of your own.
        proxy: address of a proxy for every request. None takes what the environment names
            (``HTTPS_PROXY``), and none for plain http or for a service on this machine.
        arrow: whether ``answers`` sends rows as an Arrow stream, which takes less time where they
            have many columns. It needs the extra ``arrow``, and repeats only what was sent so.

    Example:
        >>> with Client("http://127.0.0.1:1", "key-of-a-test") as client:
        ...     print(client.url)
        http://127.0.0.1:1

    See Also:
        reticent.client.AsyncClient: the same for asyncio.
        reticent.client.Device: where the row itself must not leave the device.
    """

    def _open(self, library: Any, **options: Any) -> None:
        self._http = library.Client(**options)

    def bundles(self) -> tuple[Offer, ...]:
        """Return the bundles that this key may ask.

        Raises:
            NotAuthenticated: the key is unknown, has expired or was revoked.
            ServiceUnreachable: nothing answers there.
        """
        return self._run(self._session.bundles())

    def card(self, bundle: str | None = None) -> dict[str, Any]:
        """Return the guarantee of a bundle in plain words, as ``GuaranteeCard.to_dict`` has it.

        Args:
            bundle: identity or name, or None where the key may ask one bundle only.

        Raises:
            UnknownName: no such bundle, or a choice among several.
        """
        return self._run(self._session.card(bundle))

    def budget(
        self, *, subject: str | None = None, bundle: str | None = None
    ) -> tuple[BudgetLine, ...]:
        """Return the budgets that this key's requests count against.

        Args:
            subject, bundle: names that the budgets must agree with, or None for all.
        """
        return self._run(self._session.budget(subject=subject, bundle=bundle))

    def preview(
        self, answers: int, *, subject: str | Sequence[str] | None = None, bundle: str | None = None
    ) -> Cost:
        """Return what so many answers would cost now. It is free, and promises nothing.

        Args:
            answers: number of rows, at least 1.
            subject: the name or names to charge, as ``answers`` takes them.
            bundle: identity or name, or None where the key may ask one bundle only.
        """
        return self._run(self._session.preview(answers, subject=subject, bundle=bundle))

    def answers(
        self,
        X: Any,
        *,
        subject: str | Sequence[str] | None = None,
        bundle: str | None = None,
        rows_per_request: int | None = None,
        request: str | None = None,
        progress: bool = False,
    ) -> Answers:
        """Return one answer for each row, charged to its subject.

        Args:
            X: rows, as a data frame of pandas, polars or pyarrow, whose columns the service finds
                by name, or as an array, shape (n, columns).
            subject: name of whoever's privacy is spent, one for all rows or one for each. None
                where the bundle itself names the data set that it protects.
            bundle: identity or name, or None where the key may ask one bundle only.
            rows_per_request: rows of one request at most. A larger table takes several requests,
                each charged by itself. None for 1,000, or less where the service says so.
            request: name of the call, 8 to 100 letters, digits or -_.~+/=. The same call under the
                same name again is answered with the same bytes, and charged once. None for a random
                one, which is in ``Answers.request`` and in the message of an error.
            progress: whether a bar is shown on standard error.

        Returns:
            Values, which of them are withheld, and signed receipts. ``to_frame`` gives a frame of
            the library and with the index of X.

        Raises:
            InvalidInput: the rows or subjects cannot be used. Nothing is charged.
            BudgetExceeded: the request does not fit. Where a table took several requests, rows of
                the earlier ones are answered and paid for. The error's note says how to get them.
            NotAuthenticated, NotPermitted: the service does not accept the key for this.
            AnswerLost: the service was stopped between charge and answer. The charge stays.
            ServiceBusy, ServiceUnreachable, LedgerUnavailable: all attempts failed.
            UntrustedSignature: a receipt that is not signed by ``trusted_key``, or is for something
                else than was asked.
        """
        steps = self._session.answers(
            X,
            subject=subject,
            bundle=bundle,
            rows_per_request=rows_per_request,
            request=request,
        )
        with bar(progress) as watch:
            return self._run(steps, watch)

    def receipt(self, identifier: str) -> Receipt:
        """Return the receipt of an earlier answer to this key's principal.

        Raises:
            UnknownName: no receipt has that name.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        return self._run(self._session.receipt(identifier))

    def anchor(self) -> dict[str, Any]:
        """Return the ledger's last position with its signature, at most a minute old, for
        auditors.
        """
        return self._run(self._session.anchor())

    def offer(self, bundle: str | None = None) -> Offer:
        """Return one bundle by identity or name, or by None where the key may ask one bundle
        only.
        """
        return self._run(self._session.offer(bundle))

    def file(self, bundle: str, name: str, *, most: int) -> bytes | None:
        """Return a file of a public bundle as bytes, or None where it has none of that name.

        Args:
            bundle: the bundle's identity.
            name: one of ``Offer.files``.
            most: bytes at most.
        """
        return self._run(self._session.file(bundle, name, most=most))

    def models(self) -> tuple[dict[str, Any], ...]:
        """Return the models that learnt from released values, and that this key may ask."""
        return self._run(self._session.models())

    def predictions(
        self, model: str, values: Any, *, receipts: Sequence[str] = ()
    ) -> tuple[str, list[Any]]:
        """Return a model's predictions, and the bundle whose released values it learnt from. It is
        free.

        Args:
            model: identity or name.
            values: released values, a list of numbers or a label for each row, None where withheld.
            receipts: identifiers of the receipts of these values, which are not checked.
        """
        return self._run(self._session.predictions(model, values, receipts))


@contextmanager
def bar(shown: bool) -> Iterator[Watch | None]:
    """Return a progress bar on standard error, or nothing."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("rows", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def small_headers(response: httpx.Response) -> dict[str, str]:
    """Return headers by their name in small letters."""
    return {name.lower(): value for name, value in response.headers.items()}
