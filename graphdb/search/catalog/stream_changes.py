"""Indexes that come into data streams and leave them: `_data_stream/_modify`, `_data_stream/_migrate`.

Source: Elasticsearch 8's documentation of both.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import MigrateToDataStream, ModifyDataStreams
from graphdb.search.catalog.data_streams import backing_indexes, check_stream_name, check_timestamp_type
from graphdb.search.catalog.index_templates import template_for
from graphdb.search.catalog.state import AliasOptions, CatalogState, Index
from graphdb.search.errors import illegal_argument

__all__ = ["with_changed_streams", "with_migrated_alias"]


def with_changed_streams(state: CatalogState, command: ModifyDataStreams) -> CatalogState:
    """All actions, one after the other, or none. Errors: illegal_argument_exception."""
    for kind, stream, uuid in command.actions:
        if stream not in state.data_streams:
            raise illegal_argument(f"data stream [{stream}] not found")
        index = state.index(uuid)
        state = _with(state, stream, index) if kind == "add" else _without(state, stream, index)
        body = state.data_streams[stream]
        grown = {**body, "generation": body["generation"] + 1}
        state = replace(state, data_streams={**state.data_streams, stream: grown})
    return state


def _with(state: CatalogState, stream: str, index: Index) -> CatalogState:
    """As one that is older than all others."""
    there = state.stream_of(index.uuid)
    what = f"cannot add index [{index.name}] to data stream [{stream}]"
    if there is not None:
        raise illegal_argument(f"{what} because it is already a backing index on data stream [{there}]")
    aliases = sorted(state.aliases.get(index.uuid, {}))
    if aliases:
        listed = f"alias [{aliases[0]}] is" if len(aliases) == 1 else f"aliases [{', '.join(aliases)}] are"
        raise illegal_argument(f"{what} until its {listed} removed")
    return _joined(state, stream, [index], None)


def _without(state: CatalogState, stream: str, index: Index) -> CatalogState:
    options = state.aliases.get(index.uuid, {}).get(stream, {})
    if not options.get("data_stream"):
        raise illegal_argument(f"index [{index.name}] is not part of data stream [{stream}]")
    if options.get("is_write_index"):
        what = f"cannot remove backing index [{index.name}] of data stream [{stream}]"
        raise illegal_argument(f"{what} because it is the write index")
    # the aliases of the data stream have been its own, too
    return replace(state, aliases={uuid: own for uuid, own in state.aliases.items() if uuid != index.uuid})


def _joined(state: CatalogState, stream: str, indexes: Sequence[Index], written: str | None) -> CatalogState:
    """written: the uuid of the one that is written to, where the data stream had none."""
    hidden = {"is_hidden": True} if state.data_streams[stream]["hidden"] else {}
    aliases = dict(state.aliases)
    for index in indexes:
        check_timestamp_type(index.mapping)
        options: dict[str, Any] = {"is_write_index": index.uuid == written, "data_stream": True, **hidden}
        aliases[index.uuid] = {stream: options}
    return replace(state, aliases=aliases)


def with_migrated_alias(state: CatalogState, command: MigrateToDataStream) -> CatalogState:
    """A data stream of an alias's name and its indexes. Errors: illegal_argument_exception."""
    name = command.alias
    members = state.by_alias.get(name)
    if members is None or name in state.data_streams:
        raise illegal_argument(f"alias [{name}] does not exist")
    check_stream_name(name)
    template = template_for(state, name)
    if template is None or "data_stream" not in state.templates[template]:
        raise illegal_argument(f"no matching index template found for data stream [{name}]")
    _check_members(state, name, members)
    written = [uuid for uuid, options in members.items() if options.get("is_write_index")]
    if not written and len(members) == 1:
        written = list(members)
    if len(written) != 1:
        raise illegal_argument(f"alias [{name}] must specify a write index")
    hidden = bool(state.templates[template]["data_stream"].get("hidden"))
    stream = {"template": template, "generation": len(members), "hidden": hidden}
    made = replace(state, data_streams={**state.data_streams, name: stream})
    joined = _joined(made, name, [state.by_uuid[uuid] for uuid in members], written[0])
    assert [one.uuid for one in backing_indexes(joined, name)][-1:] == written
    return joined


def _check_members(state: CatalogState, name: str, members: "dict[str, AliasOptions] | Any") -> None:
    for uuid, options in members.items():
        index = state.by_uuid[uuid]
        if "filter" in options:
            raise illegal_argument(f"alias [{name}] may not have custom filtering or routing")
        if "index_routing" in options or "search_routing" in options:
            raise illegal_argument(f"alias [{name}] may not have custom filtering or routing")
        others = sorted(state.aliases.get(uuid, {}).keys() - {name})
        if others:
            raise illegal_argument(
                f"other aliases referencing indices [{index.name}] must be removed before migrating to a "
                "data stream"
            )
