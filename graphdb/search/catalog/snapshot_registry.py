"""Snapshot repositories, and who writes to one of them, as the log has them.

Work on snapshots begins and ends by log entries, so that every node shows it, and any node may ask that it
ends. It says: node (its number), kind (snapshot, delete, clone, cleanup, restore), repository, snapshot (a
name, or several with commas), indices, started_ms; of a delete: snapshots, the names; aborted once it is to
end.

What writes to a repository is of one node at a time in the whole cluster. Of restores there may be several,
beside it; but a snapshot is not deleted while it is being restored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import BeginSnapshotWork, EndSnapshotWork, PutRepository
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument

__all__ = [
    "repository_missing",
    "with_repository",
    "with_snapshot_work",
    "without_repositories",
    "without_snapshot_work",
]

_REPOSITORIES_MAX = 100


def repository_missing(name: str) -> SearchError:
    """For a repository that is not registered."""
    return SearchError("repository_missing_exception", f"[{name[:255]}] missing", 404)


def with_repository(state: CatalogState, command: PutRepository) -> CatalogState:
    """Errors: repository_conflict_exception, illegal_argument_exception."""
    _check_unused(state, command.name)
    there = state.repositories
    if command.name not in there and len(there) >= _REPOSITORIES_MAX:
        raise illegal_argument(f"there cannot be more than [{_REPOSITORIES_MAX}] snapshot repositories")
    return replace(state, repositories={**there, command.name: command.body})


def without_repositories(state: CatalogState, names: Sequence[str]) -> CatalogState:
    """Errors: repository_missing_exception, repository_conflict_exception."""
    for name in names:
        if name not in state.repositories:
            raise repository_missing(name)
        _check_unused(state, name)
    kept = {name: one for name, one in state.repositories.items() if name not in names}
    return replace(state, repositories=kept)


def _check_unused(state: CatalogState, name: str) -> None:
    if any(work["repository"] == name for work in state.snapshot_work.values()):
        reason = f"[{name}] trying to modify or unregister repository that is currently used"
        raise SearchError("repository_conflict_exception", reason, 409)


def with_snapshot_work(state: CatalogState, command: BeginSnapshotWork) -> CatalogState:
    """Errors: concurrent_snapshot_execution_exception, repository_missing_exception."""
    name = command.body["repository"]
    if name not in state.repositories:
        raise repository_missing(name)
    for work in state.snapshot_work.values():
        if _excludes(work, command.body):
            there = f"[{work['repository']}:{work['snapshot']}]"
            reason = f"[{name}:{command.body['snapshot']}] a {work['kind']} of {there} is already running"
            raise SearchError("concurrent_snapshot_execution_exception", reason, 503)
    return replace(state, snapshot_work={**state.snapshot_work, command.uuid: command.body})


def _excludes(work: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether one must have ended before the other may begin."""
    restores = [one for one in (work, other) if one["kind"] == "restore"]
    if not restores:
        return True
    rest = [one for one in (work, other) if one["kind"] == "delete"]
    if not rest or work["repository"] != other["repository"]:
        return False
    names = rest[0].get("snapshots")  # one that began before they were kept may mean any
    return names is None or restores[0]["snapshot"] in names


def without_snapshot_work(state: CatalogState, command: EndSnapshotWork) -> CatalogState:
    """With the work aborted, or without it; nothing changes where it has ended."""
    work = state.snapshot_work.get(command.uuid)
    if work is None:
        return state
    left = {uuid: one for uuid, one in state.snapshot_work.items() if uuid != command.uuid}
    if command.abort:
        left[command.uuid] = {**work, "aborted": True}
    return replace(state, snapshot_work=left)
