"""`_count`: how many documents a query matches."""

from typing import Any

from graphdb.search.errors import illegal_argument, parsing
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.searching.search_body import QUERY_TEXT, query_of
from serve.search.searching.search_names import NAME_PARAMETERS, names_found
from serve.search.searching.search_runner import Asked, SearchRunner

__all__ = ["endpoints"]

_PARAMETERS = f"{NAME_PARAMETERS} {QUERY_TEXT} min_score preference routing terminate_after"


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def count(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
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
            names_found(runner.node, exchange.get("index"), parameters), Asked(search)
        )
        early = {"terminated_early": answer["terminated_early"]} if "terminated_early" in answer else {}
        return {"count": answer["hits"]["total"]["value"], **early, "_shards": answer["_shards"]}

    return endpoint("GET POST", ["/_count", "/{index}/_count"], count, _PARAMETERS, Body.JSON)
