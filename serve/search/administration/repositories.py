"""`_snapshot/{repository}`: where snapshots are kept. Of Elasticsearch's types there is `fs`.

The registration is in the log, so all nodes know it. The files are in a directory that every node reaches
under the same name: on a cluster, of a shared file system.

Source: Elasticsearch 8's documentation of snapshot repositories.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from graphdb.config import Settings
from graphdb.errors import CorruptionError
from graphdb.public_text import fault_text
from graphdb.search.catalog.catalog_commands import (
    BeginSnapshotWork,
    DeleteRepositories,
    EndSnapshotWork,
    PutRepository,
)
from graphdb.search.catalog.rollover import bytes_of_text
from graphdb.search.catalog.snapshot_registry import own_works, repository_missing
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.snapshots.repository import SnapshotRepository, allowed_directory, check_snapshot_name
from serve.search.administration.indices import new_uuid
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity

__all__ = [
    "OpenRepository",
    "RepositoryWork",
    "begin_work",
    "check_visibility",
    "finish_work",
    "named_repositories",
    "names_meant",
    "open_repository",
    "routes",
]

T = TypeVar("T")
_SIZES = ("chunk_size", "max_restore_bytes_per_sec", "max_snapshot_bytes_per_sec")
_SETTINGS = {"compress", "location", "max_number_of_snapshots", "readonly", *_SIZES}
_DEFAULT_RATE = {"max_snapshot_bytes_per_sec": "40mb", "max_restore_bytes_per_sec": "0"}
_PUT = "master_timeout timeout verify"
_OTHER_TYPES = ("azure", "gcs", "hdfs", "s3", "source", "url")


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("PUT POST", "/_snapshot/{repository}", _put, _PUT, Body.JSON),
        *endpoint("GET", ["/_snapshot", "/_snapshot/{repository}"], _get, "local master_timeout"),
        *endpoint("DELETE", "/_snapshot/{repository}", _delete, "master_timeout timeout"),
        *endpoint("POST", "/_snapshot/{repository}/_verify", _verify, "master_timeout timeout"),
        *endpoint("POST", "/_snapshot/{repository}/_cleanup", _cleanup, "master_timeout timeout"),
    ]


def check_visibility(exchange: Exchange) -> None:
    """Snapshots show and hold all documents. Errors: security_exception (403)."""
    if not exchange.principal.index_visibility.is_whole:
        reason = "snapshots are for principals that see all indexes and documents"
        raise SearchError("security_exception", reason, 403)


@dataclass(frozen=True, slots=True)
class OpenRepository:
    """A registered repository, whose directory has just been found to be allowed."""

    name: str
    uuid: str
    settings: Mapping[str, str]
    files: SnapshotRepository

    @property
    def compress(self) -> bool:
        return self.settings.get("compress", "true") == "true"

    @property
    def is_readonly(self) -> bool:
        return self.settings.get("readonly") == "true"

    def rate(self, setting: str) -> float:
        """Bytes a second; infinite where there is no limit."""
        text = self.settings.get(setting, _DEFAULT_RATE[setting])
        return _rate_of(setting, text) or float("inf")

    def check_writable(self, doing: str) -> None:
        """Errors: repository_exception."""
        if self.is_readonly:
            raise self.error(f"cannot {doing} in a readonly repository")

    def error(self, reason: str) -> SearchError:
        return SearchError("repository_exception", f"[{self.name}] {reason}", 500)

    async def run(self, work: Callable[[], T]) -> T:
        """work() on a thread. The operating system's refusals are repository_exception."""
        try:
            return await asyncio.to_thread(work)
        except (OSError, CorruptionError) as error:
            raise self.error(fault_of(error)) from error


def fault_of(error: OSError | CorruptionError) -> str:
    """What went wrong with the files, without their paths."""
    if isinstance(error, OSError):
        return f"the files of the repository cannot be used: {fault_text(error)}"
    return f"the files of the repository are damaged: {fault_text(error)}"


def open_repository(exchange: Exchange, name: str) -> OpenRepository:
    """Errors: repository_missing_exception, repository_exception, security_exception."""
    check_visibility(exchange)
    body = exchange.node.catalog.state.repositories.get(name)
    if body is None:
        raise repository_missing(name)
    directory = _directory(exchange.settings, name, body["settings"]["location"])
    return OpenRepository(name, body["uuid"], body["settings"], SnapshotRepository(directory))


def names_meant(known: Iterable[str], names: str) -> tuple[list[str], list[str]]:
    """Those of the known that a list with wildcards and `_all` means, and what of the list is not known."""
    there = dict.fromkeys(known)
    found: dict[str, None] = {}
    missing = []
    for part in [part for part in names.split(",") if part]:
        if part in ("_all", "*"):
            found |= there
        elif "*" in part:
            found |= dict.fromkeys(name for name in there if wildcard_match(part, name))
        elif part in there:
            found[part] = None
        else:
            missing.append(part)
    return list(found), missing


def named_repositories(exchange: Exchange, names: str | None) -> list[str]:
    """Of a list with wildcards; all without one. Errors: repository_missing_exception."""
    check_visibility(exchange)
    known = sorted(exchange.node.catalog.state.repositories)
    found, missing = names_meant(known, names or "_all")
    if missing:
        raise repository_missing(missing[0])
    return found


def _directory(settings: Settings, name: str, location: str) -> str:
    """Errors: repository_exception."""
    allowed = settings.search.snapshot_paths
    if not allowed:
        why = "no directory is allowed for repositories: set search.snapshot_paths in the configuration"
        raise SearchError("repository_exception", f"[{name}] {why}", 500)
    directory = allowed_directory(location, allowed)
    if directory is None:
        why = "is not below one of the directories in search.snapshot_paths"
        raise SearchError("repository_exception", f"[{name}] location [{location[:255]}] {why}", 500)
    return directory


def _rate_of(name: str, text: str) -> float:
    """Bytes a second, 0: no limit. Errors: illegal_argument_exception."""
    return 0.0 if text in ("0", "-1") else float(bytes_of_text(name, text))


def _checked(name: str, body: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a repository, as texts. Errors: SearchError."""
    kind, given = body.get("type"), body.get("settings") or {}
    for key in sorted(body.keys() - {"type", "settings", "uuid"}):
        raise illegal_argument(f"unknown key [{key[:100]}] for a snapshot repository")
    if kind != "fs":
        known = f"repository type [{str(kind)[:100]}]"
        why = "is not supported: use [fs]" if kind in _OTHER_TYPES else "does not exist"
        raise SearchError("repository_exception", f"[{name}] {known} {why}", 400 if kind != "fs" else 500)
    if not isinstance(given, dict):
        raise illegal_argument("[settings] of a snapshot repository must be an object")
    settings: dict[str, str] = {}
    for key, value in given.items():
        if key not in _SETTINGS or isinstance(value, dict | list):
            raise illegal_argument(f"[{name}] unknown setting [{key[:100]}] of a repository of type [fs]")
        settings[key] = str(value).lower() if isinstance(value, bool) else str(value)[:4096]
    if not settings.get("location"):
        raise SearchError("repository_exception", f"[{name}] missing location", 500)
    for key in ("compress", "readonly"):
        if settings.get(key, "true") not in ("true", "false"):
            raise illegal_argument(f"Failed to parse value [{settings[key][:100]}] of setting [{key}]")
    for key in _SIZES:
        if key in settings:
            _rate_of(key, settings[key])
    return settings


async def _put(exchange: Exchange) -> dict[str, Any]:
    check_visibility(exchange)
    name, body = exchange["repository"], await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    try:
        check_snapshot_name(name, name.lower())
    except SearchError as error:
        problem = error.reason.partition("], ")[2]
        raise SearchError("repository_exception", f"[{name[:200]}] {problem}", 500) from None
    settings = _checked(name, body)
    directory = _directory(exchange.settings, name, settings["location"])
    there = exchange.node.catalog.state.repositories.get(name)
    keeps = there is not None and there["settings"]["location"] == settings["location"]
    uuid = there["uuid"] if keeps and there is not None else new_uuid()
    registered: dict[str, Any] = {"type": "fs", "uuid": uuid, "settings": settings}
    opened = OpenRepository(name, uuid, settings, SnapshotRepository(directory))
    if exchange.parameters.boolean("verify", True):
        await _verified(opened)
        _, last = await opened.run(opened.files.root.newest)
        registered["writers"] = [last]  # who registers it goes on with what is there
    await exchange.node.perform(PutRepository(name, registered))
    return {"acknowledged": True}


async def _verified(repository: OpenRepository) -> None:
    """Errors: repository_verification_exception."""
    token = uuid4().hex

    def verify() -> None:
        if repository.is_readonly:
            repository.files.names()
        else:
            repository.files.verify(token)

    try:
        await repository.run(verify)
    except SearchError as error:
        reason = f"[{repository.name}] cannot be used on this node"
        raise SearchError("repository_verification_exception", reason, 500, None, error) from None


async def _get(exchange: Exchange) -> dict[str, Any]:
    repositories = exchange.node.catalog.state.repositories
    names = named_repositories(exchange, exchange.get("repository"))
    shown = ("type", "uuid", "settings")
    return {name: {key: repositories[name][key] for key in shown} for name in names}


async def _delete(exchange: Exchange) -> dict[str, Any]:
    names = named_repositories(exchange, exchange["repository"])
    await exchange.node.perform(DeleteRepositories(tuple(names)))
    return {"acknowledged": True}


async def _verify(exchange: Exchange) -> dict[str, Any]:
    """Of the node that is asked."""
    await _verified(open_repository(exchange, exchange["repository"]))
    identity = Identity(exchange.node, exchange.settings)
    return {"nodes": {identity.node_id: {"name": exchange.node.own.name}}}


class RepositoryWork:
    """Work on a repository that has begun, for the node that does it."""

    def __init__(self, node: SearchBackend, repository: OpenRepository, uuid: str) -> None:
        self.uuid = uuid
        self._node, self._repository = node, repository
        self._wrote: bool | None = False

    async def claim(self) -> None:
        """Before the first change of what others read. Errors: repository_exception, where another cluster
        has written since.
        """
        own, self._wrote = self._own(), None
        await self._repository.run(lambda: self._repository.files.root.claim(self.uuid, own))
        self._wrote = True

    async def check(self) -> None:
        """Errors: as of `claim`."""
        own = self._own()
        await self._repository.run(lambda: self._repository.files.root.check(own))

    def _own(self) -> Sequence[str] | None:
        return own_works(self._node.catalog.state.repositories.get(self._repository.name, {}))

    async def end(self) -> None:
        """Say that it has ended, whatever came of it."""
        try:
            await self._node.perform(EndSnapshotWork(self.uuid, wrote=self._wrote))
        finally:
            self._node.filling.discard(self.uuid)  # where it could not be logged, the node tries that again


async def begin_work(
    exchange: Exchange, repository: OpenRepository, kind: str, snapshot: str, **members: Any
) -> RepositoryWork:
    """Work that has begun, to be given to `finish_work`: nobody else does now what it excludes.

    Errors: concurrent_snapshot_execution_exception, repository_exception.
    """
    node, uuid = exchange.node, new_uuid()
    body = {
        "node": exchange.settings.cluster.node_id,
        "kind": kind,
        "repository": repository.name,
        "snapshot": snapshot[:1000],
        "indices": [],
        "started_ms": node.now_ms(),
        **members,
    }
    node.filling.add(uuid)
    try:
        await node.perform(BeginSnapshotWork(uuid, body))
    except BaseException:
        node.filling.discard(uuid)  # and if it should begin still, it is ended
        raise
    begun = RepositoryWork(node, repository, uuid)
    if kind != "restore":
        try:
            await begun.check()
        except BaseException:
            await begun.end()
            raise
    return begun


async def finish_work(begun: RepositoryWork, work: Callable[[RepositoryWork], Awaitable[T]]) -> T:
    """What work comes to, which is given what has begun; then it has ended."""
    try:
        return await work(begun)
    finally:
        await begun.end()


async def _cleanup(exchange: Exchange) -> dict[str, Any]:
    """Removes what this node has left of snapshots that it did not finish, and nodes that are no members."""
    repository = open_repository(exchange, exchange["repository"])
    repository.check_writable("clean up")
    own = exchange.settings.cluster.node_id
    identity = Identity(exchange.node, exchange.settings)
    members = {one.number for one in identity.members(exchange.node.status())}

    async def work(begun: RepositoryWork) -> tuple[int, int]:
        await begun.claim()
        return await repository.run(
            lambda: repository.files.cleanup(lambda node, _: node == own or node not in members)
        )

    begun = await begin_work(exchange, repository, "cleanup", "_cleanup")
    size, count = await finish_work(begun, work)
    return {"results": {"deleted_bytes": size, "deleted_blobs": count}}
