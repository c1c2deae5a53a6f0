"""`KnownRequests`: searches that differ from one before in their query alone are not parsed anew.

Of most searches the rest is the same again and again: the page, the sort keys, the aggregations of a
dashboard. It is known by its text. Nor does the name of a single aggregation count: it is put in afterwards.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from weakref import ref

import orjson

from graphdb.search.multi.prepared import Prepared, Searchers, Target, prepare
from graphdb.search.query import Query, Searcher, parse_query
from graphdb.search.query.tree import MatchAllQuery
from graphdb.search.results.search import SearchOptions, scope_of
from graphdb.search.results.search_request import SearchRequest

__all__ = ["PLAIN_MEMBERS", "KnownRequests", "with_name"]

PLAIN_MEMBERS = frozenset(
    {"query", "knn", "aggs", "aggregations", "from", "size", "sort", "search_after", "track_scores"}
    | {"track_total_hits", "_source", "docvalue_fields", "fields", "version", "seq_no_primary_term"}
)
"""Members of a body that do not make a search another than one of documents of an index as it is."""

_ONLY = "a"
_KEPT_MAX = 256
_BYTES_MAX = 2_000  # of the text of what is kept
# A moment, and documents that are looked up, make another request each time.
_CHANGING = (b"now", b'"index"')
_NAME = re.compile(r"[\w.-]+", re.ASCII)


class KnownRequests:
    """For one thread. The least recently used is dropped first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, bool], tuple[ref[Searcher], SearchRequest]] = OrderedDict()

    def prepare(
        self, body: Mapping[str, Any], target: Target, searchers: Searchers, options: SearchOptions
    ) -> tuple[Prepared, str | None]:
        """As `prepare`, and the name of the only aggregation for `with_name`. body: of plain members.

        Raises SearchError, AllFailed.
        """
        if target.filter is not None or target.boost != 1.0 or not PLAIN_MEMBERS.issuperset(body):
            return prepare(body, [target], searchers, options), None
        rest = {member: value for member, value in body.items() if member != "query"}
        name = None
        aggregations = rest.get("aggs")
        if isinstance(aggregations, dict) and len(aggregations) == 1 and "aggregations" not in rest:
            ((given, definition),) = aggregations.items()
            if _NAME.fullmatch(given):
                name, rest["aggs"] = given, {_ONLY: definition}
        text = orjson.dumps(rest)
        # of the nearest as many are found as hits are wanted
        has_nearest = "knn" in rest or b'"knn"' in orjson.dumps(body.get("query"))
        if has_nearest or len(text) > _BYTES_MAX or any(word in text for word in _CHANGING):
            return prepare(body, [target], searchers, options), None
        key = text, target.context.allow_expensive
        known = self._kept.get(key)
        if known is None or known[0]() is not target.searcher:
            whole = body if name is None else {**body, "aggs": rest["aggs"]}
            prepared = prepare(whole, [target], searchers, options)
            self._kept[key] = ref(target.searcher), prepared.request
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
            return prepared, name
        self._kept.move_to_end(key)
        query: Query = MatchAllQuery()
        if body.get("query") is not None:
            query = parse_query(body["query"], target.context)
        request = known[1].of_query(query)
        scope = scope_of(target.searcher, target.context, options)
        return Prepared(request, scope, options, (target,)), name


def with_name(answer: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The answer of a request of `KnownRequests.prepare`, its aggregation called as the client does."""
    if name is not None:
        answer["aggregations"] = {name: answer["aggregations"][_ONLY]}
    return answer
