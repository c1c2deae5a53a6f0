"""Searches that only count: how many documents match, and how many of them are in each bucket."""

import numpy as np
import orjson
from numpy.typing import NDArray

from graphdb.search.aggregations import Scope
from graphdb.search.aggregations.tallies import Tally
from graphdb.search.deadline import checkpoint
from graphdb.search.leaf_reader import Ints
from graphdb.search.query.tree import MatchAllQuery
from graphdb.search.results.matching import listed_in
from graphdb.search.results.search_request import SearchRequest

__all__ = ["counted"]


def counted(request: SearchRequest, scope: Scope) -> tuple[int, dict[str, orjson.Fragment]] | None:
    """(how many documents match, the answers of the aggregations by name): made leaf by leaf without a list
    of all matches; None where an aggregation cannot be made so, or more is asked. Raises SearchError.
    """
    aggregations = request.aggregations
    if aggregations is None or request.size or not request.is_aggregated_alone:
        return None
    if aggregations.pipelines or scope.clock_ns is not None or scope.typed_keys:
        return None
    tallies: dict[str, Tally] = {}
    for child in aggregations.children:
        tally = None if child.common.meta is not None else child.tally(scope)
        if tally is None:
            return None
        tallies[child.common.name] = tally
    total = 0
    for number in range(len(scope.columns.leaves)):
        checkpoint()
        docs = _docs_of(request, scope, number)
        total += len(docs)
        for tally in tallies.values():
            tally.add(number, docs)
    try:
        return total, {name: _shown(tally, scope) for name, tally in tallies.items()}
    except orjson.JSONEncodeError:  # half a surrogate pair, which the encoder of the whole answer writes
        return None


def _docs_of(request: SearchRequest, scope: Scope, number: int) -> Ints:
    """What matches in a leaf."""
    leaf, columns = scope.columns.leaves[number], scope.columns
    if isinstance(request.query, MatchAllQuery):
        return columns.keep(("shown", number), lambda: _fixed(np.flatnonzero(leaf.roots)))
    return _fixed(listed_in(scope, request.query, leaf))


def _fixed(docs: NDArray[np.signedinteger]) -> Ints:
    """As loops are compiled for."""
    same: Ints = docs.astype(np.int32, copy=False)
    if same.flags.writeable:
        same.setflags(write=False)
    return same


def _shown(tally: Tally, scope: Scope) -> orjson.Fragment:
    text, buckets = tally.written()
    scope.count_buckets(buckets)
    return orjson.Fragment(text)
