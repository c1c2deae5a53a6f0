"""Settings of indexes changed: planned first, then performed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphdb.search.analysis import Analyzers
from graphdb.search.catalog.catalog_commands import PutSettings
from graphdb.search.catalog.index_settings import (
    CLOSED_SETTINGS,
    FILLED_BY,
    MOVED_TO,
    TREES,
    analyzers_of,
    limits_of,
    read_settings,
    static_names,
    updated_settings,
)
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.catalog.synonym_sets import with_sets
from graphdb.search.errors import illegal_argument
from graphdb.search.mapping import Mapping as FieldMapping

__all__ = ["check_static", "put_mapping", "with_hidden", "with_put_settings", "with_settings"]


def with_put_settings(state: CatalogState, command: PutSettings) -> Callable[[], None]:
    """What performs it. Raises SearchError."""
    update = read_settings(_unwrapped(command.settings))
    indexes = state.indexes(command.uuids)
    made = [with_settings(one, update, command.preserve, state, command.reopen) for one in indexes]
    if command.filled:
        for settings, _, _ in made:
            settings.pop(FILLED_BY, None)
    check_static(update, indexes, command.preserve, command.reopen)

    def act() -> None:
        for index, (settings, analyzers, mapping) in zip(indexes, made, strict=True):
            index.put_settings(settings, analyzers)
            put_mapping(index, mapping)

    return act


def with_hidden(state: CatalogState, hidden: Iterable[tuple[str, bool]]) -> Callable[[], None]:
    """What makes indexes, by uuid, hidden or no more. Raises SearchError."""
    made = []
    for uuid, is_hidden in hidden:
        index = state.index(uuid)
        made.append((index, with_settings(index, read_settings({"index.hidden": is_hidden}), False, state)))

    def act() -> None:
        for index, (settings, analyzers, _) in made:
            index.put_settings(settings, analyzers)

    return act


def put_mapping(index: Index, mapping: FieldMapping) -> None:
    """For documents from now on; a new version, unless it is the one that is there."""
    if mapping is not index.mapping:
        index.shards.put_mapping(mapping)
        index.mapping_version += 1


def _unwrapped(settings: Mapping[str, Any]) -> Any:
    """PUT _settings takes them with or without `settings` around them."""
    return settings["settings"] if settings.keys() == {"settings"} else settings


def check_static(
    update: Mapping[str, Any], indexes: Sequence[Index], preserve: bool, reopen: bool = False
) -> None:
    """Errors: illegal_argument_exception for settings that only closed indexes take, or none that exists.
    reopen: those that are open are as if they were closed meanwhile.
    """
    static = static_names(update)
    final = [name for name in static if name not in CLOSED_SETTINGS]
    if final and (reopen or all(index.is_closed for index in indexes)):
        changed = [
            name for name in final if not (preserve and all(name in index.settings for index in indexes))
        ]
        if changed:
            raise illegal_argument(f"final {indexes[0].name} setting [index.{changed[0]}], not updateable")
    opened = [] if reopen else [index for index in indexes if not index.is_closed]
    if static and opened:
        names = ", ".join(f"index.{name}" for name in static)
        where = ", ".join(f"[{index.name}/{index.uuid}]" for index in opened)
        raise illegal_argument(f"Can't update non dynamic settings [[{names}]] for open indices [{where}]")


def with_settings(
    index: Index, update: Mapping[str, Any], preserve: bool, state: CatalogState, reopen: bool = False
) -> tuple[dict[str, Any], Analyzers, FieldMapping]:
    """The settings with an update, the analyzers that they make, and the mapping with those and under their
    limits. The analyzers must be possible still: an index is opened with the settings that it has then.
    """
    settings = with_sets(updated_settings(index.settings, update, preserve), state)
    if settings.get("lifecycle.name") != index.settings.get("lifecycle.name"):
        settings.pop(MOVED_TO, None)  # it is a phase of the other policy
    limits = limits_of(settings)
    if (index.is_closed or reopen) and TREES & update.keys():
        analyzers = analyzers_of(settings)
        return settings, analyzers, index.mapping.analyzed(analyzers, limits)
    if index.settings.get("analysis") and not static_names(update):
        analyzers_of(settings)
    unchanged = limits == limits_of(index.settings)
    return settings, index.analyzers, index.mapping if unchanged else index.mapping.limited(limits)
