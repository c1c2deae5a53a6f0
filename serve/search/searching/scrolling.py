"""`_search/scroll`: the further pages of a search, and its end."""

import time
from typing import Any

from graphdb.access.permissions import Permission
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.multi import Scroll
from serve.search.frame.answer import Answer
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.frame.time_values import time_value_ms
from serve.search.searching.missing_context import (
    ask_owner,
    checked_id,
    close_contexts,
    missing_context,
    owner_of,
)
from serve.search.searching.search_envelope import NOTHING, enveloped, shards_json, totals_as_int
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

_IDS_MAX = 10_000
_PATHS = ("/_search/scroll", "/_search/scroll/{scroll_id}")


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def more(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
        scroll_id, keep_alive_ms = await _wanted(exchange)
        owner = owner_of(runner, scroll_id)
        if owner is None:
            return await _page(runner, scroll_id, keep_alive_ms, exchange)
        as_int = exchange.parameters.boolean("rest_total_hits_as_int", False)
        query = {"rest_total_hits_as_int": "true"} if as_int else {}
        body = {"scroll_id": scroll_id} | ({} if keep_alive_ms is None else {"scroll": f"{keep_alive_ms}ms"})
        return await ask_owner(runner, owner, scroll_id, "/_search/scroll", query, body, exchange.principal)

    async def clear(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
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
    try:
        context = runner.node.contexts.get(scroll_id, keep_alive_ms)
    except SearchError as error:
        raise missing_context(error) from None
    scroll = context.state
    if scroll is None:
        return {"_scroll_id": scroll_id, **enveloped(NOTHING, 0, shards_json(0, (), ""))}
    if not isinstance(scroll, Scroll):
        raise illegal_argument("Cannot parse scroll id")
    page = {"timed_out": False, "hits": await runner.work.run(scroll.page)}
    await runner.enrich_page(scroll, page)
    prepared = scroll.prepared
    total = len(prepared.targets) + len(prepared.failures)
    shards = shards_json(total, prepared.failures, runner.node_id)
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
