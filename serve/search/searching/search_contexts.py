"""Search contexts: scrolls and points in time, and those that another node has."""

import contextlib
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphdb.access.permissions import Permission
from graphdb.access.principal import Principal
from graphdb.errors import UnavailableError
from graphdb.public_text import public_text
from graphdb.search.contexts import node_of_context
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.multi import AllFailed, Scroll, Target
from serve.search.backend import HeldIndex
from serve.search.frame.answer import Answer, error_json
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import NodeName
from serve.search.frame.parameters import Parameters, time_value_ms
from serve.search.frame.peer_requests import ask_peer
from serve.search.searching.search_body import (
    NOTHING,
    enveloped,
    shard_count,
    shards_json,
    totals_as_int,
)
from serve.search.searching.search_names import ShardChoice, held_of, names_found, targets_of
from serve.search.searching.search_runner import Asked, SearchRunner
from serve.search.searching.shard_scroll import ShardScroll

__all__ = ["endpoints", "owner_of", "search_point_in_time"]

# Scrolls and points in time that this node does not have: another one has them, or nobody any more.

_ID = re.compile(r"[A-Za-z0-9_=-]{8,4096}")


def checked_id(context_id: str) -> str:
    """An id as this service makes them. Errors: illegal_argument_exception."""
    if not _ID.fullmatch(context_id):
        raise illegal_argument(f"Cannot parse scroll id [{context_id[:100]}]")
    return context_id


def owner_of(runner: SearchRunner, context_id: str) -> NodeName | None:
    """The other node of the cluster that has it, by its id; None where that is this one, or none at all."""
    number = node_of_context(context_id)
    if number is None or number == runner.identity.number:
        return None
    members = runner.identity.members(runner.node.status())
    return next((node for node in members if node.number == number), None)


async def ask_owner(
    runner: SearchRunner,
    owner: NodeName,
    context_id: str,
    path: str,
    query: Mapping[str, str],
    body: Mapping[str, Any],
    principal: Principal,
) -> dict[str, Any]:
    """What the other node answers. Raises SearchError."""
    try:
        limit_s = runner.peer_limit_s
        _, answer = await ask_peer(runner.node, owner.number, "POST", path, query, body, limit_s, principal)
    except UnavailableError as error:
        where = "" if owner.http_address is None else f" at [{owner.http_address}]"
        reason = f"No search context found for id [{context_id[:100]}]: it is of node [{owner.name}]{where}, "
        missing = SearchError(
            "search_context_missing_exception", f"{reason}which does not answer: {public_text(error)}", 404
        )
        raise missing_context(missing) from error
    return answer


async def close_contexts(
    runner: SearchRunner, ids: Iterable[str], path: str, member: str, principal: Principal
) -> int:
    """Of this node and of others; how many were open. member: how a request to `path` names them."""
    freed, here = 0, []
    for context_id in set(ids):
        owner = owner_of(runner, context_id)
        if owner is None:
            here.append(context_id)
            continue
        with contextlib.suppress(UnavailableError):  # then they end with that node, or with their time
            limit_s, body = runner.peer_limit_s, {member: context_id}
            _, answer = await ask_peer(
                runner.node, owner.number, "DELETE", path, {}, body, limit_s, principal
            )
            freed += int(answer["num_freed"])
    return freed + runner.node.contexts.close(here)


def missing_context(error: SearchError) -> SearchError:
    """As a search says it whose shards have all lost their contexts."""
    if error.kind != "search_context_missing_exception":
        return error
    shards = [{"shard": -1, "index": None, "reason": error_json(error)}]
    metadata = {"phase": "query", "grouped": True, "failed_shards": shards}
    cause = SearchError(error.kind, error.reason, error.status)
    return SearchError("search_phase_execution_exception", "all shards failed", 404, metadata, cause)


# `_search/scroll`: the further pages of a search, and its end.

_IDS_MAX = 10_000
_PATHS = ("/_search/scroll", "/_search/scroll/{scroll_id}")


def _scroll_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def more(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        scroll_id, keep_alive_ms = await _wanted(exchange)
        owner = owner_of(runner, scroll_id)
        if owner is None:
            return await _page(runner, scroll_id, keep_alive_ms, exchange)
        as_int = exchange.parameters.boolean("rest_total_hits_as_int", False)
        query = {"rest_total_hits_as_int": "true"} if as_int else {}
        body = {"scroll_id": scroll_id} | ({} if keep_alive_ms is None else {"scroll": f"{keep_alive_ms}ms"})
        return await ask_owner(runner, owner, scroll_id, "/_search/scroll", query, body, exchange.principal)

    async def clear(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        ids = await _ids(exchange)
        if ids == ["_all"]:  # those of others too
            exchange.principal.require(Permission.ADMIN)
            return {"succeeded": True, "num_freed": runner.node.contexts.close_all()}
        principal = exchange.principal
        freed = await close_contexts(runner, map(checked_id, ids), "/_search/scroll", "scroll_id", principal)
        return Answer({"succeeded": True, "num_freed": freed}, 200 if freed else 404)

    return [
        *endpoint("GET POST", _PATHS, more, "scroll scroll_id rest_total_hits_as_int", Body.JSON),
        *endpoint("DELETE", _PATHS, clear, "scroll_id", Body.JSON),
    ]


async def _wanted(exchange: Exchange) -> tuple[str, int | None]:
    """(scroll_id, how long to keep it from now); the body wins."""
    body = await exchange.json() or {}
    unknown = [name for name in body if name not in ("scroll_id", "scroll")]
    if unknown:
        raise illegal_argument(
            f"Unknown parameter [{unknown[0][:100]}] in request body or parameter is of the wrong type"
        )
    scroll_id = body.get("scroll_id", exchange.get("scroll_id") or exchange.parameters.text("scroll_id"))
    if not isinstance(scroll_id, str):
        raise SearchError("action_request_validation_exception", "Validation Failed: 1: scrollId is missing;")
    keep_alive = body.get("scroll", exchange.parameters.text("scroll"))
    return checked_id(scroll_id), None if keep_alive is None else time_value_ms(str(keep_alive), "scroll")


async def _page(
    runner: SearchRunner, scroll_id: str, keep_alive_ms: int | None, exchange: Exchange
) -> dict[str, Any]:
    start = time.perf_counter()
    runner.check_keep_alive(keep_alive_ms)
    try:
        context = runner.node.contexts.get(scroll_id, keep_alive_ms)
    except SearchError as error:
        raise missing_context(error) from None
    scroll = context.state
    if scroll is None:
        return {"_scroll_id": scroll_id, **enveloped(NOTHING, 0, shards_json(0, (), ""))}
    if isinstance(scroll, ShardScroll):
        try:
            page = await scroll.page()
        except (AllFailed, SearchError) as failed:
            raise runner.as_failure(failed, scroll.targets) from failed
        shards = shards_json(shard_count(scroll.targets), (), runner.node_id)
    elif isinstance(scroll, Scroll):
        page = {"timed_out": False, "hits": await runner.work.run(scroll.page)}
        await runner.enrich_page(scroll, page)
        prepared = scroll.prepared
        total = shard_count([*prepared.targets, *prepared.failures])
        shards = shards_json(total, prepared.failures, runner.node_id)
    else:
        raise illegal_argument("Cannot parse scroll id")
    took_ms = int((time.perf_counter() - start) * 1000)
    answer = {"_scroll_id": scroll_id, **enveloped(page, took_ms, shards)}
    return totals_as_int(answer) if exchange.parameters.boolean("rest_total_hits_as_int", False) else answer


async def _ids(exchange: Exchange) -> list[str]:
    """Of the scrolls to end: in the body, else in the path or a parameter."""
    body = await exchange.json()
    given = exchange.get("scroll_id") or exchange.parameters.text("scroll_id")
    if body is not None:
        given = body.get("scroll_id")
    ids = given.split(",") if isinstance(given, str) else given
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) for one in ids):
        raise SearchError(
            "action_request_validation_exception", "Validation Failed: 1: no scroll ids specified;"
        )
    if len(ids) > _IDS_MAX:
        raise illegal_argument(f"more than [{_IDS_MAX}] scroll ids")
    return ids


# Points in time: indexes as they were, to be searched as often as one likes.

_OPEN = (
    "keep_alive preference routing ignore_unavailable ignore_throttled allow_no_indices expand_wildcards "
    "allow_partial_search_results max_concurrent_shard_requests"
)


@dataclass(frozen=True, slots=True)
class PointInTime:
    """What a context of this kind holds."""

    targets: tuple[Target, ...]
    held: tuple[HeldIndex, ...] = ()  # of each target, where shards are elsewhere


def _point_in_time_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def open_one(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        keep_alive_ms = exchange.parameters.time_ms("keep_alive", None)
        if keep_alive_ms is None:
            raise _invalid("[keep_alive] is not specified")
        found = names_found(runner.node, exchange["index"], exchange.parameters)
        body = await exchange.json() or {}
        targets = targets_of(runner.node, found, choice=ShardChoice.of(exchange.parameters))
        only = body.get("index_filter")
        if only is not None:
            targets = [replace(one, filter=_both(one.filter, only)) for one in targets]
        runner.check_keep_alive(keep_alive_ms)
        pit = PointInTime(tuple(targets), held_of(runner.node, targets, found))
        names = {target.name for target in targets}
        pit_id = runner.node.contexts.open(pit, keep_alive_ms, indexes=names)
        return {"id": pit_id, "_shards": shards_json(shard_count(targets), (), runner.node_id)}

    async def close(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
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
    runner.check_keep_alive(keep_alive_ms)
    try:
        state = runner.node.contexts.get(pit_id, keep_alive_ms).state
    except SearchError as error:
        raise missing_context(error) from None
    if not isinstance(state, PointInTime):
        raise illegal_argument(f"invalid id: [{pit_id[:100]}]")
    # Equal hits need an order of their own, so that search_after neither skips nor repeats one.
    asked = replace(asked, body=_tie_broken(asked.body), held=state.held)
    answer = await runner.search_targets(state.targets, asked)
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


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    return [*_scroll_endpoints(shared), *_point_in_time_endpoints(shared)]
