"""`HitColumns`: what the subjects of indexed literals have for a predicate, as arrays, to join hits with.

A look-up in the engine takes ten to twenty microseconds, most of it to read the terms. Here it is a place in
an array. A column holds the objects of one predicate in one graph for each subject that has an indexed
literal. It is read once, by a scan. A change to a subject is noted before it is visible; from then on that
subject is looked up in the store. When many are, the column is read anew.

The methods that say so are for the thread of `LiteralIndex.step`.
"""

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Final, TypeAlias

import numpy as np
from pyoxigraph import NamedNode, Quad, Triple

from graphdb.model import ChangeSet, GraphName
from graphdb.search.leaf_reader import Bools, Ints, Leaf, Longs
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.shard_view import array_segment

__all__ = ["Generation", "HitColumns", "Key", "ObjectColumn", "Subjects", "subject_of"]

Key: TypeAlias = tuple[NamedNode, GraphName]
"""The predicate and the graph of a column."""
Scan: TypeAlias = Callable[[NamedNode, GraphName], Iterable[Quad]]

_ASKED_MIN: Final = 16  # times that a column is asked for before it is read, which takes 3 µs for a quad
_COLUMNS_MAX: Final = 32
_STEP: Final = 500  # quads or documents
_CHANGED_MIN: Final = 1_000  # subjects that changed, of any column, before it is read anew


class Subjects:
    """Numbers of subjects, in the order in which they were first met. A number never gets another subject."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.texts: list[str] = []  # in N-Triples, by number

    def number(self, text: str) -> int:
        """That of a subject, a new one if need be."""
        number = self.numbers.get(text)
        if number is None:
            self.texts.append(text)  # before anybody can have its number
            self.numbers[text] = number = len(self.numbers)
        return number


@dataclass(slots=True, eq=False)
class ObjectColumn:
    """The objects of subject n are those of codes[starts[n]:starts[n + 1]]; of subjects that are numbered
    later it knows nothing.
    """

    starts: Ints = field(default_factory=lambda: np.zeros(1, np.int32))
    codes: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    terms: list[str] = field(default_factory=list)  # in N-Triples, by code
    is_ready: bool = False
    numbers: dict[str, int] = field(default_factory=dict)  # codes, by term
    is_lost: bool = False  # it is not right any more, and has to be read anew
    _changed: deque[str] = field(default_factory=deque)  # subjects that are not marked yet
    _marks: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    _marked: int = 0
    _lock: Lock = field(default_factory=Lock)

    @property
    def size(self) -> int:
        """How many subjects it knows."""
        return len(self.starts) - 1

    def note(self, subject: str, changed_max: int) -> None:
        """A change to this subject is about to become visible."""
        if not self.is_lost:
            self._changed.append(subject)
            self.is_lost = len(self._changed) > changed_max

    def fill(self, starts: Ints, codes: Ints, numbers: dict[str, int]) -> None:
        """What a scan has found, which began after the first note."""
        self.starts, self.codes, self.terms, self.numbers = starts, codes, list(numbers), numbers
        self._marks = np.zeros(self.size, np.bool_)
        self.is_ready = True

    def unknown(self, numbers: Longs, subjects: Subjects) -> Bools:
        """Which subjects have to be looked up in the store: those that it does not know, -1 among them, and
        those that changed.
        """
        with self._lock:
            while self._changed:
                number = subjects.numbers.get(self._changed.popleft(), self.size)
                if number < self.size and not self._marks[number]:
                    self._marks[number] = True
                    self._marked += 1
            if self._marked > max(_CHANGED_MIN, self.size // 8):
                self.is_lost = True
        if self.is_lost:
            return np.ones(len(numbers), np.bool_)
        found: Bools = (numbers < 0) | (numbers >= self.size)
        if self._marked:
            found |= self._marks.take(numbers, mode="clip")
        return found


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

    def __init__(self, scan: Scan, subjects_max: int, on_work: Callable[[], None]) -> None:
        """scan returns the quads of a predicate in a graph, in the present state; only `step` calls it.

        subjects_max: with more subjects there are no columns; 0 for none at all.
        """
        self._scan, self._subjects_max, self._on_work = scan, subjects_max, on_work
        self._asked: Counter[Key] = Counter()
        self._wanted: dict[Key, None] = {}  # to be read
        self._begun: set[Key] = set()  # of these, those whose changes are noted
        self._present = Generation()
        self._predicates: frozenset[NamedNode] = frozenset()  # of its columns
        self._unread: dict[str, ArraySegment] = {}  # segments whose documents are to be numbered
        self._numbering = "", array("i")  # of which of these, and those of its first documents
        self._reading: _Reading | None = None

    # what the writer of the store calls

    def note(self, change: ChangeSet) -> None:
        """Note a change that is about to be applied."""
        if not self._predicates:
            return
        for quad in (*change.removed, *change.added):
            if quad.predicate in self._predicates:
                column = self._present.columns.get((quad.predicate, quad.graph_name))
                if column is not None:
                    column.note(str(quad.subject), self._changed_max)

    def note_many(self) -> None:
        """Note a change of which nothing is known."""
        for column in list(self._present.columns.values()):
            column.is_lost = True

    @property
    def _changed_max(self) -> int:
        return max(_CHANGED_MIN, len(self._present.subjects.texts) // 8)

    # what a search asks

    def columns(self, keys: Sequence[Key]) -> tuple[Generation, list[ObjectColumn]] | None:
        """Those of the keys; None where one is not there yet."""
        present, found = self._present, []
        for key in keys:
            column = present.columns.get(key)
            if column is None or column.is_lost or not column.is_ready:
                self._ask(key, column)
            else:
                found.append(column)
        return (present, found) if len(found) == len(keys) else None

    def _ask(self, key: Key, column: ObjectColumn | None) -> None:
        if not self._subjects_max or key in self._wanted or (column is not None and not column.is_lost):
            return
        self._asked[key] += 1
        if self._asked[key] >= _ASKED_MIN and len(self._present.columns) < _COLUMNS_MAX:
            self._wanted[key] = None
            self._on_work()
        if len(self._asked) > 16 * _COLUMNS_MAX:
            self._asked.clear()

    # what the owner calls

    @property
    def has_work(self) -> bool:
        """Whether there is something to begin or to read."""
        return bool(self._wanted or self._unread) or self._reading is not None

    def begin(self, leaves: Iterable[Leaf]) -> None:
        """Begin to read what is wanted. Call it while no change is being applied."""
        wanted = [key for key in self._wanted if key not in self._begun]
        for key in wanted:
            self._present.columns[key] = ObjectColumn()
            self._begun.add(key)
        if wanted:
            self._predicates = frozenset(predicate for predicate, _ in self._present.columns)
            self.follow(leaves)

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
                self._reading = None
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
                present = self._present
                self._reading = _Reading(present.columns[key], present.subjects, self._scan(*key))
                return True
        return False

    def forget(self) -> None:
        """The store is read anew: what is asked for is asked for again."""
        self._wanted.clear()
        self._begun.clear()
        self._numbering = "", array("i")
        self._present, self._predicates, self._unread = Generation(), frozenset(), {}
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
        some = range(len(found), min(len(found) + _STEP, segment.size))
        found.extend([subjects.number(subject_of(segment.doc_id(doc))) for doc in some])
        if len(subjects.texts) > self._subjects_max:
            self.forget()
            self._subjects_max = 0
        elif len(found) == segment.size:
            self._present.docs[name] = np.array(found, np.int32)
            del self._unread[name]
            self._numbering = "", array("i")


class _Reading:
    """Reads a column."""

    def __init__(self, column: ObjectColumn, subjects: Subjects, quads: Iterable[Quad]) -> None:
        self._column, self._numbers = column, subjects.numbers
        self._size = len(subjects.texts)
        self._quads: Iterator[Quad] = iter(quads)
        self._codes: dict[str, int] = {}
        self._of, self._found = array("i"), array("i")

    def step(self) -> bool:
        """Whether that was all of it."""
        some = tuple(islice(self._quads, _STEP))
        codes = self._codes
        for quad in some:
            number = self._numbers.get(str(quad.subject))
            if number is not None and number < self._size:
                if isinstance(quad.object, Triple):
                    self._column.is_lost = True
                    return True
                self._of.append(number)
                self._found.append(codes.setdefault(str(quad.object), len(codes)))
        if not some:
            self._column.fill(*self._arrays(), codes)
        return not some

    def _arrays(self) -> tuple[Ints, Ints]:
        of, codes = (np.array(each, np.int32) for each in (self._of, self._found))
        starts = np.zeros(self._size + 1, np.int32)
        np.cumsum(np.bincount(of, minlength=self._size), out=starts[1:])
        return starts, codes[np.argsort(of, kind="stable")]


def subject_of(key: str) -> str:
    """Of the name of a quad in the index."""
    return key[: key.index(" ")]
