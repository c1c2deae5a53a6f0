"""`_analyze`: which terms a text becomes."""

from functools import partial
from typing import Any

from graphdb.config import Settings
from graphdb.search.analysis import analyze
from graphdb.search.errors import SearchError
from serve.search.backend import SearchBackend
from serve.search.documents.reading import one_index
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    return endpoint("GET POST", ["/_analyze", "/{index}/_analyze"], _analyze, "index", Body.JSON)


async def _analyze(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body or source parameter is required")
    name = exchange.get("index") or exchange.parameters.text("index")
    if name is None:
        return await exchange.work.run(partial(analyze, body, None))
    index = one_index(exchange.node.catalog, name)
    most = index.number("analyze.max_token_count")
    return await exchange.work.run(partial(analyze, body, index.analyzers, index.mapping, most))
