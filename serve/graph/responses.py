"""Responses with the answer to a query: `WholeAnswer` in one piece, `StreamedAnswer` piece by piece."""

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
from serve.backend import AnswerStream

__all__ = [
    "BACKSTOP_S",
    "CACHE",
    "Delivery",
    "Head",
    "KeptStream",
    "Limits",
    "StreamedAnswer",
    "WholeAnswer",
    "answer_head",
    "not_modified_head",
    "past_limit",
]

Head: TypeAlias = list[tuple[bytes, bytes]]  # names in small letters, and values
# Whoever keeps an answer has to ask, before showing it again, whether it still holds.
_SAME_FOR_ALL: Head = [(b"vary", b"Accept"), (b"cache-control", b"no-cache")]
_HEADS: dict[ResultFormat, Head] = {
    fmt: [(b"content-type", fmt.content_type.encode()), *_SAME_FOR_ALL] for fmt in ResultFormat
}

CACHE = "cache"  # where an answer comes from that nobody evaluated anew
BACKSTOP_S = 0.5  # past the time limit, when the reader should have ended the query
log = logging.getLogger(__name__)


def answer_head(fmt: ResultFormat, snapshot_index: int, tag: str | None = None) -> Head:
    """The headers that say what an answer is, with the entity tag where it has one."""
    head = [*_HEADS[fmt], (b"x-snapshot-index", b"%d" % snapshot_index)]
    if tag is not None:
        head.append((b"etag", tag.encode()))
    return head


def not_modified_head(snapshot_index: int, tag: str) -> Head:
    """The headers that say that what the client holds is what the answer would be."""
    return [*_SAME_FOR_ALL, (b"x-snapshot-index", b"%d" % snapshot_index), (b"etag", tag.encode())]


class WholeAnswer(Response):
    """An answer without anything to be looked up or encoded: a few microseconds less than its base class."""

    def __init__(self, head: Head, body: bytes | None, status_code: int = 200) -> None:
        """body None is none, as for HEAD; head is not to be used again."""
        self.status_code = status_code
        self.background = None
        self.body = body or b""
        self.raw_headers = head
        if body is not None:
            head.append((b"content-length", b"%d" % len(body)))


@dataclass(frozen=True, slots=True)
class Limits:
    """For one answer."""

    timeout_s: float  # from the request's arrival to the last byte
    deadline: float  # when that is, by the event loop's clock
    keep_bytes_max: int  # pieces are kept for later as long as they are no more than this; 0 is never
    work: str = "query"  # what an error calls it


@dataclass(slots=True)
class Delivery:
    """How far an answer has got."""

    stream: AnswerStream | None = None  # None while the query waits for a reader
    head_sent: bool = False
    is_whole: bool = False
    size: int = 0  # bytes handed to the server
    pieces: list[bytes] | None = None  # None where they are not to be kept, or too many


class StreamedAnswer(Response):
    """A 200 whose body comes piece by piece.

    An error before the first piece is raised as it is, so that it gets its own status. One after it ends the
    connection without the end of the body: a short answer never looks whole. A client that goes away, or is
    too slow, ends the query.
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

        ended hears once what became of it, before the client can see the end. length is in bytes, where it is
        known before.
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
        """Deliver, unless the client goes away, or the limit is past and the reader has not seen to it."""
        work = asyncio.create_task(self._deliver(send))
        gone = asyncio.create_task(client_gone(receive))
        left_s = self._limits.deadline + BACKSTOP_S - asyncio.get_running_loop().time()
        try:
            await asyncio.wait((work, gone), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()  # it closes the stream, and so ends the query
                await asyncio.wait((work,), timeout=BACKSTOP_S)
            if work.done() and not work.cancelled():
                return work.result()
            if gone.done():
                raise ClientDisconnect
            raise past_limit(self._limits.timeout_s, self._limits.work)
        except QueryTimeout:
            # the reader only knows how much of the limit was left to it
            raise past_limit(self._limits.timeout_s, self._limits.work) from None
        finally:
            work.cancel()
            gone.cancel()

    async def _deliver(self, send: Send) -> None:
        stream = self._delivery.stream = await self._start()
        try:
            await self._send_answer(stream, send)
        finally:
            stream.close()

    async def _send_answer(self, stream: AnswerStream, send: Send) -> None:
        """An answer of one piece has a Content-Length, so two are read before the head is sent."""
        first = await stream.read()
        second = None if first is None else await stream.read()
        head = self._make_head(stream)
        length = len(first or b"") if second is None else self._length
        if length is not None:
            head.append((b"content-length", b"%d" % length))
        self._delivery.head_sent = True
        await send({"type": "http.response.start", "status": self.status_code, "headers": head})
        if second is not None:
            await self._send(send, first or b"")
            await self._send(send, second)
            while (piece := await stream.read()) is not None:
                await self._send(send, piece)
            first = None
        stream.close()  # the reader is free, however slowly the client takes the rest
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
    """What to tell a client whose query, or other work of a reader, took longer than this."""
    return QueryTimeout(f"the {work} took longer than {timeout_s:g} s and was ended")


class KeptStream:
    """An answer that is there already, as if a reader made it: long ones go out at the client's pace too."""

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
        """Nothing is held."""
