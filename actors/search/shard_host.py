"""`ShardHost`: copies of shards of search indexes, in whatever process it is made, and the searches of them.

A copy has the segments that the database node has, so both find the same in the same order. Segments are in
files without a name, mapped into memory: they end with the process.
"""

import mmap
import os
import pickle
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache, partial
from threading import Lock
from typing import IO, Any

import numpy as np

from graphdb.errors import UnavailableError
from graphdb.search.analysis import Analyzers
from graphdb.search.catalog.index_settings import analyzers_of, limits_of
from graphdb.search.catalog.state import query_context
from graphdb.search.leaf_reader import Bools, Leaf
from graphdb.search.mapping import Mapping as FieldMapping
from graphdb.search.query import Searcher
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.segment_file import read_segment
from graphdb.search.segments.shard_view import array_segment, numbered
from graphdb.search.segments.visible_segment import VisibleLeaves
from graphdb.search.sharded import SearchShard, View
from graphdb.search.sharded.steps import Step

__all__ = ["LeafState", "ShardHost", "ShardState", "StepCall"]

_OTHERS = 64  # indexes that are searched beside, whose mappings are kept
_VISIBILITIES = 16  # lists of SIDs, of which is kept what they show of a copy


@dataclass(frozen=True, slots=True)
class LeafState:
    """live: which of the segment's documents are, as bits; None: all of them."""

    segment: str
    live: bytes | None

    @classmethod
    def of(cls, leaf: Leaf) -> "LeafState":
        live = None if leaf.live.all() else np.packbits(leaf.live).tobytes()
        return cls(array_segment(leaf).name, live)

    def mask(self, size: int) -> Bools:
        """By document of the segment, which has so many."""
        if self.live is None:
            return np.ones(size, np.bool_)
        return np.unpackbits(np.frombuffer(self.live, np.uint8), count=size).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class StepCall:
    """A method of `Steps`, begin or go_on, of a copy in a state."""

    method: str
    copy: str
    state: int
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ShardState:
    """What a search sees of a shard as of one moment; number grows from state to state of the index."""

    number: int
    index: str
    settings: Mapping[str, Any]
    mapping: Mapping[str, Any]
    aliases: Mapping[str, Mapping[str, Any]]
    leaves: tuple[LeafState, ...]


@dataclass(slots=True)
class _Copy:
    segments: dict[str, ArraySegment] = field(default_factory=dict)
    coming: dict[str, IO[bytes]] = field(default_factory=dict)
    states: "dict[int, tuple[SearchShard, frozenset[str]]]" = field(default_factory=dict)  # with its segments
    compiled: tuple[Any, Any, Analyzers, FieldMapping] | None = None  # of settings and mapping
    visible: "OrderedDict[frozenset[str], VisibleLeaves]" = field(default_factory=OrderedDict)

    def visible_to(self, sids: frozenset[str]) -> VisibleLeaves:
        """The same for all states: what is visible of a segment is made once. Holding the lock."""
        found = self.visible.setdefault(sids, VisibleLeaves(sids))
        self.visible.move_to_end(sids)
        if len(self.visible) > _VISIBILITIES:
            self.visible.popitem(last=False)
        return found

    def keep(self, states: Set[int]) -> None:
        """Those, and others that are being searched; what these have of segments they hold themselves."""
        for number in self.states.keys() - states:
            if not len(self.states[number][0]):
                del self.states[number]
        wanted = frozenset[str]().union(*(names for _, names in self.states.values()))
        self.segments = {name: one for name, one in self.segments.items() if name in wanted}

    def give_up(self) -> None:
        """What has come only in part."""
        for file in self.coming.values():
            file.close()
        self.coming.clear()


class ShardHost:
    """Searches may be on any threads; `missing`, `take`, `adopt` and `look` are one caller's, one after the
    other. A copy has a name that the caller gives.
    """

    def __init__(self, idle_s: float) -> None:
        """idle_s: a search ends before, or nobody waits for it any more."""
        self._idle_s = idle_s
        self._swept_at = time.monotonic()
        self._copies: dict[str, _Copy] = {}
        self._lock = Lock()

    # filling and following

    def look(self, copies: Mapping[str, Set[int]]) -> int:
        """Forget all copies but these, all states but these of each, and searches that nobody leads any more;
        the id of the process.
        """
        with self._lock:
            for name in self._copies.keys() - copies.keys():
                self._copies.pop(name).give_up()
            for name, copy in self._copies.items():
                copy.keep(copies[name])
        if time.monotonic() - self._swept_at > self._idle_s:
            self._swept_at = time.monotonic()
            for copy in list(self._copies.values()):
                for shard, _ in list(copy.states.values()):
                    shard.end_idle()
        return os.getpid()

    def missing(self, copy: str, segments: Sequence[str]) -> list[str]:
        """Those of the segments that are to be sent."""
        with self._lock:
            known = self._copies.setdefault(copy, _Copy())
        known.give_up()
        return [name for name in segments if name not in known.segments]

    def take(self, copy: str, segment: str, offset: int, data: bytes) -> None:
        """A piece of a segment's file."""
        coming = self._copies[copy].coming
        if segment not in coming:
            coming[segment] = tempfile.TemporaryFile()  # noqa: SIM115 - it stays while it is mapped
        view = memoryview(data)
        while view:
            written = os.pwrite(coming[segment].fileno(), view, offset)
            view, offset = view[written:], offset + written

    def adopt(self, copy: str, state: ShardState, kept: Set[int]) -> None:
        """All has come: searches that begin with this state see it. kept: the states that searches may begin
        with besides. Raises CorruptionError.
        """
        known = self._copies[copy]
        for name, file in known.coming.items():
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            known.segments[name] = read_segment(memoryview(mapped), name)
            file.close()
        known.coming.clear()
        searcher = self._searcher(known, state)
        visible = lru_cache(_VISIBILITIES)(partial(self._visible, known, searcher))
        shard = SearchShard(partial(_view, searcher, state, visible))
        with self._lock:
            known.states[state.number] = shard, frozenset(leaf.segment for leaf in state.leaves)
            known.keep(kept | {state.number})

    def _searcher(self, copy: _Copy, state: ShardState) -> Searcher:
        known = copy.compiled
        if known is None or known[0] != state.settings or known[1] != state.mapping:
            analyzers = analyzers_of(state.settings)
            mapping = FieldMapping.of(state.mapping, analyzers, limits_of(state.settings))
            known = copy.compiled = (state.settings, state.mapping, analyzers, mapping)
        pairs = []
        for leaf in state.leaves:
            segment = copy.segments[leaf.segment]
            pairs.append((segment, leaf.mask(segment.size)))
        searcher = Searcher(numbered(pairs), known[3], known[2], index_name=state.index)
        return searcher.with_runtime_fields(known[3])

    def _visible(self, copy: _Copy, searcher: Searcher, sids: frozenset[str]) -> Searcher:
        """What who has these SIDs sees of a copy in a state."""
        with self._lock:
            visible = copy.visible_to(sids)
        leaves = visible.of(tuple(searcher.leaves))
        found = Searcher(leaves, searcher.mapping, searcher.analyzers, index_name=searcher.index_name)
        return found.with_runtime_fields(searcher.mapping)

    # searches

    def steps(self, calls: Sequence["StepCall"]) -> list[Step]:
        """What comes of each call, begin or go_on of `Steps`, when all have come to rest. Raises
        UnavailableError where a copy has another state, or the search has ended.
        """
        waiting = []
        for call in calls:
            shard = self._shard(call.copy, call.state)
            start = shard.begin_later if call.method == "begin" else shard.go_on_later
            waiting.append(start(*call.arguments))
        return [wait() for wait in waiting]

    def end(self, search: str, copies: Sequence[tuple[str, int]]) -> None:
        """Forget a search of copies, each in a state."""
        for copy, state in copies:
            with self._lock:
                known = self._copies.get(copy)
                found = None if known is None else known.states.get(state)
            if found is not None:
                found[0].end(search)

    def _shard(self, copy: str, state: int) -> SearchShard:
        with self._lock:
            known = self._copies.get(copy)
            found = None if known is None else known.states.get(state)
        if found is None:
            raise UnavailableError("the copy of the shard is of another moment")
        return found[0]


def _view(
    searcher: Searcher, state: ShardState, visible: Callable[[frozenset[str]], Searcher] | None = None
) -> View:
    def context(now_ms: int) -> Any:
        mapping, analyzers = searcher.mapping, searcher.analyzers
        return query_context(state.index, mapping, analyzers, state.settings, state.aliases, now_ms)

    return View(searcher, context, _other, visible)


@lru_cache(maxsize=_OTHERS)
def _other(shape: bytes) -> View:
    """An index of which there is nothing here, by what `ShardCluster` says of it."""
    name, settings, mapping, aliases = pickle.loads(shape)
    analyzers = analyzers_of(settings)
    fields = FieldMapping.of(mapping, analyzers, limits_of(settings))

    def context(now_ms: int) -> Any:
        return query_context(name, fields, analyzers, settings, aliases, now_ms)

    nothing = Searcher([], fields, analyzers, index_name=name)
    return View(nothing, context, visible=lambda _: nothing)
