"""Putting the documents of a segment in the order of its index (`index.sort.*`).

Roots are moved with the documents that are nested in them, which stay before them. Roots that are equal in
all fields keep their order. The result is what a builder makes of the same documents in the new order.

Source: Lucene's `Sorter` and `SortingCodecReader`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.compiled import compiled
from graphdb.search.index_order import IndexOrder, OrderField, order_to_bytes
from graphdb.search.leaf_reader import Ints, Longs
from graphdb.search.segments.field_builders import freq_sections, position_sections, ranges
from graphdb.search.segments.postings import Bytes, freq_at, packed_length, whole_freqs
from graphdb.search.segments.sections import ORDER, Hashes, Key, id_sections

__all__ = ["in_order"]

_Sections = dict[Key, NDArray[Any]]
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def in_order(sections: _Sections, order: IndexOrder) -> tuple[_Sections, Ints | None]:
    """(the sections but those of the stored JSON, the old numbers of the roots in their new order; None where
    none has moved).

    What lacks an exact number, as a file of an older program may, stays as it is, and does not claim an
    order.
    """
    if any(_lacks_exact(sections, field.path) for field in order if field.column == "exact"):
        return sections, None
    marked = {**sections, ORDER: order_to_bytes(order)}
    size, parents = len(sections["", "", "seq_nos"]), sections.get(("", "", "parents"))
    roots = np.arange(size) if parents is None else np.flatnonzero(parents < 0)
    keys = [_keys(sections, field, roots) for field in reversed(order)]
    ranks = np.lexsort(keys).astype(np.int32)
    if bool((np.diff(ranks) == 1).all()):
        return marked, None
    lengths = np.diff(roots, prepend=-1).astype(np.int32)
    docs = ranges((roots - lengths + 1)[ranks], lengths[ranks]).astype(np.int32)
    new_docs = np.empty(size, np.int32)
    new_docs[docs] = np.arange(size, dtype=np.int32)
    moved = _Moved(sections, docs, new_docs)
    marked |= moved.documents() | _ids(sections, ranks)
    for storage, path in {key[:2] for key in sections if key[1]}:
        marked |= _MOVES[storage](moved, storage, path)
    return marked, ranks


def _lacks_exact(sections: Mapping[Key, NDArray[Any]], path: str) -> bool:
    counts = [len(sections.get((storage, path, "values"), ())) for storage in ("ints", "exact")]
    return counts[0] != counts[1]


def _keys(sections: Mapping[Key, NDArray[Any]], field: OrderField, roots: Longs) -> NDArray[Any]:
    """One key for each root; what comes first has the least.

    They order as `ByField` does, so that hits which are sorted by the same fields stand in the order of the
    index.
    """
    is_terms = field.column == "terms"
    values = sections.get((field.column, field.path, "ordinals" if is_terms else "values"))
    if values is None:
        return np.zeros(len(roots), np.int64)
    starts = sections.get((field.column, field.path, "ordinal_starts" if is_terms else "starts"))
    kind = np.float64 if field.column == "floats" else np.int64
    if starts is None:
        keys = values[roots].astype(kind)
    else:
        begins, ends = starts[roots], starts[roots + 1]
        having = np.flatnonzero(ends > begins)
        absent_last = field.missing_last != field.descending
        least, greatest = (-np.inf, np.inf) if kind is np.float64 else (_LEAST, _GREATEST)
        keys = np.full(len(roots), greatest if absent_last else least, kind)
        places = begins if field.mode == "min" else ends - 1
        keys[having] = values[places[having]]
    if not field.descending:
        return keys
    return -keys if kind is np.float64 else -1 - keys


def _ids(sections: Mapping[Key, NDArray[Any]], ranks: Ints) -> _Sections:
    """What is by root: the ids and how they are found."""
    starts = sections["", "", "ids_starts"]
    blob, new_starts = _gathered_bytes(sections["", "", "ids_blob"], starts, ranks.astype(np.int64))
    hashes: Hashes = np.empty(len(ranks), np.uint64)
    hashes[sections["", "", "id_docs"]] = sections["", "", "id_hashes"]
    moved: _Sections = {("", "", "ids_blob"): blob, ("", "", "ids_starts"): new_starts}
    return moved | id_sections(hashes[ranks])


@dataclass(frozen=True, slots=True)
class _Moved:
    """docs: the old numbers in their new order; new_docs: the new number of each old one."""

    sections: Mapping[Key, NDArray[Any]]
    docs: Ints
    new_docs: Ints

    def documents(self) -> _Sections:
        """What each document has itself."""
        names = ("seq_nos", "versions", "nested_path")
        keys: list[Key] = [("", "", name) for name in names]
        moved = {key: self.sections[key][self.docs] for key in keys if key in self.sections}
        parents = self.sections.get(("", "", "parents"))
        if parents is not None:
            new = np.where(parents < 0, -1, self.new_docs[parents]).astype(np.int32)
            moved["", "", "parents"] = new[self.docs]
        return moved

    def text(self, storage: str, path: str) -> _Sections:
        starts, docs, freqs, high, position_starts, positions = (
            self.sections[storage, path, name]
            for name in ("starts", "docs", "freqs", "high_freqs", "position_starts", "positions")
        )
        places = _places(starts, docs, self.docs)
        begins = _position_begins(starts, freqs, high, position_starts, positions)
        moved_positions, _ = _gathered_bytes(positions, begins, places)
        return {
            (storage, path, "docs"): self.new_docs[docs[places]],
            **freq_sections(path, whole_freqs(freqs, high, 0, len(docs))[places]),
            **position_sections(path, position_starts, moved_positions),
            (storage, path, "norms"): self.sections[storage, path, "norms"][self.docs],
            (storage, path, "empty"): np.sort(self.new_docs[self.sections[storage, path, "empty"]]),
        }

    def terms(self, storage: str, path: str) -> _Sections:
        docs = self.sections[storage, path, "docs"]
        places = _places(self.sections[storage, path, "starts"], docs, self.docs)
        names = ("ordinal_starts", "ordinals")
        return {(storage, path, "docs"): self.new_docs[docs[places]]} | self._rows(storage, path, *names)

    def numbers(self, storage: str, path: str) -> _Sections:
        if (storage, path, "starts") in self.sections:
            return self._rows(storage, path, "starts", "values")
        return {(storage, path, "values"): self.sections[storage, path, "values"][self.docs]}

    def points(self, storage: str, path: str) -> _Sections:
        return self._rows(storage, path, "starts", "latitudes", "longitudes")

    def vectors(self, storage: str, path: str) -> _Sections:
        docs = self.new_docs[self.sections[storage, path, "docs"]]
        order = np.argsort(docs)
        rows = self.sections[storage, path, "rows"][order]
        return {(storage, path, "docs"): docs[order], (storage, path, "rows"): rows}

    def _rows(self, storage: str, path: str, starts_name: str, *names: str) -> _Sections:
        """Columns of which each document has the places between its start and the next."""
        starts = self.sections[storage, path, starts_name]
        lengths = np.diff(starts)[self.docs]
        moved: _Sections = {(storage, path, starts_name): _starts_of(lengths, starts)}
        places = ranges(starts[self.docs], lengths)
        return moved | {(storage, path, name): self.sections[storage, path, name][places] for name in names}


_MOVES = {
    "text": _Moved.text,
    "terms": _Moved.terms,
    "ints": _Moved.numbers,
    "exact": _Moved.numbers,
    "floats": _Moved.numbers,
    "points": _Moved.points,
    "vectors": _Moved.vectors,
}


def _starts_of(lengths: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
    starts = np.zeros(len(lengths) + 1, like.dtype)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _gathered_bytes(blob: Bytes, starts: Longs, rows: Longs) -> tuple[Bytes, Longs]:
    """(blob, starts) of rows in another order; row r has blob[starts[r]:starts[r + 1]]."""
    new_starts = _starts_of(np.diff(starts)[rows], starts)
    gathered = np.empty(new_starts[-1], np.uint8)
    _gather(blob, starts, rows, new_starts, gathered)
    return gathered, new_starts


# No array of places, as for numbers: it would take eight times as much room as the bytes.
@compiled(nogil=True)
def _gather(blob: Any, starts: Any, rows: Any, new_starts: Any, gathered: Any) -> None:
    for number in range(len(rows)):
        start, target = starts[rows[number]], new_starts[number]
        for place in range(starts[rows[number] + 1] - start):
            gathered[target + place] = blob[start + place]


@compiled(nogil=True)
def _places(starts: Any, docs: Any, order: Any) -> Any:
    """Where each posting was, by where it is to be: those of a term in the new order of their documents.

    order: old numbers of documents in their new order.
    """
    by_doc = np.zeros(len(order) + 1, np.int64)
    for doc in docs:
        by_doc[doc + 1] += 1
    by_doc = np.cumsum(by_doc)
    cursors = by_doc[:-1].copy()
    entries, terms = np.empty(len(docs), np.int64), np.empty(len(docs), np.int32)
    for term in range(len(starts) - 1):
        for place in range(starts[term], starts[term + 1]):
            at = cursors[docs[place]]
            entries[at], terms[at] = place, term
            cursors[docs[place]] += 1
    places, ends = np.empty(len(docs), np.int64), starts[:-1].copy()
    for doc in order:
        for at in range(by_doc[doc], by_doc[doc + 1]):
            places[ends[terms[at]]] = entries[at]
            ends[terms[at]] += 1
    return places


@compiled(nogil=True)
def _position_begins(starts: Any, freqs: Any, high: Any, position_starts: Any, positions: Any) -> Any:
    """Where the packed positions of each posting begin, and where those of the last one end."""
    begins = np.zeros(len(freqs) + 1, np.int64)
    for term in range(len(starts) - 1):
        begin = position_starts[term]
        for place in range(starts[term], starts[term + 1]):
            begins[place] = begin
            begin += packed_length(positions, begin, freq_at(freqs, high, place))
    begins[len(freqs)] = len(positions)
    return begins
