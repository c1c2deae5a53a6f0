"""`ArraySegment`: a segment over arrays, wherever they lie."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.search.index_order import IndexOrder, order_of_bytes
from graphdb.search.leaf_reader import (
    Bools,
    Ints,
    Longs,
    NumberColumn,
    Ordinals,
    PointColumn,
    TermDictionary,
    TextArrays,
    VectorColumn,
)
from graphdb.search.segments.field_builders import transpose
from graphdb.search.segments.postings import Bytes, narrow_freqs, unpack_positions, whole_freqs
from graphdb.search.segments.sections import (
    IGNORED,
    ORDER,
    ROUTING,
    Hashes,
    Key,
    Sections,
    SortedStrings,
    decode,
    encode,
    hash_id,
    strings,
)
from graphdb.search.segments.sources import sources_of

__all__ = ["ArraySegment", "ArrayTerms", "ArrayText", "freqs_of"]

T = TypeVar("T")
_METADATA = {IGNORED, ROUTING}


class ArrayText:
    """`TextIndex` over sections."""

    def __init__(self, sections: Sections, path: str) -> None:
        self._strings = _dictionary(sections, "text", path)
        self.dictionary: TermDictionary = self._strings
        self.norms: NDArray[np.uint8] = sections["text", path, "norms"]
        self._starts: Longs = sections["text", path, "starts"]
        self._docs: Ints = sections["text", path, "docs"]
        self._freqs, self._high = freqs_of(sections, path)
        self._position_starts: Longs = sections["text", path, "position_starts"]
        # bytes; of a file of format 1 or 2 the positions themselves
        self._positions: NDArray[Any] = sections["text", path, "positions"]
        self.doc_count = int(np.count_nonzero(self.norms))
        tokens = sections.get(("text", path, "tokens"))
        self.total_terms = len(self._positions) if tokens is None else int(tokens[0])

    def postings(self, number: int) -> tuple[Ints, Ints]:
        start, stop = self._starts[number : number + 2].tolist()
        return self._docs[start:stop], whole_freqs(self._freqs, self._high, start, stop)

    def docs_of(self, number: int) -> Ints:
        start, stop = self._starts[number : number + 2].tolist()
        return self._docs[start:stop]

    @cached_property
    def ordinals(self) -> Ordinals:
        return Ordinals(*transpose(self._starts, self._docs, len(self.norms)))

    def posting_ranges(self, numbers: Longs) -> tuple[Ints, Bytes, Longs, Longs, Longs]:
        return self._docs, self._freqs, self._high, self._starts[numbers], self._starts[numbers + 1]

    def arrays(self) -> TextArrays | None:
        return self.all_postings()

    def all_postings(self) -> TextArrays:
        strings = self._strings
        return TextArrays(strings.blob, strings.starts, self._starts, self._docs, self._freqs, self._high)

    def packed_positions(self, numbers: Longs) -> tuple[Bytes, Longs, Longs] | None:
        if self._positions.dtype != np.uint8:
            return None
        return self._positions, self._position_starts[numbers], self._position_starts[numbers + 1]

    def positions(self, number: int) -> tuple[Ints, Ints]:
        freqs = self.postings(number)[1]
        starts = np.zeros(len(freqs) + 1, np.int32)
        np.cumsum(freqs, out=starts[1:])
        start, stop = self._position_starts[number : number + 2].tolist()
        positions = self._positions[start:stop]
        if positions.dtype == np.uint8:
            positions = unpack_positions(positions, freqs)
            positions.setflags(write=False)
        return starts, positions


class ArrayTerms:
    """`TermIndex` over sections."""

    def __init__(self, sections: Sections, path: str) -> None:
        self.dictionary: TermDictionary = _dictionary(sections, "terms", path)
        self._starts: Longs = sections["terms", path, "starts"]
        self._docs: Ints = sections["terms", path, "docs"]
        self.ordinals = Ordinals(
            sections["terms", path, "ordinal_starts"], sections["terms", path, "ordinals"]
        )
        self.doc_count = int(np.count_nonzero(np.diff(self.ordinals.starts)))

    def all_postings(self) -> tuple[Longs, Ints]:
        """(starts, docs): the postings of term t are docs[starts[t]:starts[t + 1]]."""
        return self._starts, self._docs

    def postings(self, number: int) -> Ints:
        start, stop = self._starts[number : number + 2].tolist()
        return self._docs[start:stop]


class ArraySegment:
    """`Segment` over sections. Nothing is read before it is asked for, so that opening one takes no time."""

    live_only = False

    def __init__(self, name: str, sections: Sections) -> None:
        self.name = name
        self.sections = sections
        self.file: tuple[str, int] | None = (
            None  # path and inode of the file that the sections are mapped from
        )
        self.seq_nos: Longs = sections["", "", "seq_nos"]
        self.versions: Longs = sections["", "", "versions"]
        self.size = len(self.seq_nos)
        self.parents: Ints | None = sections.get(("", "", "parents"))
        self.nested_path: Ints | None = sections.get(("", "", "nested_path"))
        self.nested_paths: Sequence[str] = ()
        self.order: IndexOrder = order_of_bytes(sections.get(ORDER))
        self._roots: Ints | None = None  # the documents that are roots; None: all are
        if self.parents is not None:
            paths = strings(sections, "nested_paths")
            self.nested_paths = [decode(raw) for raw in paths.raws(0, len(paths))]
            self._roots = np.flatnonzero(self.parents < 0).astype(np.int32)
        self._ids, self.sources = strings(sections, "ids"), sources_of(sections, f"segment {name}")
        # looking for one number in a view takes a third of the time that it takes in an array
        self._id_hashes = memoryview(sections["", "", "id_hashes"])  # type: ignore[arg-type]  # a buffer
        self._storages: dict[str, list[str]] = {}
        for storage, path, _ in sections:
            if path and storage not in self._storages.setdefault(path, []):
                self._storages[path].append(storage)
        self._fields = frozenset(self._storages) - _METADATA
        self._opened: dict[tuple[str, str], Any] = {}
        self.derived: dict[tuple[str, str], Any] = {}

    @property
    def size_bytes(self) -> int:
        """What the arrays take, in memory or on disk."""
        return sum(array.nbytes for array in self.sections.values())

    def bytes_of(self, path: str) -> int:
        """What the arrays of one field take."""
        return sum(array.nbytes for (_, other, _), array in self.sections.items() if other == path)

    def loaded_bytes(self) -> dict[str, int]:
        """By path of a text field whose tokens by document are in memory, because somebody sorted or
        aggregated by them: what they take.
        """
        loaded: dict[str, int] = {}
        for (storage, path), reader in list(self._opened.items()):
            ordinals = vars(reader).get("ordinals") if storage == "text" else None
            if ordinals is not None:
                loaded[path] = int(ordinals.starts.nbytes + ordinals.terms.nbytes)
        return loaded

    @property
    def has_metadata(self) -> bool:
        return not _METADATA.isdisjoint(self._storages)

    @property
    def has_vectors(self) -> bool:
        return any(storage == "vectors" for storage, _, _ in self.sections)

    @property
    def root_count(self) -> int:
        """Documents without nested ones."""
        return len(self._ids)

    def root_number(self, doc: int) -> int:
        """Which root, counted without nested documents, a document is or is in."""
        return doc if self._roots is None else int(self._roots.searchsorted(doc))

    def root_docs(self) -> Ints:
        """The documents that are no nested ones."""
        return np.arange(self.size, dtype=np.int32) if self._roots is None else self._roots

    def block(self, doc: int) -> slice:
        """A root with the nested documents in it."""
        if self._roots is None:
            return slice(doc, doc + 1)
        number = self.root_number(doc)
        return slice(int(self._roots[number - 1]) + 1 if number else 0, doc + 1)

    def doc_id(self, doc: int) -> str:
        return self._ids.text(doc if self._roots is None else self.root_number(doc))

    def root_ids(self, start: int, stop: int) -> Iterator[bytes]:
        """The `_id`s, encoded, of the roots with numbers in [start, stop)."""
        return self._ids.raws(start, stop)

    def find(self, doc_id: str) -> int:
        """Where the segment has it twice (replaced before it was searchable), the later one."""
        raw = encode(doc_id)
        return self.find_hashed(raw, hash_id(raw))

    def find_hashed(self, raw: bytes, hashed: int) -> int:
        """`find` for a caller that has hashed the `_id` already."""
        hashes = self._id_hashes
        place = bisect_right(hashes, hashed) - 1
        while place >= 0 and hashes[place] == hashed:
            number = int(self.sections["", "", "id_docs"][place])
            if self._ids.raw(number) == raw:
                return number if self._roots is None else int(self._roots[number])
            place -= 1
        return -1

    def find_all(self, raws: Sequence[bytes], hashes: Hashes) -> list[tuple[int, int]]:
        """(which of raws, document) of those that are here."""
        sorted_hashes: Hashes = self.sections["", "", "id_hashes"]
        places, size = sorted_hashes.searchsorted(hashes), len(sorted_hashes)
        if not size:
            return []
        likely = np.flatnonzero(sorted_hashes[np.minimum(places, size - 1)] == hashes).tolist()
        found = ((i, self.find_hashed(raws[i], int(hashes[i]))) for i in likely)
        return [(i, doc) for i, doc in found if doc >= 0]

    def source(self, doc: int) -> bytes:
        return self.sources.raw(doc if self._roots is None else self.root_number(doc))

    def shown(self, docs: Sequence[int]) -> Iterator[tuple[str, bytes]]:
        numbers = docs if self._roots is None else [*map(self.root_number, docs)]
        return zip(self._ids.texts(numbers), self.sources.some(numbers), strict=True)

    def routing(self, doc: int) -> str | None:
        found = self._metadata(ROUTING, doc)
        return found[0] if found else None

    def ignored(self, doc: int) -> Sequence[str]:
        return self._metadata(IGNORED, doc)

    def fields(self) -> frozenset[str]:
        return self._fields

    def text(self, path: str) -> ArrayText | None:
        return self._open("text", path, lambda: ArrayText(self.sections, path))

    def terms(self, path: str) -> ArrayTerms | None:
        return self._open("terms", path, lambda: ArrayTerms(self.sections, path))

    def ints(self, path: str) -> NumberColumn | None:
        if path in ("_seq_no", "_version"):
            return NumberColumn(self.seq_nos if path == "_seq_no" else self.versions, None)
        return self._numbers("ints", path)

    def exact(self, path: str) -> NumberColumn | None:
        return self._numbers("exact", path)

    def floats(self, path: str) -> NumberColumn | None:
        return self._numbers("floats", path)

    def points(self, path: str) -> PointColumn | None:
        parts = ("latitudes", "longitudes", "starts")
        return self._open("points", path, lambda: PointColumn(*self._parts("points", path, parts)))

    def vectors(self, path: str) -> VectorColumn | None:
        parts = ("docs", "rows")
        return self._open("vectors", path, lambda: VectorColumn(*self._parts("vectors", path, parts)))

    def having(self, path: str) -> Bools:
        having = np.zeros(self.size, np.bool_)
        below = path + "."
        for other in self._storages:
            if other == path or other.startswith(below):
                having |= self.having_itself(other)
        return having

    def having_itself(self, path: str) -> Bools:
        having = np.zeros(self.size, np.bool_)
        for storage in self._storages.get(path, ()):
            _mark(having, self.sections, storage, path)
        return having

    def _numbers(self, storage: str, path: str) -> NumberColumn | None:
        def column() -> NumberColumn:
            starts = self.sections.get((storage, path, "starts"))
            return NumberColumn(self.sections[storage, path, "values"], starts)

        return self._open(storage, path, column)

    def _open(self, storage: str, path: str, make: Callable[[], T]) -> T | None:
        """Make the reader of a field once; two threads may both, and one of the two is kept."""
        found: T | None = self._opened.get((storage, path))
        if found is None and storage in self._storages.get(path, ()):
            found = self._opened.setdefault((storage, path), make())
        return found

    def _parts(self, storage: str, path: str, parts: Sequence[str]) -> list[NDArray[Any]]:
        return [self.sections[storage, path, part] for part in parts]

    def _metadata(self, path: str, doc: int) -> list[str]:
        """The terms of a metadata field, which are those of the root."""
        index = self.terms(path)
        if index is None:
            return []
        root = int(self.root_docs()[self.root_number(doc)])
        start, stop = index.ordinals.starts[root : root + 2].tolist()
        return [index.dictionary.term(number) for number in index.ordinals.terms[start:stop].tolist()]


def freqs_of(sections: Sections, path: str) -> tuple[Bytes, Longs]:
    """(freqs, high) of a text, see `TextArrays`, also of one from a file of format 1 or 2."""
    freqs, high = sections["text", path, "freqs"], sections.get(("text", path, "high_freqs"))
    return narrow_freqs(freqs) if high is None else (freqs, high)


def _dictionary(sections: Sections, storage: str, path: str) -> SortedStrings:
    blob: Key = (storage, path, "dictionary_blob")
    return SortedStrings(sections[blob], sections[storage, path, "dictionary_starts"])


def _mark(having: Bools, sections: Sections, storage: str, path: str) -> None:
    """Set those that have a value for the path in that storage."""
    if storage == "text":
        having |= sections["text", path, "norms"] > 0
        having[sections["text", path, "empty"]] = True
    elif storage == "vectors":
        having[sections["vectors", path, "docs"]] = True
    else:
        part = "ordinal_starts" if storage == "terms" else "starts"
        starts = sections.get((storage, path, part))
        having |= True if starts is None else np.diff(starts) > 0
