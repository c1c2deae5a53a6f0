"""One search process: answers searches for the port that started it, over segments and graphs that it maps.

It talks over a socket, in `PROCESS_MESSAGES`. Short searches are answered one after the other as they come,
others on threads. Whatever a search does here, the port kills this process and starts another. It ends with
its parent. `serve.deployments.search_process` is the program; it serves the connections that are lent, too.
"""

import logging
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import orjson

from actors.search.process_messages import (
    PROCESS_MESSAGES,
    Adopted,
    AdoptIndex,
    ForgetIndex,
    Found,
    LongSearch,
    NotFound,
    Ready,
    SearchIndex,
    SharedLeaf,
)
from actors.wire.blocking import BlockingStream
from graphdb.errors import CorruptionError
from graphdb.search.analysis import Analyzers
from graphdb.search.answer_room import LongAnswer, one_answer, short_answer
from graphdb.search.catalog.index_settings import analyzers_of, limits_of, number_setting
from graphdb.search.catalog.state import query_context
from graphdb.search.deadline import limited
from graphdb.search.hybrid import Scorer
from graphdb.search.leaf_reader import Bools
from graphdb.search.mapping import Mapping
from graphdb.search.multi import Prepared, Searchers, Target
from graphdb.search.multi.known_requests import KnownRequests, with_name
from graphdb.search.multi.prepared import is_short
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results import SearchOptions
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.segment_file import map_pages, read_segment
from graphdb.search.segments.shard_view import numbered
from graphdb.search.vectors import attach_graph, graph_of, read_graph

__all__ = ["SearchProcess"]

logger = logging.getLogger(__name__)
_THREADS = 4
_JSON = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


class _Late(Exception):
    """The client's time has passed, or that of all searches."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _State:
    """What searches see of an index."""

    state: AdoptIndex
    segments: dict[str, ArraySegment]
    settings: Any
    aliases: Any
    analyzers: Analyzers
    mapping: Mapping
    searcher: Searcher

    base: QueryContext
    valid: memoryview  # shared with the port: see `AdoptIndex.slot`

    def context(self, now_ms: int) -> QueryContext:
        return self.base.of_moment(now_ms, None, True)

    def target(self, now_ms: int) -> Target:
        """The whole of the index."""
        window = number_setting(self.settings, "max_result_window")
        return Target(
            self.searcher, self.context(now_ms), None, 1.0, window, tuple(range(len(self.state.parts)))
        )

    def is_now(self) -> bool:
        """Whether searches see nothing else now."""
        number: int = self.valid[self.state.slot]
        return number == self.state.number


class SearchProcess:
    """Answers the messages that come in, until there are no more."""

    def __init__(self, connection: socket.socket, scorer: Scorer, valid: memoryview) -> None:
        """valid: shared with the port, by slot the number of the state of now."""
        self._stream = BlockingStream(PROCESS_MESSAGES, connection)
        self._sending = Lock()
        self._scorer = scorer
        self._valid = valid
        self._states: dict[str, _State] = {}
        self._by_name: dict[str, _State] = {}
        self._searchers = Searchers()
        self._known = KnownRequests()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="search")

    def run(self) -> None:
        """Return when the other end is gone."""
        self._send(Ready())
        while (message := self._stream.read()) is not None:
            if isinstance(message, SearchIndex):
                self._search(message)
            elif isinstance(message, AdoptIndex):
                self._adopt(message)
            elif isinstance(message, ForgetIndex):
                self._forget(message.uuid)

    def find(self, name: str) -> _State | None:
        """What was adopted last of an index of this name. On any thread."""
        return self._by_name.get(name)

    def _forget(self, uuid: str) -> None:
        gone = self._states.pop(uuid, None)
        if gone is not None and self._by_name.get(gone.state.name) is gone:
            del self._by_name[gone.state.name]

    def _send(self, message: object) -> None:
        with self._sending:
            self._stream.send(message)

    def _adopt(self, state: AdoptIndex) -> None:
        try:
            opened = _opened(state, self._states.get(state.uuid), self._valid)
            self._states[state.uuid] = self._by_name[state.name] = opened
        except (OSError, CorruptionError) as error:  # merged away meanwhile
            logger.info("the segments of [%s] cannot be opened: %s", state.name, error)
            self._send(Adopted(state.uuid, state.number, False))
        else:
            self._send(Adopted(state.uuid, state.number, True))

    def _search(self, asked: SearchIndex) -> None:
        known = self._states.get(asked.uuid)
        if known is None or known.state.number != asked.state:
            self._send(NotFound(asked.search))
            return
        check, prepare = _check_of(asked), partial(self._prepared, asked, known)
        read = self._answered(asked, check, prepare)
        if read is not None and is_short(read[0]):
            try:
                self._finish(asked, check, read, short_answer)
            except LongAnswer:
                read = self._answered(asked, check, prepare)
            else:
                return
        if read is not None:
            self._send(LongSearch(asked.search))
            self._pool.submit(self._finish, asked, check, read, one_answer)

    def _prepared(self, asked: SearchIndex, known: _State) -> tuple[Prepared, str | None]:
        options = SearchOptions(
            typed_keys=asked.typed_keys,
            raw_source=True,
            named_scores=asked.named_scores,
            hybrid=self._scorer,
        )
        target = replace(
            known.target(asked.now_ms),
            filter=None if asked.filter is None else orjson.loads(asked.filter),
            boost=asked.boost,
            window=asked.window,
        )
        return self._known.prepare(orjson.loads(asked.body), target, self._searchers, options)

    def _finish(
        self,
        asked: SearchIndex,
        check: Callable[[], None],
        read: tuple[Prepared, str | None],
        room: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Raises what room raises."""
        members = self._answered(asked, check, partial(_members, *read, room))
        if members is not None:
            self._send(Found(asked.search, members))

    def _answered(self, asked: SearchIndex, check: Callable[[], None], work: Callable[[], Any]) -> Any:
        """What comes of work; None where it has failed, which is told then. Raises LongAnswer."""
        try:
            with limited(check):
                check()
                return work()
        except LongAnswer:
            raise
        except _Late:
            is_wanted = asked.timeout_s is not None and asked.timeout_s < asked.deadline_s
            self._send(NotFound(asked.search, timed_out=is_wanted))
        except MemoryError:
            self._send(NotFound(asked.search, full=True))
        except Exception as error:  # noqa: BLE001 - the port does the same, and says what is wrong
            logger.debug("a search fails: %r", error)
            self._send(NotFound(asked.search))
        return None


def _check_of(asked: SearchIndex) -> Callable[[], None]:
    last = asked.deadline_s if asked.timeout_s is None else min(asked.timeout_s, asked.deadline_s)

    def check() -> None:
        if time.monotonic() > last:
            raise _Late

    return check


def _members(
    prepared: Prepared, only: str | None, room: Callable[[], AbstractContextManager[None]]
) -> dict[str, bytes]:
    with room():
        answer = with_name(prepared.run(), only)
    return {name: orjson.dumps(value, option=_JSON) for name, value in answer.items()}


def _opened(state: AdoptIndex, before: _State | None, valid: memoryview) -> _State:
    """Raises OSError, CorruptionError."""
    known = {} if before is None else before.segments
    segments: dict[str, ArraySegment] = {}
    for leaf in (leaf for part in state.parts for leaf in part):
        segment = known.get(leaf.segment)
        if segment is None:
            segment = read_segment(_mapped(leaf.file, leaf.inode), leaf.file)
        segments[leaf.segment] = segment
        for one in leaf.graphs:
            if graph_of(segment, one.path) is None:
                attach_graph(segment, one.path, read_graph(_mapped(one.file, one.inode), one.file))
    settings, aliases = orjson.loads(state.settings), orjson.loads(state.aliases)
    same = before is not None and (before.state.settings, before.state.mapping) == (
        state.settings,
        state.mapping,
    )
    if before is not None and same:
        analyzers, mapping = before.analyzers, before.mapping
    else:
        analyzers = analyzers_of(settings)
        mapping = Mapping.of(orjson.loads(state.mapping), analyzers, limits_of(settings))
    leaves, base = [], 0
    for part in state.parts:
        pairs = [(segments[leaf.segment], _live(leaf, segments[leaf.segment].size)) for leaf in part]
        own = numbered(pairs)
        leaves += [replace(leaf, base=leaf.base + base) for leaf in own]
        base += sum(leaf.segment.size for leaf in own)
    searcher = Searcher(leaves, mapping, analyzers, index_name=state.name).with_runtime_fields(mapping)
    context = query_context(state.name, mapping, analyzers, settings, aliases, 0)
    return _State(state, segments, settings, aliases, analyzers, mapping, searcher, context, valid)


def _mapped(path: str, inode: int) -> memoryview:
    pages, found = map_pages(path)
    if found != inode:
        raise FileNotFoundError(path)
    return pages


def _live(leaf: SharedLeaf, size: int) -> Bools:
    if leaf.live is None:
        return np.ones(size, np.bool_)
    return np.unpackbits(np.frombuffer(leaf.live, np.uint8), count=size).astype(np.bool_)
