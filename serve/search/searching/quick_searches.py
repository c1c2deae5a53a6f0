"""`QuickSearches`: short searches of one index, answered within the call that receives them, without a task.
`LentSearches`: the same by a process that has borrowed connections of the port.

A task, its ASGI messages and the router cost as much as many a search. Only requests without parameters and
without a special header are answered here, on a port without authentication, audit log and CORS, and only
searches that are known to be short. All others go to the application, which answers the same; so do those
that meet an error.
"""

import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import orjson

from graphdb.errors import GraphDBError
from graphdb.search.aggregations.aggregation import MAX_BUCKETS
from graphdb.search.catalog.cluster_settings import allows_expensive, max_buckets
from graphdb.search.catalog.index_blocks import check_reads
from graphdb.search.catalog.index_names import Resolved
from graphdb.search.catalog.state import Index
from graphdb.search.multi import SHARDS_MAX, Searchers, Target
from graphdb.search.multi.known_requests import PLAIN_MEMBERS
from graphdb.search.query import Searcher
from graphdb.search.results import SearchOptions
from serve.port.application import Answering, WholeAnswer
from serve.port.ledger import Ledger
from serve.port.lending import Borrowable, Lender
from serve.search.backend import Borrower
from serve.search.frame.answer import ENCODE, THREADED_FROM
from serve.search.frame.exchange import parse_json
from serve.search.frame.parameters import Parameters
from serve.search.frame.quick_heads import QuickHead, read_head, whole_answer
from serve.search.searching.at_once import AtOnce, Known, Limits, RequestCache, is_long_to_parse
from serve.search.searching.connection_load import ConnectionLoad
from serve.search.searching.search_body import enveloped, shards_json
from serve.search.searching.search_names import looks_up, names_found, targets_of
from serve.search.searching.search_runner import SearchRunner

__all__ = ["LentIndex", "LentSearches", "QuickSearches"]

logger = logging.getLogger(__name__)
_BODY_BYTES_MAX = 32 << 10
_TARGET = re.compile(rb"/([a-z0-9][a-z0-9_.-]*)/_search", re.ASCII)
# What may need more than the index itself; an escape may hide a name.
_SPECIAL = (b'"script', b'_script"', b"_shard_doc", b"\\u")
_NONE = Parameters({})

_SHAPES_MAX, _MISSES, _TRIED_EACH = 256, 3, 16

_HeaderList = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class _Request:
    """What a head says. name: of the index."""

    name: str
    head: QuickHead


class _PlainSearches(ABC):
    """`QuickAnswers` for `POST /{index}/_search`."""

    def __init__(self, at_once: AtOnce) -> None:
        self._at_once, self._long = at_once, _LongShapes()

    @staticmethod
    def may_answer(method: bytes, target: bytes, body_bytes: int) -> bool:
        """See `QuickAnswers.may_answer`."""
        return method == b"POST" and 0 < body_bytes <= _BODY_BYTES_MAX and target.endswith(b"/_search")

    def understood(self, method: bytes, target: bytes, scheme: str, headers: _HeaderList) -> Answering | None:
        """See `QuickAnswers.understood`."""
        found = _TARGET.fullmatch(target)
        head = read_head(headers)
        if found is None or head is None:
            return None
        return partial(self._answer, _Request(found[1].decode(), head))

    def _answer(self, request: _Request, body: bytes) -> WholeAnswer | None:
        try:
            # Looked at after the request has come: whoever sent it has heard of no later change.
            target = self._target(request.name)
            if target is None:
                return None
            known = self._at_once.known(target, body, self._limits)
            if known is None:
                asked = self._read(request, body)
                return None if asked is None else self._shown(request, target, asked, body)
            if self._long.misses and self._long.skips(_shape(request, known)):
                return None
            return self._shown(request, target, known, body)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 also a panic of the reader; the application says what is wrong
            return None

    def _read(self, request: _Request, body: bytes) -> Mapping[str, Any] | None:
        """What may be answered here. Raises SearchError."""
        for word in _SPECIAL:
            if word in body:
                return None
        asked = parse_json(body)
        if not isinstance(asked, dict) or not PLAIN_MEMBERS.issuperset(asked):
            return None
        return None if self._long.skips(_shape(request, asked)) else asked

    @property
    @abstractmethod
    def _limits(self) -> Limits: ...

    @abstractmethod
    def _target(self, name: str) -> Target | None:
        """The index of this name, or what else it names, as of now; None where searches of it are not
        answered here. Raises SearchError.
        """

    @abstractmethod
    def _note(self, name: str, taken_ms: float, was_kept: bool | None) -> None:
        """A search was answered. was_kept: see `AtOnce.answer`."""

    def _shown(
        self, request: _Request, target: Target, asked: Mapping[str, Any] | Known, body: bytes
    ) -> WholeAnswer | None:
        """The answer; None where it is long. Raises SearchError, AllFailed."""
        start = time.perf_counter()
        answer, was_kept = self._at_once.answer(target, asked, body, self._limits)
        if answer is None or self._long.misses:
            self._long.note(_shape(request, asked), answer is None)
        if answer is None:
            return None
        taken_ms = (time.perf_counter() - start) * 1000
        self._note(target.name, taken_ms, was_kept)
        whole = enveloped(answer, int(taken_ms), shards_json(len(target.shards), (), ""))
        text = orjson.dumps(whole, option=ENCODE)
        if request.head.takes_gzip and len(text) >= THREADED_FROM:
            return None  # a thread compresses it
        return whole_answer(request.head, text)


class _Seen(NamedTuple):
    """What a target is made of, each of which is replaced when it changes, and when it was made."""

    searcher: Searcher
    settings: object
    aliases: object
    of_cluster: object
    now_ms: int


class QuickSearches(_PlainSearches):
    """Those of the port."""

    def __init__(self, runner: SearchRunner) -> None:
        """runner: of the node as whoever sees everything sees it."""
        super().__init__(runner.at_once)
        self._runner = runner
        self._load = ConnectionLoad(time.monotonic)
        self._lenders: WeakKeyDictionary[Borrower, Lender] = WeakKeyDictionary()
        self._made: WeakKeyDictionary[Index, tuple[_Seen, Target]] = WeakKeyDictionary()
        self._made_limits: tuple[object, Limits] | None = None

    @property
    def _limits(self) -> Limits:
        settings = self._runner.node.catalog.cluster_settings
        made = self._made_limits
        if made is None or made[0] is not settings:
            made = self._made_limits = settings, self._runner.limits_at_once()
        return made[1]

    def _target(self, name: str) -> Target | None:
        node = self._runner.node
        if node.shards is not None:
            return None
        index = node.catalog.find(name)
        if index is None or index.is_closed:
            found = names_found(node, name, _NONE)
            return targets_of(node, found)[0] if len(found) == 1 else None
        check_reads(index)
        of_cluster = node.catalog.cluster_settings
        seen = _Seen(index.searcher(), index.settings, index.aliases, of_cluster, node.now_ms())
        made = self._made.get(index)
        if made is None or made[0] != seen:
            made = self._made[index] = seen, targets_of(node, [Resolved(index)])[0]
        return made[1]

    def _note(self, name: str, taken_ms: float, was_kept: bool | None) -> None:
        self._runner.note_searches(name, 1, taken_ms, int(was_kept is True), int(was_kept is False))

    def _shown(
        self, request: _Request, target: Target, asked: Mapping[str, Any] | Known, body: bytes
    ) -> WholeAnswer | None:
        if not isinstance(asked, tuple) and is_long_to_parse(asked):
            return None
        began = time.thread_time()  # what others take of the processors makes no search longer
        shown = super()._shown(request, target, asked, body)
        if shown is not None:
            self._load.note(time.thread_time() - began)
            if self._runner.node.helpers is not None and self._load.is_high() and not looks_up(body):
                shown.offer = partial(self._offer, request.name)
        return shown

    def _offer(self, name: str, connection: Borrowable) -> None:
        try:
            self._load.offer(connection, partial(self._lender, name))
        except (OSError, GraphDBError) as error:  # the client has its answer
            logger.warning("a connection could not be lent: %s", error)

    def _lender(self, name: str) -> Lender | None:
        """To the process that may answer searches of an index now."""
        node = self._runner.node
        index = node.catalog.find(name)
        if index is None or node.helpers is None or node.shards is not None or len(index.shards) > SHARDS_MAX:
            return None
        settings = node.catalog.cluster_settings
        if settings and (not allows_expensive(settings) or max_buckets(settings) != MAX_BUCKETS):
            return None
        borrower = node.helpers.borrower(index)
        if borrower is None:
            return None
        lender = self._lenders.get(borrower)
        if lender is None:
            ledger = Ledger(borrower.ledger)
            lender = Lender(borrower.channel.dup(), ledger, self._note_lent, borrower.note_lent)
            self._lenders[borrower] = lender
        return lender

    def _note_lent(self, done: bytes) -> None:
        self._runner.note_searches(*orjson.loads(done))


class LentIndex(Protocol):
    """An index that a process has for a port."""

    def target(self, now_ms: int) -> Target:
        """As of now."""

    def is_now(self) -> bool:
        """Whether the port has not seen another state of it."""


class LentSearches(_PlainSearches):
    """Those of a process. What it answers here it could not answer otherwise if it had asked the port."""

    def __init__(
        self, find: Callable[[str], LentIndex | None], options: SearchOptions, now_ms: Callable[[], int]
    ) -> None:
        """find: by name, None where there is none of now."""
        super().__init__(AtOnce(RequestCache(), Searchers()))
        self._find, self._made_limits, self._now_ms = find, Limits(options), now_ms
        self._made: WeakKeyDictionary[LentIndex, tuple[int, Target]] = WeakKeyDictionary()
        self._counted: dict[str, list[float]] = {}

    @property
    def _limits(self) -> Limits:
        return self._made_limits

    def _target(self, name: str) -> Target | None:
        index = self._find(name)
        if index is None or not index.is_now():
            return None
        now_ms, made = self._now_ms(), self._made.get(index)
        if made is None or made[0] != now_ms:
            made = self._made[index] = now_ms, index.target(now_ms)
        return made[1]

    def _shown(
        self, request: _Request, target: Target, asked: Mapping[str, Any] | Known, body: bytes
    ) -> WholeAnswer | None:
        if not isinstance(asked, tuple) and (looks_up(body) or is_long_to_parse(asked)):
            return None
        return super()._shown(request, target, asked, body)

    def _note(self, name: str, taken_ms: float, was_kept: bool | None) -> None:
        counted = self._counted.setdefault(name, [0, 0.0, 0, 0])
        counted[0] += 1
        counted[1] += taken_ms
        if was_kept is not None:
            counted[2 if was_kept else 3] += 1

    def done(self) -> Iterator[bytes]:
        """What the port is to be told that was done, since it was last asked for."""
        counted, self._counted = self._counted, {}
        for name, (searches, taken_ms, hits, misses) in counted.items():
            yield orjson.dumps([name, searches, taken_ms, hits, misses])


def _shape(request: _Request, asked: Mapping[str, Any] | Known) -> tuple[Hashable, ...]:
    if isinstance(asked, tuple):
        return request.name, id(asked[0].request.fetching)  # the same one for all requests of a form
    query = asked.get("query")
    return (request.name, *asked, *(query if isinstance(query, dict) else ()))


class _LongShapes:
    """Searches that look like some that were not short lately are tried here now and then only, as what is
    read of them is read again.
    """

    def __init__(self) -> None:
        self.misses: dict[tuple[Hashable, ...], int] = {}  # in turn, by the names of a body and of its query

    def skips(self, shape: tuple[Hashable, ...]) -> bool:
        misses = self.misses.get(shape, 0)
        if misses < _MISSES:
            return False
        self.misses[shape] = misses + 1
        return (misses - _MISSES) % _TRIED_EACH != 0

    def note(self, shape: tuple[Hashable, ...], is_long: bool) -> None:
        if not is_long:
            self.misses.pop(shape, None)
            return
        if len(self.misses) >= _SHAPES_MAX:
            self.misses.clear()
        self.misses[shape] = self.misses.get(shape, 0) + 1
