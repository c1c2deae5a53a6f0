"""Stored scripts."""

import asyncio
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import DeleteScript, PutScript
from graphdb.search.errors import SearchError
from graphdb.search.scripts.script import LANGUAGES
from graphdb.search.scripts.stored import checked_stored
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]

# What a script of each context returns, and what it reads.
_MAP, _DOUBLE = "java.util.Map", "double"
_CONTEXTS: dict[str, tuple[str, dict[str, str]]] = {
    "bucket_aggregation": (_DOUBLE, {"getParams": _MAP}),
    "field": ("java.lang.Object", {"getParams": _MAP, "getDoc": _MAP}),
    "filter": ("boolean", {"getParams": _MAP, "getDoc": _MAP}),
    "ingest": ("void", {"getParams": _MAP, "getCtx": _MAP}),
    "score": (_DOUBLE, {"getParams": _MAP, "getDoc": _MAP, "get_score": _DOUBLE}),
    "update": ("void", {"getParams": _MAP, "getCtx": _MAP}),
}
_PUT = "context master_timeout timeout"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("GET", "/_scripts/{id}", _get, "master_timeout"),
        *endpoint("PUT POST", ["/_scripts/{id}", "/_scripts/{id}/{context}"], _put, _PUT, Body.JSON),
        *endpoint("DELETE", "/_scripts/{id}", _delete, "master_timeout timeout"),
        *endpoint("GET", "/_script_language", _languages),
        *endpoint("GET", "/_script_context", _contexts),
    ]


async def _get(exchange: Exchange) -> Answer:
    found = exchange.node.catalog.scripts.get(exchange["id"])
    if found is None:
        return Answer({"_id": exchange["id"], "found": False}, 404)
    return Answer({"_id": exchange["id"], "found": True, "script": found})


async def _put(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    script = await asyncio.to_thread(checked_stored, body)  # it is compiled
    await exchange.node.perform(PutScript(exchange["id"], script))
    return {"acknowledged": True}


async def _delete(exchange: Exchange) -> dict[str, Any]:
    await exchange.node.perform(DeleteScript(exchange["id"]))
    return {"acknowledged": True}


async def _languages(exchange: Exchange) -> dict[str, Any]:
    contexts = {
        "painless": ["filter", "score", "update", "field", "ingest"],
        "expression": ["bucket_aggregation", "score"],
    }
    listed = [{"language": name, "contexts": contexts[name]} for name in LANGUAGES]
    return {"types_allowed": ["inline", "stored"], "language_contexts": listed}


async def _contexts(_exchange: Exchange) -> dict[str, Any]:
    return {
        "contexts": [
            {
                "name": name,
                "methods": [
                    {"name": method, "return_type": kind, "params": []}
                    for method, kind in {"execute": returned, **getters}.items()
                ],
            }
            for name, (returned, getters) in _CONTEXTS.items()
        ]
    }
