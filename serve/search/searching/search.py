"""`_search`: over HTTP, whether of names, of a point in time, or as the first page of a scroll."""

from collections.abc import Mapping
from typing import Any

from graphdb.access.principal import Principal
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.frame.parameters import Parameters
from serve.search.searching.point_in_time import search_point_in_time
from serve.search.searching.search_body import SEARCH_PARAMETERS, body_with
from serve.search.searching.search_names import check_boosts, names_found
from serve.search.searching.search_runner import Asked, SearchRunner

__all__ = ["asked_of", "endpoints"]


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def search(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
        parameters = exchange.parameters
        asked = asked_of(parameters, body_with(parameters, await exchange.json()), exchange.principal)
        names = exchange.get("index") or parameters.text("index")
        if "pit" in asked.body:
            return await search_point_in_time(runner, asked, names, parameters)
        if _sorts_by_shard_doc(asked.body.get("sort")):
            raise _invalid("[_shard_doc] sort field cannot be used without [point in time]")
        check_boosts(runner.node, asked.body.get("indices_boost"), parameters)
        found = names_found(runner.node, names, parameters)
        keep_alive_ms = parameters.time_ms("scroll", None)
        if keep_alive_ms is not None:
            _check_scroll(asked)
            return await runner.open_scroll(found, asked, keep_alive_ms)
        if "slice" in asked.body:
            raise _invalid("[slice] can only be used with [scroll] or [point-in-time] requests")
        return await runner.search(found, asked)

    return endpoint("GET POST", ["/_search", "/{index}/_search"], search, SEARCH_PARAMETERS, Body.JSON)


def asked_of(parameters: Parameters, body: Mapping[str, Any], principal: Principal) -> Asked:
    """A request, from its whole body and what only parameters can say. Errors: illegal_argument_exception."""
    kind = parameters.text("search_type") or "query_then_fetch"
    if kind not in ("query_then_fetch", "dfs_query_then_fetch"):
        raise illegal_argument(f"No search type for [{kind[:100]}]")
    if "search_type" in parameters and body.get("knn") is not None:
        raise illegal_argument(
            "cannot set [search_type] when using [knn] search, since the search type is "
            "determined automatically"
        )
    as_int = parameters.boolean("rest_total_hits_as_int", False)
    return Asked(
        _counted(body) if as_int else body,
        parameters.boolean("typed_keys", False),
        as_int,
        kind == "dfs_query_then_fetch",
        parameters.boolean("request_cache", False) if "request_cache" in parameters else None,
        parameters.boolean("include_named_queries_score", False),
        parameters.boolean("allow_partial_search_results", True),
        principal,
    )


def _counted(body: Mapping[str, Any]) -> dict[str, Any]:
    """A total that is a number has to be exact."""
    tracked = body.get("track_total_hits", True)
    if isinstance(tracked, int) and not isinstance(tracked, bool) and tracked >= 0:
        raise illegal_argument(
            "[rest_total_hits_as_int] cannot be used if the tracking of total hits is not accurate, got "
            f"{tracked}"
        )
    return {**body, "track_total_hits": tracked}


def _check_scroll(asked: Asked) -> None:
    if asked.cached:
        raise _invalid("[request_cache] cannot be used in a scroll context")


def _sorts_by_shard_doc(sort: Any) -> bool:
    entries = sort if isinstance(sort, list) else [sort]
    return any(
        entry == "_shard_doc" or (isinstance(entry, dict) and "_shard_doc" in entry) for entry in entries
    )


def _invalid(problem: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {problem};")
