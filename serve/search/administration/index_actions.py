"""Operations on whole indexes that change no document: refresh, flush, merge, clear caches, block, close."""

from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import CloseIndices, OpenIndices, PutSettings
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.administration.index_stats import Placement, shards_json
from serve.search.administration.indices import CHOICE, chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.documents.rewriting import performed
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Endpoint, Exchange, endpoint

__all__ = ["routes"]

_CACHE = " fielddata fields index query request"
_MERGE = " flush max_num_segments only_expunge_deletes wait_for_completion"
_WAITING = " timeout master_timeout wait_for_active_shards"
_BLOCKS = ("metadata", "read", "read_only", "write")


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    def paths(name: str) -> list[str]:
        return [f"/{name}", f"/{{index}}/{name}"]

    return [
        *endpoint("GET POST", paths("_refresh"), _refresh, CHOICE),
        *endpoint("GET POST", paths("_flush"), _flush, CHOICE + " force wait_if_ongoing"),
        *endpoint("POST", paths("_forcemerge"), _force_merge, CHOICE + _MERGE),
        *endpoint("POST", paths("_cache/clear"), _clear_cache, CHOICE + _CACHE),
        *endpoint("PUT", "/{index}/_block/{block}", _block, CHOICE + " timeout master_timeout"),
        *endpoint("POST", paths("_open"), _open, CHOICE + _WAITING),
        *endpoint("POST", paths("_close"), _close, CHOICE + _WAITING),
    ]


async def _refresh(exchange: Exchange) -> dict[str, Any]:
    indexes = chosen_indexes(exchange, closed=False)
    await exchange.node.refresh(indexes)
    return {"_shards": shards_json(indexes, Placement.of(exchange.node))}


async def _flush(exchange: Exchange) -> dict[str, Any]:
    """Write the files of the index. Acknowledged documents are in the log already."""
    wait, force = (exchange.parameters.boolean(name, name[0] == "w") for name in ("wait_if_ongoing", "force"))
    if force and not wait:
        reason = "Validation Failed: 1: wait_if_ongoing must be true for a force flush;"
        raise SearchError("action_request_validation_exception", reason)
    indexes = chosen_indexes(exchange, closed=False)
    await exchange.node.flush(indexes)
    for index in indexes:
        index.shards.counters.note_flush(len(index.shards))
    return {"_shards": shards_json(indexes, Placement.of(exchange.node))}


async def _force_merge(exchange: Exchange) -> Answer:
    """Without a number: what is worth merging anyway."""
    most = exchange.parameters.integer("max_num_segments", -1)
    only_deletions = exchange.parameters.boolean("only_expunge_deletes", False)
    if most != -1 and only_deletions:
        reason = "cannot set only_expunge_deletes and max_num_segments at the same time, those two parameters"
        raise _invalid(f"{reason} are mutually exclusive")
    indexes = chosen_indexes(exchange, closed=False)

    async def perform() -> Answer:
        segments_max = most if most > 0 else None
        await exchange.node.force_merge(indexes, segments_max, only_deletions=only_deletions)
        return Answer({"_shards": shards_json(indexes, Placement.of(exchange.node))})

    names = ", ".join(index.name for index in indexes)
    options = f"maxSegments[{most}], onlyExpungeDeletes[{str(only_deletions).lower()}]"
    described = f"Force-merge indices [{names}], {options}"
    task = exchange.begin_task("indices:admin/forcemerge", described, is_cancellable=False)
    return await performed(exchange, task, perform)


async def _clear_cache(exchange: Exchange) -> dict[str, Any]:
    """Caches of an index are emptied when it changes, so there is nothing to clear."""
    indexes = chosen_indexes(exchange, closed=False)
    return {"_shards": shards_json(indexes, Placement.of(exchange.node))}


async def _block(exchange: Exchange) -> dict[str, Any]:
    block = exchange["block"]
    if block not in _BLOCKS:
        raise illegal_argument(f"No block found with name {block}")
    indexes = chosen_indexes(exchange)
    uuids = tuple(index.uuid for index in indexes)
    await exchange.node.perform(PutSettings(uuids, {f"index.blocks.{block}": True}))
    blocked = [{"name": index.name, "blocked": True} for index in indexes]
    return {"acknowledged": True, "shards_acknowledged": True, "indices": blocked}


async def _open(exchange: Exchange) -> dict[str, Any]:
    """Wildcards find what is closed."""
    _check_named(exchange)
    indexes = chosen_indexes(exchange, states="closed", may_be_none=False)
    await exchange.node.perform(OpenIndices(tuple(index.uuid for index in indexes)))
    return {"acknowledged": True, "shards_acknowledged": True}


async def _close(exchange: Exchange) -> dict[str, Any]:
    """Its documents stay as they are, and are neither read nor written until it is opened."""
    _check_named(exchange)
    indexes = [index for index in chosen_indexes(exchange) if not index.is_closed]
    if indexes:
        await exchange.node.perform(CloseIndices(tuple(index.uuid for index in indexes)))
    closed = {index.name: {"closed": True} for index in indexes}
    return {"acknowledged": True, "shards_acknowledged": bool(closed), "indices": closed}


def _check_named(exchange: Exchange) -> None:
    if exchange.get("index") is None:
        raise _invalid("index is missing")


def _invalid(reason: str) -> SearchError:
    return SearchError("action_request_validation_exception", f"Validation Failed: 1: {reason};")
