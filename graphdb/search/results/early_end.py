"""Ending early: where a segment is in the order of the hits, only its first matches can be on the page.

The order is that of the index (`index.sort.*`), or that of the documents' numbers, which each segment has.

Source: `TopFieldCollector` of Lucene, which ends where the sort of the search is a prefix of the index's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.deadline import checkpoint
from graphdb.search.index_order import IndexOrder, OrderField, column_of
from graphdb.search.leaf_reader import Leaf, Longs
from graphdb.search.query import Query
from graphdb.search.query.tree import MatchAllQuery
from graphdb.search.results.matching import Found, Sorting, matched_in
from graphdb.search.results.search_request import SearchRequest
from graphdb.search.results.sort_keys import ByDoc, ByField, SortKey

__all__ = ["first_matched", "is_led", "may_end_early"]

_Docs = NDArray[np.signedinteger]
_AT_ONCE = 512  # documents whose sort values are read together while the first one behind others is sought
_FEW = 4_096  # documents of which all sort values are read in the time that the search for a place takes
_SPARE = 64  # documents that are looked at beyond those wanted, as some may be deleted


def may_end_early(request: SearchRequest, scope: Scope) -> bool:
    """Whether hits are sorted and shown, nothing else is made of what matches, and some segment is in their
    order.
    """
    if not request.is_sorted_alone or request.scores_hits:
        return False
    by_doc = isinstance(request.sort[-1], ByDoc)
    if by_doc and request.after is not None and scope.searcher.peers is not None:
        return (
            False  # shards must ask one another the same in turn, and the numbers of documents are asked for
        )
    return any(is_led(leaf.segment.order, request.sort) for leaf in scope.columns.leaves)


def is_led(order: IndexOrder, keys: Sequence[SortKey]) -> bool:
    """Whether documents in that order are in the order of the keys: these are a prefix of it. At last they
    may name the number of the document, which decides among equal ones anyway.
    """
    if isinstance(keys[-1], ByDoc) and not keys[-1].descending:
        keys = keys[:-1]
    return len(keys) <= len(order) and all(map(_is_by, keys, order))


def _is_by(key: SortKey, field: OrderField) -> bool:
    return (
        isinstance(key, ByField)
        and key.nesting is None
        and not key.spec.options.get("runtime")
        and (key.spec.path, column_of(key.spec)) == (field.path, field.column)
        and (key.descending, key.mode) == (field.descending, field.mode)
        and key.missing == ("_last" if field.missing_last else "_first")
    )


def first_matched(request: SearchRequest, scope: Scope) -> Found:
    """The documents that can be on the page, ascending, and how many more match: all of them, or more than
    the request counts.
    """
    found, total = [np.empty(0, np.int64)], 0
    wanted = request.start + request.size
    for leaf in scope.columns.leaves:
        checkpoint()
        if not is_led(leaf.segment.order, request.sort):
            docs = matched_in(scope, request.query, leaf)
            total += len(docs)
        elif request.after is not None or request.track_total is None:
            docs = matched_in(scope, request.query, leaf)
            total += len(docs)
            if request.after is None:
                docs = docs[:wanted]
            elif len(docs) > _FEW:
                begin = _place_behind(request.after, request.sort, scope, docs)
                docs = docs[begin : begin + wanted]
        else:
            uncounted = request.track_total + 1 - total if request.track_total else 0
            docs = _first_in(request.query, leaf, scope, max(wanted, uncounted))
            total += len(docs)
            docs = docs[:wanted]
        found.append(docs)
    docs = np.concatenate(found)
    return Found(docs, None, total - len(docs))


def _first_in(query: Query, leaf: Leaf, scope: Scope, count: int) -> Longs:
    """The first matches of a leaf, at least `count` if there are, as numbers among all documents.

    Where the query has a list of its matches, or matches all, no more of them are looked at.
    """
    segment = leaf.segment
    listed: _Docs | None = query.docs_in(leaf, scope.searcher)
    if listed is None and not isinstance(query, MatchAllQuery):
        return matched_in(scope, query, leaf)
    size, begin, left = segment.size if listed is None else len(listed), 0, count
    parts = [np.empty(0, np.int64)]
    while left > 0 and begin < size:
        end = min(size, begin + 2 * left + _SPARE)
        docs = np.arange(begin, end) if listed is None else listed[begin:end].astype(np.int64)
        shown = leaf.live[docs] if segment.parents is None else leaf.live[docs] & (segment.parents[docs] < 0)
        parts.append(docs[shown] + leaf.base)
        left, begin = left - len(parts[-1]), end
    return np.concatenate(parts)


def _place_behind(after: Sequence[Any], keys: tuple[SortKey, ...], scope: Scope, docs: Longs) -> int:
    """Where those begin that come after these sort values, among documents that are in the order of the keys.

    Errors: illegal_argument_exception for values that are none of the keys'.
    """
    low, high = 0, len(docs)
    while low < high:
        places = np.unique(np.linspace(low, high - 1, _AT_ONCE).astype(np.int64))
        later = Sorting(scope, Found(docs[places], None), keys).after(after)
        first = int(np.argmax(later)) if later.any() else len(places)
        if first:
            low = int(places[first - 1]) + 1
        if first < len(places):
            high = int(places[first])
    return low
