"""The settings of indexes."""

from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.commands import PutSettings
from graphdb.search.catalog.index import Index
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.administration.index_choice import CHOICE, chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.frame.parameters import Parameters

__all__ = ["routes", "settings_json"]

_GET = CHOICE + " flat_settings include_defaults local master_timeout"
_PUT = CHOICE + " flat_settings master_timeout preserve_existing reopen timeout"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    get = ["/_settings", "/_settings/{name}", "/{index}/_settings", "/{index}/_settings/{name}"]
    get.append("/{index}/_setting/{name}")  # as Elasticsearch's own table has it
    return [
        *endpoint("GET", get, _get, _GET),
        *endpoint("PUT", ["/_settings", "/{index}/_settings"], _put, _PUT, Body.JSON),
    ]


def settings_json(parameters: Parameters, index: Index, pattern: str = "*") -> dict[str, Any]:
    """`settings`, and `defaults` where the request asks for them."""
    return index.shown_settings(
        pattern,
        parameters.boolean("flat_settings", False),
        parameters.boolean("include_defaults", False),
    )


async def _get(exchange: Exchange) -> dict[str, Any]:
    pattern = exchange.get("name") or "*"
    shown = {
        index.name: settings_json(exchange.parameters, index, pattern) for index in chosen_indexes(exchange)
    }
    return {name: settings for name, settings in shown.items() if any(settings.values())}


async def _put(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    settings = body.get("settings") if set(body) == {"settings"} else body
    if not isinstance(settings, dict):
        raise illegal_argument("[settings] must be an object")
    if not settings:
        raise SearchError(
            "action_request_validation_exception", "Validation Failed: 1: no settings to update;"
        )
    uuids = tuple(index.uuid for index in chosen_indexes(exchange, may_be_none=False))
    preserve = exchange.parameters.boolean("preserve_existing", False)
    await exchange.node.perform(PutSettings(uuids, settings, preserve))
    return {"acknowledged": True}
