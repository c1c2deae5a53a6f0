"""`HitColumns`: what the subjects of indexed literals have for a predicate, as arrays, to join hits with.

A look-up in the engine takes ten to twenty microseconds, most of it to read the terms. Here it is a place in
an array. A column holds the objects of one predicate in one graph for each subject that has an indexed
literal. It is read once, by a scan. A change to a subject is noted before it is visible; from then on that
subject is looked up in the store. When some are, what they have is taken into the column; when many are, the
column is read anew.

The methods that say so are for the thread of `LiteralIndex.step`.
"""

import re
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from threading import Lock
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from pyoxigraph import NamedNode, Quad, Triple

from graphdb.model import ChangeSet, GraphName, node_of_text
from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Ints, Leaf, Longs
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.shard_view import array_segment
from graphdb.sparql.text_tables import table_of
from graphdb.store.view import Subject, Term
from graphdb.text.hit_cells import NumberedCells

__all__ = [
    "ColumnSource",
    "Generation",
    "HeldObjects",
    "HitColumns",
    "Key",
    "KnownObjects",
    "Located",
    "ObjectColumn",
    "Rows",
    "Subjects",
    "subject_of",
]

Key: TypeAlias = tuple[NamedNode, GraphName]
"""The predicate and the graph of a column."""

_COLUMNS_MAX: Final = 32
_STEP_DOCS: Final = 2_000
_STEP_SUBJECTS: Final = 200  # that are looked up, about 3 ms
_CHANGED_MIN: Final = 64  # subjects that changed, of any column, before what they have is taken in
_LOST_MIN: Final = 1_000  # likewise, before it is read anew
_ROWS_A_SUBJECT: Final = 32  # of a column; one with more is given up
_ROWS_MIN: Final = 100_000  # that are read of any before it is

# A cell of TSV that is the term in N-Triples: an IRI, a blank node, or a string without characters that only
# N-Triples escapes.
_AS_IT_IS = re.compile(r'<[^<>]*>|_:.*|"[^\x00-\x1f\x7f\ufffe\uffff]*', re.DOTALL)
_ROW_END: Final = b"\n"


class Rows(Protocol):
    """See `ObjectRows`."""

    def read(self) -> bytes: ...
    def close(self) -> None: ...


class ColumnSource(Protocol):
    """The store that columns are read from: see `QuadStore`."""

    def object_rows(self, predicate: NamedNode, graph: GraphName) -> Rows: ...
    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterable[Quad]: ...


class Subjects:
    """Numbers of subjects, in the order in which they were first met. A number never gets another subject."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.texts: list[str] = []  # in N-Triples, by number
        self.cells = NumberedCells(self.texts)

    def number(self, text: str) -> int:
        """That of a subject, a new one if need be."""
        number = self.numbers.get(text)
        if number is None:
            self.texts.append(text)  # before anybody can have its number
            self.numbers[text] = number = len(self.numbers)
        return number


@dataclass(frozen=True, slots=True, eq=False)
class HeldObjects:
    """The objects of subject n are those of codes[starts[n]:starts[n + 1]]; of subjects that are numbered
    later it knows nothing. terms and numbers may have more than it needs.
    """

    starts: Ints
    codes: Ints
    terms: list[str]  # in N-Triples, by code
    numbers: dict[str, int]  # codes, by term
    cells: NumberedCells  # of the terms

    @property
    def size(self) -> int:
        """How many subjects it knows."""
        return len(self.starts) - 1

    def code(self, text: str) -> int:
        """That of a term, a new one if need be. On one thread."""
        code = self.numbers.get(text)
        if code is None:
            self.terms.append(text)  # before anybody can have its code
            self.numbers[text] = code = len(self.terms) - 1
        return code

    def changed(self, subjects: Longs, counts: Longs, codes: Ints, size: int) -> "HeldObjects":
        """The same of `size` subjects, where these, in ascending order, have so many objects, with these
        codes.
        """
        before = np.diff(self.starts)
        after = np.zeros(size, np.int64)
        after[: self.size] = before
        after[subjects] = counts
        others = np.ones(size, np.bool_)
        others[subjects] = False
        starts = np.zeros(size + 1, np.int32)
        np.cumsum(after, out=starts[1:])
        kept = np.repeat(others, after)
        made = np.empty(len(kept), np.int32)
        made[kept] = self.codes[np.repeat(others[: self.size], before)]
        made[~kept] = codes
        return HeldObjects(starts, made, self.terms, self.numbers, self.cells)


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """Where the objects of subjects are: those of the i-th from first[i] on, counts[i] of them."""

    held: HeldObjects
    first: Longs
    counts: Longs
    unknown: Bools  # those to be looked up in the store: it does not know them, or they changed
    lacks: bool  # whether there are such
    is_single: bool  # whether each has one object, and is known


class KnownObjects(NamedTuple):
    """Objects of subjects, but for those of the subjects that are marked in one of two arrays, or beyond."""

    objects: HeldObjects
    marks: Bools
    taking_in: Bools


@compiled(nogil=True)
def _located(
    numbers: Longs, starts: Ints, marks: Bools, taking_in: Bools
) -> tuple[Longs, Longs, Bools, bool, bool]:
    """See `Located`. Subjects that are not known have the number -1, or one that starts does not have."""
    first, counts = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    unknown = np.zeros(len(numbers), np.bool_)
    lacks, is_single = False, True
    for i in range(len(numbers)):
        number = numbers[i]
        is_known = 0 <= number < len(starts) - 1
        for marked in (marks, taking_in):
            is_known = is_known and not (number < len(marked) and marked[number])
        if is_known:
            first[i] = starts[number]
            counts[i] = starts[number + 1] - starts[number]
        unknown[i] = not is_known
        lacks |= unknown[i]
        is_single &= counts[i] == 1
    return first, counts, unknown, lacks, is_single


def _no_marks() -> Bools:
    return np.zeros(0, np.bool_)


_NO_MARKS = _no_marks()


@dataclass(slots=True, eq=False)
class ObjectColumn:
    """What is known of the objects of a key, and of which subjects it is not known any more."""

    held: HeldObjects | None = None  # None: it is not read yet
    is_lost: bool = False  # it is not right any more, and has to be read anew
    is_refused: bool = False  # it is never read
    _changed: deque[str] = field(default_factory=deque)  # subjects that are not marked yet
    _marks: Bools = field(default_factory=_no_marks)
    _marked: int = 0
    _taking_in: Bools = field(default_factory=_no_marks)  # those marked whose objects are looked up now
    _is_taking_in: bool = False
    _lock: Lock = field(default_factory=Lock)

    def note(self, subject: str, changed_max: int) -> bool:
        """A change to this subject is about to become visible. Whether there may be enough to take in."""
        if not self.is_lost:
            self._changed.append(subject)
            self.is_lost = len(self._changed) > changed_max
        return len(self._changed) % _CHANGED_MIN == 0

    def refuse(self) -> None:
        """It cannot be read."""
        self.is_lost = self.is_refused = True

    def fill(self, held: HeldObjects) -> None:
        """What a scan has found, which began after the first note."""
        with self._lock:
            self._marks = np.zeros(held.size, np.bool_)
            self.held = held

    def view(self, numbers: Longs, subjects: Subjects) -> "Located | None":
        """What it holds of these subjects. None if it is lost."""
        known = self.known(subjects)
        if known is None:
            return None
        held, marks, taking_in = known
        return Located(held, *_located(numbers, held.starts, marks, taking_in))

    def known(self, subjects: Subjects) -> "KnownObjects | None":
        """All that it holds. None if it is lost."""
        with self._lock:
            self._mark(subjects)
            held = self.held
            if self.is_lost or held is None:
                return None
            marks = self._marks if self._marked else _NO_MARKS
            return KnownObjects(held, marks, self._taking_in if self._is_taking_in else _NO_MARKS)

    def is_due(self, subjects: Subjects) -> bool:
        """Whether what changed is worth to be taken in."""
        held = self.held
        if held is None or self.is_lost or self._is_taking_in:
            return False
        changed = len(self._changed) + self._marked + len(subjects.texts) - held.size
        return changed >= max(_CHANGED_MIN, held.size >> 8)

    def due(self, subjects: Subjects) -> Longs:
        """The subjects to take in, in ascending order; maybe there are none. Call it while no change is being
        applied, and then look up what they have.
        """
        with self._lock:
            self._mark(subjects)
            if not self.is_due(subjects):
                return np.zeros(0, np.int64)
            assert self.held is not None
            size = len(subjects.texts)
            self._taking_in, self._is_taking_in = self._marks, True
            self._marks, self._marked = np.zeros(size, np.bool_), 0
            return np.concatenate((np.flatnonzero(self._taking_in), np.arange(self.held.size, size)))

    def take_in(self, held: HeldObjects) -> None:
        """What it holds now that these were looked up."""
        with self._lock:
            self.held, self._taking_in, self._is_taking_in = held, _no_marks(), False

    def _mark(self, subjects: Subjects) -> None:
        """Those that changed; with many it is lost. With the lock held."""
        if self.held is None:
            return
        while self._changed:
            number = subjects.numbers.get(self._changed.popleft(), len(self._marks))
            if number < len(self._marks) and not self._marks[number]:
                self._marks[number] = True
                self._marked += 1
        if self._marked > max(_LOST_MIN, len(self._marks) // 8):
            self.is_lost = True


class Generation:
    """Columns, and the numbers that they have the subjects by. What one has is good with that one only."""

    def __init__(self) -> None:
        self.subjects = Subjects()
        self.columns: dict[Key, ObjectColumn] = {}  # those that are noted for
        self.docs: dict[str, Ints] = {}  # numbers of the subjects of documents, by the names of segments

    def numbers(self, leaf: Leaf, docs: Longs) -> Longs:
        """The numbers of the subjects of documents of a leaf, by their places in it; -1 for one without."""
        known = self.docs.get(leaf.segment.name)
        if known is not None:
            return known[docs].astype(np.int64)
        number, doc_id = self.subjects.numbers.get, leaf.segment.doc_id
        return np.array([number(subject_of(doc_id(doc)), -1) for doc in docs.tolist()], np.int64)


class HitColumns:
    """Owned by a `LiteralIndex`, which tells it of all changes."""

    def __init__(self, source: ColumnSource | None, subjects_max: int, on_work: Callable[[], None]) -> None:
        """Only `step` reads the source. subjects_max: with more subjects there are no columns; 0, or without
        a source: none at all.
        """
        self._source, self._on_work = source, on_work
        self._subjects_max = 0 if source is None else subjects_max
        self._wanted: dict[Key, None] = {}  # to be read
        self._begun: set[Key] = set()  # of these, those whose changes are noted
        self._present = Generation()
        self._predicates: frozenset[NamedNode] = frozenset()  # of its columns
        self._unread: dict[str, ArraySegment] = {}  # segments whose documents are to be numbered
        self._numbering = "", array("i")  # of which of these, and those of its first documents
        self._reading: _Reading | _TakingIn | None = None
        self._due: deque[_TakingIn] = deque()

    # what the writer of the store calls

    def note(self, change: ChangeSet) -> None:
        """Note a change that is about to be applied."""
        if not self._predicates:
            return
        for quad in (*change.removed, *change.added):
            if quad.predicate in self._predicates:
                column = self._present.columns.get((quad.predicate, quad.graph_name))
                if column is not None and column.note(str(quad.subject), self._changed_max):
                    self._on_work()

    def note_many(self) -> None:
        """Note a change of which nothing is known."""
        for column in list(self._present.columns.values()):
            column.is_lost = True

    @property
    def _changed_max(self) -> int:
        return max(_LOST_MIN, len(self._present.subjects.texts) // 8)

    # what a search asks

    def columns(self, keys: Sequence[Key]) -> tuple[Generation, list[ObjectColumn]] | None:
        """Those of the keys; None where one is not there yet."""
        present, found = self._present, []
        for key in keys:
            column = present.columns.get(key)
            if column is None or column.is_lost or column.held is None:
                self._ask(key, column)
            else:
                found.append(column)
        return (present, found) if len(found) == len(keys) else None

    def is_present(self, generation: Generation) -> bool:
        """Whether its columns are those that are kept up."""
        return generation is self._present

    def _ask(self, key: Key, column: ObjectColumn | None) -> None:
        if not self._subjects_max or key in self._wanted:
            return
        if column is not None and (column.is_refused or not column.is_lost):
            return
        if column is not None or len(self._present.columns) < _COLUMNS_MAX:
            self._wanted[key] = None
            self._on_work()

    # what the owner calls

    @property
    def has_work(self) -> bool:
        """Whether there is something to begin or to read."""
        if self._wanted or self._unread or self._due or self._reading is not None:
            return True
        present = self._present
        return any(column.is_due(present.subjects) for column in list(present.columns.values()))

    def begin(self, leaves: Iterable[Leaf]) -> None:
        """Begin to read what is wanted. Call it while no change is being applied."""
        present, source = self._present, self._source
        assert source is not None or not self._wanted
        wanted = [key for key in self._wanted if key not in self._begun]
        for key in wanted:
            present.columns[key] = ObjectColumn()
            self._begun.add(key)
        if wanted:
            self._predicates = frozenset(predicate for predicate, _ in present.columns)
            self.follow(leaves)
        for key, column in present.columns.items():
            if source is not None and column.is_due(present.subjects):
                due = column.due(present.subjects)
                if len(due):
                    self._due.append(_TakingIn(key, column, due, present.subjects, source))

    def follow(self, leaves: Iterable[Leaf]) -> None:
        """These are the leaves now."""
        present = self._present
        if not present.columns:
            return
        segments = {leaf.segment.name: array_segment(leaf) for leaf in leaves}
        if len(present.subjects.texts) > _CHANGED_MIN + 2 * sum(each.size for each in segments.values()):
            self.forget()  # most of them have no literal any more
            return
        for name in present.docs.keys() - segments.keys():
            del present.docs[name]
        self._unread = {name: each for name, each in segments.items() if name not in present.docs}
        if self._numbering[0] not in self._unread:
            self._numbering = "", array("i")

    def step(self) -> bool:
        """Read some. Returns whether there was any."""
        if self._unread:
            self._number_some()
        elif self._reading is not None:
            if self._reading.step():
                self._reading.close()
                self._reading = None
        elif self._due:
            self._reading = self._due.popleft()
        elif self._wanted:
            return self._read_next()
        else:
            return False
        return True

    def _read_next(self) -> bool:
        for key in list(self._wanted):
            if key in self._begun:
                self._begun.discard(key)
                del self._wanted[key]
                assert self._source is not None
                present, rows = self._present, self._source.object_rows(*key)
                self._reading = _Reading(present.columns[key], present.subjects, rows)
                return True
        return False

    def forget(self) -> None:
        """The store is read anew: what is asked for is asked for again."""
        self._wanted.clear()
        self._begun.clear()
        self._numbering = "", array("i")
        self._present, self._predicates, self._unread = Generation(), frozenset(), {}
        self._due.clear()
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def close(self) -> None:
        """Release the store. Call it on the thread of `step`."""
        self.forget()

    def _number_some(self) -> None:
        """Some documents of one segment; too many subjects end it all."""
        name, found = self._numbering
        if not name:
            name, found = self._numbering = next(iter(self._unread)), array("i")
        segment, subjects = self._unread[name], self._present.subjects
        some = segment.root_ids(len(found), min(len(found) + _STEP_DOCS, segment.size))
        found.extend([subjects.number(raw[: raw.index(b" ")].decode()) for raw in some])
        if len(subjects.texts) > self._subjects_max:
            self.forget()
            self._subjects_max = 0
        elif len(found) == segment.size:
            self._present.docs[name] = np.array(found, np.int32)
            del self._unread[name]
            self._numbering = "", array("i")


class _Reading:
    """Reads a column."""

    def __init__(self, column: ObjectColumn, subjects: Subjects, rows: Rows) -> None:
        self._column, self._numbers, self._rows = column, subjects.numbers, rows
        self._size = len(subjects.texts)
        self._left = max(_ROWS_MIN, _ROWS_A_SUBJECT * self._size)
        self._cut = b""  # the beginning of a row
        self._codes: dict[str, int] = {}  # by cell
        self._terms: list[str] = []  # by code
        self._respelt: dict[str, str] = {}  # terms, by cells that are others
        self._of, self._found = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]

    def step(self) -> bool:
        """Whether that was all of it."""
        piece = self._rows.read()
        if not piece:
            self._column.fill(self._held())
            return True
        rows, end, self._cut = (self._cut + piece).rpartition(_ROW_END)
        if end and not self._take(rows.decode()):
            self._column.refuse()
        return self._column.is_refused

    def close(self) -> None:
        """Let go of the store."""
        self._rows.close()

    def _take(self, rows: str) -> bool:
        """Take in some rows; the names of variables are none of a subject. Whether it may go on."""
        count = rows.count("\n") + 1
        cells = rows.replace("\n", "\t").split("\t")
        self._left -= count
        if len(cells) != 2 * count or self._left < 0:
            return False
        number = self._numbers.get
        of = np.array([number(cell, -1) for cell in cells[::2]], np.int32)
        known = (of >= 0) & (of < self._size)
        objects = list(compress(cells[1::2], known.tolist()))
        codes = list(map(self._codes.get, objects))
        if None in codes:
            fresh = dict.fromkeys(cell for cell, code in zip(objects, codes, strict=True) if code is None)
            if not self._number(list(fresh)):
                return False
            codes = list(map(self._codes.get, objects))
        self._of.append(of[known])
        self._found.append(np.array(codes, np.int32))
        return True

    def _number(self, cells: list[str]) -> bool:
        """Number new cells; whether all of them are terms that may be held."""
        odd = [cell for cell in cells if not _AS_IT_IS.fullmatch(cell)]
        if any(cell.startswith("<") for cell in odd):  # a triple, or an IRI that a strict parser would refuse
            return False
        if odd:
            terms = (str(row[0]) for row in table_of(("c",), ([cell] for cell in odd)))
            self._respelt.update(zip(odd, terms, strict=True))
        self._codes.update(zip(cells, range(len(self._terms), len(self._terms) + len(cells)), strict=True))
        self._terms += [self._respelt.get(cell, cell) for cell in cells] if odd else cells
        return True

    def _held(self) -> HeldObjects:
        of, codes = np.concatenate(self._of), np.concatenate(self._found)
        starts = np.zeros(self._size + 1, np.int32)
        np.cumsum(np.bincount(of, minlength=self._size), out=starts[1:])
        for cell, term in self._respelt.items():
            self._codes[term] = self._codes.pop(cell)
        in_order = codes[np.argsort(of, kind="stable")]
        return HeldObjects(starts, in_order, self._terms, self._codes, NumberedCells(self._terms))


class _TakingIn:
    """Looks up what subjects have that changed, or are new."""

    def __init__(
        self, key: Key, column: ObjectColumn, due: Longs, subjects: Subjects, source: ColumnSource
    ) -> None:
        assert column.held is not None
        self._key, self._column, self._held, self._due, self._source = key, column, column.held, due, source
        self._texts, self._size = subjects.texts, len(subjects.texts)
        self._counts, self._codes = array("i"), array("i")

    def step(self) -> bool:
        """Whether that was all of it."""
        predicate, graph = self._key
        done = len(self._counts)
        for number in self._due[done : done + _STEP_SUBJECTS].tolist():
            quads = self._source.quads_matching(node_of_text(self._texts[number]), predicate, None, graph)
            objects = [quad.object for quad in quads]
            if any(isinstance(each, Triple) for each in objects):
                self._column.refuse()
                return True
            self._counts.append(len(objects))
            self._codes.extend([self._held.code(str(each)) for each in objects])
        if len(self._counts) < len(self._due):
            return False
        counts, codes = np.array(self._counts, np.int64), np.array(self._codes, np.int32)
        self._column.take_in(self._held.changed(self._due, counts, codes, self._size))
        return True

    def close(self) -> None:
        """There is nothing to let go of."""


def subject_of(key: str) -> str:
    """Of the name of a quad in the index."""
    return key[: key.index(" ")]
