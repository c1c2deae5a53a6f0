"""Snapshot repositories, and who writes to one of them, as the log has them.

Work on snapshots is of one node at a time in the whole cluster: it begins and ends by log entries, so that
every node shows it, and any node may ask that it ends. It says: node (its number), kind (snapshot, delete,
clone, cleanup), repository, snapshot (a name, or several with commas), indices, started_ms; aborted once it
is to end.
"""

from collections.abc import Sequence
from dataclasses import replace

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
        there = f"[{work['repository']}:{work['snapshot']}]"
        reason = f"[{name}:{command.body['snapshot']}] a {work['kind']} of {there} is already running"
        raise SearchError("concurrent_snapshot_execution_exception", reason, 503)
    return replace(state, snapshot_work={command.uuid: command.body})


def without_snapshot_work(state: CatalogState, command: EndSnapshotWork) -> CatalogState:
    """With the work aborted, or without it; nothing changes where it has ended."""
    work = state.snapshot_work.get(command.uuid)
    if work is None:
        return state
    left = {uuid: one for uuid, one in state.snapshot_work.items() if uuid != command.uuid}
    if command.abort:
        left[command.uuid] = {**work, "aborted": True}
    return replace(state, snapshot_work=left)
