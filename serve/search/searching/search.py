"""`_search`, `_count`, `_search_shards`, and `_msearch`: several searches in one request."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import orjson

from graphdb.access.principal import Principal
from graphdb.search.answer_room import one_answer
from graphdb.search.catalog.index_names import Resolved
from graphdb.search.errors import SearchError, illegal_argument, parsing
from serve.answers import unless_gone
from serve.search.administration.allocation import copies_of, node_json
from serve.search.frame.answer import envelope, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint, parse_json
from serve.search.frame.parameters import Parameters
from serve.search.searching.search_body import QUERY_TEXT, SEARCH_PARAMETERS, body_with, query_of
from serve.search.searching.search_contexts import search_point_in_time
from serve.search.searching.search_names import NAME_PARAMETERS, ShardChoice, check_boosts, names_found
from serve.search.searching.search_runner import Asked, SearchRunner

__all__ = ["asked_of", "endpoints", "multi_answers", "searched", "searches_of"]

SEARCHES_MAX = 10_000
_MULTI_PARAMETERS = (
    "search_type max_concurrent_searches typed_keys pre_filter_shard_size max_concurrent_shard_requests "
    "rest_total_hits_as_int ccs_minimize_roundtrips index ignore_unavailable ignore_throttled "
    "allow_no_indices expand_wildcards routing include_named_queries_score"
)
# In the header of each search, before its body.
_MULTI_HEADER = frozenset(
    [
        "index",
        "indices",
        "search_type",
        "preference",
        "routing",
        "request_cache",
        "allow_partial_search_results",
        "ignore_unavailable",
        "ignore_throttled",
        "allow_no_indices",
        "expand_wildcards",
        "ccs_minimize_roundtrips",
    ]
)


# `_search`: over HTTP, whether of names, of a point in time, or as the first page of a scroll.


def _search_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def search(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        parameters = exchange.parameters
        asked = asked_of(parameters, body_with(parameters, await exchange.json()), exchange.principal)
        names = exchange.get("index") or parameters.text("index")
        return await unless_gone(exchange.request, searched(runner, asked, names, parameters))

    return endpoint("GET POST", ["/_search", "/{index}/_search"], search, SEARCH_PARAMETERS, Body.JSON)


async def searched(
    runner: SearchRunner, asked: Asked, names: str | None, parameters: Parameters
) -> dict[str, Any]:
    """The answer to one search, of whatever kind. Raises SearchError."""
    if "pit" in asked.body:
        return await search_point_in_time(runner, asked, names, parameters)
    if _sorts_by_shard_doc(asked.body.get("sort")):
        raise _invalid("[_shard_doc] sort field cannot be used without [point in time]")
    check_boosts(runner.node, asked.body.get("indices_boost"), parameters)
    found = names_found(runner.node, names, parameters)
    keep_alive_ms = parameters.time_ms("scroll", None)
    if keep_alive_ms is not None:
        return await runner.open_scroll(found, asked, keep_alive_ms)
    if "slice" in asked.body:
        raise _invalid("[slice] can only be used with [scroll] or [point-in-time] requests")
    return await runner.search(found, asked)


_LEAST = {
    "batched_reduce_size": (2, "batchedReduceSize"),
    "max_concurrent_shard_requests": (1, "maxConcurrentShardRequests"),
    "pre_filter_shard_size": (1, "preFilterShardSize"),
}


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
    for name, (least, shown) in _LEAST.items():
        if (parameters.integer(name, least) or 0) < least:
            raise illegal_argument(f"{shown} must be >= {least}")
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
        ShardChoice.of(parameters),
        raw=not as_int,
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


def _sorts_by_shard_doc(sort: Any) -> bool:
    entries = sort if isinstance(sort, list) else [sort]
    return any(
        entry == "_shard_doc" or (isinstance(entry, dict) and "_shard_doc" in entry) for entry in entries
    )


def _invalid(problem: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {problem};")


# `_count`: how many documents a query matches.

_COUNT_PARAMETERS = f"{NAME_PARAMETERS} {QUERY_TEXT} min_score preference routing terminate_after"


def _count_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def count(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        body = await exchange.json() or {}
        for name in body:
            if name != "query":
                raise parsing(f"request does not support [{name[:100]}]", line=1, col=1)
        parameters = exchange.parameters
        if (parameters.integer("terminate_after", 0) or 0) < 0:
            raise illegal_argument("terminateAfter must be > 0")
        search: dict[str, Any] = {"size": 0, "track_total_hits": True}
        query = query_of(parameters) or body.get("query")
        if query is not None:
            search["query"] = query
        for name in ("min_score", "terminate_after"):
            if name in parameters:
                search[name] = parameters.text(name)
        answer = await runner.search(
            names_found(runner.node, exchange.get("index"), parameters),
            Asked(search, choice=ShardChoice.of(parameters)),
        )
        early = {"terminated_early": answer["terminated_early"]} if "terminated_early" in answer else {}
        return {"count": answer["hits"]["total"]["value"], **early, "_shards": answer["_shards"]}

    return endpoint("GET POST", ["/_count", "/{index}/_count"], count, _COUNT_PARAMETERS, Body.JSON)


# `_search_shards`: where a search would run.

_SHARDS_PARAMETERS = f"{NAME_PARAMETERS} preference routing local master_timeout"


def _shards_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def search_shards(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        here = runner.identity.here(runner.node.status())
        found = names_found(runner.node, exchange.get("index"), exchange.parameters)
        choice = ShardChoice.of(exchange.parameters)
        indices = {one.index.name: _named(one) for one in found}
        elsewhere = runner.node.shards
        copies = {one.index.name: list(copies_of(one.index, [here], elsewhere)) for one in found}
        shards = [
            [copy.routing() for copy in copies[one.index.name] if copy.number == number and copy.is_active]
            for one in found
            for number in sorted(choice.of_index(one))
        ]
        nodes = {node.id: node_json(node) for node in ([here] if elsewhere is None else elsewhere.nodes())}
        return {"nodes": nodes, "indices": indices, "shards": shards}

    return endpoint(
        "GET POST",
        ["/_search_shards", "/{index}/_search_shards"],
        search_shards,
        _SHARDS_PARAMETERS,
        Body.JSON,
    )


def _named(found: Resolved) -> dict[str, Any]:
    """The aliases that an index was named by, and what they show of it."""
    shown: dict[str, Any] = {"aliases": list(found.aliases)} if found.aliases else {}
    filters = [_written_out(one) for one in found.filters]
    if len(filters) == 1:
        shown["filter"] = filters[0]
    elif filters:
        shown["filter"] = {"bool": {"should": filters, "adjust_pure_negative": True, "boost": 1.0}}
    return shown


def _written_out(query: Mapping[str, Any]) -> Mapping[str, Any]:
    """A term as Elasticsearch writes it out, with its boost; any other query as it was given."""
    term = query.get("term")
    if not isinstance(term, Mapping):
        return query
    given = {
        name: value if isinstance(value, Mapping) else {"value": value}
        for name, value in term.items()
        if name not in ("boost", "_name")
    }
    return {"term": {name: {**value, "boost": value.get("boost", 1.0)} for name, value in given.items()}}


_MALFORMED = ("action_request_validation_exception", "parsing_exception", "x_content_parse_exception")


def _multi_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def search_all(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        return await multi_answers(runner, exchange, searches_of(await exchange.body()))

    return endpoint("GET POST", ["/_msearch", "/{index}/_msearch"], search_all, _MULTI_PARAMETERS, Body.LINES)


async def multi_answers(
    runner: SearchRunner,
    exchange: Exchange,
    searches: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    made: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Of (header, body) each; made: what makes the body of a search of the one that was sent.

    Each fails by itself, but for a body that is malformed as it was sent: then there is no answer at all, as
    in Elasticsearch. All have `SearchWork.several` time; those that have not ended then fail. Raises
    SearchError.
    """
    start = time.perf_counter()
    limit = exchange.parameters.integer("max_concurrent_searches", None)
    if limit is not None and limit < 1:
        raise illegal_argument("maxConcurrentSearchRequests must be positive")
    at_once = asyncio.Semaphore(min(limit or 8, 64))
    if exchange.parameters.boolean("rest_total_hits_as_int", False):
        for _, body in searches:  # one that cannot be so makes the request one that cannot
            _counted(body)

    async def one(header: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any] | SearchError:
        async with at_once:
            try:
                runner.work.check_time()
                whole = body if made is None else await made(body)
            except Exception as error:  # noqa: BLE001 - each search fails by itself
                return envelope(search_error(error))
            try:
                return await _item(runner, exchange, header, whole)
            except SearchError as error:
                return error if made is None and _is_malformed(error) else envelope(error)
            except Exception as error:  # noqa: BLE001 - each search fails by itself
                return envelope(search_error(error))

    with one_answer(), runner.work.several():
        answering = asyncio.gather(*(one(header, body) for header, body in searches))
        items = await unless_gone(exchange.request, answering)
    for item in items:
        if isinstance(item, SearchError):
            raise item
    return {"took": int((time.perf_counter() - start) * 1000), "responses": items}


async def _item(
    runner: SearchRunner, exchange: Exchange, header: Mapping[str, Any], body: Mapping[str, Any]
) -> dict[str, Any]:
    """One answer with its status."""
    parameters = _parameters(exchange.parameters, header)
    names = _names(header) or exchange.get("index") or exchange.parameters.text("index")
    asked = asked_of(parameters, body, exchange.principal)
    if "pit" in body:
        return {**await search_point_in_time(runner, asked, _names(header), parameters), "status": 200}
    found = names_found(runner.node, names, parameters)
    return {**await runner.search(found, asked), "status": 200}


def _is_malformed(error: SearchError) -> bool:
    """Whether Elasticsearch finds it before it looks for an index."""
    return error.status == 400 and (error.of_request or error.kind in _MALFORMED)


def searches_of(body: bytes) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(header, body) of each. Errors: SearchError."""
    if not body.strip():
        raise SearchError("action_request_validation_exception", "Validation Failed: 1: no requests added;")
    if not body.endswith(b"\n"):
        raise illegal_argument("The msearch request must be terminated by a newline [\\n]")
    # An empty line is an empty header, but empty lines before the first one are nothing.
    lines = body.lstrip(b"\r\n").split(b"\n")[:-1]
    if len(lines) > 2 * SEARCHES_MAX:
        raise illegal_argument(f"more than [{SEARCHES_MAX}] searches in one request")
    if len(lines) % 2:
        raise illegal_argument("unexpected end of the request: a header without a body")
    parsed = [_object(line) for line in lines]
    for header in parsed[::2]:
        for name in header:
            if name not in _MULTI_HEADER:
                raise illegal_argument(f"key [{name[:100]}] is not supported in the metadata section")
    return list(zip(parsed[::2], parsed[1::2], strict=True))


def _object(line: bytes) -> dict[str, Any]:
    value = parse_json(line) if line.strip() else {}
    if not isinstance(value, dict):
        raise illegal_argument("Malformed request: each line must be an object")
    return value


def _names(header: Mapping[str, Any]) -> str | None:
    given = header.get("index", header.get("indices"))
    if isinstance(given, list):
        return ",".join(map(str, given))
    return None if given is None else str(given)


def _parameters(around: Parameters, header: Mapping[str, Any]) -> Parameters:
    """Those of the request, and what the header says instead."""
    values = {name: text for name in _MULTI_PARAMETERS.split() if (text := around.text(name)) is not None}
    for name, value in header.items():
        if name not in ("index", "indices") and value is not None:
            values[name] = _text(value)
    return Parameters(values)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    return [
        *_search_endpoints(shared),
        *_count_endpoints(shared),
        *_shards_endpoints(shared),
        *_multi_endpoints(shared),
    ]
