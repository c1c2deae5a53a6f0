"""Indexes: made, shown, deleted; their settings and mappings; which of them a request means."""

import base64
from collections.abc import Mapping
from secrets import token_bytes
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import (
    Command,
    CreateIndex,
    DeleteIndices,
    PutMapping,
    PutSettings,
)
from graphdb.search.catalog.cluster_settings import requires_names
from graphdb.search.catalog.data_streams import TIMESTAMP, backing_indexes
from graphdb.search.catalog.index_names import ResolveOptions, with_dates
from graphdb.search.catalog.index_settings import flag_setting
from graphdb.search.catalog.new_definitions import check_definition
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument, index_not_found
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import VERSION
from serve.search.frame.parameters import Parameters

__all__ = ["CHOICE", "chosen_indexes", "new_uuid", "perform_definition", "routes"]

# Which indexes a request about indexes means.

# The parameters of a choice.
CHOICE = "expand_wildcards allow_no_indices ignore_unavailable"


def chosen_indexes(
    exchange: Exchange,
    part: str = "index",
    states: str = "open",
    aliases: bool = True,
    may_be_none: bool = True,
    closed: bool = True,
) -> list[Index]:
    """By name. part: the segment of the path that names them; all where the path has none.

    states: what wildcards find unless the request says; aliases: they may be named too;
    may_be_none: patterns that find nothing are fine, unless the request says; closed: closed indexes may be
    meant.
    Errors: index_not_found_exception, index_closed_exception, illegal_argument_exception.
    """
    parameters = exchange.parameters
    options = ResolveOptions.of(
        parameters.text("expand_wildcards") or states,
        parameters.boolean("ignore_unavailable", False),
        parameters.boolean("allow_no_indices", may_be_none),
        aliases,
        closed,
    )
    names = exchange.get(part)
    if names == "":
        raise index_not_found(names)
    found = exchange.node.catalog.resolve(names or "_all", options, exchange.node.now_ms())
    return [one.index for one in found]


async def perform_definition(exchange: Exchange, command: Command) -> Any:
    """Of an index or a template, as a request gives it. Errors: of the command; as of `check_definition`."""
    exchange.node.catalog.check(command)
    check_definition(exchange.node.catalog.state, command)
    return await exchange.node.perform(command)


# The settings of indexes.

_GET_SETTINGS = CHOICE + " flat_settings include_defaults local master_timeout"
_PUT_SETTINGS = CHOICE + " flat_settings master_timeout preserve_existing reopen timeout"


def _settings_routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    get = ["/_settings", "/_settings/{name}", "/{index}/_settings", "/{index}/_settings/{name}"]
    get.append("/{index}/_setting/{name}")  # as Elasticsearch's own table has it
    return [
        *endpoint("GET", get, _get_settings, _GET_SETTINGS),
        *endpoint("PUT", ["/_settings", "/{index}/_settings"], _put_settings, _PUT_SETTINGS, Body.JSON),
    ]


def settings_json(parameters: Parameters, index: Index, pattern: str = "*") -> dict[str, Any]:
    """`settings`, and `defaults` where they are asked for; `human`: times and versions as text, too."""
    return index.shown_settings(
        pattern,
        parameters.boolean("flat_settings", False),
        parameters.boolean("include_defaults", False),
        parameters.boolean("human", False),
    )


async def _get_settings(exchange: Exchange) -> dict[str, Any]:
    pattern = exchange.get("name") or "*"
    shown = {
        index.name: settings_json(exchange.parameters, index, pattern) for index in chosen_indexes(exchange)
    }
    return {name: settings for name, settings in shown.items() if any(settings.values())}


async def _put_settings(exchange: Exchange) -> dict[str, Any]:
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
    indexes = chosen_indexes(exchange, may_be_none=False)
    preserve = exchange.parameters.boolean("preserve_existing", False)
    reopen = exchange.parameters.boolean("reopen", False) and not all(index.is_closed for index in indexes)
    uuids = tuple(index.uuid for index in indexes)
    await perform_definition(exchange, PutSettings(uuids, settings, preserve, reopen=reopen))
    return {"acknowledged": True}


# The mappings of indexes: which fields there are.


def _mappings_routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    # Older clients use the plural; Elasticsearch accepts both.
    places = ["/_mapping", "/_mappings", "/{index}/_mapping", "/{index}/_mappings"]
    fields = ["/_mapping/field/{fields}", "/{index}/_mapping/field/{fields}"]
    return [
        *endpoint("GET", places, _get_mappings, CHOICE + " local master_timeout"),
        *endpoint("GET", fields, _get_field_mappings, CHOICE + " include_defaults local"),
        *endpoint(
            "PUT POST",
            ["/{index}/_mapping", "/{index}/_mappings"],
            _put_mappings,
            CHOICE + " master_timeout timeout write_index_only",
            Body.JSON,
        ),
    ]


async def _get_mappings(exchange: Exchange) -> dict[str, Any]:
    return {index.name: {"mappings": index.mapping.shown()} for index in chosen_indexes(exchange)}


async def _get_field_mappings(exchange: Exchange) -> dict[str, Any]:
    patterns = exchange["fields"].split(",")
    shown = {}
    for index in chosen_indexes(exchange):
        fields: dict[str, Any] = {}
        for pattern in patterns:
            fields |= index.mapping.field_mappings(pattern)
        shown[index.name] = {"mappings": fields}
    return shown


async def _put_mappings(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    if isinstance(body.get("_doc"), Mapping):
        raise illegal_argument("Types cannot be provided in put mapping requests")
    uuids = tuple(index.uuid for index in chosen_indexes(exchange, may_be_none=False))
    await perform_definition(exchange, PutMapping(uuids, body, whole_templates=True))
    return {"acknowledged": True}


# Indexes as a whole: made, shown, deleted.

_MEMBERS = {"settings", "mappings", "aliases"}
_FEATURES = ("aliases", "mappings", "settings")
_GET = CHOICE + " features flat_settings include_defaults local master_timeout"
_VERSIONS = (
    "number",
    "build_flavor",
    "minimum_wire_compatibility_version",
    "minimum_index_compatibility_version",
)
_CREATE = "master_timeout timeout wait_for_active_shards"


def _index_routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("PUT", "/{index}", _create, _CREATE, Body.JSON),
        *endpoint("GET", "/{index}", _get, _GET),
        *endpoint("HEAD", "/{index}", _exists, CHOICE + " flat_settings include_defaults local"),
        *endpoint("DELETE", "/{index}", _delete, CHOICE + " master_timeout timeout"),
        *endpoint("GET", "/_resolve/index/{name}", _resolve, CHOICE + " mode"),
        *endpoint(
            "GET",
            ["/_resolve/cluster", "/_resolve/cluster/{name}"],
            _resolve_cluster,
            CHOICE + " ignore_throttled timeout",
        ),
    ]


def new_uuid() -> str:
    """22 characters, as Elasticsearch makes them."""
    return base64.urlsafe_b64encode(token_bytes(16)).decode().rstrip("=")


async def _create(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json() or {}
    unknown = sorted(body.keys() - _MEMBERS)
    if unknown:
        raise SearchError("parse_exception", f"unknown key [{unknown[0]}] for create index")
    for member, value in body.items():
        if value is not None and not isinstance(value, Mapping):
            raise SearchError("parse_exception", f"key [{member}] must be an object")
    name = with_dates(exchange["index"], exchange.node.now_ms())
    made = await perform_definition(exchange, CreateIndex(name, new_uuid(), body))
    return {"acknowledged": True, "shards_acknowledged": True, "index": made}


async def _get(exchange: Exchange) -> dict[str, Any]:
    features = exchange.parameters.strings("features") or list(_FEATURES)
    for feature in features:
        if feature not in _FEATURES:
            raise illegal_argument(f"Invalid features specified [{feature}]")
    return {
        index.name: {
            name: shown
            for name, shown in _shown(exchange, index).items()
            if name in (*features, "defaults", "data_stream")
        }
        for index in chosen_indexes(exchange)
    }


def _shown(exchange: Exchange, index: Index) -> dict[str, Any]:
    return {
        "aliases": dict(index.aliases),
        "mappings": index.mapping.shown(),
        **settings_json(exchange.parameters, index),
        **_stream(exchange, index),
    }


def _stream(exchange: Exchange, index: Index) -> dict[str, str]:
    """The data stream that it is of."""
    name = exchange.node.catalog.state.stream_of(index.uuid)
    return {} if name is None else {"data_stream": name}


async def _exists(exchange: Exchange) -> Answer:
    chosen_indexes(exchange)  # raises where a name is missing; patterns may find nothing
    return Answer({})


async def _delete(exchange: Exchange) -> dict[str, Any]:
    """By its own name only, so that a pattern cannot delete an index by accident, unless a setting says
    otherwise.
    """
    expression = exchange["index"]
    settings = exchange.node.catalog.state.cluster_settings
    if ("*" in expression or expression == "_all") and requires_names(settings):
        raise illegal_argument("Wildcard expressions or all indices are not allowed")
    indexes = chosen_indexes(exchange, states="open,closed", aliases=False)
    if indexes:
        await exchange.node.perform(DeleteIndices(tuple(index.uuid for index in indexes)))
    return {"acknowledged": True}


async def _resolve(exchange: Exchange) -> dict[str, Any]:
    indexes = chosen_indexes(exchange, "name")
    named = exchange["name"]
    aliases: dict[str, list[str]] = {}
    for index in exchange.node.catalog.indexes():
        for alias, options in exchange.node.catalog.state.aliases.get(index.uuid, {}).items():
            is_named = any(one in ("_all", alias) or wildcard_match(one, alias) for one in named.split(","))
            if is_named and not options.get("data_stream"):
                aliases.setdefault(alias, []).append(index.name)
    shown = []
    for index in indexes:
        aliases_of = {"aliases": sorted(index.aliases)} if index.aliases else {}
        attributes = {"attributes": _attributes(index), **_stream(exchange, index)}
        shown.append({"name": index.name, **aliases_of, **attributes})
    by_name = [{"name": alias, "indices": sorted(names)} for alias, names in sorted(aliases.items())]
    state = exchange.node.catalog.state
    streams = [
        {
            "name": name,
            "backing_indices": [one.name for one in backing_indexes(state, name)],
            "timestamp_field": TIMESTAMP,
        }
        for name in exchange.node.catalog.data_streams
        if any(one == "_all" or wildcard_match(one, name) for one in named.split(","))
    ]
    return {"indices": shown, "aliases": by_name, "data_streams": streams}


async def _resolve_cluster(exchange: Exchange) -> dict[str, Any]:
    """There are no other clusters than this one."""
    version = {name: VERSION[name] for name in _VERSIONS}
    shown: dict[str, Any] = {"connected": True, "skip_unavailable": False, "version": version}
    if exchange.get("name") is not None:
        try:
            shown["matching_indices"] = bool(chosen_indexes(exchange, "name", states="all"))
        except SearchError as error:
            if error.kind != "index_not_found_exception":
                raise
            shown["error"] = error.reason
    return {"(local)": shown}


def _attributes(index: Index) -> list[str]:
    state = "closed" if index.is_closed else "open"
    return sorted(["hidden", state] if flag_setting(index.settings, "hidden") else [state])


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return [
        *_index_routes(node, settings),
        *_settings_routes(node, settings),
        *_mappings_routes(node, settings),
    ]
