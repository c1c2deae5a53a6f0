"""`_clone`, `_split`, `_shrink`: an index with the documents of another, in as many shards, more or fewer.

The documents are copied through the log like those of `_reindex`, with their versions, while writes to the
source are blocked. Elasticsearch links the files instead; here every node would have to divide its own.
Until all are there the new index says which node fills it (`graphdb.search.catalog.filling`). Where it does
not come to that, the node deletes it: at once, or when it is there again.

Source: Elasticsearch 8's documentation of the three APIs, `TransportResizeAction` for their checks.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import (
    AliasAction,
    CreateIndex,
    DeleteIndices,
    PutSettings,
    UpdateAliases,
)
from graphdb.search.catalog.filling import is_filled
from graphdb.search.catalog.index_blocks import blocks_writes
from graphdb.search.catalog.index_names import Resolved, with_dates
from graphdb.search.catalog.index_settings import PRIVATE, flag_setting, number_setting, read_settings
from graphdb.search.catalog.rollover import bytes_of_text
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument, index_closed, index_not_found, parsing
from serve.search.administration.indices import new_uuid
from serve.search.backend import SearchBackend
from serve.search.documents.rewriting import Rewriting, copied, found_documents
from serve.search.frame.answer import error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity
from serve.search.frame.tasks import Task

__all__ = ["routes"]

_PARAMETERS = "master_timeout timeout wait_for_active_shards"
_MEMBERS = {"settings", "aliases", "max_primary_shard_size"}
_WAIT_MS = 30_000  # Elasticsearch's default of `timeout`
_BLOCKS = ("blocks.read_only", "blocks.metadata")
_PIPELINES = ("default_pipeline", "final_pipeline")


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    paths = [f"/{{index}}/{kind}/{{target}}" for kind in ("_clone", "_split", "_shrink")]
    return [*endpoint("PUT POST", paths, _resize, _PARAMETERS, Body.JSON)]


@dataclass(frozen=True, slots=True)
class _Plan:
    """settings, late: of the new index, in normal form; the late ones hold once its documents are there."""

    source: Index
    target: str
    uuid: str
    settings: Mapping[str, Any]
    late: Mapping[str, Any]
    aliases: Mapping[str, Any]

    @property
    def handle(self) -> str:
        """The alias that documents are copied by. The name of an index that somebody has deleted meanwhile
        would make another one.
        """
        return f".resize-{self.uuid.lower()}"


async def _resize(exchange: Exchange) -> dict[str, Any]:
    """Answers when the documents are copied, or after `timeout`; then the copying goes on as a task."""
    kind = exchange.request.url.path.rsplit("/", 2)[1].removeprefix("_")
    body = await exchange.json() or {}
    source = exchange.node.catalog.find(exchange["index"])
    if source is None:
        raise index_not_found(exchange["index"])
    if blocks_writes(source) and not source.is_closed:
        await exchange.node.refresh([source])  # what a search finds is all that there will be
    plan = _planned(exchange, kind, source, body)
    wait_ms = exchange.parameters.time_ms("timeout", _WAIT_MS)
    filling = exchange.node.filling
    filling.add(plan.uuid)
    try:
        await exchange.node.perform(_creation(plan, exchange.settings.cluster.node_id))
    except BaseException:
        filling.discard(plan.uuid)  # and if it should be made still, it is deleted
        raise
    described = f"{kind} from [{plan.source.name}] to [{plan.target}]"
    task = exchange.begin_task("indices:admin/resize", described, is_cancellable=False)
    failed: list[SearchError] = []

    async def work() -> tuple[str, bytes]:
        try:
            await _copy(exchange, task, plan)
        except Exception as error:  # noqa: BLE001 - the client reads it, here or as the task's result
            failed.append(search_error(error))
            with suppress(Exception):  # half an index would look like a whole one
                await exchange.node.perform(DeleteIndices((plan.uuid,)))
            return "error", orjson.dumps(error_json(failed[0]))
        finally:
            filling.discard(plan.uuid)
        return "response", orjson.dumps(_answer(plan, is_done=True))

    try:
        exchange.tasks.start(task, Identity(exchange.node, exchange.settings).node_id, work)
    except SearchError:
        filling.discard(plan.uuid)
        await exchange.node.perform(DeleteIndices((plan.uuid,)))
        raise
    try:
        async with asyncio.timeout(max(wait_ms, 0) / 1000):
            await task.ended.wait()
    except TimeoutError:
        return _answer(plan, is_done=False)
    if failed:
        raise failed[0]
    return _answer(plan, is_done=True)


def _answer(plan: _Plan, *, is_done: bool) -> dict[str, Any]:
    return {"acknowledged": True, "shards_acknowledged": is_done, "index": plan.target}


def _planned(exchange: Exchange, kind: str, source: Index, body: Mapping[str, Any]) -> _Plan:
    """Raises SearchError for what cannot be."""
    for name in sorted(body.keys() - _MEMBERS):
        raise parsing(f"unknown key [{name[:100]}] for {kind} index")
    if source.is_closed:
        raise index_closed(source.name, source.uuid)
    if not is_filled(source):
        reason = f"index [{source.name}] is being filled itself: try again when that is done"
        raise SearchError("illegal_state_exception", reason)
    given = read_settings(body.get("settings") or {})
    if any(name.startswith("sort.") for name in given):
        raise illegal_argument("can't override index sort when resizing an index")
    _check_blocks_of_target(exchange["target"], source, given)
    shards = _shards(kind, source, given, body.get("max_primary_shard_size"))
    if source.follows_graph:
        raise illegal_argument(f"index [{source.name}] follows the graph: make another that follows it")
    if not blocks_writes(source):
        raise SearchError(
            "illegal_state_exception",
            f'index {source.name} must be read-only to resize index. use "index.blocks.write=true"',
        )
    own = {"number_of_routing_shards", *PRIVATE}
    kept = {name: value for name, value in source.settings.items() if name not in own}
    merged = {name: value for name, value in {**kept, **given}.items() if value is not None}
    merged["number_of_shards"] = str(shards)
    routing_shards = source.settings.get("number_of_routing_shards")
    if routing_shards is not None and "number_of_routing_shards" not in given:
        merged["number_of_routing_shards"] = routing_shards
    late = {name: value for name, value in merged.items() if name.startswith("blocks.") or name in _PIPELINES}
    settings = {name: value for name, value in merged.items() if name not in late}
    target = with_dates(exchange["target"], exchange.node.now_ms())
    return _Plan(source, target, new_uuid(), settings, late, body.get("aliases") or {})


def _check_blocks_of_target(target: str, source: Index, given: Mapping[str, Any]) -> None:
    """An index whose metadata cannot be written cannot be filled."""
    for name in _BLOCKS:
        reason = f"target index [{target[:255]}] will be blocked by [index.{name}=true]"
        effect = "this will disable metadata writes and cause the shards to be unassigned"
        if given.get(name) == "true":
            reason = f"Validation Failed: 1: {reason}, {effect};"
            raise SearchError("action_request_validation_exception", reason)
        if name not in given and flag_setting(source.settings, name):
            raise illegal_argument(
                f"{reason} which is copied from the source index [{source.name}], {effect}"
            )


def _shards(kind: str, source: Index, given: Mapping[str, Any], largest: Any) -> int:
    """How many the new index has. Errors: illegal_argument_exception, illegal_state_exception."""
    there = len(source.shards)
    if "number_of_routing_shards" in given and not (kind == "split" and there == 1):
        raise illegal_argument("cannot provide index.number_of_routing_shards on resize")
    asked = given.get("number_of_shards")
    if largest is not None:
        return _shards_for(kind, source, asked, largest)
    if kind == "split" and asked is None:
        reason = "Validation Failed: 1: index.number_of_shards is required for split operations;"
        raise SearchError("action_request_validation_exception", reason)
    wanted = number_setting(given, "number_of_shards") if asked else there if kind == "clone" else 1
    few, many = sorted((wanted, there))
    if kind == "clone" and wanted != there:
        raise illegal_argument(
            f"the number of target shards ({wanted}) must be the same as the number of source shards "
            f"({there})"
        )
    if (kind == "split" and wanted < there) or (kind == "shrink" and wanted > there):
        names = ("source", "target") if kind == "split" else ("target", "source")
        raise illegal_argument(
            f"the number of {names[0]} shards [{many}] must be less than the number of {names[1]} shards "
            f"[{few}]"
        )
    if few < 1 or many % few:
        reason = (
            f"the number of source shards [{there}] must be a {'factor' if kind == 'split' else 'multiple'}"
        )
        raise SearchError("illegal_state_exception", f"{reason} of [{wanted}]")
    routing = number_setting(source.settings, "number_of_routing_shards")
    if kind == "split" and there > 1 and "number_of_routing_shards" in source.settings and routing % wanted:
        raise SearchError(
            "illegal_state_exception",
            f"the number of routing shards [{routing}] must be a multiple of the target shards [{wanted}]",
        )
    return wanted


def _shards_for(kind: str, source: Index, asked: Any, largest: Any) -> int:
    """As few as keep each within a size: a factor of the number that there is."""
    if kind != "shrink":
        raise parsing(f"unknown key [max_primary_shard_size] for {kind} index")
    if asked is not None:
        raise illegal_argument(
            "Cannot set both index.number_of_shards and max_primary_shard_size for the target index"
        )
    most = bytes_of_text("max_primary_shard_size", largest)
    if most < 1:
        raise illegal_argument("max_primary_shard_size must be greater than 0")
    there, size = len(source.shards), source.shards.stats().size_bytes
    least = max(1, -(-size // most))
    return next((number for number in range(1, there + 1) if there % number == 0 and number >= least), there)


def _creation(plan: _Plan, node_id: int) -> CreateIndex:
    """Without templates, and without what would keep the documents out or change them."""
    mappings = plan.source.mapping.as_json()
    aliases = {**plan.aliases, plan.handle: {"is_hidden": True}}
    body = {"settings": plan.settings, "mappings": mappings, "aliases": aliases}
    return CreateIndex(plan.target, plan.uuid, body, from_templates=False, filled_by=node_id)


async def _copy(exchange: Exchange, task: Task, plan: _Plan) -> None:
    """Raises SearchError for a document that the new index refuses."""
    found = await found_documents(exchange, [Resolved(plan.source)], {})

    rewriting = Rewriting(exchange, task, proceed=False)
    task.status = rewriting.counts
    answer = await rewriting.run(found, None, lambda document: copied(document, plan.handle))
    if plan.uuid not in exchange.node.catalog.state.by_uuid:
        raise index_not_found(plan.target)
    failures = answer.value["failures"]
    if failures:
        cause = failures[0]["cause"]
        reason = f"document [{failures[0]['id'][:100]}] cannot be copied: {cause['reason'][:1000]}"
        raise illegal_argument(reason)
    await exchange.node.refresh([exchange.node.catalog.state.index(plan.uuid)])
    await exchange.node.perform(UpdateAliases((AliasAction("remove", plan.uuid, plan.handle),)))
    await exchange.node.perform(PutSettings((plan.uuid,), plan.late, filled=True))
