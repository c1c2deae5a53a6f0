"""What the compiler asks of the view: where quads are, which terms there are, and of which kinds."""

from collections.abc import Iterable
from dataclasses import InitVar, dataclass, field
from typing import Any, Final

from duckdb import DuckDBPyConnection
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.columns.schema import STALE
from graphdb.columns.term_ids import PAYLOAD_BITS, XSD, Tag, inline_id, text_of
from graphdb.columns.values import Tags

__all__ = ["Catalog", "PredicateTable"]


_IDS_MAX: Final = 10_000  # terms of queries that are handed on


@dataclass(frozen=True, slots=True)
class PredicateTable:
    """One row of `predicates`."""

    table: str
    quads: int
    subjects: int
    objects: int
    is_stale: bool


@dataclass(slots=True)
class Catalog:
    """The view as one transaction of the connection sees it: a compiled query is good in that one only,
    and one catalog may serve as long as `meta.log_index` stays the same.

    before is one of the same log index: what that had to look up is not looked up again.
    """

    connection: DuckDBPyConnection
    before: InitVar["Catalog | None"] = None
    predicates: dict[int, PredicateTable] = field(init=False)
    named_graphs: int = field(init=False)
    _ids: dict[NamedNode | BlankNode | Literal | Triple, int | None] = field(init=False, default_factory=dict)
    _tags: dict[tuple[str, int | None, str], Tags] = field(init=False, default_factory=dict)
    _languages: frozenset[str] | None = field(init=False, default=None)

    _has_other_xsd: bool | None = field(init=False, default=None)

    def __post_init__(self, before: "Catalog | None") -> None:
        if before is not None and len(before._ids) < _IDS_MAX:
            self._ids, self._tags, self._languages = before._ids, before._tags, before._languages
            self._has_other_xsd = before._has_other_xsd
        rows = self._rows("SELECT p, tbl, quads, subjects, objects, is_stale FROM predicates ORDER BY tbl, p")
        self.predicates = {row[0]: PredicateTable(*row[1:]) for row in rows}
        self.named_graphs = self._rows("SELECT count(*) FROM graphs")[0][0]

    def id_of(self, term: NamedNode | BlankNode | Literal | Triple) -> int | None:
        """The number of a term in the engine's form; None for one that the view has never seen."""
        inline = inline_id(term)
        if inline is not None:
            return inline
        if term not in self._ids:
            found = self._rows("SELECT id FROM terms WHERE text = ?", [text_of(term)])
            self._ids[term] = found[0][0] if found else None
        return self._ids[term]

    def tags(self, predicate: int | None, column: str) -> Tags:
        """The tags of the subjects or objects (column s or o) of a predicate; None stands for all."""
        if predicate is None:
            return frozenset().union(*(self.tags(each, column) for each in self.predicates))
        entry = self.predicates.get(predicate)
        if entry is None:
            return frozenset()
        key = (entry.table, predicate, column)
        if key not in self._tags:
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
            self._tags[key] = frozenset(map(Tag, tags))
        return self._tags[key]

    def languages(self) -> frozenset[str]:
        """The languages of all strings that have one, those that no quad has any more among them."""
        if self._languages is None:
            rows = self._rows("SELECT DISTINCT lang FROM terms WHERE lang IS NOT NULL")
            self._languages = frozenset(row[0] for row in rows)
        return self._languages

    def has_other_xsd(self) -> bool:
        """Whether a literal of tag 5, also one that no quad has any more, has a datatype of XML Schema."""
        if self._has_other_xsd is None:
            of_xsd = f"kind = {int(Tag.TYPED)} AND starts_with(datatype, '{XSD}')"
            self._has_other_xsd = self.holds(f"SELECT 1 FROM terms WHERE {of_xsd}")
        return self._has_other_xsd

    def distinct(self, key: str) -> int | None:
        """How many subjects or objects (the key) all quads have; None where that is not counted now."""
        found = self._rows("SELECT value FROM meta WHERE key = ? AND value <> ?", [key, STALE])
        return int(found[0][0]) if found else None

    def holds(self, sql: str) -> bool:
        """Whether a SELECT has a row."""
        return bool(self._rows(f"{sql} LIMIT 1"))

    def _rows(self, sql: str, parameters: list[str] | None = None) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, parameters or []).fetchall()
