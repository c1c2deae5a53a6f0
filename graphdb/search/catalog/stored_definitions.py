"""Stored scripts and ingest pipelines, as the catalog keeps them.

What they mean is checked before they are logged, so that all nodes keep the same, whatever their version
understands of them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import DeletePipelines, DeleteScript, PutPipeline, PutScript
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["with_pipeline", "with_script", "without_pipelines", "without_script"]

_DEFINITIONS_MAX = 1_000  # of either kind
_NAME_MAX = 512


def with_script(state: CatalogState, command: PutScript) -> CatalogState:
    """Errors: illegal_argument_exception."""
    return replace(state, scripts=_with(state.scripts, "stored script", command.name, command.body))


def without_script(state: CatalogState, command: DeleteScript) -> CatalogState:
    """Errors: resource_not_found_exception."""
    if command.name not in state.scripts:
        reason = f"stored script [{command.name[:_NAME_MAX]}] does not exist and cannot be deleted"
        raise SearchError("resource_not_found_exception", reason, 404)
    return replace(state, scripts=_without(state.scripts, {command.name}))


def with_pipeline(state: CatalogState, command: PutPipeline) -> CatalogState:
    """Errors: illegal_argument_exception."""
    body = command.body if command.if_version is None else _next_version(state, command, command.if_version)
    return replace(state, pipelines=_with(state.pipelines, "pipeline", command.name, body))


def _next_version(state: CatalogState, command: PutPipeline, wanted: int) -> Mapping[str, Any]:
    """The body, with a version. Errors: illegal_argument_exception where another is there than was wanted."""
    name, there = command.name[:_NAME_MAX], state.pipelines.get(command.name)
    conflict = f"version conflict, required version [{wanted}] for pipeline [{name}] but"
    if there is None:
        raise illegal_argument(f"{conflict} no pipeline was found")
    if there.get("version") != wanted:
        raise illegal_argument(f"{conflict} current version is [{there.get('version')}]")
    version = command.body.get("version", wanted + 1)
    if version == wanted:
        raise illegal_argument(f"cannot update pipeline [{name}] with the same version [{wanted}]")
    return {**command.body, "version": version}


def without_pipelines(state: CatalogState, command: DeletePipelines) -> CatalogState:
    """Errors: resource_not_found_exception; illegal_argument_exception for one that an index names."""
    for name in command.names:
        for kind in ("default", "final"):
            users = [
                one.name for one in state.by_uuid.values() if one.settings.get(f"{kind}_pipeline") == name
            ]
            if users:
                raise illegal_argument(
                    f"pipeline [{name[:_NAME_MAX]}] cannot be deleted because it is the {kind} pipeline for "
                    f"{len(users)} index(es) including [{min(users)}]"
                )
        if name not in state.pipelines:
            raise SearchError(
                "resource_not_found_exception", f"pipeline [{name[:_NAME_MAX]}] is missing", 404
            )
    return replace(state, pipelines=_without(state.pipelines, set(command.names)))


def _with(there: Mapping[str, Any], what: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    if not name or len(name) > _NAME_MAX or name.startswith("_") or any(one in name for one in "*,#"):
        raise illegal_argument(f"invalid id of a {what}: [{name[:100]}]")
    if name not in there and len(there) >= _DEFINITIONS_MAX:
        raise illegal_argument(f"there cannot be more than [{_DEFINITIONS_MAX}] of a kind: {what}")
    return {**there, name: body}


def _without(there: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: body for name, body in there.items() if name not in names}
