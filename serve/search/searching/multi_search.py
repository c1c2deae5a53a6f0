"""`_msearch`: several searches in one request; each is answered, or fails, by itself."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import orjson

from graphdb.search.errors import SearchError, illegal_argument
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.errors import envelope, search_error
from serve.search.frame.exchange import Exchange, parse_json
from serve.search.frame.parameters import Parameters
from serve.search.searching.search import asked_of
from serve.search.searching.search_contexts import search_point_in_time
from serve.search.searching.search_names import names_found
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

SEARCHES_MAX = 10_000
_PARAMETERS = (
    "search_type max_concurrent_searches typed_keys pre_filter_shard_size max_concurrent_shard_requests "
    "rest_total_hits_as_int ccs_minimize_roundtrips index ignore_unavailable ignore_throttled "
    "allow_no_indices expand_wildcards routing include_named_queries_score"
)
# In the header of each search, before its body.
_HEADER = frozenset(
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


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def search_all(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        start = time.perf_counter()
        searches = _searches(await exchange.body())
        limit = exchange.parameters.integer("max_concurrent_searches", None)
        if limit is not None and limit < 1:
            raise illegal_argument("maxConcurrentSearchRequests must be positive")
        at_once = asyncio.Semaphore(min(limit or 8, 64))

        async def one(header: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
            async with at_once:
                return await _item(runner, exchange, header, body)

        items = await asyncio.gather(*(one(header, body) for header, body in searches))
        return {"took": int((time.perf_counter() - start) * 1000), "responses": items}

    return endpoint("GET POST", ["/_msearch", "/{index}/_msearch"], search_all, _PARAMETERS, Body.LINES)


async def _item(
    runner: SearchRunner, exchange: Exchange, header: Mapping[str, Any], body: Mapping[str, Any]
) -> dict[str, Any]:
    """One answer with its status; never raises but for being cancelled."""
    try:
        parameters = _parameters(exchange.parameters, header)
        names = _names(header) or exchange.get("index") or exchange.parameters.text("index")
        asked = asked_of(parameters, body, exchange.principal)
        if "pit" in body:
            return {**await search_point_in_time(runner, asked, _names(header), parameters), "status": 200}
        found = names_found(runner.node, names, parameters)
        return {**await runner.search(found, asked), "status": 200}
    except Exception as error:  # noqa: BLE001 - each search fails by itself
        return envelope(search_error(error))


def _searches(body: bytes) -> list[tuple[dict[str, Any], dict[str, Any]]]:
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
            if name not in _HEADER:
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
    values = {name: text for name in _PARAMETERS.split() if (text := around.text(name)) is not None}
    for name, value in header.items():
        if name not in ("index", "indices") and value is not None:
            values[name] = _text(value)
    return Parameters(values)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else orjson.dumps(value).decode()
