"""Aggregations with buckets of their own: filter, filters, adjacency_matrix, global, missing, nested,
reverse_nested.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphdb.search.aggregations.aggregation import (
    Aggregation,
    Answer,
    Definition,
    Rows,
    Scope,
    SingleBucket,
    all_cells,
    bucket_lists,
    cells_of,
    keyed_buckets,
    members_of,
)
from graphdb.search.aggregations.columns import spread
from graphdb.search.aggregations.options import required
from graphdb.search.aggregations.value_sources import Source
from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.query import Query, parse_query

__all__ = [
    "AdjacencyMatrix",
    "Filter",
    "Filters",
    "Global",
    "Missing",
    "Nested",
    "ReverseNested",
    "parse_adjacency_matrix",
    "parse_filter",
    "parse_filters",
    "parse_global",
    "parse_missing",
    "parse_nested",
    "parse_reverse_nested",
]

# Other documents in one bucket: `missing`, `global`, `nested` and `reverse_nested`.


@dataclass(frozen=True)
class Missing(SingleBucket):
    """The documents that have no value for a field."""

    source: Source

    @property
    def typed(self) -> str:
        return "missing"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        places, _ = self.source.countable(scope, rows.docs)
        lacking = np.ones(len(rows.docs), np.bool_)
        lacking[places] = False
        return rows.kept(lacking)


def parse_missing(definition: Definition) -> Aggregation:
    source = Source.parse(definition, None)
    definition.options.done()
    return Missing(definition.common, source)


@dataclass(frozen=True)
class Global(SingleBucket):
    """All documents that the request's names show, whatever the query."""

    @property
    def typed(self) -> str:
        return "global"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        docs = scope.shown()
        return Rows(docs, np.zeros(len(docs), np.int64), rows.count)


def parse_global(definition: Definition) -> Aggregation:
    definition.options.done()
    return Global(definition.common)


@dataclass(frozen=True)
class Nested(SingleBucket):
    """The nested objects at a path in the documents (or nested objects) of the bucket around it."""

    path: str
    outer: str | None  # the nested path that the bucket around it holds, None: documents

    @property
    def typed(self) -> str:
        return "nested"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        columns = scope.columns
        objects = np.flatnonzero(columns.at_path(self.path) & scope.live())
        around = columns.ancestors(objects, self.outer)
        # Blocks stand before their document, so what objects are in ascends with them.
        places = np.searchsorted(around, rows.docs, side="left")
        ends = np.searchsorted(around, rows.docs, side="right")
        starts = np.stack([places, ends], axis=1).ravel()
        members, positions = spread(starts, np.arange(len(rows.docs)) * 2)
        return Rows(objects[positions], rows.owners[members], rows.count)


def parse_nested(definition: Definition) -> Aggregation:
    """The aggregations below are parsed for the path: see `inner_path`."""
    path = required(definition.options.text("path"), "path")
    definition.options.done()
    return Nested(definition.common, path, definition.context.nested_path)


@dataclass(frozen=True)
class ReverseNested(SingleBucket):
    """The documents that nested objects are in, each once; or the nested objects at a path around them."""

    path: str | None

    @property
    def typed(self) -> str:
        return "reverse_nested"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        around = scope.columns.ancestors(rows.docs, self.path)
        found = around >= 0
        # Document first, so that the documents stay in the order of their leaves.
        both = np.unique(around[found] * rows.count + rows.owners[found])
        return Rows(both // rows.count, both % rows.count, rows.count)


def parse_reverse_nested(definition: Definition) -> Aggregation:
    if definition.context.nested_path is None:
        raise SearchError(
            "illegal_argument_exception",
            f"Reverse nested aggregation [{definition.name}] can only be used inside a [nested] aggregation",
        )
    path = definition.options.text("path")
    definition.options.done()
    return ReverseNested(definition.common, path)


# Buckets by query: `filter` and `filters`.

FILTERS_MAX = 1_000


@dataclass(frozen=True)
class Filter(SingleBucket):
    """The documents that a query matches."""

    query: Query

    @property
    def typed(self) -> str:
        return "filter"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        return rows.kept(scope.matching(self.query)[rows.docs])


def parse_filter(definition: Definition) -> Aggregation:
    """Its parameters are the query itself."""
    return Filter(definition.common, parse_query(definition.options.rest(), definition.context))


@dataclass(frozen=True)
class Filters(Aggregation):
    """A bucket for each query, one more for what none matches if other is given. names None: anonymous."""

    queries: tuple[Query, ...]
    names: tuple[str, ...] | None
    other: str | None
    keyed: bool

    @property
    def typed(self) -> str:
        return "filters"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        masks = [scope.matching(query)[rows.docs] for query in self.queries]
        names = self.names
        if self.other is not None:
            masks.append(~np.logical_or.reduce(masks, axis=0))
            names = None if names is None else (*names, self.other)

        def head(number: int) -> Answer:
            return {} if names is None else {"key": names[number]}

        lists = bucket_lists(scope, self.common, all_cells(scope, rows, masks), rows.count, head)
        keyed = self.keyed and names is not None
        return [{"buckets": keyed_buckets(buckets) if keyed else buckets} for buckets in lists]


def parse_filters(definition: Definition) -> Aggregation:
    options = definition.options
    given = options.take("filters", {})
    other_key = options.text("other_bucket_key")
    other = options.flag("other_bucket", other_key is not None)
    keyed = options.flag("keyed", True)
    options.done()
    if not isinstance(given, (Mapping, list)):
        raise parsing(f"[filters] of [{definition.name}] must be an object or an array")
    if not given or len(given) > FILTERS_MAX:
        raise illegal_request(f"[filters] cannot be empty, nor more than {FILTERS_MAX}")
    if isinstance(given, Mapping):
        # Elasticsearch answers named filters in the order of their names.
        names = tuple(sorted(given))
        bodies = [given[name] for name in names]
    else:
        names, bodies = None, given
    queries = tuple(parse_query(body, definition.context) for body in bodies)
    return Filters(definition.common, queries, names, (other_key or "_other_") if other else None, keyed)


# `adjacency_matrix`: a bucket for each filter, and for each two of them that have documents in common.

MATRIX_MAX = 100  # filters


@dataclass(frozen=True)
class AdjacencyMatrix(Aggregation):
    """Buckets without documents are left out."""

    queries: tuple[Query, ...]
    names: tuple[str, ...]  # ascending
    separator: str

    @property
    def typed(self) -> str:
        return "adjacency_matrix"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        each = [scope.matching(query)[rows.docs] for query in self.queries]
        numbers = range(len(each))
        pairs = {self._key(one, two): (one, two) for one in numbers for two in numbers[one:]}
        names = sorted(pairs)
        found = (each[one] & each[two] for one, two in map(pairs.__getitem__, names))
        cells = cells_of(scope, rows, *members_of(found))
        scope.count_buckets(len(cells))
        lists = bucket_lists(scope, self.common, cells, rows.count, lambda number: {"key": names[number]})
        return [{"buckets": buckets} for buckets in lists]

    def _key(self, one: int, two: int) -> str:
        return self.names[one] if one == two else f"{self.names[one]}{self.separator}{self.names[two]}"


def parse_adjacency_matrix(definition: Definition) -> Aggregation:
    options = definition.options
    given, separator = options.take("filters", {}), options.text("separator", "&") or "&"
    options.done()
    if not isinstance(given, Mapping):
        raise parsing(f"[filters] of [{definition.name}] must be an object")
    if len(given) > MATRIX_MAX:
        raise illegal_request(
            f"Number of filters is too large, must be less than or equal to: [{MATRIX_MAX}] but was "
            f"[{len(given)}]. This limit can be set by changing the "
            "[indices.query.bool.max_clause_count] setting."
        )
    names = tuple(sorted(given))
    queries = tuple(parse_query(given[name], definition.context) for name in names)
    return AdjacencyMatrix(definition.common, queries, names, separator)
