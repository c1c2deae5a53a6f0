"""Responses with the answer to a query: the heads, and `StreamedAnswer`, which sends it piece by piece."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphdb.errors import QueryTimeout
from graphdb.sparql.results import ResultFormat
from serve.answers import AnswerBroken, client_gone
from serve.backend import AnswerOrigin, AnswerStream
from serve.graph.reading_ahead import ReadAhead, SpoolRoom

__all__ = [
    "BACKSTOP_S",
    "CACHE",
    "HERE",
    "Delivery",
    "Head",
    "KeptStream",
    "Limits",
    "StreamedAnswer",
    "answer_head",
    "not_modified_head",
    "past_limit",
]

Head: TypeAlias = list[tuple[bytes, bytes]]  # names in lower case, and values
# A cache has to revalidate an answer before it uses it again.
_SAME_FOR_ALL: Head = [(b"vary", b"Accept"), (b"cache-control", b"no-cache")]
_HEADS: dict[ResultFormat, Head] = {
    fmt: [(b"content-type", fmt.content_type.encode()), *_SAME_FOR_ALL] for fmt in ResultFormat
}

CACHE, HERE = "cache", "at once"  # `where` of an answer from the result cache, and of one of the event loop
BACKSTOP_S = 0.5  # after the time limit the port ends the query, if the reader has not
log = logging.getLogger(__name__)


def answer_head(
    fmt: ResultFormat, snapshot_index: int, tag: str | None = None, where: str | None = None
) -> Head:
    """The headers of an answer; with its entity tag, if it has one, and where it was made."""
    head = [*_HEADS[fmt], (b"x-snapshot-index", b"%d" % snapshot_index)]
    if where is not None:
        head.append((b"x-evaluated", where.encode("latin-1")))
    if tag is not None:
        head.append((b"etag", tag.encode()))
    return head


def not_modified_head(snapshot_index: int, tag: str) -> Head:
    """The headers of a 304."""
    return [*_SAME_FOR_ALL, (b"x-snapshot-index", b"%d" % snapshot_index), (b"etag", tag.encode())]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one answer."""

    timeout_s: float  # from the request's arrival to the last byte
    deadline: float  # when that is, by the event loop's clock
    keep_bytes_max: int  # pieces are kept for the cache up to this size; 0 is never
    work: str = "query"  # its name in error messages
    room: SpoolRoom | None = None  # for what the client is slow to read; None: the answer waits for it


@dataclass(slots=True)
class Delivery:
    """The progress of an answer."""

    stream: AnswerOrigin | None = None  # None while the query waits for a reader
    head_sent: bool = False
    is_whole: bool = False
    size: int = 0  # bytes handed to the server
    pieces: list[bytes] | None = None  # None if they are not kept, or too large


class StreamedAnswer(Response):
    """A 200 whose body is sent piece by piece.

    An error before the first piece is raised, so that it gets its own status. An error after it closes the
    connection before the end of the body, so that a truncated answer never looks complete. If the client
    disconnects, or is too slow, the query is ended.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[AnswerStream]],
        head: Callable[[AnswerStream], Head],
        limits: Limits,
        ended: Callable[[Delivery, BaseException | None], None],
        length: int | None = None,
    ) -> None:
        """start begins the query, head makes the headers of its answer.

        ended is called once with the outcome, before the client receives the end of the answer. length: of
        the body in bytes, if it is known in advance.
        """
        super().__init__()
        self._start, self._make_head, self._limits, self._ended = start, head, limits, ended
        self._length = length
        self._delivery = Delivery(pieces=[] if limits.keep_bytes_max else None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        failure: BaseException | None = None
        try:
            await self._deliver_in_time(receive, send)
        except ClientDisconnect as error:
            failure = error
            log.debug("a client went away before its answer was complete")
        except Exception as error:
            failure = error
            if self._delivery.head_sent:
                raise AnswerBroken(f"the answer broke off: {error}") from error
            raise
        except BaseException as error:
            failure = error
            raise
        finally:
            if not self._delivery.is_whole:
                self._ended(self._delivery, failure)

    async def _deliver_in_time(self, receive: Receive, send: Send) -> None:
        """Deliver, unless the client disconnects or the time limit is exceeded."""
        work = asyncio.create_task(self._deliver(send))
        gone = asyncio.create_task(client_gone(receive))
        left_s = self._limits.deadline + BACKSTOP_S - asyncio.get_running_loop().time()
        try:
            await asyncio.wait((work, gone), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()  # this closes the stream, which ends the query
                await asyncio.wait((work,), timeout=BACKSTOP_S)
            if work.done() and not work.cancelled():
                return work.result()
            if gone.done():
                raise ClientDisconnect
            raise past_limit(self._limits.timeout_s, self._limits.work)
        except QueryTimeout:
            # the reader knows only its part of the time limit
            raise past_limit(self._limits.timeout_s, self._limits.work) from None
        finally:
            work.cancel()
            gone.cancel()

    async def _deliver(self, send: Send) -> None:
        stream = self._delivery.stream = await self._start()
        room = None if isinstance(stream, KeptStream) else self._limits.room
        pieces: AnswerStream | ReadAhead = stream if room is None else ReadAhead(stream, room)
        try:
            await self._send_answer(stream, pieces, send)
        finally:
            pieces.close()

    async def _send_answer(self, stream: AnswerStream, pieces: AnswerStream | ReadAhead, send: Send) -> None:
        """An answer of one piece has a Content-Length, so two pieces are read before the head is sent."""
        first = await pieces.read()
        second = None if first is None else await pieces.read()
        head = self._make_head(stream)
        length = len(first or b"") if second is None else self._length
        if length is not None:
            head.append((b"content-length", b"%d" % length))
        self._delivery.head_sent = True
        await send({"type": "http.response.start", "status": self.status_code, "headers": head})
        if second is not None:
            await self._send(send, first or b"")
            await self._send(send, second)
            while (piece := await pieces.read()) is not None:
                await self._send(send, piece)
            first = None
        pieces.close()  # releases the reader, even if the client reads the rest slowly
        await self._send(send, first or b"", is_last=True)

    async def _send(self, send: Send, piece: bytes, *, is_last: bool = False) -> None:
        self._note(piece)
        if is_last:
            self._delivery.is_whole = True
            self._ended(self._delivery, None)
        await send({"type": "http.response.body", "body": piece, "more_body": not is_last})

    def _note(self, piece: bytes) -> None:
        delivery = self._delivery
        delivery.size += len(piece)
        if delivery.size > self._limits.keep_bytes_max:
            delivery.pieces = None
        elif delivery.pieces is not None and piece:
            delivery.pieces.append(piece)


def past_limit(timeout_s: float, work: str = "query") -> QueryTimeout:
    """The error for a query, or other work of a reader, that exceeded its time limit."""
    return QueryTimeout(f"the {work} took longer than {timeout_s:g} s and was ended")


class KeptStream:
    """A cached answer as an `AnswerStream`, so that long ones are also sent at the client's pace."""

    query_id = ""
    is_exact = True
    where = CACHE

    def __init__(self, pieces: Iterable[bytes], snapshot_index: int) -> None:
        self.snapshot_index = snapshot_index
        self._pieces = iter(pieces)

    async def read(self) -> bytes | None:
        """See `AnswerStream`."""
        return next(self._pieces, None)

    def close(self) -> None:
        """Nothing to release."""
