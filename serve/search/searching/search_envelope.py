"""What stands around the hits: `took`, `_shards`, totals as clients want them, the shape of `profile`."""

from collections.abc import Mapping, Sequence
from typing import Any

from graphdb.search.multi import Failure, Prepared
from serve.search.frame.errors import error_json

__all__ = ["NOTHING", "enveloped", "profiled", "shards_json", "totals_as_int"]

NOTHING: dict[str, Any] = {
    "timed_out": False,
    "hits": {"total": {"value": 0, "relation": "eq"}, "max_score": 0.0, "hits": []},
}
"""The answer where there is no index to search."""


def enveloped(answer: Mapping[str, Any], took_ms: int, shards: Mapping[str, Any]) -> dict[str, Any]:
    """In Elasticsearch's order."""
    whole: dict[str, Any] = {"took": took_ms, "timed_out": answer["timed_out"]}
    if "terminated_early" in answer:
        whole["terminated_early"] = answer["terminated_early"]
    whole["_shards"] = shards
    return {**whole, **{name: value for name, value in answer.items() if name not in whole}}


def shards_json(total: int, failures: Sequence[Failure], node_id: str) -> dict[str, Any]:
    """`_shards`: each index is one."""
    failed = len(failures)
    shards: dict[str, Any] = {"total": total, "successful": total - failed, "skipped": 0, "failed": failed}
    if failures:
        shards["failures"] = [
            {"shard": 0, "index": one.index, "node": node_id, "reason": error_json(one.error)}
            for one in failures
        ]
    return shards


def totals_as_int(answer: dict[str, Any]) -> dict[str, Any]:
    """With every `total` of hits as a number, as it was before version 7; -1 where hits are not counted."""
    return {**answer, "hits": _as_int(answer["hits"])}


def _as_int(hits: dict[str, Any]) -> dict[str, Any]:
    total = hits.get("total", {"value": -1})
    inside = [
        {
            **hit,
            "inner_hits": {name: {"hits": _as_int(one["hits"])} for name, one in hit["inner_hits"].items()},
        }
        if "inner_hits" in hit
        else hit
        for hit in hits["hits"]
    ]
    return {**hits, "total": total["value"], "hits": inside}


def profiled(prepared: Prepared, took_ns: int, node_id: str) -> dict[str, Any]:
    """In the shape that clients read. Only the whole is measured: each index is given an equal part of it."""
    each = took_ns // max(1, len(prepared.targets))
    query = {
        "type": type(prepared.request.query).__name__,
        "description": str(prepared.request.query),
        "time_in_nanos": each,
        "breakdown": {"score": each, "score_count": 1},
    }
    collector = {"name": "SimpleTopScoreDocCollector", "reason": "search_top_hits", "time_in_nanos": 0}
    search = {"query": [query], "rewrite_time": 0, "collector": [collector]}
    return {
        "shards": [
            {
                "id": f"[{node_id}][{target.name}][0]",
                "node_id": node_id,
                "shard_id": 0,
                "index": target.name,
                "cluster": "(local)",
                "searches": [search],
                "aggregations": [],
            }
            for target in prepared.targets
        ]
    }
