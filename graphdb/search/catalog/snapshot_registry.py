"""Snapshot repositories, and who writes to one of them, as the log has them.

Work on snapshots begins and ends by log entries, so that every node shows it, and any node may ask that it
ends. It says: node (its number), kind (snapshot, delete, clone, cleanup, restore), repository, snapshot (a
name, or several with commas), indices, started_ms; of a delete: snapshots, the names; aborted once it is to
end.

What writes to a repository is of one node at a time in the whole cluster. Of restores there may be several,
beside it; but a snapshot is not deleted while it is being restored.

A registration says by `writers` which works may have changed the repository last, as far as this cluster
knows: what was there when it was registered, or its own (`graphdb.search.snapshots.repository_root`). Without
`writers` nothing is known, and whatever is there is taken. `strays` are its works that somebody else has
ended: their nodes may still write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import BeginSnapshotWork, EndSnapshotWork, PutRepository
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument

__all__ = [
    "own_works",
    "repository_missing",
    "with_repository",
    "with_snapshot_work",
    "without_repositories",
    "without_snapshot_work",
]

_REPOSITORIES_MAX = 100
_WRITERS_MAX = 1_000  # all but one are of nodes that stopped at their work


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
    changed = replace(state, snapshot_work={**state.snapshot_work, command.uuid: command.body})
    if command.body["kind"] == "restore":
        return changed
    writers = state.repositories[name].get("writers")
    return changed if writers is None else _with_writers(changed, name, [*writers, command.uuid])


def own_works(repository: Mapping[str, Any]) -> list[str] | None:
    """Those that may have changed the repository last. None: nothing is known."""
    writers = repository.get("writers")
    return None if writers is None else [*writers, *repository.get("strays", ())]


def _with_writers(state: CatalogState, name: str, writers: Sequence[str]) -> CatalogState:
    body = {**state.repositories[name], "writers": list(writers)[-_WRITERS_MAX:]}
    return replace(state, repositories={**state.repositories, name: body})


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
    changed = replace(state, snapshot_work=left)
    name = work["repository"]
    if command.wrote:
        return _with_writers(changed, name, [command.uuid])
    body = state.repositories[name]
    writers = body.get("writers")
    if command.abort or writers is None or work["kind"] == "restore":
        return changed
    if command.wrote is None:
        strays = [*body.get("strays", ()), command.uuid][-_WRITERS_MAX:]
        return replace(changed, repositories={**state.repositories, name: {**body, "strays": strays}})
    return _with_writers(changed, name, [uuid for uuid in writers if uuid != command.uuid])
