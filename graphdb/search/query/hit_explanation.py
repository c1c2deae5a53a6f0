"""Explanations of scores, and which named queries matched."""

from graphdb.search.errors import illegal_request
from graphdb.search.leaf_reader import Leaf, Longs
from graphdb.search.query.explanation import Explanation, matched
from graphdb.search.query.joins import JoinQuery
from graphdb.search.query.knn import KnnQuery
from graphdb.search.query.nested import NestedQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Query

__all__ = ["explain", "matched_queries", "named_queries", "rewritten_text", "with_inner_hits"]

# `_explain` for one document, and what `_validate` and `profile` show of a query.


def explain(query: Query, leaf: Leaf, doc: int, searcher: Searcher) -> tuple[bool, Explanation]:
    """(whether a document of a leaf matches, the explanation of its score)."""
    explanation = query.explain(leaf, doc, searcher)
    return matched(explanation), explanation


def rewritten_text(query: Query) -> str:
    """A query as Lucene prints it: `title:foo`, `+a:b #c:d`."""
    return str(query)


# What a request remembers of the queries in a tree: their names, and the inner hits of nested ones.


def named_queries(query: Query) -> list[tuple[str, Query]]:
    """The queries that have a `_name`, in the order in which they stand."""
    return [(node.name, node) for node in query.nodes if node.name is not None]


def matched_queries(query: Query, leaf: Leaf, searcher: Searcher, docs: Longs) -> list[dict[str, float]]:
    """For each of some documents of a leaf the names of the queries that match it, with their scores."""
    found: list[dict[str, float]] = [{} for _ in docs]
    for name, node in named_queries(query):
        matches = node.matches(leaf, searcher)
        mask, scores = matches.mask[docs], matches.dense()[docs]
        for place in mask.nonzero()[0].tolist():
            found[place][name] = float(scores[place])
    return found


def with_inner_hits(query: Query) -> dict[str, NestedQuery | JoinQuery]:
    """The queries whose objects or related documents a request wants to see, by the name of their inner hits.
    Those within one of them are not among them: what they find is shown with what it has found.
    """
    found: dict[str, NestedQuery | JoinQuery] = {}
    if not any(isinstance(node, (NestedQuery, JoinQuery, KnnQuery)) for node in query.nodes):
        return found  # as most
    waiting = [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, KnnQuery) and node.shown is not None:
            node = node.shown
        if not isinstance(node, NestedQuery | JoinQuery) or node.inner_hits is None:
            waiting += reversed(node.children())
            continue
        name = node.inner_hits.name
        if name in found:
            raise illegal_request(f"[inner_hits] already contains an entry for key [{name}]")
        found[name] = node
    return found
