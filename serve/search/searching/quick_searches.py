"""`QuickSearches`: short searches of one index, answered within the call that receives them, without a task.

A task, its ASGI messages and the router cost as much as many a search. Only requests without parameters and
without a special header are answered here, on a port without authentication, audit log and CORS, and only
searches that are known to be short. All others go to the application, which answers the same; so do those
that meet an error.
"""

import re
import time
from dataclasses import dataclass
from functools import lru_cache, partial

import orjson

from graphdb.access.principal import EVERYONE
from graphdb.search.catalog.index_blocks import check_reads
from graphdb.search.catalog.index_names import Resolved
from graphdb.search.errors import SearchError
from graphdb.search.multi.known_requests import PLAIN_MEMBERS
from serve.port.application import PLAIN_HEADERS, Answering, WholeAnswer
from serve.search.frame.answer import COMPRESSED_FROM, ENCODE, PRODUCT, THREADED_FROM, gzipped
from serve.search.frame.exchange import accepted, content_type, parse_json
from serve.search.frame.parameters import Parameters
from serve.search.searching.search_names import names_found
from serve.search.searching.search_runner import Asked, SearchRunner

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

# From when on the processes beside the port help: it is busy for this part of a time, with searches that take
# longer than handing them on does.
_BUSY, _LONG_S = 0.6, 0.0005
_LOOKED_AT_S, _HANDED_ON_S = 0.25, 2.0

_SHAPES_MAX, _MISSES, _TRIED_EACH = 256, 3, 16

_Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class _Head:
    """What follows from the headers of a request. shown: those of its answer, without Content-Length."""

    shown: _Headers
    takes_gzip: bool


class QuickSearches:
    """`QuickAnswers` for `POST /{index}/_search`."""

    def __init__(self, runner: SearchRunner) -> None:
        """runner: of the node as whoever sees everything sees it."""
        self._runner = runner
        self._load, self._long = _Load(), _LongShapes()

    @staticmethod
    def may_answer(method: bytes, target: bytes, body_bytes: int) -> bool:
        """See `QuickAnswers.may_answer`."""
        return method == b"POST" and 0 < body_bytes <= _BODY_BYTES_MAX and target.endswith(b"/_search")

    def understood(
        self, method: bytes, target: bytes, scheme: str, headers: list[tuple[bytes, bytes]]
    ) -> Answering | None:
        """See `QuickAnswers.understood`."""
        found = _TARGET.fullmatch(target)
        head = _read_head(tuple([header for header in headers if header[0] != b"content-length"]))
        return None if found is None or head is None else partial(self._answer, found[1].decode(), head)

    def _answer(self, name: str, head: _Head, body: bytes) -> WholeAnswer | None:
        if self._runner.node.helpers is not None and self._load.is_high(time.monotonic()):
            return None
        began = time.thread_time()  # what others take of the processors makes no search longer
        try:
            answer = self._found(name, head, body)
            if answer is not None:
                self._load.note(time.thread_time() - began)
            return answer
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 also a panic of the reader; the application says what is wrong
            return None

    def _found(self, name: str, head: _Head, body: bytes) -> WholeAnswer | None:
        if any(word in body for word in _SPECIAL):
            return None
        asked = parse_json(body)
        if not isinstance(asked, dict) or not PLAIN_MEMBERS.issuperset(asked):
            return None
        shape = (name, *asked, *(asked["query"] if isinstance(asked.get("query"), dict) else ()))
        if self._long.skips(shape):
            return None
        runner = self._runner
        index = runner.node.catalog.find(name)
        if index is None or index.is_closed:
            found = names_found(runner.node, name, _NONE)
        else:
            check_reads(index)
            found = [Resolved(index)]
        answer = runner.answer_at_once(found, Asked(asked, principal=EVERYONE, raw=True), body)
        self._long.note(shape, answer is None)
        if answer is None:
            return None
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


class _Load:
    """How much of the time goes by with searches here."""

    def __init__(self) -> None:
        self._since = self._high_until = 0.0
        self._taken_s, self._count = 0.0, 0

    def note(self, taken_s: float) -> None:
        self._taken_s += taken_s
        self._count += 1

    def is_high(self, now: float) -> bool:
        """Whether searches had better be made by other processes too."""
        passed = now - self._since
        if passed >= _LOOKED_AT_S:
            if self._taken_s > max(_BUSY * passed, _LONG_S * self._count):
                self._high_until = now + _HANDED_ON_S
            self._since, self._taken_s, self._count = now, 0.0, 0
        return now < self._high_until


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
