"""The `knn` of a search or a retriever: the k nearest of all indexes that are searched."""

from collections.abc import Mapping

from graphdb.search.hybrid.fused import FusedQuery
from graphdb.search.hybrid.scorers import Linear
from graphdb.search.query import Query, QueryContext, parse_query
from graphdb.search.query.clause import malformed
from graphdb.search.query.knn import KnnQuery
from graphdb.search.query.ranked import BestQuery
from graphdb.search.query.tree import walk

__all__ = ["nearest_of", "nearest_of_several"]

CLAUSES_MAX = 100


def nearest_of(body: object, context: QueryContext) -> Query:
    """The object under `knn`. Each index finds its own k; of all of these the k best stay."""
    if not isinstance(body, Mapping):
        raise malformed("[knn] malformed, expected an object")
    query = parse_query({"knn": body}, context)
    parts = [node for node in walk(query) if isinstance(node, KnnQuery)]
    if not context.parts or not parts:
        return query
    likely = all(node.gives_likelihoods for node in parts)
    return BestQuery(query=query, count=max(node.sought.k for node in parts), likelihoods=likely)


def nearest_of_several(body: object, context: QueryContext) -> Query | None:
    """One or a list; a document that several have found scores the sum. None where the list is empty."""
    bodies = body if isinstance(body, list) else [] if body is None else [body]
    if len(bodies) > CLAUSES_MAX:
        raise malformed(f"[knn] takes at most [{CLAUSES_MAX}] clauses")
    queries = tuple(nearest_of(one, context) for one in bodies)
    if len(queries) < 2:
        return queries[0] if queries else None
    count = len(queries)
    summed = Linear((1.0,) * count, ("none",) * count)
    window = max(
        (node.sought.k for query in queries for node in walk(query) if isinstance(node, KnnQuery)), default=1
    )
    return FusedQuery(queries=queries, scorer=summed, window=window, kept=window * count)
