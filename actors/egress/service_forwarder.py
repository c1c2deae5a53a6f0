"""`ServiceForwarder`: performs SERVICE for the engine, whose own client checks nothing and knows no limits.

The engine is given addresses on loopback in place of the endpoints. What it sends there goes to the endpoint
by a `GuardedFetch`, and the answer comes back whole or as a failure. An address holds for one query, and
nobody can guess it.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import uvicorn
from pyoxigraph import QueryResultsFormat, QuerySolutions, parse_query_results

from actors.egress.guarded_fetch import Bounds, Call, Fetched, GuardedFetch
from actors.egress.rules import HostRules
from graphdb.config.service import Security
from graphdb.errors import EvaluationFailed, GraphDBError, HostNotAllowed, RdfSyntaxError
from graphdb.planning.engine_text import is_silent
from graphdb.rdf.guards import Guard, JsonDepthGuard, XmlGuard

__all__ = ["CALLS_MAX", "ServiceCalls", "ServiceForwarder", "service_fetch"]

CALLS_MAX = 100  # of one query; an answer that is kept is not asked for again
_QUERY_BYTES_MAX = 4 << 20  # of what the engine sends to an endpoint
_CHUNK_BYTES = 65_536  # checked at a time: a regular expression lets no other thread run
_PASSED_ON = ("accept", "content-type")  # of the engine's headers
# Before the engine's parsers see an answer, which overflow their stack at some thousand nested triple terms.
_GUARDS: dict[QueryResultsFormat, type[Guard]] = {
    QueryResultsFormat.JSON: JsonDepthGuard,
    QueryResultsFormat.XML: XmlGuard,
}


def service_fetch(security: Security) -> GuardedFetch:
    """What calls endpoints, by these settings."""
    return GuardedFetch(
        HostRules("SERVICE", security.service_allow),
        Bounds(
            security.service_timeout_seconds,
            "security.service_timeout_seconds",
            security.service_max_bytes,
            "security.service_max_bytes",
        ),
    )


class ServiceForwarder:
    """A server on loopback, on the event loop that starts it. Where no host is allowed, there is none."""

    def __init__(self, fetch: GuardedFetch, timeout_s: float) -> None:
        """timeout_s is for the calls of one query together; one call has the bounds of fetch."""
        self._fetch = fetch
        self._timeout_s = timeout_s
        self._endpoints: dict[str, _Endpoint] = {}  # by path
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._port = 0

    async def start(self) -> None:
        """Listen, if any host is allowed."""
        if not self._fetch.rules:
            return
        listening = socket.create_server(("127.0.0.1", 0))
        self._port = listening.getsockname()[1]
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        await self._server.ready.wait()

    async def close(self) -> None:
        """Stop listening; calls under way are ended."""
        for endpoint in tuple(self._endpoints.values()):
            endpoint.calls.close()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving

    def open(self, services: Mapping[str, str]) -> "ServiceCalls":
        """Addresses for the endpoints of one query, by the placeholders that stand for them in its text.

        The caller closes it, on the event loop.
        """
        base = f"http://127.0.0.1:{self._port}"
        return ServiceCalls(self._fetch, self._timeout_s, self._endpoints, base, services)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application."""
        endpoint = self._endpoints.get(scope["path"])
        if endpoint is None:
            await _answer(send, 404, "text/plain", b"nothing is here")
            return
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in scope["headers"]
            if name.decode("latin-1") in _PASSED_ON
        )
        body = await _body(receive)
        try:
            fetched = await endpoint.call(Call(endpoint.url, scope["method"], headers, body))
        except (EvaluationFailed, HostNotAllowed) as error:
            await _answer(send, 502, "text/plain; charset=utf-8", str(error).encode())
        else:
            await _answer(send, 200, fetched.content_type, fetched.body)


class ServiceCalls:
    """The calls of one query. The engine evaluates a query on one thread, so they come one after another.

    An answer is kept while the query runs, for the engine asks again for each row where SERVICE stands in
    EXISTS: the endpoint is asked once, and the query sees one state of it.

    failure is set once the query can have no right answer: by a call that failed, unless it is SILENT, and
    by one that was refused. The engine may go on nevertheless, for it takes an error in EXISTS for a no.
    """

    def __init__(
        self,
        fetch: GuardedFetch,
        timeout_s: float,
        paths: "dict[str, _Endpoint]",
        base: str,
        services: Mapping[str, str],
    ) -> None:
        """Made by `ServiceForwarder.open`. base is the forwarder's URL, paths what it serves."""
        self.failure: EvaluationFailed | HostNotAllowed | None = None
        self._fetch = fetch
        self._paths = paths
        self._own = {
            f"/{secrets.token_urlsafe(24)}": _Endpoint(self, placeholder, url)
            for placeholder, url in services.items()
        }
        self._locals = {base + path: endpoint for path, endpoint in self._own.items()}
        paths.update(self._own)
        self._kept: dict[tuple[str, bytes], Fetched | EvaluationFailed | HostNotAllowed] = {}
        self._bytes_left = fetch.bounds.bytes_max
        self._calls_left = CALLS_MAX
        self._seconds_left = timeout_s
        self._under_way: set[asyncio.Task[Fetched]] = set()

    def text_for_engine(self, text: str) -> str:
        """A query with these addresses in the place of the placeholders."""
        for local, endpoint in self._locals.items():
            text = text.replace(f"<{endpoint.placeholder}>", f"<{local}>")
        return text

    def explained(self, error: GraphDBError) -> GraphDBError:
        """What to say of a query that failed so: the failure of a call, and no address of the forwarder."""
        if self.failure is not None:
            return self.failure
        if not isinstance(error, EvaluationFailed):
            return error
        reason = error.reason
        for local, endpoint in self._locals.items():
            reason = reason.replace(local, endpoint.url)
        return EvaluationFailed(reason)

    def close(self) -> None:
        """The addresses hold no longer. Closing twice is allowed."""
        for path in self._own:
            self._paths.pop(path, None)
        for call in self._under_way:
            call.cancel()

    def __enter__(self) -> "ServiceCalls":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def call(self, call: Call) -> Fetched:
        """The answer of the endpoint, 200 and in a form that the engine reads.

        Raises HostNotAllowed, EvaluationFailed, which name the endpoint.
        """
        key = (call.url, call.body)
        kept = self._kept.get(key)
        if kept is None:
            try:
                kept = await self._call(call)
            except (EvaluationFailed, HostNotAllowed) as error:
                kept = error
            size = len(kept.body) if isinstance(kept, Fetched) else 0
            if size <= self._bytes_left:
                self._bytes_left -= size
                self._kept[key] = kept
        if isinstance(kept, Fetched):
            return kept
        raise kept

    async def _call(self, call: Call) -> Fetched:
        if self._calls_left == 0:
            raise _failed(call, f"the query has made {CALLS_MAX} calls already")
        if len(call.body) > _QUERY_BYTES_MAX:
            raise _failed(call, f"the query for it is larger than {_QUERY_BYTES_MAX} bytes")
        self._calls_left -= 1
        fetched = await self._fetched(call)
        fault = await asyncio.to_thread(_fault, fetched)
        if fault is not None:
            raise _failed(call, fault)
        return fetched

    async def _fetched(self, call: Call) -> Fetched:
        """The answer, unless close() comes before it."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        task = asyncio.create_task(self._fetch.fetch(call))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.wait({task}, timeout=self._seconds_left)
        self._seconds_left = max(0.0, self._seconds_left - (clock() - begun))
        if not task.done():
            task.cancel()
            raise _failed(call, "the calls of the query have taken too long (server.query_timeout_seconds)")
        if task.cancelled():
            raise _failed(call, "the query has ended")
        return task.result()


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One endpoint of one query."""

    calls: ServiceCalls
    placeholder: str
    url: str

    async def call(self, call: Call) -> Fetched:
        """As `ServiceCalls.call`."""
        try:
            return await self.calls.call(call)
        except (EvaluationFailed, HostNotAllowed) as error:
            if isinstance(error, HostNotAllowed) or not is_silent(self.placeholder):
                self.calls.failure = error
            raise


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's business."""
        yield


def _fault(fetched: Fetched) -> str | None:
    """What is wrong with an answer that the engine would not read to its end, or that would crash it.

    Nothing is raised: the engine's reader must not leave its thread, not even within an error.
    """
    media_type = fetched.content_type.partition(";")[0].strip().lower()
    results_format = QueryResultsFormat.from_media_type(media_type)
    if fetched.status != 200:
        return f"the host answers {fetched.status}"
    if results_format is None or results_format not in _GUARDS:
        return f"the host answers with {media_type or 'no media type'}, not with results"
    guard = _GUARDS[results_format]()
    try:
        for start in range(0, len(fetched.body), _CHUNK_BYTES):
            guard.check(fetched.body[start : start + _CHUNK_BYTES])
        guard.finish()
        results = parse_query_results(fetched.body, results_format)
        if not isinstance(results, QuerySolutions):
            return "the host answers with a truth value, not with solutions"
        for _ in results:
            pass
    except (RdfSyntaxError, SyntaxError, ValueError) as error:
        return f"the host's answer: {error}"
    return None


def _failed(call: Call, reason: str) -> EvaluationFailed:
    return EvaluationFailed(f"SERVICE <{call.url}>: {reason}")


async def _body(receive: Any) -> bytes:
    """What the engine sends; no more of it than shows that it is too large."""
    pieces, size, more = [], 0, True
    while more and size <= _QUERY_BYTES_MAX:
        message = await receive()
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        more = message.get("more_body", False)
    return b"".join(pieces)


async def _answer(send: Any, status: int, content_type: str, body: bytes) -> None:
    headers = [(b"content-type", content_type.encode("latin-1")), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
