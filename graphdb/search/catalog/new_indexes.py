"""Making an index: of what a client says and of the template for its name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.search.catalog.aliases import check_aliases, read_aliases
from graphdb.search.catalog.cluster_settings import check_auto_create
from graphdb.search.catalog.data_streams import (
    TIMESTAMP,
    check_timestamp_type,
    creates_stream,
)
from graphdb.search.catalog.index_names import check_index_name
from graphdb.search.catalog.index_settings import (
    FILLED_BY,
    REPLACES,
    analyzers_of,
    in_one_shard,
    limits_of,
    routing_of,
)
from graphdb.search.catalog.index_sort import checked_order
from graphdb.search.catalog.index_templates import (
    Contents,
    contents,
    legacy_contents,
    template_for,
)
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.catalog.synonym_sets import with_sets
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping import Mapping as FieldMapping
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.index_shards import IndexShards

__all__ = ["GraphCheck", "NewIndex", "check_automatic", "with_new_index"]

GraphCheck: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Raises SearchError where the tree of settings under `graph` cannot be."""

_TIMESTAMPED: Mapping[str, Any] = {"properties": {TIMESTAMP: {"type": "date"}}}
_SHARDS_MAX = 1000  # cluster.max_shards_per_node; every node has all, so copies do not count


@dataclass(frozen=True, slots=True)
class NewIndex:
    """automatic: made because a document is to go into it. in_one_shard, from_templates: see `CreateIndex`.
    stream: the data stream that it is made for. filled_by, replaces: see `CreateIndex`.
    """

    name: str
    uuid: str
    created_ms: int
    body: Mapping[str, Any]
    automatic: bool = False
    in_one_shard: bool = False
    from_templates: bool = True
    stream: str | None = None
    filled_by: int | None = None
    replaces: str | None = None


def with_new_index(state: CatalogState, new: NewIndex, check_graph: GraphCheck) -> CatalogState:
    """The state with the index in it. Errors: resource_already_exists_exception and whatever name, settings,
    mappings and aliases may have.
    """
    if new.replaces is None:
        _check_name(state, new.name)
    else:
        _check_replaced(state, new.name, new.replaces)
    for key in new.body:
        if key not in ("settings", "mappings", "aliases"):
            raise SearchError("parse_exception", f"unknown key [{key}] for create index")
    below = _template(state, new) if new.from_templates else Contents()
    made = below.with_over(Contents.of(new.body))
    settings = {name: value for name, value in made.settings.items() if value is not None}
    if new.in_one_shard:
        settings = in_one_shard(settings)
    routing = routing_of(new.name, settings)
    _check_room(state, routing.shards)
    if "graph" in settings:
        check_graph(settings["graph"])
    settings = with_sets(settings, state)
    analyzers = analyzers_of(settings)
    mapping = FieldMapping.of(made.mappings, analyzers, limits_of(settings))
    order = checked_order(settings, mapping)
    _check_stream(state, new, mapping)
    if routing.partition_size > 1 and not mapping.routing_required:
        raise illegal_argument(
            f"mapping type [_doc] must have routing required for partitioned index [{new.name}]"
        )
    if new.filled_by is not None:
        settings[FILLED_BY] = str(new.filled_by)
    if new.replaces is not None:
        settings[REPLACES] = new.replaces
    shards = [IndexShard(new.name, mapping, {}, number=number) for number in range(routing.shards)]
    index = Index(
        new.name, new.uuid, new.created_ms, settings, analyzers, IndexShards(shards, routing, order)
    )
    index.aliases = read_aliases(made.aliases, index)
    after = state.with_index(index, index.aliases)
    check_aliases(after, {new.name, *index.aliases})
    return after


def _check_stream(state: CatalogState, new: NewIndex, mapping: FieldMapping) -> None:
    """An index of a data stream has its timestamp; another one is not for a template of data streams."""
    if new.stream is not None:
        check_timestamp_type(mapping)
    elif new.from_templates and creates_stream(state, new.name):
        raise illegal_argument(
            f"cannot create index with name [{new.name}], because it matches with template "
            f"[{template_for(state, new.name)}] that creates data streams only, use create data stream api "
            "instead"
        )


def _check_name(state: CatalogState, name: str) -> None:
    check_index_name(name)
    there = state.by_name.get(name)
    if there is not None:
        metadata = {"index_uuid": there.uuid, "index": name}
        reason = f"index [{name}/{there.uuid}] already exists"
        raise SearchError("resource_already_exists_exception", reason, 400, metadata)
    if name in state.by_alias:
        metadata = {"index_uuid": "_na_", "index": name}
        reason = f"Invalid index name [{name}], already exists as alias"
        raise SearchError("invalid_index_name_exception", reason, 400, metadata)


def _check_replaced(state: CatalogState, name: str, uuid: str) -> None:
    """Errors: illegal_state_exception unless a closed index has the name, and no other takes its place."""
    there = state.by_name.get(name)
    if there is None or there.uuid != uuid or not there.is_closed:
        reason = f"index [{name}] that was to be replaced is not closed or not there any more"
        raise SearchError("illegal_state_exception", reason, 409)
    if any(index.settings.get(REPLACES) == uuid for index in state.by_uuid.values()):
        raise SearchError("illegal_state_exception", f"index [{name}] is being replaced already", 409)


def _check_room(state: CatalogState, added: int) -> None:
    present = sum(len(index.shards) for index in state.by_uuid.values())
    if present + added > _SHARDS_MAX:
        count = f"[{present}]/[{_SHARDS_MAX}] maximum normal shards open"
        reason = (
            f"Validation Failed: 1: this action would add [{added}] shards, "
            f"but this cluster currently has {count};"
        )
        raise SearchError("validation_exception", reason)


def _template(state: CatalogState, new: NewIndex) -> Contents:
    """What a template says of automatic creation counts before what the cluster says."""
    name = template_for(state, new.stream or new.name)
    template = {} if name is None else state.templates[name]
    if new.automatic:
        check_automatic(state, new.name)
    if new.stream is not None:
        return Contents(mappings=_TIMESTAMPED).with_over(contents(state, template))
    return contents(state, template) if template else legacy_contents(state, new.name)


def check_automatic(state: CatalogState, name: str) -> None:
    """Whether a document may make an index or data stream of the name. Errors: index_not_found_exception."""
    found = template_for(state, name)
    template = {} if found is None else state.templates[found]
    allowed = template.get("allow_auto_create")
    if allowed in (None, ""):
        check_auto_create(state, name)
    elif allowed in (False, "false"):
        raise SearchError(
            "index_not_found_exception",
            f"no such index [{name}] and composable template [{template['index_patterns']}] forbids "
            "index auto creation",
            404,
            {"index_uuid": "_na_", "index": name},
        )
