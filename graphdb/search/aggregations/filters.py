"""Buckets by query: `filter` and `filters`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphdb.search.aggregations.base import Aggregation, Answer, SingleBucket
from graphdb.search.aggregations.buckets import all_cells, bucket_lists, keyed_buckets
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope
from graphdb.search.errors import illegal_request, parsing
from graphdb.search.query import Query, parse_query

__all__ = ["Filter", "Filters", "parse_filter", "parse_filters"]

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
