"""Making an index: of what a client says and of the template for its name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.search.catalog.aliases import check_aliases, read_aliases
from graphdb.search.catalog.cluster_settings import check_auto_create
from graphdb.search.catalog.index import Index
from graphdb.search.catalog.names import check_index_name
from graphdb.search.catalog.settings import analyzers_of, limits_of
from graphdb.search.catalog.state import CatalogState
from graphdb.search.catalog.templates import Contents, contents, template_for
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping as FieldMapping
from graphdb.search.segments.index_shard import IndexShard

__all__ = ["GraphCheck", "NewIndex", "with_new_index"]

GraphCheck: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Raises SearchError where the tree of settings under `graph` cannot be."""

_INDEXES_MAX = 1000  # cluster.max_shards_per_node; each is in one piece here


@dataclass(frozen=True, slots=True)
class NewIndex:
    """automatic: made because a document is to go into it."""

    name: str
    uuid: str
    created_ms: int
    body: Mapping[str, Any]
    automatic: bool = False


def with_new_index(state: CatalogState, new: NewIndex, check_graph: GraphCheck) -> CatalogState:
    """The state with the index in it. Errors: resource_already_exists_exception and whatever name, settings,
    mappings and aliases may have.
    """
    _check_name(state, new.name)
    for key in new.body:
        if key not in ("settings", "mappings", "aliases"):
            raise SearchError("parse_exception", f"unknown key [{key}] for create index")
    made = _template(state, new).with_over(Contents.of(new.body))
    settings = {name: value for name, value in made.settings.items() if value is not None}
    if "graph" in settings:
        check_graph(settings["graph"])
    analyzers = analyzers_of(settings)
    mapping = FieldMapping.of(made.mappings, analyzers, limits_of(settings))
    shard = IndexShard(new.name, mapping, {})
    index = Index(new.name, new.uuid, new.created_ms, settings, analyzers, shard)
    index.aliases = read_aliases(made.aliases, index)
    after = state.with_index(index, index.aliases)
    check_aliases(after, {new.name, *index.aliases})
    return after


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
    if len(state.by_uuid) >= _INDEXES_MAX:
        count = f"[{len(state.by_uuid)}]/[{_INDEXES_MAX}] maximum normal shards open"
        reason = (
            f"Validation Failed: 1: this action would add [1] shards, but this cluster currently has {count};"
        )
        raise SearchError("validation_exception", reason)


def _template(state: CatalogState, new: NewIndex) -> Contents:
    """What a template says of automatic creation counts before what the cluster says."""
    name = template_for(state, new.name)
    template = {} if name is None else state.templates[name]
    allowed = template.get("allow_auto_create")
    if new.automatic and allowed in (None, ""):
        check_auto_create(state, new.name)
    if new.automatic and allowed in (False, "false"):
        raise SearchError(
            "index_not_found_exception",
            f"no such index [{new.name}] and composable template [{template['index_patterns']}] forbids "
            "index auto creation",
            404,
            {"index_uuid": "_na_", "index": new.name},
        )
    return contents(state, template) if template else Contents()
