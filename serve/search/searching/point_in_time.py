"""Points in time: indexes as they were, to be searched as often as one likes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.multi import Target
from serve.search.frame.answer import Answer
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.frame.parameters import Parameters
from serve.search.frame.time_values import time_value_ms
from serve.search.searching.missing_context import (
    ask_owner,
    checked_id,
    close_contexts,
    missing_context,
    owner_of,
)
from serve.search.searching.search_envelope import shards_json
from serve.search.searching.search_names import names_found, targets_of
from serve.search.searching.search_runner import Asked, SearchRunner

__all__ = ["endpoints", "search_point_in_time"]

_OPEN = (
    "keep_alive preference routing ignore_unavailable ignore_throttled allow_no_indices expand_wildcards "
    "allow_partial_search_results max_concurrent_shard_requests"
)


@dataclass(frozen=True, slots=True)
class PointInTime:
    """What a context of this kind holds."""

    targets: tuple[Target, ...]


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def open_one(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
        keep_alive_ms = exchange.parameters.time_ms("keep_alive", None)
        if keep_alive_ms is None:
            raise _invalid("[keep_alive] is not specified")
        found = names_found(runner.node, exchange["index"], exchange.parameters)
        body = await exchange.json() or {}
        targets = targets_of(runner.node, found)
        only = body.get("index_filter")
        if only is not None:
            targets = [replace(one, filter=_both(one.filter, only)) for one in targets]
        pit_id = runner.node.contexts.open(PointInTime(tuple(targets)), keep_alive_ms)
        return {"id": pit_id, "_shards": shards_json(len(targets), (), runner.node_id)}

    async def close(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
        body = await exchange.json() or {}
        pit_id = body.get("id")
        if not isinstance(pit_id, str) or len(body) > 1:
            raise illegal_argument("Required [id]")
        freed = await close_contexts(runner, [checked_id(pit_id)], "/_pit", "id", exchange.principal)
        return Answer({"succeeded": bool(freed), "num_freed": freed}, 200 if freed else 404)

    return [
        *endpoint("POST", "/{index}/_pit", open_one, _OPEN, Body.JSON),
        *endpoint("DELETE", "/_pit", close, "", Body.JSON),
    ]


async def search_point_in_time(
    runner: SearchRunner, asked: Asked, names: str | None, parameters: Parameters
) -> dict[str, Any]:
    """A search whose body names a point in time. Errors: SearchError."""
    if names:
        raise _invalid(
            "[indices] cannot be used with point in time. Do not specify any index with point in time."
        )
    for name in ("scroll", "routing", "preference"):
        if name in parameters:
            raise _invalid(f"[{name}] cannot be used with point in time")
    pit_id, keep_alive_ms = _read(asked.body["pit"])
    owner = owner_of(runner, pit_id)
    if owner is not None:
        query = _query_of(asked)
        return await ask_owner(runner, owner, pit_id, "/_search", query, asked.body, asked.principal)
    try:
        state = runner.node.contexts.get(pit_id, keep_alive_ms).state
    except SearchError as error:
        raise missing_context(error) from None
    if not isinstance(state, PointInTime):
        raise illegal_argument(f"invalid id: [{pit_id[:100]}]")
    # Equal hits need an order of their own, so that search_after neither skips nor repeats one.
    answer = await runner.search_targets(state.targets, replace(asked, body=_tie_broken(asked.body)))
    return {"pit_id": pit_id, **answer}


def _read(given: Any) -> tuple[str, int | None]:
    if not isinstance(given, Mapping):
        raise parsing("Unknown key for a VALUE in [pit].", line=1, col=1)
    pit_id, keep_alive = given.get("id"), given.get("keep_alive")
    unknown = [name for name in given if name not in ("id", "keep_alive")]
    if unknown:
        raise SearchError("x_content_parse_exception", f"[pit] unknown field [{unknown[0][:100]}]")
    if not isinstance(pit_id, str) or not pit_id:
        raise illegal_argument("[id] cannot be empty for point in time")
    return checked_id(pit_id), None if keep_alive is None else time_value_ms(str(keep_alive), "keep_alive")


def _query_of(asked: Asked) -> dict[str, str]:
    """What a search says in its parameters only."""
    flags = {
        "typed_keys": asked.typed_keys,
        "rest_total_hits_as_int": asked.total_as_int,
        "include_named_queries_score": asked.named_scores,
        "allow_partial_search_results": asked.partial,
        "request_cache": asked.cached,
    }
    query = {name: str(flag).lower() for name, flag in flags.items() if flag is not None}
    return query | ({"search_type": "dfs_query_then_fetch"} if asked.shared_statistics else {})


def _tie_broken(body: Mapping[str, Any]) -> dict[str, Any]:
    keys = body.get("sort")
    if keys is None or "collapse" in body:
        return dict(body)
    entries = keys if isinstance(keys, list) else [keys]
    names = {entry if isinstance(entry, str) else next(iter(entry), "") for entry in entries if entry}
    if "_shard_doc" in names:
        return dict(body)
    after = body.get("search_after")
    if isinstance(after, list) and len(after) == len(entries):
        return dict(body)  # values that were taken without it
    return {**body, "sort": [*entries, {"_shard_doc": "asc"}]}


def _both(one: Any, other: Any) -> Any:
    return other if one is None else {"bool": {"filter": [one, other]}}


def _invalid(problem: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {problem};")
