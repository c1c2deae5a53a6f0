"""`BegunAnswer`: the answer to a query that was begun within the call that received its request, without a
task: sent as it comes if it is short, otherwise streamed as any other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from serve.backend import AnswerOrigin, AnswerStream
from serve.graph.responses import (
    BACKSTOP_S,
    Delivery,
    Head,
    Limits,
    StreamedAnswer,
    past_limit,
)
from serve.port.application import LaterAnswer, WholeAnswer
from serve.routing import Responding

__all__ = ["BegunAnswer"]

Start: TypeAlias = Callable[[], Awaitable[AnswerStream]]


class BegunAnswer(LaterAnswer):
    """The `serve.backend.QueryOutcome` of one query. Used on the port's event loop."""

    __slots__ = ("_end", "_ended", "_expiry", "_limits", "_make_head", "_request", "_responding")

    def __init__(
        self,
        request: Request,
        head: Callable[[AnswerOrigin], Head],
        limits: Limits,
        ended: Callable[[Delivery, BaseException | None], None],
        responding: Responding,
    ) -> None:
        """head, limits and ended as those of a `StreamedAnswer`; responding sends one, or answers its
        failure.
        """
        super().__init__()
        self._request, self._make_head, self._limits = request, head, limits
        self._ended, self._responding = ended, responding
        self._end: Callable[[], None] | None = None  # until it is known what becomes of the query
        self._expiry: asyncio.TimerHandle | None = None

    def has_begun(self, end: Callable[[], None]) -> None:
        """end is what `GraphReads.begin_query` has returned."""
        self._end = end
        # the backend keeps to the time limit, unless something is wrong with it
        self._expiry = asyncio.get_running_loop().call_at(self._limits.deadline + BACKSTOP_S, self._expire)

    def answered(self, origin: AnswerOrigin, body: bytes) -> None:
        """See `serve.backend.QueryOutcome`."""
        if self._known() is None:
            return
        pieces = [body] if body and len(body) <= self._limits.keep_bytes_max else None
        self._ended(Delivery(origin, head_sent=True, is_whole=True, size=len(body), pieces=pieces), None)
        self.reply(WholeAnswer(self._make_head(origin), body))

    def goes_on(self, start: Start) -> None:
        """See `serve.backend.QueryOutcome`."""
        if self._known() is None:
            return

        async def handler(_request: Request) -> Response:
            return StreamedAnswer(start, self._make_head, self._limits, self._ended)

        self.deliver(self._request.scope, self._responding(handler))

    def set(self) -> None:
        """If the client has gone, the query ends."""
        if self.disconnected and (end := self._known()) is not None:
            end()
            self._ended(Delivery(), ClientDisconnect())

    def _expire(self) -> None:
        assert self._end is not None, "what became of it is known"
        self._end()
        self.goes_on(self._is_late)

    async def _is_late(self) -> AnswerStream:
        raise past_limit(self._limits.timeout_s, self._limits.work)

    def _known(self) -> Callable[[], None] | None:
        """What ends the query, for who comes first; None for everybody after."""
        end, self._end = self._end, None
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        return end
