"""What the compiler asks of the view: where quads are, which terms there are, and of which kinds."""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final

from duckdb import DuckDBPyConnection
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.columns.quad_arrays import KEPT_BYTES, Ends, QuadArrays, read_ends
from graphdb.columns.schema import STALE
from graphdb.columns.term_ids import PAYLOAD_BITS, XSD, Tag, inline_id, tag_of_term, text_of
from graphdb.columns.text_order import TextOrder, TextOrders
from graphdb.columns.typed_literals import Truths, compared_with_typed
from graphdb.columns.values import DICTIONARY, Tags

__all__ = ["Catalog", "NotKnown", "PredicateTable"]

_IDS_MAX: Final = 10_000  # terms of queries that are handed on
_COMPARED_MAX: Final = 100  # comparisons that are kept
_ARRAY_QUADS_MAX: Final = (
    KEPT_BYTES // 32
)  # of a predicate, so that both its ends are kept, and their weights


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
    tags: dict[tuple[str, int | None, str], Tags] = field(default_factory=dict)
    languages: frozenset[str] | None = None
    has_other_xsd: bool | None = None
    distinct: dict[str, int] = field(default_factory=dict)
    text_order: TextOrder | None = None
    compared: dict[tuple[str, Literal], Truths | None] = field(default_factory=dict)


class Catalog:
    """The view as one transaction of the connection sees it: a compiled query is good in that one only.

    arrays is what was made of the quads of this state. aggregates_values: whether aggregates may be computed
    from the values of one end (`columns.aggregates_values`).
    """

    def __init__(
        self,
        connection: DuckDBPyConnection,
        orders: TextOrders | None = None,
        *,
        aggregates_values: bool = True,
    ) -> None:
        """orders keeps the order of the strings of this view, if any does."""
        self._connection: DuckDBPyConnection | None = connection
        self._orders = orders
        self.aggregates_values = aggregates_values
        self.arrays = QuadArrays()
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

    def on(self, connection: DuckDBPyConnection | None) -> "Catalog":
        """The same, where the connection is in a transaction that sees the same state. What one of the two
        looks up, the other need not. Without a connection, what is not known raises NotKnown.
        """
        other = copy(self)
        other._connection = connection
        if len(self._found.ids) > _IDS_MAX:
            self._found = other._found = replace(self._found, ids={})
        return other

    def id_of(self, term: NamedNode | BlankNode | Literal | Triple) -> int | None:
        """The number of a term in the engine's form; None for one that the view does not hold."""
        inline = inline_id(term)
        if inline is not None:
            return inline
        found = self._found.ids
        if term not in found:
            # terms stand together by their kinds, so DuckDB skips most of the others without reading them
            kind = int(tag_of_term(term))
            rows = self._rows("SELECT id FROM terms WHERE kind = ? AND text = ?", [kind, text_of(term)])
            found[term] = rows[0][0] if rows else None
        return found[term]

    def tags(self, predicate: int | None, column: str) -> Tags:
        """The tags of the subjects or objects (column s or o) of a predicate; None stands for all."""
        if predicate is None:
            return frozenset().union(*(self.tags(each, column) for each in self.predicates))
        entry = self.predicates.get(predicate)
        if entry is None:
            return frozenset()
        key = (entry.table, predicate, column)
        if key not in self._found.tags:
            where = f" WHERE p = {predicate}" if entry.table == "rest" else ""
            source = f"FROM {entry.table}{where}"
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

    def ends(self, predicate: int, column: str) -> Ends | None:
        """The subjects or objects (column s or o) of the quads of a predicate, in one order; None where they
        are not all terms of the dictionary, or many.
        """
        entry = self.predicates[predicate]
        if entry.quads > _ARRAY_QUADS_MAX or not self.tags(predicate, column) <= DICTIONARY:
            return None
        has_both = self.tags(predicate, "s") | self.tags(predicate, "o") <= DICTIONARY
        columns = "so" if has_both else column
        where = f" WHERE p = {predicate}" if entry.table == "rest" else ""
        read = self.arrays.get(
            (predicate, columns),
            lambda: read_ends(self.connection, f"FROM {entry.table}{where}", columns),
        )
        return read.ends[columns.index(column)]

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
        if key not in found:
            rows = self._rows("SELECT value FROM meta WHERE key = ? AND value <> ?", [key, STALE])
            found.update((key, int(row[0])) for row in rows)  # counted later without a change of the log
        return found.get(key)

    def holds(self, sql: str) -> bool:
        """Whether a SELECT has a row."""
        return bool(self._rows(f"{sql} LIMIT 1"))

    def _rows(self, sql: str, parameters: Sequence[str | int] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters).fetchall()
