"""`/changes`: the changes of every write, in the order of the log, for as long as the client reads."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import orjson
from pyoxigraph import DefaultGraph, Literal, NamedNode
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from graphdb.errors import ChangesForgotten, GraphDBError, InvalidParameter
from graphdb.live.changes import ChangeFilter, LoggedChange, change_json, position_json
from graphdb.model import GraphName
from graphdb.rdf.patch import PATCH_TYPE, header_row, patch_rows
from graphdb.timestamps import iso_timestamp
from serve.access.request_scope import remaining_s, visibility_of
from serve.answers import STALL_S, AnswerBroken, client_gone
from serve.backend import Changes, ChangeStream, Progress
from serve.graph.query_parameters import refuse_as_of
from serve.negotiation import Offer, choose, parse_media_type
from serve.parameters import Parameters, read_graph_iri

__all__ = ["EVENTS", "NDJSON", "ChangesEndpoint"]

log = logging.getLogger(__name__)

NDJSON, EVENTS = "application/x-ndjson", "text/event-stream"
_OWN = "Last-Event-ID"
_POSITION_S = 5.0  # after this time without a line, a line reports how far the log was read
_CHUNK_BYTES = 65_536
_INDEX_MAX = (1 << 63) - 1


class _Lines(Protocol):
    """A format of the lines."""

    media_type: str

    def change(self, logged: LoggedChange) -> bytes: ...
    def position(self, index: int) -> bytes: ...
    def error(self, error: bytes) -> bytes: ...


class _JsonLines:
    media_type = NDJSON

    def change(self, logged: LoggedChange) -> bytes:
        return change_json(logged) + b"\n"

    def position(self, index: int) -> bytes:
        return position_json(index) + b"\n"

    def error(self, error: bytes) -> bytes:
        return error + b"\n"


_XSD = "http://www.w3.org/2001/XMLSchema#"


class _Patch:
    """RDF Patch. Each entry is a header and one transaction; a header alone is a position. One for each
    stream, because the pieces of an entry are one transaction.
    """

    media_type = PATCH_TYPE

    def __init__(self) -> None:
        self._is_open = False  # the transaction of the entry that is being written

    def change(self, logged: LoggedChange) -> bytes:
        rows = [] if self._is_open else [self.position(logged.index), _time_row(logged), b"TX .\n"]
        rows += patch_rows(logged.change)
        if logged.is_last:
            rows.append(b"TC .\n")
        self._is_open = not logged.is_last
        return b"".join(rows)

    def position(self, index: int) -> bytes:
        return header_row("index", str(Literal(index)))

    def error(self, error: bytes) -> bytes:
        aborted = b"TA .\n" if self._is_open else b""
        return aborted + header_row("error", str(Literal(error.decode())))


def _time_row(logged: LoggedChange) -> bytes:
    time = Literal(iso_timestamp(logged.timestamp_ms), datatype=NamedNode(_XSD + "dateTime"))
    return header_row("timestamp", str(time))


class _Events:
    """Only the last piece of an entry has an id, so that none is lost if the stream ends before it. An id
    alone is not an event; a browser resumes from it.
    """

    media_type = EVENTS

    def change(self, logged: LoggedChange) -> bytes:
        event_id = b"id: %d\n" % logged.index if logged.is_last else b""
        return event_id + b"data: " + change_json(logged) + b"\n\n"

    def position(self, index: int) -> bytes:
        return b"id: %d\n\n" % index

    def error(self, error: bytes) -> bytes:
        return b"event: error\ndata: " + error + b"\n\n"


_OFFERS: tuple[Offer[Callable[[], _Lines]], ...] = (
    Offer(parse_media_type(NDJSON), _JsonLines),
    Offer(parse_media_type("application/json"), _JsonLines),
    Offer(parse_media_type(EVENTS), _Events),
    Offer(parse_media_type(PATCH_TYPE), _Patch),
)


class ChangesEndpoint:
    """GET /changes."""

    def __init__(self, progress: Progress, changes: Changes, timeout_s: float) -> None:
        """timeout_s: how long a request waits until the node has reached the index in `since`."""
        self._progress, self._changes, self._timeout_s = progress, changes, timeout_s
        self.open_count = 0  # open streams

    async def get(self, request: Request) -> Response:
        """The changes after `since`, then new ones, unless `follow` is false."""
        lines = choose(request.headers.get("accept"), _OFFERS).value()
        parameters = Parameters(request.scope["query_string"])
        refuse_as_of(parameters, "the past is not followed; changes of the past are those after since")
        wanted = _Wanted(_since(request, parameters), _filter(parameters), _follow(parameters))
        if request.method == "HEAD":
            return Response(headers=_headers(lines, None))
        stream = await self._changes.live(visibility_of(request.scope)).follow_changes(
            wanted.since, self._timeout_s
        )
        until = None if wanted.follow else self._progress.snapshot_index()
        return _ChangesAnswer(stream, lines, wanted, until, self._count)

    def _count(self, more: int) -> None:
        self.open_count += more


@dataclass(frozen=True, slots=True)
class _Wanted:
    since: int | None
    filter: ChangeFilter
    follow: bool


def _since(request: Request, parameters: Parameters) -> int | None:
    """Last-Event-ID, which a browser sends when it reconnects, is newer than `since` in the URL."""
    for name, text in ((_OWN, request.headers.get(_OWN)), ("since", parameters.one("since"))):
        if text:
            if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= _INDEX_MAX):
                raise InvalidParameter(name, f"{text[:100]!r} is not a log index")
            return int(text)
    if "since" in parameters:
        raise InvalidParameter("since", "is empty")
    return None


def _filter(parameters: Parameters) -> ChangeFilter:
    graphs: set[GraphName] = {read_graph_iri("graph", text) for text in parameters.many("graph")}
    if "default" in parameters:
        if parameters.one("default"):
            raise InvalidParameter("default", "takes no value")
        graphs.add(DefaultGraph())
    predicates = frozenset(read_graph_iri("predicate", text).value for text in parameters.many("predicate"))
    return ChangeFilter(frozenset(graphs) or None, predicates or None)


def _follow(parameters: Parameters) -> bool:
    text = parameters.one("follow")
    if text not in (None, "true", "false"):
        raise InvalidParameter("follow", "is true or false")
    return text != "false"


def _headers(lines: _Lines, since: int | None) -> dict[str, str]:
    headers = {"Content-Type": lines.media_type, "Cache-Control": "no-store", "Vary": "Accept"}
    return headers if since is None else headers | {"X-Snapshot-Index": str(since)}


class _ChangesAnswer(Response):
    """Reads further changes only when the client has read the earlier ones, so a slow client takes little
    memory. A client that reads nothing for a minute is disconnected.
    """

    def __init__(
        self,
        stream: ChangeStream,
        lines: _Lines,
        wanted: _Wanted,
        until: int | None,
        count: Callable[[int], None],
    ) -> None:
        """until: the index after which the answer ends; None: never. count is called with 1 and -1."""
        super().__init__(headers=_headers(lines, stream.through))
        del self.headers["content-length"]
        self._stream, self._lines, self._wanted, self._until = stream, lines, wanted, until
        self._count = count
        self._told_index = stream.through
        self._unfinished = False  # the last piece sent was not the last of its entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._deliver(send))
        gone = asyncio.create_task(client_gone(receive))
        self._count(1)
        try:
            done, _ = await asyncio.wait(
                (work, gone), timeout=remaining_s(scope), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise AnswerBroken("the credentials of a reader of changes have ended")
            if work.done():
                work.result()
        except ClientDisconnect:
            log.debug("a reader of changes went away")
        except TimeoutError:
            raise AnswerBroken("a reader of changes took nothing for too long") from None
        finally:
            self._count(-1)
            self._stream.close()
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _deliver(self, send: Send) -> None:
        head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(head)
        # tells the client at once from which index changes are reported
        await self._send(send, self._position(self._stream.through))
        try:
            await self._tell(send)
        except ChangesForgotten as error:
            told = {"code": "resnapshot", "message": str(error), "first_index": error.first_index}
            await self._send(send, self._lines.error(orjson.dumps({"error": told})))
        except GraphDBError as error:
            raise AnswerBroken(f"the changes broke off: {error}") from error
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        told_at = clock()
        until = self._until
        while until is None or self._stream.through < until:
            changes = await self._stream.read(_POSITION_S)
            if changes is None:
                return
            if await self._tell_changes(send, changes):
                told_at = clock()
            elif clock() - told_at >= _POSITION_S:
                await self._send(send, self._position(self._stream.through))
                told_at = clock()
        if self._told_index < self._stream.through:
            await self._send(send, self._position(self._stream.through))

    async def _tell_changes(self, send: Send, changes: list[LoggedChange]) -> bool:
        """Whether any of them matched the filter."""
        chunk = bytearray()
        told = False
        for number, logged in enumerate(changes):
            part = self._wanted.filter.part_of(logged.change)
            if not part and not (self._unfinished and logged.is_last):
                continue
            told, self._unfinished = True, not logged.is_last
            chunk += self._lines.change(LoggedChange(logged.index, logged.timestamp_ms, part, logged.is_last))
            self._told_index = logged.index
            if len(chunk) >= _CHUNK_BYTES:
                await self._send(send, bytes(chunk))
                chunk.clear()
            elif number % 500 == 499:
                await asyncio.sleep(0)
        if chunk:
            await self._send(send, bytes(chunk))
        return told

    def _position(self, index: int) -> bytes:
        self._told_index = index
        return self._lines.position(index)

    async def _send(self, send: Send, body: bytes) -> None:
        async with asyncio.timeout(STALL_S):
            await send({"type": "http.response.body", "body": body, "more_body": True})
