"""Indexes as a whole: made, shown, deleted."""

import base64
from secrets import token_bytes
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.commands import CreateIndex, DeleteIndices
from graphdb.search.catalog.index import Index
from graphdb.search.catalog.names import with_dates
from graphdb.search.errors import illegal_argument, parsing
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.index_choice import CHOICE, chosen_indexes
from serve.search.administration.index_settings import settings_json
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange

__all__ = ["routes"]

_MEMBERS = {"settings", "mappings", "aliases"}
_FEATURES = ("aliases", "mappings", "settings")
_GET = CHOICE + " features flat_settings include_defaults local master_timeout"
_CREATE = "master_timeout timeout wait_for_active_shards"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("PUT", "/{index}", _create, _CREATE, Body.JSON),
        *endpoint("GET", "/{index}", _get, _GET),
        *endpoint("HEAD", "/{index}", _exists, CHOICE + " flat_settings include_defaults local"),
        *endpoint("DELETE", "/{index}", _delete, CHOICE + " master_timeout timeout"),
        *endpoint("GET", "/_resolve/index/{name}", _resolve, CHOICE + " mode"),
    ]


def new_uuid() -> str:
    """22 characters, as Elasticsearch makes them."""
    return base64.urlsafe_b64encode(token_bytes(16)).decode().rstrip("=")


async def _create(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json() or {}
    unknown = sorted(body.keys() - _MEMBERS)
    if unknown:
        raise parsing(f"unknown key [{unknown[0]}] for create index")
    name = with_dates(exchange["index"], exchange.node.now_ms())
    made = await exchange.node.perform(CreateIndex(name, new_uuid(), body))
    return {"acknowledged": True, "shards_acknowledged": True, "index": made}


async def _get(exchange: Exchange) -> dict[str, Any]:
    features = exchange.parameters.strings("features") or list(_FEATURES)
    for feature in features:
        if feature not in _FEATURES:
            raise illegal_argument(f"Invalid feature specified [{feature}]")
    return {
        index.name: {
            name: shown for name, shown in _shown(exchange, index).items() if name in (*features, "defaults")
        }
        for index in chosen_indexes(exchange)
    }


def _shown(exchange: Exchange, index: Index) -> dict[str, Any]:
    return {
        "aliases": dict(index.aliases),
        "mappings": index.mapping.as_json(),
        **settings_json(exchange.parameters, index),
    }


async def _exists(exchange: Exchange) -> Answer:
    return Answer({}, 200 if chosen_indexes(exchange) else 404)


async def _delete(exchange: Exchange) -> dict[str, Any]:
    """By its own name, so that nobody loses what a pattern happened to fit."""
    expression = exchange["index"]
    if "*" in expression or expression == "_all":
        raise illegal_argument("Wildcard expressions or all indices are not allowed")
    indexes = chosen_indexes(exchange, aliases=False)
    await exchange.node.perform(DeleteIndices(tuple(index.uuid for index in indexes)))
    return {"acknowledged": True}


async def _resolve(exchange: Exchange) -> dict[str, Any]:
    indexes = chosen_indexes(exchange, "name")
    named = exchange["name"]
    aliases: dict[str, list[str]] = {}
    for index in exchange.node.catalog.indexes():
        for alias in index.aliases:
            if any(one in ("_all", alias) or wildcard_match(one, alias) for one in named.split(",")):
                aliases.setdefault(alias, []).append(index.name)
    shown = []
    for index in indexes:
        described: dict[str, Any] = {"name": index.name, "attributes": ["open"]}
        if index.aliases:
            described = {"name": index.name, "aliases": sorted(index.aliases), "attributes": ["open"]}
        shown.append(described)
    by_name = [{"name": alias, "indices": sorted(names)} for alias, names in sorted(aliases.items())]
    return {"indices": shown, "aliases": by_name, "data_streams": []}
