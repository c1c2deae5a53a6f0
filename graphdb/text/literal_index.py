"""`LiteralIndex`: the string literals of a store, to be searched as of any of its last states.

Nothing here runs by itself. The writer of the store calls `note`, before a change becomes visible; the owner
calls `begin` while no change is being applied, and `step` on a thread of its own as long as `has_work`.

What is noted gets the log index before it. A document has that of its quad, and what is removed is remembered
with its own. So the documents of a state are those that were noted before its log index, and not removed
before it: an older state is told from the present one by the few documents that are newer.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Final, NoReturn, TypeAlias

import numpy as np
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from graphdb.model import ChangeSet
from graphdb.rdf.quad_lines import AddedLines, ClearedLines
from graphdb.search.analysis import Analyzers
from graphdb.search.fields import FieldSpec, ParsedDocument, Storage, TextTokens
from graphdb.search.leaf_reader import Bools, Leaf
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.segments.merge_policy import Candidate, TieredMergePolicy
from graphdb.search.segments.merging import merge
from graphdb.search.segments.shard_view import array_segment, locate, numbered, replaced
from graphdb.store.search_tables import Stale
from graphdb.text.hit_columns import HitColumns

__all__ = ["ALL", "ANALYZER", "GRAPH", "LANGUAGE", "Fields", "LiteralIndex", "State"]

ALL: Final = "*"
"""In the place of the predicates: all of them."""
LANGUAGE: Final = "language"
"""The field of the tags, in lower case; `NO_LANGUAGE` for a literal without one."""
NO_LANGUAGE: Final = "none"
GRAPH: Final = "graph"
"""The field of the names of graphs, as in N-Triples; "" for the default graph."""

_XSD_STRING = NamedNode("http://www.w3.org/2001/XMLSchema#string")
ANALYZER: Final = "standard"
"""Of the literals, and of what is sought."""
_STEP_QUADS: Final = 500  # about 5 ms
_SEGMENT_QUADS: Final = 20_000  # of a segment while an index is built
_PAST_MAX: Final = 16
_MERGED_BYTES_MAX: Final = 1 << 30
_WAITING_MAX: Final = 100_000  # quads of changes that wait; with more, the index is built anew

Scan: TypeAlias = Callable[[NamedNode | None], Iterable[Quad]]


@dataclass(slots=True)
class _Noted:
    """A change that is to be taken in."""

    stamp: int  # the log index before it
    removed: tuple[Quad, ...] = ()
    added: Iterable[Quad] = ()
    file: Path | None = None  # that added is read from


@dataclass(frozen=True, slots=True)
class Fields:
    """The field of each predicate, by number. It is a `FieldLookup`: predicates are searched as `p12`."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, predicate: str) -> str | None:
        """The name of a predicate's field; None if it has no literals."""
        number = self.numbers.get(predicate)
        return None if number is None else f"p{number}"

    def field(self, path: str) -> FieldSpec | None:
        """See `FieldLookup`."""
        if path in (LANGUAGE, GRAPH):
            return FieldSpec(path, "keyword", Storage.TERMS)
        if path[:1] == "p" and path[1:].isdecimal() and int(path[1:]) < len(self.numbers):
            return FieldSpec(path, "text", Storage.TEXT, doc_values=False)
        return None

    def match(self, pattern: str) -> list[FieldSpec]:
        """See `FieldLookup`; the one pattern is that of all fields of text."""
        found = (self.field(f"p{number}") for number in range(len(self.numbers)))
        return [spec for spec in found if spec is not None] if pattern == ALL else []

    def names(self, pattern: str) -> list[str]:
        """See `FieldLookup`."""
        return [spec.path for spec in self.match(pattern)]

    @property
    def source_options(self) -> dict[str, object]:
        """See `FieldLookup`."""
        return {}


@dataclass(frozen=True, slots=True)
class State:
    """What a search sees. changed is the log index of the last change that is in it."""

    leaves: tuple[Leaf, ...]
    fields: Fields
    changed: int


@dataclass(frozen=True, slots=True)
class _Past:
    """Leaves of which the states from a log index on can be told, up to a merge."""

    floor: int
    leaves: tuple[Leaf, ...]
    removed: dict[str, list[tuple[int, int]]]


class LiteralIndex:
    """See above. `state` may be called on any thread, and `note` on the store's writer's."""

    def __init__(
        self,
        scan: Scan,
        predicates: Iterable[str],
        current: Callable[[], int],
        directory: Path | None = None,
        on_work: Callable[[], None] = lambda: None,
        columns: HitColumns | None = None,
    ) -> None:
        """scan returns the quads of a predicate (None: of any) in the present state of the store; only `step`
        calls it. predicates are IRIs, or ALL. current is the log index of the last applied entry.

        directory is for links to files of large changes. on_work is called when there is something to do.
        columns are kept up with the index; None: there are none.
        """
        self._scan, self._current, self._on_work = scan, current, on_work
        self._predicates = None if ALL in predicates else frozenset(map(NamedNode, predicates))
        self.columns = columns or HitColumns(None, 0, on_work)
        self._directory = None if directory is None else Path(mkdtemp(prefix="text-", dir=directory))
        self._lock = Lock()
        self._waiting: deque[_Noted] = deque()
        self._waiting_quads = 0
        self._is_noted = self._is_ready = self._starts_scan = False
        self._is_due = True
        self._scanning: Iterator[Quad] | None = None
        self._building: SegmentBuilder | None = None
        self._leaves: tuple[Leaf, ...] = ()
        self._fields = Fields()
        self._changed = 0  # what is in the leaves was noted before this log index
        self._scanned = 0  # the log index at the end of the scan
        self._floor = 0  # states before this log index are not known any more
        self._past: deque[_Past] = deque(maxlen=_PAST_MAX)  # before the last merges, the latest first
        self._removed: dict[str, list[tuple[int, int]]] = {}  # (document, stamp) by the name of the segment
        self._names = 0
        self._policy = TieredMergePolicy()
        self.analyzers = Analyzers.of({})
        self._analyzer = self.analyzers.analyzer(ANALYZER)

    # what the writer of the store calls

    def note(self, change: ChangeSet) -> None:
        """Note a change that is about to be applied."""
        if not self._is_noted:
            return
        self.columns.note(change)
        removed = tuple(filter(self._is_indexed, change.removed))
        added = tuple(filter(self._is_indexed, change.added))
        if removed or added:
            self._put(_Noted(self._current(), removed, added), len(removed) + len(added))

    def note_lines(self, lines: AddedLines | ClearedLines) -> None:
        """The same for a change of many quads."""
        if not self._is_noted:
            return
        if isinstance(lines, ClearedLines):
            quads = lines.quads()
            while some := tuple(islice(quads, _SEGMENT_QUADS)):
                self.note(ChangeSet(removed=some))
            return
        self.columns.note_many()
        if self._directory is None:
            self._put(
                _Noted(self._current(), (), tuple(filter(self._is_indexed, lines.quads()))), lines.count
            )
            return
        link = self._directory / f"{self._names}-{lines.path.name}"
        self._names += 1
        try:
            os.link(lines.path, link)
        except OSError:
            self._begin_anew()
            return
        self._put(_Noted(self._current(), (), AddedLines(link, lines.count).quads(), link), 0)

    def noted(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]:
        """Pass on changes that are about to be applied together, and note each."""
        if not isinstance(changes, tuple):
            return self._passing(changes)
        for change in changes:
            self.note(change)
        return changes

    def _passing(self, changes: Iterable[ChangeSet]) -> Iterator[ChangeSet]:
        for change in changes:
            self.note(change)
            yield change

    def _is_indexed(self, quad: Quad) -> bool:
        if not isinstance(quad.object, Literal):
            return False
        if self._predicates is not None and quad.predicate not in self._predicates:
            return False
        return quad.object.datatype == _XSD_STRING or quad.object.language is not None

    def _put(self, noted: _Noted, quads: int) -> None:
        with self._lock:
            self._waiting.append(noted)
            self._waiting_quads += quads
        if self._waiting_quads > _WAITING_MAX:
            self._begin_anew()
        self._on_work()

    def _begin_anew(self) -> None:
        with self._lock:
            self._is_due, self._is_ready = True, False
            self._waiting.clear()
            self._waiting_quads = 0
        self._on_work()

    # what a search asks

    @property
    def is_ready(self) -> bool:
        """Whether there is a state to search."""
        return self._is_ready

    def has_all_before(self, index: int) -> bool:
        """Whether everything is taken in that a state of a log index has."""
        waiting = self._waiting
        return self._is_ready and not (waiting and waiting[0].stamp < index)

    def is_same(self, since: int, until: int) -> bool:
        """Whether nothing changed from one log index to a later one, both of states of the store."""
        return self.has_all_before(until) and self._changed <= since

    def state(self, index: int) -> State:
        """The literals of the state of a log index, of which `has_all_before` holds. Raises Stale."""
        with self._lock:
            if self._changed <= index:
                return State(self._leaves, self._fields, self._changed)
            past = _Past(self._floor, self._leaves, self._removed)
            if index < self._floor:
                past = next((each for each in self._past if each.floor <= index), None) or _raise_stale()
            removed = {name: tuple(found) for name, found in past.removed.items()}
        pairs = [
            (array_segment(leaf), _as_of(leaf, index, removed.get(leaf.segment.name, ())))
            for leaf in past.leaves
        ]
        return State(numbered(pairs), self._fields, index)

    def forget_past(self) -> None:
        """Let go of what only searches of older states need."""
        with self._lock:
            self._past.clear()

    # what the owner calls

    @property
    def has_work(self) -> bool:
        """Whether there is something to begin or to take in."""
        return self._is_due or self._scanning is not None or bool(self._waiting) or self.columns.has_work

    def begin(self) -> None:
        """Begin to build what is due. Call it while no change is being applied."""
        if not self._is_due:
            self.columns.begin(self._leaves)
            return
        self.columns.forget()
        with self._lock:
            self._is_due, self._is_noted, self._is_ready = False, True, False
            self._waiting.clear()
            self._waiting_quads = 0
            self._leaves, self._fields, self._removed = (), Fields(), {}
            self._past.clear()
            self._building = SegmentBuilder()
            self._scanning, self._starts_scan = iter(()), True

    def step(self) -> bool:
        """Take in some quads, for some milliseconds. Returns whether there were any."""
        if self._starts_scan:
            self._starts_scan = False
            wanted = [None] if self._predicates is None else sorted(self._predicates, key=str)
            self._scanning = chain.from_iterable(self._scan(predicate) for predicate in wanted)
        if self._scanning is not None:
            return self._scan_some()
        if self._take_in() or self._merge_once():
            self.columns.follow(self._leaves)
            return True
        return self.columns.step()

    def close(self) -> None:
        """Release the store. Call it on the thread of `step`."""
        self._scanning = None
        self._waiting.clear()
        self.columns.close()
        if self._directory is not None:
            for file in self._directory.iterdir():
                file.unlink(missing_ok=True)
            self._directory.rmdir()

    def _scan_some(self) -> bool:
        assert self._scanning is not None
        assert self._building is not None
        some = tuple(islice(self._scanning, _STEP_QUADS))
        for quad in filter(self._is_indexed, some):
            self._add(self._building, quad, 0)
        if not some or self._building.size >= _SEGMENT_QUADS:
            leaves = self._with_segment(self._leaves, self._building)
            self._building = SegmentBuilder()
            with self._lock:
                self._leaves = leaves
        if not some:
            self._scanning = None
            self._merge_all()
            with self._lock:
                # what was noted before may be in the scan already, or not
                self._floor = self._changed = self._scanned = self._current()
                self._is_ready = not self._is_due
            self.columns.follow(self._leaves)
        return True

    def _take_in(self) -> bool:
        """The oldest of what was noted, and of what follows it as much as one segment is to have."""
        batch: list[_Noted] = []
        with self._lock:
            size = 0
            for noted in self._waiting:
                batch.append(noted)
                size += len(noted.removed) + (
                    len(noted.added) if isinstance(noted.added, tuple) else _STEP_QUADS
                )
                if size >= _STEP_QUADS:
                    break
        if not batch:
            return False
        leaves, removals = self._leaves, list[tuple[int, Quad]]()
        builder = SegmentBuilder()
        fresh: dict[str, tuple[int, int]] = {}  # documents of the builder, with stamps
        gone: list[tuple[int, int]] = []
        for noted in batch:
            for quad in noted.removed:
                key = self._key(quad)
                if key in fresh:
                    gone.append((fresh.pop(key)[0], noted.stamp))
                removals.append((noted.stamp, quad))
            for quad in filter(self._is_indexed, noted.added):
                key = self._key(quad)
                if key not in fresh:
                    fresh[key] = builder.size, noted.stamp
                    self._add(builder, quad, noted.stamp, key)
        self._adopt(leaves, builder, fresh, gone, removals, batch)
        return True

    def _adopt(
        self,
        leaves: tuple[Leaf, ...],
        builder: SegmentBuilder,
        fresh: dict[str, tuple[int, int]],
        gone: list[tuple[int, int]],
        removals: list[tuple[int, Quad]],
        batch: list[_Noted],
    ) -> None:
        """Make a batch findable: its segment, without what was there already, and what it removes dead."""
        places = locate(leaves, [self._key(quad) for _, quad in removals]) if removals else {}
        present = locate(leaves, list(fresh)) if fresh and leaves else {}
        masks: dict[int, Bools] = {}
        dead: dict[str, list[tuple[int, int]]] = {}
        for stamp, quad in removals:
            place = places.get(self._key(quad))
            if place is None:
                continue
            number, doc = place
            if number not in masks:
                masks[number] = leaves[number].live.copy()
            masks[number][doc] = False
            dead.setdefault(leaves[number].segment.name, []).append((doc, stamp))
        removed_keys = {self._key(quad) for _, quad in removals}
        pairs = [(array_segment(leaf), masks.get(number, leaf.live)) for number, leaf in enumerate(leaves)]
        if builder.size:
            segment = builder.build(self._new_name())
            live = np.ones(segment.size, np.bool_)
            for key, (doc, _) in fresh.items():
                if key in present and key not in removed_keys:
                    live[doc] = False  # the scan had it
            for doc, stamp in gone:
                live[doc] = False
                dead.setdefault(segment.name, []).append((doc, stamp))
            pairs.append((segment, live))
        with self._lock:
            if self._is_due:
                return
            kept = _kept(pairs, dead)
            gone_names = {leaf.segment.name for leaf in leaves} - {leaf.segment.name for leaf in kept}
            if gone_names:  # only states before this batch have documents in them
                self._keep_past(gone_names, self._changed)
            self._leaves = kept
            for name, found in dead.items():
                self._removed.setdefault(name, []).extend(found)
            self._changed = max(self._changed, batch[-1].stamp + 1)
            if batch[0].stamp < self._scanned:
                self._floor = self._changed
                self._past.clear()
            for noted in batch:
                self._waiting.popleft()
                self._waiting_quads -= len(noted.removed)
                if isinstance(noted.added, tuple):
                    self._waiting_quads -= len(noted.added)
        for noted in batch:
            if noted.file is not None:
                noted.file.unlink(missing_ok=True)

    def _merge_once(self) -> bool:
        candidates = [
            Candidate(array_segment(leaf).size_bytes, 1 - np.count_nonzero(leaf.live) / leaf.segment.size)
            for leaf in self._leaves
        ]
        chosen = self._policy.choose(candidates)
        if chosen is None:
            return False
        inputs = self._leaves[chosen]
        if not any(leaf.live.any() for leaf in inputs):
            pairs = [(array_segment(leaf), leaf.live) for leaf in self._leaves if leaf not in inputs]
        else:
            merged = merge(inputs, self._new_name())
            found = replaced(self._leaves, inputs, merged)
            assert found is not None
            pairs = found
        with self._lock:
            if self._is_due:
                return False
            self._keep_past([leaf.segment.name for leaf in inputs], self._changed)
            self._leaves = numbered(pairs)
        return True

    def _keep_past(self, outdated: Iterable[str], floor: int) -> None:
        """Keep the leaves for states before a log index: those with these names go. With the lock held."""
        self._past.appendleft(_Past(self._floor, self._leaves, dict(self._removed)))
        for name in outdated:
            self._removed.pop(name, None)
        self._floor = floor

    def _merge_all(self) -> None:
        """What a scan found is one segment, unless it is large: each costs every search a little."""
        leaves = self._leaves
        if len(leaves) > 1 and sum(array_segment(leaf).size_bytes for leaf in leaves) <= _MERGED_BYTES_MAX:
            merged = merge(leaves, self._new_name())
            with self._lock:
                self._leaves = numbered([(merged, np.ones(merged.size, np.bool_))])
        while self._merge_once():
            pass

    def _with_segment(self, leaves: tuple[Leaf, ...], builder: SegmentBuilder) -> tuple[Leaf, ...]:
        if not builder.size:
            return leaves
        segment = builder.build(self._new_name())
        pairs = [(array_segment(leaf), leaf.live) for leaf in leaves]
        return numbered([*pairs, (segment, np.ones(segment.size, np.bool_))])

    def _new_name(self) -> str:
        self._names += 1
        return f"_{self._names}"

    @staticmethod
    def _key(quad: Quad) -> str:
        """The whole quad, of whose terms only the last may have a blank in it."""
        graph = "" if isinstance(quad.graph_name, DefaultGraph) else str(quad.graph_name)
        return f"{quad.subject} {quad.predicate} {graph} {quad.object}"

    def _add(self, builder: SegmentBuilder, quad: Quad, stamp: int, key: str | None = None) -> None:
        assert isinstance(quad.object, Literal)
        predicate, text, language = quad.predicate.value, quad.object.value, quad.object.language
        number = self._fields.numbers.get(predicate)
        if number is None:
            number = len(self._fields.numbers)
            self._fields = Fields({**self._fields.numbers, predicate: number})
        path, key = f"p{number}", self._key(quad) if key is None else key
        terms = {
            LANGUAGE: [NO_LANGUAGE if language is None else language.lower()],
            GRAPH: [key.split(" ", 3)[2]],
        }
        if text.isascii() and text and self._analyzer.is_plain:
            parsed = ParsedDocument(uncut={path: text}, terms=terms)
        else:
            words, positions = self._analyzer.tokens(text)
            parsed = ParsedDocument(texts={path: TextTokens(words, positions, len(words))}, terms=terms)
        builder.add(key, b"", stamp, 1, parsed)


def _raise_stale() -> NoReturn:
    raise Stale


def _as_of(leaf: Leaf, index: int, removed: Iterable[tuple[int, int]]) -> Bools:
    """Which documents of a leaf were live at a log index."""
    live = leaf.live & (array_segment(leaf).seq_nos < index)
    for doc, stamp in removed:
        if stamp >= index and array_segment(leaf).seq_nos[doc] < index:
            live[doc] = True
    return live


def _kept(
    pairs: list[tuple[ArraySegment, Bools]], dead: dict[str, list[tuple[int, int]]]
) -> tuple[Leaf, ...]:
    """Leaves, those too in which nothing is live any more but was a moment ago."""
    leaves: list[Leaf] = []
    base = 0
    for segment, live in pairs:
        if live.any() or segment.name in dead:
            live.setflags(write=False)
            leaves.append(Leaf(segment, live, base))
            base += segment.size
    return tuple(leaves)
