"""`index.blocks.*`: what the settings of an index keep from being done with it.

Writes of documents are refused when they are applied. Changes of the index itself are refused before they are
logged, so that an index is the same on every node whatever version reads the log.

Source: `IndexMetadata` and `ClusterBlockLevel` of Elasticsearch 8.
"""

from collections.abc import Iterable
from typing import Any

from graphdb.search.catalog.catalog_commands import (
    CloseIndices,
    Command,
    CreateIndex,
    DeleteIndices,
    FinishFilling,
    OpenIndices,
    PutMapping,
    PutSettings,
    UpdateAliases,
)
from graphdb.search.catalog.index_settings import REPLACES, flag_setting, read_settings
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.errors import SearchError, index_closed

__all__ = ["blocks_json", "blocks_writes", "check_changes", "check_reads", "check_writes"]

_DESCRIPTIONS = {
    "blocks.read_only": "FORBIDDEN/5/index read-only (api)",
    "blocks.read": "FORBIDDEN/7/index read (api)",
    "blocks.write": "FORBIDDEN/8/index write (api)",
    "blocks.metadata": "FORBIDDEN/9/index metadata (api)",
    "blocks.read_only_allow_delete": "TOO_MANY_REQUESTS/12/index read-only / allow delete (api)",
}
_LEVELS = {
    "blocks.read_only": ("write", "metadata_write"),
    "blocks.read": ("read",),
    "blocks.write": ("write",),
    "blocks.metadata": ("metadata_read", "metadata_write"),
    "blocks.read_only_allow_delete": ("write", "metadata_write"),
}
_WRITES = ("blocks.read_only", "blocks.read_only_allow_delete", "blocks.write")
_DELETION = ("blocks.read_only", "blocks.metadata")
_CHANGES = (*_DELETION, "blocks.read_only_allow_delete")


def blocks_writes(index: Index) -> bool:
    """Whether its settings keep documents from being written."""
    return any(flag_setting(index.settings, name) for name in _WRITES)


def blocks_json(index: Index) -> dict[str, Any]:
    """As the state of the cluster shows them, by their numbers; that a closed index has too."""
    shown: dict[str, Any] = {}
    if index.is_closed:
        shown["4"] = {"description": "index closed", "retryable": False, "levels": ["read", "write"]}
    for name, levels in _LEVELS.items():
        if flag_setting(index.settings, name):
            _, number, description = _DESCRIPTIONS[name].split("/", 2)
            shown[number] = {"description": description, "retryable": False, "levels": list(levels)}
    return shown


def check_writes(index: Index) -> None:
    """Errors: index_closed_exception; cluster_block_exception where the settings block writes."""
    if index.is_closed:
        raise index_closed(index.name, index.uuid)
    _check(index, _WRITES)


def check_reads(index: Index) -> None:
    """Errors: cluster_block_exception where the settings block that documents are read."""
    _check(index, ("blocks.read",))


def check_changes(state: CatalogState, command: Command) -> None:
    """Before a command is logged. Errors: cluster_block_exception where an index may not be changed so."""
    if isinstance(command, DeleteIndices):
        _check_all(state, command.uuids, _DELETION)
    elif isinstance(command, CreateIndex):
        _check_all(state, [command.replaces] if command.replaces else [], _DELETION)
    elif isinstance(command, FinishFilling):
        filled = [state.by_uuid[uuid] for uuid in command.indexes if uuid in state.by_uuid]
        _check_all(state, [index.settings.get(REPLACES, "") for index in filled], _DELETION)
    elif isinstance(command, UpdateAliases):
        removed = {action.uuid for action in command.actions if action.kind == "remove_index"}
        _check_all(state, removed, _DELETION)
        _check_all(state, {action.uuid for action in command.actions} - removed, _CHANGES)
    elif isinstance(command, PutMapping | CloseIndices | OpenIndices) or (
        isinstance(command, PutSettings) and not _lifts_blocks(command)
    ):
        _check_all(state, command.uuids, _CHANGES)


def _lifts_blocks(command: PutSettings) -> bool:
    """Whether it is about blocks alone: otherwise nobody could take them away."""
    given = command.settings
    settings = read_settings(given["settings"] if given.keys() == {"settings"} else given)
    return all(name.startswith("blocks.") for name in settings)


def _check_all(state: CatalogState, uuids: Iterable[str], names: Iterable[str]) -> None:
    for uuid in uuids:
        if uuid in state.by_uuid:
            _check(state.by_uuid[uuid], names)


def _check(index: Index, names: Iterable[str]) -> None:
    for name in names:
        if name in index.settings and flag_setting(index.settings, name):
            description = _DESCRIPTIONS[name]
            status = 429 if description.startswith("TOO_MANY") else 403
            reason = f"index [{index.name}] blocked by: [{description}];"
            raise SearchError("cluster_block_exception", reason, status, {"index": index.name})
