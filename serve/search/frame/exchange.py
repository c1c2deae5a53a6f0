"""One request of the search API.

`Endpoint` is its operation. `Exchange` has its media types, parameters and body. `SearchWork` is the pool of
threads that searches run on.
"""

import asyncio
import json
import math
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import orjson
from starlette.requests import Request

from graphdb.config import Settings
from graphdb.errors import Overloaded, QueryTimeout
from graphdb.search.answer_room import AnswerRoom, one_answer, room_of_answer
from graphdb.search.deadline import limited
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.pool_use import PoolCounter, PoolUse
from serve.access.request_scope import principal_of
from serve.bodies import body_chunks, read_body
from serve.search.backend import SearchBackend
from serve.search.frame.parameters import Parameters
from serve.search.frame.tasks import Task, Tasks

__all__ = [
    "DEPTH_MAX",
    "JSON_BYTES_MAX",
    "LONG_BYTES",
    "Body",
    "Endpoint",
    "Exchange",
    "Handler",
    "MediaType",
    "SearchWork",
    "TimedOut",
    "accepted",
    "content_type",
    "endpoint",
    "parse_json",
    "token_name",
]

T = TypeVar("T")
SEVERAL = 10  # so many times as long as one search may, all searches of one request may take
WAITING_MAX = 1_000  # Elasticsearch's queue of searches

# Content-Type and Accept as Elasticsearch 8 reads them, its own types with a version among them.

VERSIONS = ("7", "8")
_TYPE = re.compile(r"\s*([!#$%&'*+.^_`|~0-9a-z-]+)/([!#$%&'*+.^_`|~0-9a-z-]+)\s*", re.ASCII)
_PARAMETER = re.compile(r"\s*([!#$%&'*+.^_`|~0-9a-z-]+)=\"?([^\s;\"]+)\"?\s*", re.ASCII)
_VENDOR = "vnd.elasticsearch+"


class TimedOut(Exception):
    """The `timeout` that the client gave has passed: no error, but an answer that says so."""


class _Abandoned(BaseException):
    """Ends work that nobody waits for. (No `except Exception` is to stop it.)"""


@dataclass(frozen=True, slots=True)
class _Limit:
    """Of a request: what it does ends before, on however many threads one after the other."""

    last: float  # time.monotonic
    reason: str  # why it has ended then


_LIMIT: ContextVar[_Limit | None] = ContextVar("search_limit", default=None)
_NOTICE_S = 1.0  # what a search has to notice that its time is up, until it is answered for


class SearchWork:
    """Owned by the application. For the event loop only."""

    def __init__(self, limit_s: float) -> None:
        """limit_s: a longer search fails, even if the client permits more."""
        self._limit_s = limit_s
        self._size = max(2, (os.cpu_count() or 1))
        self._pool = ThreadPoolExecutor(self._size, thread_name_prefix="search")
        self._waiting = 0
        self._counter = PoolCounter()

    def note_short(self, searches: int = 1) -> None:
        """Searches that needed no thread count as completed, too."""
        self._counter.completed += searches

    def use(self) -> PoolUse:
        """How busy the threads are."""
        active = min(self._waiting, self._size)
        return self._counter.use(self._size, WAITING_MAX, active, self._waiting - active)

    @contextmanager
    def one_search(self) -> Iterator[None]:
        """All that runs inside has the time that one search has, or what is left of that of `several`."""
        with self._limit(self._limit_s, f"the search ran longer than [{self._limit_s}s] and was ended"):
            yield

    @contextmanager
    def several(self) -> Iterator[None]:
        """The searches of one request together: `SEVERAL` times as long."""
        most_s = SEVERAL * self._limit_s
        with self._limit(most_s, f"the searches of the request ran longer than [{most_s}s] together"):
            yield

    @contextmanager
    def _limit(self, most_s: float, reason: str) -> Iterator[None]:
        limit, outer = _Limit(time.monotonic() + most_s, reason), _LIMIT.get()
        token = _LIMIT.set(limit if outer is None or limit.last < outer.last else outer)
        try:
            yield
        finally:
            _LIMIT.reset(token)

    @staticmethod
    def check_time() -> None:
        """Raises QueryTimeout where that of the request is up."""
        limit = _LIMIT.get()
        if limit is not None and time.monotonic() > limit.last:
            raise QueryTimeout(limit.reason)

    async def run(self, work: Callable[[], T], timeout_ms: int | None = None) -> T:
        """work() on a thread. Raises TimedOut, QueryTimeout, Overloaded and what work raises.

        Where nobody waits for it any more, the thread is free at its next checkpoint; that may be late on a
        busy machine, and who waits hears soon that the time is up.
        """
        if (limit := _LIMIT.get()) is None:
            with self.one_search():
                return await self.run(work, timeout_ms)
        if self._waiting >= WAITING_MAX:
            self._counter.rejected += 1
            raise Overloaded(f"rejected execution: [{self._waiting}] searches are waiting already")
        self._waiting += 1
        self._counter.note_active(min(self._waiting, self._size))
        now = time.monotonic()
        wanted = math.inf if timeout_ms is None else now + timeout_ms / 1000
        over = threading.Event()
        check = self._check(limit, wanted, over)
        seconds = max(min(limit.last, wanted) - now, 0) + _NOTICE_S
        try:
            room = room_of_answer()
            async with asyncio.timeout(seconds) as bound:
                return await asyncio.get_running_loop().run_in_executor(
                    self._pool, self._limited(check, room, work)
                )
        except TimeoutError:
            if bound.expired():
                raise (TimedOut() if wanted < limit.last else QueryTimeout(limit.reason)) from None
            raise
        finally:
            over.set()
            self._waiting -= 1
            self._counter.completed += 1

    @staticmethod
    def _check(limit: _Limit, wanted: float, over: threading.Event) -> Callable[[], None]:
        def check() -> None:
            if over.is_set():
                raise _Abandoned
            now = time.monotonic()
            if now > wanted:
                raise TimedOut
            if now > limit.last:
                raise QueryTimeout(limit.reason)

        return check

    @staticmethod
    def _limited(
        check: Callable[[], None], room: AnswerRoom | None, work: Callable[[], T]
    ) -> Callable[[], T]:
        def inside() -> T:
            check()
            with limited(check), one_answer(room):
                return work()

        return inside


@dataclass(frozen=True, slots=True)
class MediaType:
    """name: without Elasticsearch's vendor prefix. version: of `compatible-with`."""

    name: str
    version: str | None = None

    def of_answer(self) -> str:
        """The Content-Type of an answer in this type."""
        if self.version is None:
            return self.name
        kind, _, subtype = self.name.partition("/")
        return f"{kind}/{_VENDOR}{subtype};compatible-with={self.version}"


@lru_cache(maxsize=512)
def content_type(header: str) -> MediaType:
    """The media type of a body. Raises media_type_header_exception for an invalid one."""
    return _parsed(header, "Content-Type")


@lru_cache(maxsize=512)
def accepted(header: str) -> MediaType | None:
    """The media type of an answer; None if the client accepts any, as browsers do."""
    if not header or "," in header:
        return None
    found = _parsed(header, "Accept")
    return None if "*" in found.name else found


def _parsed(header: str, which: str) -> MediaType:
    first, *rest = header.lower().split(";")
    kind = _TYPE.fullmatch(first)
    parameters = [_PARAMETER.fullmatch(part) for part in rest if part.strip()]
    if kind is None or None in parameters:
        cause = illegal_argument(f"invalid media-type [{header[:200]}]")
        raise _header_error(f"Invalid media-type value on headers [{which}]", cause)
    given = {found[1]: found[2] for found in parameters if found is not None}
    if not kind[2].startswith(_VENDOR):
        return MediaType(f"{kind[1]}/{kind[2]}")
    version = given.get("compatible-with", VERSIONS[-1])
    if version not in VERSIONS:
        reason = f"{which} version must be either version 8 or 7, but found {version[:20]}."
        raise _header_error(f"{reason} {which}={header[:200]}")
    return MediaType(f"{kind[1]}/{kind[2].removeprefix(_VENDOR)}", version)


def _header_error(reason: str, cause: SearchError | None = None) -> SearchError:
    return SearchError("media_type_header_exception", reason, 400, None, cause)


# JSON of a request, read strictly: no name twice in an object, no depth that would hurt what walks it.

DEPTH_MAX = 200

_ROOM = 54  # levels that answers may have around it: orjson writes 254

LONG_BYTES = 131_072  # longer texts are parsed on a thread


class _Repeated(Exception):
    """A name that an object has twice."""


def parse_json(text: bytes) -> Any:
    """The value. Raises x_content_parse_exception, which says where."""
    try:
        value = orjson.loads(text)
        if _is_plain(value, text):
            return value
        again = orjson.dumps(_deeper(value) if _may_be_deep(text) else value)
    except orjson.JSONDecodeError as error:
        raise _malformed(_reason(error), error.lineno, error.colno) from None
    except orjson.JSONEncodeError:
        reason = f"Document nesting depth exceeds the maximum allowed ({DEPTH_MAX})"
        raise SearchError("x_content_parse_exception", reason) from None
    # Each member has a colon; where a name came twice, the reader has dropped one. Those within strings stay,
    # but for those that are written as an escape.
    if again != text and (text.count(b":") != again.count(b":") or b"\\u003" in text):
        _check_names(text)
    return value


def _is_plain(value: Any, text: bytes) -> bool:
    """Whether it is certain, without writing the value again, that nothing is to be refused: one object
    without another in it, whose colons are those of its members, of which none was dropped.
    """
    return (
        type(value) is dict
        and text.find(b"{", text.find(b"{") + 1) < 0
        and b"\\" not in text
        and text.count(b":") == len(value)
        and text.count(b"[") < DEPTH_MAX
    )


def _may_be_deep(text: bytes) -> bool:
    """Most have one object and no array, which is a quick check."""
    if text.find(b"{", 1) < 0 and b"[" not in text:
        return False
    return text.count(b"{") + text.count(b"[") > DEPTH_MAX


def _deeper(value: Any) -> Any:
    """With as much around it as leaves it DEPTH_MAX levels of what can be written."""
    for _ in range(_ROOM):
        value = [value]
    return value


def _reason(error: orjson.JSONDecodeError) -> str:
    """In the words of the parser that clients know, where they are known."""
    if error.msg.startswith("unexpected end of data"):
        return "Unexpected end-of-input"
    if error.msg.startswith("unexpected character"):
        shown = error.doc[error.pos : error.pos + 1]
        return f"Unexpected character ('{shown}' (code {ord(shown) if shown else 0}))"
    return error.msg.partition(":")[0]


def _malformed(reason: str, line: int, column: int) -> SearchError:
    where = f"{reason}\n at [Source: REDACTED; line: {line}, column: {column}]"
    cause = SearchError("json_parse_exception", where)
    return SearchError("x_content_parse_exception", f"[{line}:{column}] {where}", 400, None, cause)


def _check_names(text: bytes) -> None:
    """Raise where an object has a name twice."""

    def checked(members: list[tuple[str, Any]]) -> None:
        seen = set()
        for name, _ in members:
            if name in seen:
                raise _Repeated(name)
            seen.add(name)

    try:
        json.loads(text, object_pairs_hook=checked)
    except _Repeated as error:
        name = str(error)
        position = _second(text, name)
        line = text.count(b"\n", 0, position) + 1
        column = position - (text.rfind(b"\n", 0, position) + 1) + 1
        raise _malformed(f"Duplicate field '{name[:200]}'", line, column) from None


def _second(text: bytes, name: str) -> int:
    """The position of the second occurrence of a name, found by a simple search."""
    quoted = orjson.dumps(name)
    return max(text.find(quoted, text.find(quoted) + 1), 0)


def token_name(value: Any) -> str:
    """The token that a value starts with, as error messages name it."""
    if isinstance(value, dict | list):
        return "START_OBJECT" if isinstance(value, dict) else "START_ARRAY"
    if value is None or isinstance(value, bool):
        return "VALUE_NULL" if value is None else "VALUE_BOOLEAN"
    return "VALUE_STRING" if isinstance(value, str) else "VALUE_NUMBER"


# `Exchange`: one request to the search port, as the function that answers it sees it.

# Of a body that has to be in memory at once; Elasticsearch's http.max_content_length.
JSON_BYTES_MAX = 100 * 1024 * 1024

_JSON = MediaType("application/json")


class Exchange:
    """path is as it was sent, still encoded; values are its named segments, decoded. node: as the principal
    sees it.
    """

    def __init__(
        self,
        node: SearchBackend,
        settings: Settings,
        work: SearchWork,
        request: Request,
        values: Mapping[str, str],
        parameters: Parameters,
        tasks: Tasks,
    ) -> None:
        """Raises media_type_header_exception for an Accept that means nothing."""
        self.node, self.settings, self.work, self.request = node, settings, work, request
        self.values, self.parameters, self.tasks = values, parameters, tasks
        self.principal = principal_of(request.scope)
        self.method: str = request.method
        self.path: str = request.scope["raw_path"].partition(b"?")[0].decode("latin-1")
        self._accepted = accepted(request.headers.get("accept", ""))
        self._body: bytes | None = None

    def __getitem__(self, name: str) -> str:
        """A named segment of the path. Raises KeyError where the path has none of the name."""
        return self.values[name]

    def get(self, name: str) -> str | None:
        """The same, or None if the path does not have the name."""
        return self.values.get(name)

    def begin_task(self, action: str, description: str, **options: Any) -> Task:
        """This request as a task, which is not shown yet. options: see `Tasks.begin`."""
        opaque = self.request.headers.get("x-opaque-id")
        headers = {} if opaque is None else {"X-Opaque-Id": opaque[:1000]}
        now_ms = self.node.now_ms()
        return self.tasks.begin(action, description, self.principal, now_ms, headers, **options)

    def pools(self) -> dict[str, PoolUse]:
        """How busy the workers of this node are, by Elasticsearch's names of their pools."""
        return {"search": self.work.use(), "write": self.node.writing()}

    @property
    def takes_gzip(self) -> bool:
        return "gzip" in self.request.headers.get("accept-encoding", "")

    @property
    def wants_yaml(self) -> bool:
        """The parameter `format` counts before the header."""
        asked = self.parameters.text("format")
        if asked is not None:
            return asked == "yaml"
        return self._accepted is not None and self._accepted.name == "application/yaml"

    def answer_type(self, is_text: bool) -> str:
        """Content-Type of the answer."""
        if is_text:
            return "text/plain; charset=UTF-8"
        wanted = self._accepted
        return (wanted if wanted is not None and wanted.name == "application/json" else _JSON).of_answer()

    async def body(self) -> bytes:
        """The whole body, or the parameter `source` in its place; empty without both.

        Raises BodyTooLarge, SearchError.
        """
        if self._body is None:
            limit = min(JSON_BYTES_MAX, self.settings.server.max_body_bytes)
            source = self.parameters.text("source") or ""
            self._body = await read_body(self.request, limit) or source.encode()
        return self._body

    def body_chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces, as they come; for what may be longer than memory."""
        return body_chunks(self.request, self.settings.server.max_body_bytes)

    async def json(self) -> dict[str, Any] | None:
        """The object in the body; None without a body. Raises SearchError for anything but an object."""
        body = await self.body()
        if not body.strip():
            return None
        long = len(body) >= LONG_BYTES
        value = await asyncio.to_thread(parse_json, body) if long else parse_json(body)
        if not isinstance(value, dict):
            raise parsing(f"Expected [START_OBJECT] but found [{token_name(value)}]", line=1, col=1)
        return value


# It returns an `Answer`, or the value of one with status 200.
Handler: TypeAlias = Callable[[Exchange], Awaitable[Any]]


class Body(Enum):
    """What an operation reads beside its parameters."""

    NONE = "none"  # a body is refused
    JSON = "json"
    LINES = "lines"  # NDJSON; JSON as a media type passes too


@dataclass(frozen=True, slots=True)
class Endpoint:
    """path: literal segments and `{names}`; a literal segment takes precedence over a name."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    parameters: frozenset[str]  # of the query string, except those of every operation
    body: Body


def endpoint(
    methods: str, paths: str | Sequence[str], handler: Handler, parameters: str = "", body: Body = Body.NONE
) -> list[Endpoint]:
    """The same operation at one or several paths; methods and parameters are words apart by spaces."""
    places = [paths] if isinstance(paths, str) else paths
    names = frozenset(parameters.split())
    return [Endpoint(tuple(methods.split()), path, handler, names, body) for path in places]
