"""Lifecycles of data streams: how long their documents are kept, without a policy.

A data stream with one rolls over by itself, and an index behind it is deleted when `data_retention` has
passed since its rollover. An index that names a policy of `_ilm` is the policy's, unless its setting
`index.lifecycle.prefer_ilm` is false.

Source: Elasticsearch 8's documentation of data stream lifecycles.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import Command, DeleteIndices, PutStreamLifecycle, RollOver
from graphdb.search.catalog.data_streams import backing_indexes, next_backing_name
from graphdb.search.catalog.index_settings import duration_ms
from graphdb.search.catalog.rollover import RolloverSource, met_conditions, suffices
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import index_not_found

__all__ = [
    "due_in_streams",
    "is_kept_by_stream",
    "rolled_over_ms",
    "rollover_conditions",
    "with_stream_lifecycle",
]

_DAY_MS = 86_400_000
# How old the index that is written to may get, by the retention.
_AGES = ((1 * _DAY_MS, "1h"), (14 * _DAY_MS, "1d"), (90 * _DAY_MS, "7d"))
_AGE = "30d"


def with_stream_lifecycle(state: CatalogState, command: PutStreamLifecycle) -> CatalogState:
    """Errors: index_not_found_exception."""
    streams = dict(state.data_streams)
    for name in command.names:
        if name not in streams:
            raise index_not_found(name)
        kept = {key: value for key, value in streams[name].items() if key != "lifecycle"}
        given = {} if command.lifecycle is None else {"lifecycle": dict(command.lifecycle)}
        streams[name] = {**kept, **given}
    return replace(state, data_streams=streams)


def rollover_conditions(lifecycle: Mapping[str, Any]) -> dict[str, Any]:
    """Of the index that is written to, as for `_rollover`."""
    retention = lifecycle.get("data_retention")
    kept_ms = None if retention is None else duration_ms(str(retention), "data_retention")
    age = next((age for most, age in _AGES if kept_ms is not None and kept_ms <= most), _AGE)
    return {
        "max_age": age,
        "max_primary_shard_size": "50gb",
        "max_primary_shard_docs": 200_000_000,
        "min_docs": 1,
    }


def is_kept_by_stream(state: CatalogState, index: Index) -> bool:
    """Whether the lifecycle of its data stream is what says when it goes."""
    stream = state.data_streams.get(state.stream_of(index.uuid) or "", {})
    if not stream.get("lifecycle", {}).get("enabled", False):
        return False
    has_policy = bool(index.settings.get("lifecycle.name"))
    return not has_policy or str(index.settings.get("lifecycle.prefer_ilm", "true")) == "false"


def rolled_over_ms(state: CatalogState, index: Index) -> int | None:
    """When the index that came after it in its data stream was made; None while it is written to."""
    indexes = backing_indexes(state, state.stream_of(index.uuid) or "")
    place = next((number for number, one in enumerate(indexes) if one.uuid == index.uuid), len(indexes))
    return indexes[place + 1].created_ms if place + 1 < len(indexes) else None


def due_in_streams(state: CatalogState, now_ms: int, new_uuid: Callable[[], str]) -> Iterator[Command]:
    """What is to be done now, at most one command for each index."""
    for name, stream in sorted(state.data_streams.items()):
        lifecycle = stream.get("lifecycle")
        if lifecycle is None or name not in state.by_alias:
            continue
        for index in backing_indexes(state, name):
            if is_kept_by_stream(state, index):
                command = _due(state, name, lifecycle, index, now_ms, new_uuid)
                if command is not None:
                    yield command


def _due(
    state: CatalogState,
    stream: str,
    lifecycle: Mapping[str, Any],
    index: Index,
    now_ms: int,
    new_uuid: Callable[[], str],
) -> Command | None:
    since_ms, retention = rolled_over_ms(state, index), lifecycle.get("data_retention")
    if since_ms is None:
        met = met_conditions(rollover_conditions(lifecycle), RolloverSource.of(index, now_ms))
        name = next_backing_name(state, stream, now_ms)
        return RollOver(name, new_uuid(), {}, stream, index.uuid) if suffices(met) else None
    if retention is None or now_ms - since_ms < duration_ms(str(retention), "data_retention"):
        return None
    return DeleteIndices((index.uuid,))
