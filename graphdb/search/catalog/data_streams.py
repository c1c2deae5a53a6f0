"""Data streams: a name that documents are added to, and the indexes behind it, of which the last is written.

To everything that resolves names a data stream is an alias of its backing indexes, whose options have
`data_stream`. What is listed as an alias of an index leaves it out, and the aliases of data streams
(`stream_aliases.py`).

Source: Elasticsearch 8's documentation of data streams, `MetadataCreateDataStreamService`, `DataStream`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from graphdb.search.catalog.catalog_commands import CreateDataStream, RollOver
from graphdb.search.catalog.index_names import check_index_name
from graphdb.search.catalog.index_templates import lifecycle_of, template_for
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.catalog.stream_aliases import with_aliases_of_stream
from graphdb.search.errors import SearchError, illegal_argument, index_not_found
from graphdb.search.mapping import Mapping as FieldMapping

__all__ = [
    "BACKING_BODY",
    "TIMESTAMP",
    "backing_indexes",
    "backing_name",
    "check_deletion",
    "check_new_stream",
    "check_stream_name",
    "check_timestamp_type",
    "creates_stream",
    "next_backing_name",
    "with_first_backing",
    "with_next_backing",
    "without_streams",
]

TIMESTAMP = "@timestamp"
BACKING_BODY: Mapping[str, Any] = {"settings": {"hidden": True}}
_STREAMS_MAX = 1_000
_TIMESTAMP_TYPES = ("date", "date_nanos")


def creates_stream(state: CatalogState, name: str) -> bool:
    """Whether a document for a name that does not exist makes a data stream."""
    template = template_for(state, name)
    return template is not None and "data_stream" in state.templates[template]


def check_new_stream(state: CatalogState, name: str) -> None:
    """Errors: resource_already_exists_exception, illegal_argument_exception, invalid_index_name_exception."""
    check_stream_name(name)
    if name in state.data_streams:
        raise SearchError("resource_already_exists_exception", f"data_stream [{name}] already exists")
    if name in state.by_name or name in state.by_alias:
        what = "an index" if name in state.by_name else "an alias"
        raise illegal_argument(f"data stream [{name}] conflicts with {what} of the same name")
    if not creates_stream(state, name):
        raise illegal_argument(f"no matching index template found for data stream [{name}]")
    if len(state.data_streams) >= _STREAMS_MAX:
        raise illegal_argument(f"there cannot be more than [{_STREAMS_MAX}] data streams")


def check_stream_name(name: str) -> None:
    """Errors: invalid_index_name_exception, illegal_argument_exception."""
    check_index_name(name)
    if name.startswith(".ds-"):
        raise illegal_argument(f"data_stream [{name}] must not start with '.ds-'")


def backing_name(stream: str, generation: int, now_ms: int) -> str:
    """`.ds-logs-2099.03.08-000001`."""
    day = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y.%m.%d")
    return f".ds-{stream}-{day}-{generation:06}"


def next_backing_name(state: CatalogState, stream: str, now_ms: int) -> str:
    """Of the index that a rollover makes."""
    return backing_name(stream, state.data_streams[stream]["generation"] + 1, now_ms)


def backing_indexes(state: CatalogState, stream: str) -> list[Index]:
    """The oldest first; the last is written. One that was made elsewhere counts as older than the others."""
    members = state.by_alias.get(stream, {})

    def age(index: Index) -> tuple[bool, int, int, str]:
        number = index.name.rpartition("-")[2] if index.name.startswith(f".ds-{stream}-") else ""
        generation = int(number) if number.isdecimal() else 0
        return bool(members[index.uuid].get("is_write_index")), generation, index.created_ms, index.name

    return sorted((state.by_uuid[uuid] for uuid in members), key=age)


def check_timestamp_type(mapping: FieldMapping) -> None:
    """Errors: illegal_argument_exception for a template that makes the timestamp something else."""
    spec = mapping.field(TIMESTAMP)
    kind = "null" if spec is None else spec.type
    if kind not in _TIMESTAMP_TYPES:
        raise illegal_argument(
            f"data stream timestamp field [{TIMESTAMP}] is of type [{kind}], but "
            f"[{','.join(_TIMESTAMP_TYPES)}] is expected"
        )


def with_first_backing(state: CatalogState, command: CreateDataStream) -> CatalogState:
    """With the stream, of an index that is there already."""
    template = template_for(state, command.name)
    assert template is not None, "it was checked"
    options = state.templates[template]["data_stream"]
    is_hidden = bool(options.get("hidden"))
    stream: dict[str, Any] = {"template": template, "generation": 1, "hidden": is_hidden}
    lifecycle = lifecycle_of(state, template)
    if lifecycle is not None:
        stream["lifecycle"] = lifecycle
    changed = replace(state, data_streams={**state.data_streams, command.name: stream})
    return _with_member(changed, command.uuid, command.name, is_written=True)


def with_next_backing(state: CatalogState, command: RollOver) -> CatalogState:
    """Over to an index that is there already. Errors: illegal_argument_exception where the other one is not
    what is written to any more.
    """
    name = command.alias
    members = state.by_alias[name]
    if not members.get(command.old_uuid, {}).get("is_write_index"):
        raise illegal_argument(f"data stream [{name}] is not as it was any more: try again")
    stream = state.data_streams[name]
    changed = replace(
        state,
        data_streams={**state.data_streams, name: {**stream, "generation": stream["generation"] + 1}},
    )
    changed = _with_member(changed, command.old_uuid, name, is_written=False)
    changed = _with_member(changed, command.uuid, name, is_written=True)
    return with_aliases_of_stream(changed, name, command.old_uuid, command.uuid)


def _with_member(state: CatalogState, uuid: str, name: str, *, is_written: bool) -> CatalogState:
    options: dict[str, Any] = {"is_write_index": is_written, "data_stream": True}
    if state.data_streams[name]["hidden"]:
        options["is_hidden"] = True
    return replace(state, aliases={**state.aliases, uuid: {**state.aliases.get(uuid, {}), name: options}})


def without_streams(state: CatalogState, names: Iterable[str]) -> CatalogState:
    """Gone with their indexes. Errors: index_not_found_exception."""
    gone = set(names)
    for name in sorted(gone - state.data_streams.keys()):
        raise index_not_found(name)
    uuids = [index.uuid for name in gone for index in backing_indexes(state, name)]
    kept = {name: stream for name, stream in state.data_streams.items() if name not in gone}
    return replace(state.without(uuids), data_streams=kept)


def check_deletion(state: CatalogState, uuids: Iterable[str]) -> None:
    """Errors: illegal_argument_exception for the index that a data stream writes to."""
    for uuid in uuids:
        for name, options in state.aliases.get(uuid, {}).items():
            if options.get("data_stream") and options.get("is_write_index"):
                raise illegal_argument(
                    f"index [{state.by_uuid[uuid].name}] is the write index for data stream [{name}] and "
                    "cannot be deleted"
                )
