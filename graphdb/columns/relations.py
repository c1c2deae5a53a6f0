"""`Relation`: the quads of a predicate as pairs of terms, and the pairs that are made of them.

A relation of pairs is no bag: each pair stands in it once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from duckdb import DuckDBPyConnection

from graphdb.columns.catalog import Catalog, PredicateTable
from graphdb.columns.exact_numbers import ExactNumbers, exact_numbers
from graphdb.columns.pieces import check, picked, pieces, taken
from graphdb.columns.quad_arrays import (
    Ends,
    Ids,
    NotCounted,
    QuadEnds,
    Terms,
    Weights,
    distinct_tags,
    is_dense,
    ranked,
    read_ends,
)
from graphdb.columns.term_ids import PAYLOAD_BITS, PAYLOAD_MASK, Tag
from graphdb.columns.term_vectors import Column
from graphdb.columns.text_column import TextColumn, read_texts
from graphdb.columns.text_order import TextOrder
from graphdb.columns.values import DICTIONARY

__all__ = ["Relation", "closure", "common", "of_predicate", "where_equal"]

T = TypeVar("T", TextColumn, ExactNumbers)
_QUAD_BYTES: Final = 16  # in arrays: both its ends, and their weights
_SPAN_A_TERM: Final = 64
_TEXTS_SHARE: Final = 8  # of the memory for arrays, for the texts of one end; their places take more
_CLOSURE_FROM_MAX: Final = 200_000  # quads
_CLOSURE_MAX: Final = 500_000  # pairs
_CLOSURE_WORK_MAX: Final = 10_000_000  # pairs that are looked at, some of them again: about a second


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """key names it among the arrays of the catalog; table is that of a whole predicate."""

    catalog: Catalog
    key: tuple[Any, ...]
    make: Callable[[], QuadEnds]
    table: PredicateTable | None = None

    def pairs(self) -> QuadEnds:
        """Both ends of all."""
        return self.catalog.arrays.get(self.key, self.make)

    @property
    def quads(self) -> int:
        return self.table.quads if self.table is not None else len(self.pairs().subjects.codes)

    def ends(self, column: str, *, by_ids: bool = False) -> Ends:
        """The subjects or objects (column s or o), their terms by ids where that is asked for, or where they
        are no dense range of the dictionary, or a few objects in a wide one: their weights are few then.
        """
        ends = self.pairs().at(column)
        if ends.terms.ids is not None:
            return ends
        if not by_ids and is_dense(ends.terms.span, len(ends.codes)):
            occurring = self.distinct(column) if column == "o" else None
            if occurring is None or occurring * _SPAN_A_TERM > ends.terms.span:
                return ends
        return self.catalog.arrays.get((*self.key, column, "by ids"), lambda: self._by_ids(ends, column))

    def _by_ids(self, ends: Ends, column: str) -> Ends:
        self.catalog.check_patient()
        predicate = self.key[0][0]
        tags = self.catalog.tags(predicate, column)
        occurring, places = ranked(ends.codes)
        if len(tags) == 1:
            occurring += (int(next(iter(tags))) << PAYLOAD_BITS) + ends.terms.low
            return Ends.of(Terms.of(occurring), places)
        ids = self.catalog.ends_of(predicate, column)
        by_payload = np.argsort(ids & PAYLOAD_MASK).astype(np.uint32)
        return Ends.of(Terms.of(ids), taken(by_payload, places))

    def matches_of_each(self, column: str, *, by_ids: bool) -> Weights:
        """How many pairs each term of an end has."""
        key = (*self.key, column, "matches", by_ids)
        return self.catalog.arrays.get(key, lambda: self.ends(column, by_ids=by_ids).gathered(None).small())

    def matches_with(self, column: str, term: int, *, by_ids: bool) -> Weights:
        """How many pairs each term of an end has with one term at the other end."""
        other = self.ends("o" if column == "s" else "s")
        place = _place(other.terms, term)
        which = other.codes == place if place >= 0 else np.zeros(len(other.codes), np.bool_)
        return self.ends(column, by_ids=by_ids).picked(which).gathered(None)

    def distinct(self, column: str) -> int | None:
        """How many terms an end has, where the statistics say it."""
        if self.table is None or self.table.is_stale:
            return None
        return self.table.subjects if column == "s" else self.table.objects

    def column(self, column: str, name: str) -> Column:
        """The terms of an end, as those of a variable."""
        ids = self.ends(column, by_ids=True).terms.ids
        assert ids is not None
        return Column(name, ids, _Reader(self, column, ids))


@dataclass(frozen=True, slots=True)
class _Reader:
    """See `term_vectors.Reader`: of the terms of an end of a relation."""

    relation: Relation
    column: str
    ids: Ids

    def texts(self) -> TextColumn:
        bytes_max = self.relation.catalog.arrays.bytes_max // _TEXTS_SHARE
        return self._kept("texts", lambda connection: read_texts(connection, self.ids, bytes_max))

    def order(self) -> TextOrder:
        order = self.relation.catalog.text_order()
        if order is None:
            raise NotCounted
        return order

    def numbers(self) -> ExactNumbers:
        return self._kept("numbers", lambda connection: exact_numbers(self.ids, connection))

    def _kept(self, what: str, read: Callable[[DuckDBPyConnection], T | None]) -> T:
        catalog = self.relation.catalog

        def make() -> T:
            found = read(catalog.connection)
            if found is None:
                raise NotCounted
            return found

        return catalog.arrays.get((*self.relation.key, self.column, what), make)


def of_predicate(catalog: Catalog, predicate: int) -> Relation:
    """The quads of one. Raises NotCounted where it has none, or too many."""
    table = catalog.predicates.get(predicate)
    if table is None or _QUAD_BYTES * table.quads > catalog.arrays.bytes_max:
        raise NotCounted

    def read() -> QuadEnds:
        dictionary = "".join(column for column in "so" if catalog.tags(predicate, column) <= DICTIONARY)
        return read_ends(catalog.connection, catalog.source(predicate), table.quads, dictionary)

    return Relation(catalog, ((predicate,),), read, table)


def where_equal(relation: Relation, *, negated: bool) -> Relation:
    """The pairs of a term and itself, or the others. Raises NotCounted of triple terms."""

    def make() -> QuadEnds:
        relation.catalog.check_patient()
        subjects, objects = (relation.ends(column, by_ids=True) for column in "so")
        for ends in (subjects, objects):
            if Tag.TRIPLE in distinct_tags(_ids(ends)):
                raise NotCounted
        equal = taken(_places(_ids(subjects), _ids(objects)), subjects.codes) == objects.codes
        return QuadEnds(subjects, objects).picked(~equal if negated else equal)

    key = (relation.key[0], *relation.key[1:], "unequal" if negated else "equal")
    return Relation(relation.catalog, key, make)


def common(one: Relation, other: Relation, *, turned: bool) -> Relation:
    """The pairs that both have; turned: with the ends of the other one exchanged."""

    def make() -> QuadEnds:
        one.catalog.check_patient()
        own = [one.ends(column, by_ids=True) for column in "so"]
        theirs = [other.ends(column, by_ids=True) for column in ("os" if turned else "so")]
        mapped = [
            taken(_places(_ids(their), _ids(mine)), their.codes)
            for mine, their in zip(own, theirs, strict=True)
        ]
        width = own[1].terms.span
        both = (mapped[0] >= 0) & (mapped[1] >= 0)
        wanted = picked(mapped[0], both) * width + picked(mapped[1], both)
        check()
        wanted.sort()
        which = np.empty(len(own[0].codes), np.bool_)
        for piece in pieces(len(which)):
            pairs = own[0].codes[piece].astype(np.int64) * width + own[1].codes[piece]
            which[piece] = _places(pairs, wanted) >= 0
        return QuadEnds(own[0], own[1]).picked(which)

    predicates = (*one.key[0], *other.key[0])
    return Relation(one.catalog, (predicates, one.key, other.key, "turned" if turned else "common"), make)


def closure(relation: Relation) -> Relation:
    """The pairs that a path of one step or more joins. Raises NotCounted where they may be too many."""
    if relation.quads > _CLOSURE_FROM_MAX:
        raise NotCounted
    return Relation(relation.catalog, (*relation.key, "closure"), lambda: _closed(relation))


def _closed(relation: Relation) -> QuadEnds:
    """Pairs are found by the length of their shortest path; `seen` is the numbers of those before, sorted."""
    relation.catalog.check_patient()
    subjects, objects = (relation.ends(column, by_ids=True) for column in "so")
    nodes = np.union1d(_ids(subjects), _ids(objects))
    begins = _places(_ids(subjects), nodes)[subjects.codes]
    ends = _places(_ids(objects), nodes)[objects.codes]
    order = np.argsort(begins, kind="stable")
    targets = ends[order]
    firsts = np.searchsorted(begins[order], np.arange(len(nodes) + 1))
    seen = new = np.sort(begins * len(nodes) + ends)
    looked_at = 0
    while len(seen) <= _CLOSURE_MAX:
        check()
        sources, vias = new // len(nodes), new % len(nodes)
        counts = firsts[vias + 1] - firsts[vias]
        total = int(counts.sum())
        looked_at += total + len(seen)
        if looked_at > _CLOSURE_WORK_MAX or total > 4 * _CLOSURE_MAX:
            break
        offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        reached = targets[np.repeat(firsts[vias], counts) + offsets]
        new = np.setdiff1d(np.repeat(sources, counts) * len(nodes) + reached, seen)
        if not len(new):
            terms = Terms.of(nodes)
            return QuadEnds(*(Ends(terms, each.astype(np.uint32)) for each in np.divmod(seen, len(nodes))))
        seen = np.union1d(seen, new)
    raise NotCounted


def _ids(ends: Ends) -> Ids:
    assert ends.terms.ids is not None
    return ends.terms.ids


def _places(ids: Ids, among: Ids) -> Ids:
    """Where each of the ids is among others, which are in ascending order; -1 where it is not."""
    found = np.full(len(ids), -1)
    if len(among):
        for piece in pieces(len(ids)):
            places = np.minimum(np.searchsorted(among, ids[piece]), len(among) - 1)
            found[piece] = np.where(among[places] == ids[piece], places, -1)
    return found


def _place(terms: Terms, term: int) -> int:
    if terms.ids is not None:
        return int(_places(np.array([term]), terms.ids)[0])
    if Tag(term >> PAYLOAD_BITS) not in DICTIONARY:
        return -1
    place = (term & PAYLOAD_MASK) - terms.low
    return place if 0 <= place < terms.span else -1
