"""`sparql_filter` in a request: which documents are its candidates, and the request with some of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.leaf_reader import Longs

__all__ = ["candidates_body", "filtered", "ids_of", "is_ranked"]

_RANKED = ("knn", "retriever", "rank", "sub_searches")


def is_ranked(body: Mapping[str, Any]) -> bool:
    """Whether the documents that count decide which others are found, so that the filter has to come first:
    the nearest vectors are the nearest of those that pass it.
    """
    return any(body.get(name) is not None for name in _RANKED)


def candidates_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """A search that finds at least all documents that a ranked one may look at."""
    if body.get("retriever") is not None:
        return {"query": _all_of(_filters_of_retriever(body["retriever"]))}
    asked = [] if body.get("query") is None else [body["query"]]
    asked += [
        one["query"] for one in _list(body.get("sub_searches")) if isinstance(one, Mapping) and "query" in one
    ]
    asked += [_all_of(_list(one.get("filter"))) for one in _list(body.get("knn")) if isinstance(one, Mapping)]
    return {"query": {"bool": {"should": asked}} if asked else {"match_all": {}}}


def filtered(body: Mapping[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """A ranked search of the documents with these ids alone."""
    only = {"ids": {"values": list(ids)}}
    changed = dict(body)
    if body.get("retriever") is not None:
        changed["retriever"] = _filtered_retriever(body["retriever"], only)
    if body.get("query") is not None:
        changed["query"] = _both(body["query"], only)
    if body.get("sub_searches") is not None:
        changed["sub_searches"] = [
            {**one, "query": _both(one["query"], only)}
            if isinstance(one, Mapping) and "query" in one
            else one
            for one in _list(body["sub_searches"])
        ]
    if body.get("knn") is not None:
        changed["knn"] = [_with_filter(one, only) for one in _list(body["knn"])]
    return changed


def ids_of(scope: Scope, docs: Longs) -> list[str]:
    """The `_id` of each document, by their numbers in the whole."""
    found: list[str] = []
    for segment, number, part in scope.columns.parts(docs):
        base = scope.columns.leaves[number].base
        found += map(segment.doc_id, (docs[part] - base).tolist())
    return found


def _both(query: Any, only: Mapping[str, Any]) -> dict[str, Any]:
    return {"bool": {"must": [query], "filter": [only]}}


def _all_of(filters: Sequence[Any]) -> dict[str, Any]:
    return {"bool": {"filter": list(filters)}} if filters else {"match_all": {}}


def _filters_of_retriever(node: Any) -> list[Any]:
    members = next(iter(node.values()), None) if isinstance(node, Mapping) else None
    return _list(members.get("filter")) if isinstance(members, Mapping) else []


def _filtered_retriever(node: Any, only: Mapping[str, Any]) -> Any:
    """A filter of the outermost holds for those inside."""
    if not isinstance(node, Mapping):
        return node
    return {kind: _with_filter(members, only) for kind, members in node.items()}


def _with_filter(members: Any, only: Mapping[str, Any]) -> Any:
    if not isinstance(members, Mapping):
        return members  # the parser reports what is wrong
    return {**members, "filter": [*_list(members.get("filter")), only]}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
