"""`_rollover`: an alias or a data stream goes on with a new index, where the old one fulfils conditions."""

from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import RollOver
from graphdb.search.catalog.data_streams import next_backing_name
from graphdb.search.catalog.index_names import with_dates
from graphdb.search.catalog.rollover import RolloverSource, met_conditions, next_name, suffices
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.administration.indices import new_uuid
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]

_PARAMETERS = "dry_run lazy master_timeout timeout wait_for_active_shards"
_MEMBERS = {"conditions", "settings", "mappings", "aliases"}
_MADE_MEMBERS = _MEMBERS - {"conditions"}


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    paths = ["/{index}/_rollover", "/{index}/_rollover/{target}"]
    return [*endpoint("POST", paths, _roll_over, _PARAMETERS, Body.JSON)]


async def _roll_over(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json() or {}
    unknown = sorted(body.keys() - _MEMBERS)
    if unknown:
        raise SearchError("x_content_parse_exception", f"[rollover] unknown field [{unknown[0][:100]}]")
    alias, now_ms = exchange["index"], exchange.node.now_ms()
    old = _written(exchange, alias)
    given = exchange.get("target")
    is_stream = alias in exchange.node.catalog.data_streams
    if is_stream and (given is not None or _MADE_MEMBERS & body.keys()):
        raise illegal_argument(
            "aliases, mappings, and index settings may not be specified when rolling over a data stream, nor "
            "the name of the new index"
        )
    if is_stream:
        name = next_backing_name(exchange.node.catalog.state, alias, now_ms)
    else:
        name = next_name(old.name) if given is None else with_dates(given, now_ms)
    met = met_conditions(body.get("conditions", {}), RolloverSource.of(old, now_ms))
    if met and all(name.startswith("min_") for name in met):
        reason = "at least one max_* rollover condition must be set when using min_* conditions"
        raise SearchError("action_request_validation_exception", f"Validation Failed: 1: {reason};")
    rolls = suffices(met)
    dry = exchange.parameters.boolean("dry_run", False)
    made = {key: value for key, value in body.items() if key != "conditions"}
    command = RollOver(name, new_uuid(), made, alias, old.uuid)
    exchange.node.catalog.check(command)  # whether the conditions hold or not
    if rolls and not dry:
        await exchange.node.perform(command)
    done = rolls and not dry
    return {
        "acknowledged": done,
        "shards_acknowledged": done,
        "old_index": old.name,
        "new_index": name,
        "rolled_over": done,
        "dry_run": dry,
        "lazy": False,
        "conditions": {
            f"[{condition}: {body['conditions'][condition]}]": holds for condition, holds in met.items()
        },
    }


def _written(exchange: Exchange, alias: str) -> Index:
    """The index that the alias writes to. Errors: illegal_argument_exception."""
    catalog = exchange.node.catalog
    if catalog.find(alias) is not None:
        raise illegal_argument(
            "rollover target is a [concrete index] but one of [alias,data_stream] was expected"
        )
    if alias not in catalog.aliases:
        reason = f"rollover target [{alias}] does not exist"
        raise SearchError("resource_not_found_exception", reason, 404)
    try:
        return catalog.write_index(alias)
    except SearchError:
        raise illegal_argument(f"rollover target [{alias}] does not point to a write index") from None
