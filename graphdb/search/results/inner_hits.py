"""Hits below hits: those of nested objects, of collapsed groups, and of `top_hits`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.rows import Rows
from graphdb.search.aggregations.scope import Scope, columns_of
from graphdb.search.query import Query, nested_with_inner_hits
from graphdb.search.query.nested import NestedQuery
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.results.collapsing import Groups
from graphdb.search.results.fetching import Fetching, parse_fetching
from graphdb.search.results.hits import Fetcher, envelope
from graphdb.search.results.request import InnerHits, parse_inner_hits
from graphdb.search.results.selection import Found, Sorting
from graphdb.search.results.sort_keys import ByScore
from graphdb.search.results.sort_parsing import parse_sort
from graphdb.search.segment import Floats, Longs

__all__ = ["NestedHits", "page", "top_hits"]


def page(scope: Scope, fetcher: Fetcher, found: Found, inner: InnerHits) -> dict[str, Any]:
    """`hits` of some documents, sorted and cut as inner says."""
    sorting = Sorting(scope, found, inner.sort)
    scored = not inner.sort or any(isinstance(key, ByScore) for key in inner.sort)
    groups = None if inner.collapse is None else Groups(scope, inner.collapse, found.docs)
    end = inner.start + inner.size
    if groups is None:
        rows = sorting.first(end)[inner.start :]
    else:
        rows = groups.leaders(sorting, sorting.first(len(found.docs)))[inner.start : end]
    hits = [fetcher.shown(hit, inner.fetching) for hit in sorting.hits(rows, scored)]
    if groups is not None:
        for row, hit in zip(rows.tolist(), hits, strict=True):
            hit.setdefault("fields", {})[inner.collapse] = [groups.value(row)]
    best = None
    if scored and len(rows) and found.scores is not None:
        best = float(found.scores.max())
    return envelope(hits, len(found.docs), best)


class NestedHits:
    """The `inner_hits` of a query's nested clauses. Owned by one search."""

    def __init__(self, scope: Scope, query: Query) -> None:
        self._scope = scope
        self._query, self._parts = query, dict[int, NestedHits]()
        self._clauses: list[tuple[InnerHits, NestedQuery, Found]] = []
        if isinstance(query, PerIndexQuery):
            return
        for name, node in nested_with_inner_hits(query).items():
            assert node.inner_hits is not None
            inner = parse_inner_hits(dict(node.inner_hits.members), scope.context.within(node.path), name)
            self._clauses.append((inner, node, _objects(scope, node)))

    def of(self, doc: int) -> dict[str, Any]:
        """By name, for one document of the top level."""
        if isinstance(self._query, PerIndexQuery):
            return self._in_its_index(self._query, doc)
        if not self._clauses:
            return {}
        out = {}
        roots = self._scope.columns.roots
        for inner, node, objects in self._clauses:
            low, high = np.searchsorted(roots[objects.docs], [doc, doc + 1])
            fetcher = Fetcher(self._scope, node.query)
            found = objects.kept(np.arange(low, high))
            out[inner.name] = {"hits": page(self._scope, fetcher, found, inner)}
        return out

    def _in_its_index(self, query: PerIndexQuery, doc: int) -> dict[str, Any]:
        leaf, local = self._scope.columns.locate(doc)
        number, own, searcher = self._scope.searcher.part(leaf)
        if number not in self._parts:
            scope = Scope(searcher, columns_of(searcher), self._scope.context.parts[number])
            self._parts[number] = NestedHits(scope, query.queries[number])
        return self._parts[number].of(own.base + local)


def _objects(scope: Scope, node: NestedQuery) -> Found:
    """All nested objects that a clause matches, with their own scores."""
    docs, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for leaf in scope.columns.leaves:
        objects = node.found(leaf, scope.searcher)
        docs.append(objects + leaf.base)
        scores.append(node.query.matches(leaf, scope.searcher).dense()[objects])
    return Found(np.concatenate(docs), np.concatenate(scores))


def top_hits(
    body: Mapping[str, Any], rows: Rows, scope: Scope, query: Query | None, around: Fetching
) -> list[dict[str, Any]]:
    """The hits of each bucket of the rows. around: of the search; its `fields` are shown unless body has its
    own.
    """
    options = Options("top_hits", body)
    own_fields = "fields" in options
    start, size = options.integer("from", 0, 0), options.integer("size", 3, 0)
    sort = parse_sort(options.take("sort"), scope.context)
    fetching = parse_fetching(options, scope.context)
    if not own_fields:
        fetching = replace(fetching, fields=around.fields)
    inner = InnerHits("", start, size, sort, fetching)
    options.ignore("track_scores")
    options.done()
    fetcher = Fetcher(scope, query)
    # The rows of a bucket, each list ascending: buckets keep the documents' order.
    order = np.argsort(rows.owners, kind="stable")
    ends = np.cumsum(rows.sizes())
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    return [
        page(scope, fetcher, _found(rows.docs[order[low:high]], scope.scores), inner)
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _found(docs: Longs, scores: Floats | None) -> Found:
    docs = np.sort(docs)
    return Found(docs, None if scores is None else scores[docs])
