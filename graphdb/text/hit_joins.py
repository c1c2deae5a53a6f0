"""Hits joined with what their subjects have, in arrays: the answer to a `SearchedStar`.

`HitJoiner.joined` gives the rows that the walk of a small join gives (`graphdb.store.join_walk`), best hits
first, without a look-up in the engine for each.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from pyoxigraph import DefaultGraph, NamedNode

from graphdb.model import node_of_text
from graphdb.search.leaf_reader import Bools, Floats, Longs
from graphdb.search.query import Searcher
from graphdb.sparql.search_requests import Part
from graphdb.sparql.text_tables import KeptCells, TextTable
from graphdb.store.join_walk import Pattern
from graphdb.store.quad_store import QuadStore
from graphdb.store.small_joins import SearchedStar, written
from graphdb.text.hit_cells import FloatColumn, NumberedTable, TermColumn
from graphdb.text.hit_columns import (
    Generation,
    HitColumns,
    Key,
    Located,
    ObjectColumn,
    subject_of,
)
from graphdb.text.literal_search import keys_of_quads, leaves_of, score_texts

__all__ = ["HitJoiner", "keys_of"]

_LOOKED_UP_MAX: Final = 128  # subjects, of one answer


def keys_of(star: SearchedStar) -> list[Key]:
    """The columns that it needs."""
    keys: list[Key] = []
    for pattern in star.patterns:
        predicate = pattern.terms[1]
        assert isinstance(predicate, NamedNode)
        keys.append((predicate, pattern.graph or DefaultGraph()))
    return keys


class HitJoiner:
    """For one index of literals; on any thread."""

    def __init__(self, columns: HitColumns) -> None:
        self._columns = columns
        self._kept = KeptCells()

    def columns(self, star: SearchedStar) -> tuple[Generation, list[ObjectColumn]] | None:
        """Those that it needs; None where one is not there, or not yet."""
        return self._columns.columns(keys_of(star))

    def joined(
        self,
        star: SearchedStar,
        columns: tuple[Generation, Sequence[ObjectColumn]],
        searcher: Searcher,
        docs: Longs,
        scores: Floats,
        store: QuadStore,
        rows_max: int,
    ) -> TextTable | None:
        """The answer in the present state of the store, of hits of that state, best first. None where there
        are more rows, or many subjects have to be looked up; or where the graph changes meanwhile, maybe.
        """
        generation, in_order = columns
        hits = _Hits(generation, searcher, docs, scores)
        at = np.arange(len(docs))  # the hit of each row
        found: dict[str, tuple[Longs, _Objects]] = {}  # places in the objects, by variable
        for pattern, column in zip(star.patterns, in_order, strict=True):
            objects = _Objects.of(pattern, column, generation, hits, store)
            if objects is None:
                return None
            rows, places = objects.extended(at)
            if len(places) > rows_max:
                return None
            if rows is not None:
                at = at[rows]
                found = {name: (known[rows], each) for name, (known, each) in found.items()}
            wanted = pattern.terms[2]
            if isinstance(wanted, str):
                found[wanted] = places, objects
            else:
                kept = objects.equal(places, written(wanted))
                at, found = at[kept], {name: (known[kept], each) for name, (known, each) in found.items()}
        parts = {f"?{name.name}": Part(part) for part, name in star.search.columns}
        if star.length is not None:
            at = at[: star.length]
            found = {name: (places[: star.length], each) for name, (places, each) in found.items()}
        made = [
            found[name][1].column(found[name][0]) if name in found else hits.column(parts[name], at)
            for name in star.columns
        ]
        # a graph is unbound where it is the default graph
        has_unbound = any(parts.get(name) is Part.GRAPH for name in star.columns)
        table = TextTable if has_unbound else NumberedTable
        return table([name[1:] for name in star.columns], made, self._kept)


class _Hits:
    """Documents that were found, and the numbers of their subjects."""

    def __init__(self, generation: Generation, searcher: Searcher, docs: Longs, scores: Floats) -> None:
        self._scores = scores
        self.numbers = np.empty(len(docs), np.int64)
        self._keys: list[str] | None = None
        self._searcher, self._docs, self._subjects = searcher, docs, generation.subjects
        for leaf, places, own in leaves_of(searcher, docs):
            self.numbers[places] = generation.numbers(leaf, own)
        self._has_unnumbered = len(docs) > 0 and bool(self.numbers.min() < 0)

    def subjects(self) -> list[str]:
        """Their subjects, in N-Triples."""
        if self._has_unnumbered:
            return [subject_of(key) for key in self._all_keys()]
        return list(map(self._subjects.texts.__getitem__, self.numbers.tolist()))

    def column(self, part: Part, at: Longs) -> TermColumn:
        """What a search binds, for rows of these hits."""
        match part:
            case Part.SUBJECT if not self._has_unnumbered:
                return TermColumn(self._subjects.texts, self.numbers[at], self._subjects.cells)
            case Part.SUBJECT:
                texts = self.subjects()
            case Part.SCORE:
                scores = self._scores[at]
                is_other = np.ones(len(at), np.bool_)  # than the one before: they descend
                np.not_equal(scores[1:], scores[:-1], out=is_other[1:])
                return FloatColumn(score_texts(scores[is_other]), np.cumsum(is_other) - 1)
            case _:
                texts = [key.split(" ", 3)[_PLACES[part]] for key in self._all_keys()]
        return TermColumn(texts, at)

    def _all_keys(self) -> list[str]:
        """The names of the quads in the index."""
        if self._keys is None:
            self._keys = keys_of_quads(self._searcher, self._docs)
        return self._keys


_PLACES: Mapping[Part, int] = {Part.PROPERTY: 1, Part.GRAPH: 2, Part.LITERAL: 3}


class _Objects:
    """The objects of hits. Places beyond the codes of the column are those of `more`."""

    def __init__(self, located: Located) -> None:
        self.held, self.more = located.held, list[str]()
        self._first, self._counts, self._is_single = located.first, located.counts, located.is_single

    @classmethod
    def of(
        cls, pattern: Pattern, column: ObjectColumn, generation: Generation, hits: _Hits, store: QuadStore
    ) -> "_Objects | None":
        """None where too many have to be looked up, or the column is lost."""
        located = column.view(hits.numbers, generation.subjects)
        if located is None:
            return None
        made = cls(located)
        if located.lacks and not made._look_up(pattern, located.unknown, hits, store):
            return None
        return made

    def _look_up(self, pattern: Pattern, unknown: Bools, hits: _Hits, store: QuadStore) -> bool:
        places = np.flatnonzero(unknown).tolist()
        if len(places) > _LOOKED_UP_MAX:
            return False
        subjects = hits.subjects()
        predicate = pattern.terms[1]
        assert isinstance(predicate, NamedNode)
        for hit in places:
            quads = store.matching(node_of_text(subjects[hit]), predicate, None, pattern.graph)
            objects = [written(quad.object) for quad in quads]
            self._first[hit] = len(self.held.codes) + len(self.more)
            self._counts[hit] = len(objects)
            self.more += objects
        return True

    def extended(self, at: Longs) -> tuple[Longs | None, Longs]:
        """(rows, places): each row of these hits as often as its hit has objects, with their places. None for
        the rows as they are.
        """
        if self._is_single:
            return None, self._first[at]
        counts, first = self._counts[at], self._first[at]
        rows = np.repeat(np.arange(len(at)), counts)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, first[rows] + within

    def column(self, places: Longs) -> TermColumn:
        """The objects at these places."""
        if not self.more:
            return TermColumn(self.held.terms, self.held.codes[places].astype(np.int64), self.held.cells)
        return TermColumn(self._texts(places), np.arange(len(places)))

    def _texts(self, places: Longs) -> list[str]:
        """The objects at these places."""
        codes, terms = self.held.codes, self.held.terms
        return [
            self.more[place - len(codes)] if place >= len(codes) else terms[codes[place]]
            for place in places.tolist()
        ]

    def equal(self, places: Longs, text: str) -> Bools:
        """Which of the objects at these places are this term."""
        if not self.more:
            found: Bools = self.held.codes[places] == self.held.numbers.get(text, -1)
            return found
        return np.array([each == text for each in self._texts(places)], np.bool_)
