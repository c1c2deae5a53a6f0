"""The mappings of indexes: which fields there are."""

from collections.abc import Mapping
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.commands import PutMapping
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.administration.index_choice import CHOICE, chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange

__all__ = ["routes"]


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    # The plural is what older clients say; Elasticsearch takes both.
    places = ["/_mapping", "/_mappings", "/{index}/_mapping", "/{index}/_mappings"]
    fields = ["/_mapping/field/{fields}", "/{index}/_mapping/field/{fields}"]
    return [
        *endpoint("GET", places, _get, CHOICE + " local master_timeout"),
        *endpoint("GET", fields, _get_fields, CHOICE + " include_defaults local"),
        *endpoint(
            "PUT POST",
            ["/{index}/_mapping", "/{index}/_mappings"],
            _put,
            CHOICE + " master_timeout timeout write_index_only",
            Body.JSON,
        ),
    ]


async def _get(exchange: Exchange) -> dict[str, Any]:
    return {index.name: {"mappings": index.mapping.as_json()} for index in chosen_indexes(exchange)}


async def _get_fields(exchange: Exchange) -> dict[str, Any]:
    patterns = exchange["fields"].split(",")
    shown = {}
    for index in chosen_indexes(exchange):
        fields: dict[str, Any] = {}
        for pattern in patterns:
            fields |= index.mapping.field_mappings(pattern)
        shown[index.name] = {"mappings": fields}
    return shown


async def _put(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise SearchError(
            "action_request_validation_exception", "Validation Failed: 1: mapping source is missing;"
        )
    if isinstance(body.get("_doc"), Mapping):
        raise illegal_argument("Types cannot be provided in put mapping requests")
    uuids = tuple(index.uuid for index in chosen_indexes(exchange, may_be_none=False))
    await exchange.node.perform(PutMapping(uuids, body))
    return {"acknowledged": True}
