"""What the compiler asks of the view: where quads are, which terms there are, and of which kinds."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from duckdb import DuckDBPyConnection
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.columns.quad_arrays import Ids, QuadArrays
from graphdb.columns.schema import STALE
from graphdb.columns.term_ids import PAYLOAD_BITS, XSD, Tag, inline_id, tag_of_term, text_of
from graphdb.columns.text_order import TextOrder, TextOrders
from graphdb.columns.typed_literals import Truths, compared_with_typed
from graphdb.columns.values import Tags

__all__ = ["Catalog", "NotKnown", "PredicateTable"]

_PREDICATES_MAX: Final = 5_000  # that are looked up at once
_IDS_MAX: Final = 10_000  # terms of queries that are handed on
_COMPARED_MAX: Final = 100  # comparisons that are kept


class NotKnown(Exception):
    """A catalog without a connection is asked for what nobody has looked up before."""


@dataclass(frozen=True, slots=True)
class PredicateTable:
    """One row of `predicates`."""

    table: str
    quads: int
    subjects: int
    objects: int
    is_stale: bool


@dataclass(slots=True)
class _Found:
    """What was looked up in one state of the view."""

    ids: dict[NamedNode | BlankNode | Literal | Triple, int | None] = field(default_factory=dict)
    has_predicates: bool = False  # whether those of the predicates are among them
    tags: dict[tuple[str, int | None, str], Tags] = field(default_factory=dict)
    languages: frozenset[str] | None = None
    has_other_xsd: bool | None = None
    distinct: dict[str, int] = field(default_factory=dict)
    text_order: TextOrder | None = None
    compared: dict[tuple[str, Literal], Truths | None] = field(default_factory=dict)
    quads_of_tags: dict[str, dict[Tag, int]] = field(default_factory=dict)


class Catalog:
    """The view as one transaction of the connection sees it: a compiled query is good in that one only.

    arrays is what was made of the quads of this state.
    """

    def __init__(
        self,
        connection: DuckDBPyConnection,
        arrays: QuadArrays | None = None,
        orders: TextOrders | None = None,
        predicate_names: dict[int, str] | None = None,
        *,
        compares_dates: bool = True,
        is_past: bool = False,
    ) -> None:
        """arrays are of the same state; None where none were made. orders keeps the order of the strings of
        this view; None where nobody does. predicate_names are the IRIs of predicates by their numbers, which
        catalogs of several states find and share. compares_dates: see `columns.dates_compared`. is_past: the
        connection reads a state of the past (`past_state`).
        """
        self.compares_dates = compares_dates
        self._is_past = is_past
        self._connection: DuckDBPyConnection | None = connection
        self._orders = orders
        self._predicate_names = {} if predicate_names is None else predicate_names
        self.arrays = arrays or QuadArrays()
        self.plans: dict[Hashable, Any] = {}  # what was compiled in this state, by whoever compiles
        self._found = _Found()
        rows = self._rows("SELECT p, tbl, quads, subjects, objects, is_stale FROM predicates ORDER BY tbl, p")
        self.predicates: dict[int, PredicateTable] = {row[0]: PredicateTable(*row[1:]) for row in rows}
        self.named_graphs: int = self._rows("SELECT count(*) FROM graphs")[0][0]

    @property
    def connection(self) -> DuckDBPyConnection:
        """Raises NotKnown."""
        if self._connection is None:
            raise NotKnown
        return self._connection

    def check_patient(self) -> None:
        """Raises NotKnown without a connection: who has none does not wait for what takes long either."""
        if self._connection is None:
            raise NotKnown

    def on(self, connection: DuckDBPyConnection | None) -> "Catalog":
        """The same, where the connection is in a transaction that sees the same state. What one of the two
        looks up, the other need not. Without a connection, what is not known raises NotKnown.
        """
        other = object.__new__(type(self))  # for each query: copy() goes a longer way
        other.__dict__.update(self.__dict__)
        other._connection = connection
        if len(self._found.ids) > _IDS_MAX:
            self._found = other._found = replace(self._found, ids={}, has_predicates=False)
        return other

    def id_of(self, term: NamedNode | BlankNode | Literal | Triple) -> int | None:
        """The number of a term in the engine's form; None for one that the view does not hold."""
        inline = inline_id(term)
        if inline is not None:
            return inline
        if not self._found.has_predicates and term not in self._found.ids:
            self._look_up_predicates()
        found = self._found.ids
        if term not in found:
            # terms stand together by their kinds, so DuckDB skips most of the others without reading them
            kind = int(tag_of_term(term))
            rows = self._rows("SELECT id FROM terms WHERE kind = ? AND text = ?", [kind, text_of(term)])
            found[term] = rows[0][0] if rows else None
        return found[term]

    def _look_up_predicates(self) -> None:
        """All at once: most constants of queries are predicates, and to find one takes as long as to find
        all of them, 20 ms of processor time among 2.5 million terms.
        """
        self._found.has_predicates = True
        if len(self.predicates) > _PREDICATES_MAX:
            return
        names = self._predicate_names
        missing = self.predicates.keys() - names.keys()
        if missing:
            of_missing = "WHERE id IN (SELECT unnest(?::BIGINT[]))"
            rows = self._rows(f"SELECT id, text FROM terms {of_missing}", [sorted(missing)])
            names.update((number, text[1:-1]) for number, text in rows)
        for number in self.predicates & names.keys():
            with suppress(ValueError):  # of an IRI that no parser admits, and no query has
                self._found.ids[NamedNode(names[number])] = number

    def tags(self, predicate: int | None, column: str) -> Tags:
        """The tags of the subjects or objects (column s or o) of a predicate; None stands for all."""
        if predicate is None:
            return frozenset().union(*(self.tags(each, column) for each in self.predicates))
        entry = self.predicates.get(predicate)
        if entry is None:
            return frozenset()
        key = (entry.table, predicate, column)
        if key not in self._found.tags:
            source = self.source(predicate)
            low, high = self._rows(f"SELECT min({column}), max({column}) {source}")[0]
            if low is None:
                tags: Iterable[int] = ()
            elif low >> PAYLOAD_BITS == high >> PAYLOAD_BITS:
                tags = (low >> PAYLOAD_BITS,)
            else:
                rows = self._rows(f"SELECT DISTINCT {column} >> {PAYLOAD_BITS} {source}")
                tags = (row[0] for row in rows)
            self._found.tags[key] = frozenset(map(Tag, tags))
        return self._found.tags[key]

    def source(self, predicate: int) -> str:
        """FROM and WHERE of the quads of a predicate that has some."""
        table = self.predicates[predicate].table
        return f"FROM {table} WHERE p = {predicate}" if table == "rest" else f"FROM {table}"

    def count(self, predicate: int, conditions: str) -> int:
        """How many quads of a predicate that has some fulfil these conditions, in SQL."""
        count: int = self._rows(self.counting(predicate, conditions))[0][0]
        return count

    def counting(self, predicate: int, conditions: str) -> str:
        """The SQL of `count`."""
        source = self.source(predicate)
        word = "AND" if " WHERE " in source else "WHERE"
        return f"SELECT count(*) {source} {word} {conditions}"

    def ends_of(self, predicate: int, column: str) -> Ids:
        """The terms that the subjects or objects (column s or o) of a predicate are, in ascending order."""
        found = self.connection.execute(f"SELECT DISTINCT {column} {self.source(predicate)}").fetchnumpy()
        return np.sort(found[column])

    def languages(self) -> frozenset[str]:
        """The languages of all strings that have one, those that no quad has any more among them."""
        if self._found.languages is None:
            rows = self._rows("SELECT DISTINCT lang FROM terms WHERE lang IS NOT NULL")
            self._found.languages = frozenset(row[0] for row in rows)
        return self._found.languages

    def has_other_xsd(self) -> bool:
        """Whether a literal of tag 5, also one that no quad has any more, has a datatype of XML Schema."""
        if self._found.has_other_xsd is None:
            of_xsd = f"kind = {int(Tag.TYPED)} AND starts_with(datatype, '{XSD}')"
            self._found.has_other_xsd = self.holds(f"SELECT 1 FROM terms WHERE {of_xsd}")
        return self._found.has_other_xsd

    def compared_with_typed(self, operator: str, constant: Literal) -> Truths | None:
        """See `typed_literals`."""
        key = operator, constant
        if key not in self._found.compared:
            if len(self._found.compared) >= _COMPARED_MAX:
                self._found.compared.clear()
            self._found.compared[key] = compared_with_typed(self.connection, operator, constant)
        return self._found.compared[key]

    def text_order(self) -> TextOrder | None:
        """The strings in the order of their texts, all of this state; None where there is no order yet."""
        if self._orders is not None and self._found.text_order is None:
            self._found.text_order = self._orders.of(self.connection)
        return self._found.text_order

    def distinct(self, key: str) -> int | None:
        """How many subjects or objects (the key) all quads have; None where that is not counted now."""
        found = self._found.distinct
        if self._is_past:  # `meta` is of the present
            if key not in found:
                found[key] = self._counted_ends(key[0])
            return found[key]
        if key not in found:
            rows = self._rows("SELECT value FROM meta WHERE key = ? AND value <> ?", [key, STALE])
            found.update((key, int(row[0])) for row in rows)  # counted later without a change of the log
        return found.get(key)

    def _counted_ends(self, column: str) -> int:
        """How many terms the subjects or objects (column s or o) of all quads are."""
        tables = sorted({entry.table for entry in self.predicates.values()})
        ends = " UNION ALL ".join(f"SELECT {column} FROM {table}" for table in tables)
        # not COUNT(DISTINCT), which cannot spill
        count: int = (
            self._rows(f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({ends}))")[0][0] if ends else 0
        )
        return count

    def quads_of_tags(self, column: str) -> Mapping[Tag, int]:
        """How many quads have a subject or object (column s or o) of each tag."""
        found = self._found.quads_of_tags.get(column)
        if found is None:
            counts = Counter[Tag]()
            for predicate, entry in self.predicates.items():
                tags = self.tags(predicate, column)
                if len(tags) == 1:
                    counts[next(iter(tags))] += entry.quads
                elif tags:
                    tag = f"{column} >> {PAYLOAD_BITS}"
                    rows = self._rows(f"SELECT {tag}, count(*) {self.source(predicate)} GROUP BY {tag}")
                    counts.update({Tag(row[0]): row[1] for row in rows})
            found = self._found.quads_of_tags[column] = dict(counts)
        return found

    def holds(self, sql: str) -> bool:
        """Whether a SELECT has a row."""
        return bool(self._rows(f"{sql} LIMIT 1"))

    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()
