"""``AsyncClient``: the client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from reticent.client.answers import Answers
from reticent.client.client import Connected, bar, small_headers
from reticent.client.sessions import BudgetLine, Cost, Offer, Watch
from reticent.client.steps import Call, Lost, Pause, Reply, Steps
from reticent.core.extras import require
from reticent.core.releases import Receipt

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class AsyncClient(Connected):
    """Ask a service for answers without blocking the event loop.

    Arguments, results and errors are those of ``Client``.

    Example:
        >>> import asyncio
        >>> async def address() -> str:
        ...     async with AsyncClient("http://127.0.0.1:1", "key-of-a-test") as client:
        ...         return client.url
        >>> asyncio.run(address())
        'http://127.0.0.1:1'

    See Also:
        reticent.client.Client: says what each method does.
    """

    def _open(self, library: Any, **options: Any) -> None:
        self._http: httpx.AsyncClient = library.AsyncClient(**options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def bundles(self) -> tuple[Offer, ...]:
        """See ``Client.bundles``."""
        return await self._run(self._session.bundles())

    async def card(self, bundle: str | None = None) -> dict[str, Any]:
        """See ``Client.card``."""
        return await self._run(self._session.card(bundle))

    async def budget(
        self, *, subject: str | None = None, bundle: str | None = None
    ) -> tuple[BudgetLine, ...]:
        """See ``Client.budget``."""
        return await self._run(self._session.budget(subject=subject, bundle=bundle))

    async def preview(
        self, answers: int, *, subject: str | Sequence[str] | None = None, bundle: str | None = None
    ) -> Cost:
        """See ``Client.preview``."""
        return await self._run(self._session.preview(answers, subject=subject, bundle=bundle))

    async def answers(
        self,
        X: Any,
        *,
        subject: str | Sequence[str] | None = None,
        bundle: str | None = None,
        rows_per_request: int | None = None,
        request: str | None = None,
        progress: bool = False,
    ) -> Answers:
        """See ``Client.answers``."""
        steps = self._session.answers(
            X,
            subject=subject,
            bundle=bundle,
            rows_per_request=rows_per_request,
            request=request,
        )
        with bar(progress) as watch:
            return await self._run(steps, watch)

    async def receipt(self, identifier: str) -> Receipt:
        """See ``Client.receipt``."""
        return await self._run(self._session.receipt(identifier))

    async def anchor(self) -> dict[str, Any]:
        """See ``Client.anchor``."""
        return await self._run(self._session.anchor())

    async def models(self) -> tuple[dict[str, Any], ...]:
        """See ``Client.models``."""
        return await self._run(self._session.models())

    async def predictions(
        self, model: str, values: Any, *, receipts: Sequence[str] = ()
    ) -> tuple[str, list[Any]]:
        """See ``Client.predictions``."""
        return await self._run(self._session.predictions(model, values, receipts))

    async def _run(self, steps: Steps[T], watch: Watch | None = None) -> T:
        outcome: Reply | Lost | None = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            outcome = None
            if isinstance(step, Call):
                outcome = await self._call(step)
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            elif watch is not None:
                watch(step.done, step.total)

    async def _call(self, call: Call) -> Reply | Lost:
        library = require("httpx", extra="client")
        request = self._http.build_request(
            call.method, call.path, headers=list(call.headers), content=call.content or None
        )
        try:
            response = await self._http.send(request, stream=True)
            try:
                content = bytearray()
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > call.most:
                        return Lost(f"a reply of more than {call.most} bytes")
                return Reply(response.status_code, small_headers(response), bytes(content))
            finally:
                await response.aclose()
        except library.HTTPError as error:
            return Lost(type(error).__name__)
