"""`QuickSearches`: short searches of one index, answered within the call that receives them, without a task.

A task, its ASGI messages and the router cost as much as many a search. Only requests without parameters and
without a special header are answered here, on a port without authentication, audit log and CORS, and only
searches that are known to be short. All others go to the application, which answers the same; so do those
that meet an error.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import orjson

from graphdb.access.principal import EVERYONE
from graphdb.search.catalog.index_blocks import check_reads
from graphdb.search.catalog.index_names import Resolved
from graphdb.search.errors import SearchError
from graphdb.search.multi.known_requests import PLAIN_MEMBERS
from serve.port.application import PLAIN_HEADERS, Answering, LaterAnswer, WholeAnswer
from serve.search.frame.answer import COMPRESSED_FROM, ENCODE, PRODUCT, THREADED_FROM, gzipped
from serve.search.frame.exchange import accepted, content_type, parse_json
from serve.search.frame.parameters import Parameters
from serve.search.searching.search_names import names_found
from serve.search.searching.search_runner import Asked, SearchRunner
from serve.search.searching.waiting_searches import SearchLoad, WaitingSearch, WaitingSearches

__all__ = ["QuickSearches"]

_BODY_BYTES_MAX = 32 << 10
_TARGET = re.compile(rb"/([a-z0-9][a-z0-9_.-]*)/_search", re.ASCII)
# With any other header the request goes the usual way.
_KNOWN_HEADERS = PLAIN_HEADERS | {b"x-elastic-client-meta"}
# What may need more than the index itself; an escape may hide a name.
_SPECIAL = (b'"script', b'_script"', b"_shard_doc", b"\\u")
_NONE = Parameters({})
_JSON = "application/json"
_GZIP = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))

_SHAPES_MAX, _MISSES, _TRIED_EACH = 256, 3, 16

_Headers = tuple[tuple[bytes, bytes], ...]
_HeaderList = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Head:
    """What follows from the headers of a request. shown: those of its answer, without Content-Length."""

    shown: _Headers
    takes_gzip: bool


@dataclass(frozen=True, slots=True)
class _Request:
    """What a head says. name: of the index."""

    name: str
    head: _Head
    target: bytes
    headers: _HeaderList


class QuickSearches:
    """`QuickAnswers` for `POST /{index}/_search`."""

    def __init__(self, runner: SearchRunner) -> None:
        """runner: of the node as whoever sees everything sees it."""
        self._runner = runner
        self._long = _LongShapes()
        self._load = SearchLoad(time.monotonic)
        self._waiting = WaitingSearches(self._load)

    @staticmethod
    def may_answer(method: bytes, target: bytes, body_bytes: int) -> bool:
        """See `QuickAnswers.may_answer`."""
        return method == b"POST" and 0 < body_bytes <= _BODY_BYTES_MAX and target.endswith(b"/_search")

    def understood(self, method: bytes, target: bytes, scheme: str, headers: _HeaderList) -> Answering | None:
        """See `QuickAnswers.understood`."""
        found = _TARGET.fullmatch(target)
        head = _read_head(tuple([header for header in headers if header[0] != b"content-length"]))
        if found is None or head is None:
            return None
        return partial(self._answer, _Request(found[1].decode(), head, target, headers))

    def _answer(self, request: _Request, body: bytes) -> WholeAnswer | LaterAnswer | None:
        try:
            asked = self._read(request, body)
            if asked is None:
                return None
            if self._runner.node.helpers is None or not self._load.is_high():
                return self.searched(request, asked, body)
            search = _Search(self, request, asked, body)
            self._waiting.add(search)
            return search
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 also a panic of the reader; the application says what is wrong
            return None

    def _read(self, request: _Request, body: bytes) -> Asked | None:
        """What may be answered here. Raises SearchError."""
        if any(word in body for word in _SPECIAL):
            return None
        asked = parse_json(body)
        if not isinstance(asked, dict) or not PLAIN_MEMBERS.issuperset(asked):
            return None
        if self._long.skips(_shape(request, asked)):
            return None
        return Asked(asked, principal=EVERYONE, raw=True)

    def searched(self, request: _Request, asked: Asked, body: bytes) -> WholeAnswer | None:
        """The answer, made here; None where it is long. Raises SearchError, AllFailed."""
        began = time.thread_time()  # what others take of the processors makes no search longer
        runner = self._runner
        index = runner.node.catalog.find(request.name)
        if index is None or index.is_closed:
            found = names_found(runner.node, request.name, _NONE)
        else:
            check_reads(index)
            found = [Resolved(index)]
        answer = runner.answer_at_once(found, asked, body)
        self._long.note(_shape(request, asked.body), answer is None)
        shown = None if answer is None else whole_answer(request.head, answer)
        if shown is not None:
            self._load.note(time.thread_time() - began)
        return shown

    def hand_on(
        self,
        request: _Request,
        asked: Asked,
        body: bytes,
        most: int,
        answered: Callable[[dict[str, Any] | None], None],
    ) -> bool:
        """See `SearchRunner.hand_on`; by a process that has fewer searches than most. Raises SearchError."""
        helpers = self._runner.node.helpers
        if helpers is None or not helpers.has_room(most):
            return False
        index = self._runner.node.catalog.find(request.name)
        if index is None or index.is_closed:
            return False
        check_reads(index)
        return self._runner.hand_on(index, asked, body, answered)


class _Search(WaitingSearch):
    """A search that waits for its turn. What fails is answered by the application."""

    __slots__ = ("_asked", "_body", "_request", "_searches")

    def __init__(self, searches: QuickSearches, request: _Request, asked: Asked, body: bytes) -> None:
        super().__init__()
        self._searches, self._request, self._asked, self._body = searches, request, asked, body

    def hand_on(self, most: int) -> bool:
        """See `WaitingSearch`."""
        try:
            return self._searches.hand_on(self._request, self._asked, self._body, most, self._answered)
        except SearchError:
            return False

    def _answered(self, answer: dict[str, Any] | None) -> None:
        self._reply(None if answer is None else whole_answer(self._request.head, answer))

    def search(self) -> None:
        """See `WaitingSearch`."""
        answer = None
        try:
            answer = self._searches.searched(self._request, self._asked, self._body)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 also a panic of the reader
            pass
        self._reply(answer)

    def _reply(self, answer: WholeAnswer | None) -> None:
        if answer is not None:
            self.reply(answer)
        else:
            self.hand_over(b"POST", self._request.target, self._request.headers, self._body)


def _shape(request: _Request, asked: Mapping[str, Any]) -> tuple[str, ...]:
    query = asked.get("query")
    return (request.name, *asked, *(query if isinstance(query, dict) else ()))


def whole_answer(head: _Head, answer: dict[str, Any]) -> WholeAnswer | None:
    """None for one that is compressed better by a thread."""
    text = orjson.dumps(answer, option=ENCODE)
    if not head.takes_gzip or len(text) < COMPRESSED_FROM:
        return WholeAnswer([*head.shown], text)
    return None if len(text) >= THREADED_FROM else WholeAnswer([*head.shown, *_GZIP], gzipped(text))


class _LongShapes:
    """Searches that look like some that were not short lately are tried here now and then only, as what is
    read of them is read again.
    """

    def __init__(self) -> None:
        self._misses: dict[tuple[str, ...], int] = {}  # in turn, by the names of a body and of its query

    def skips(self, shape: tuple[str, ...]) -> bool:
        misses = self._misses.get(shape, 0)
        if misses < _MISSES:
            return False
        self._misses[shape] = misses + 1
        return (misses - _MISSES) % _TRIED_EACH != 0

    def note(self, shape: tuple[str, ...], is_long: bool) -> None:
        if not is_long:
            self._misses.pop(shape, None)
            return
        if len(self._misses) >= _SHAPES_MAX:
            self._misses.clear()
        self._misses[shape] = self._misses.get(shape, 0) + 1


@lru_cache(maxsize=256)
def _read_head(headers: _Headers) -> _Head | None:
    """None for a request that may need more than is done without the application."""
    given = dict(headers)
    if len(given) < len(headers) or not _KNOWN_HEADERS.issuperset(given):
        return None
    try:
        sent = content_type(given.get(b"content-type", b"").decode("latin-1"))
        wanted = accepted(given.get(b"accept", b"").decode("latin-1"))
    except SearchError:
        return None
    if sent.name != _JSON or (wanted is not None and wanted.name != sent.name):
        return None
    product = tuple((name.lower().encode(), value.encode()) for name, value in PRODUCT.items())
    media_type = _JSON if wanted is None else wanted.of_answer()
    shown = (*product, (b"content-type", media_type.encode("latin-1")))
    return _Head(shown, b"gzip" in given.get(b"accept-encoding", b""))
