"""`NamespaceService`: what clients ask of the prefixes that they keep. `OwnNamespaces`: these, as the log of
this node has them.
"""

from collections.abc import Mapping
from typing import Protocol

from actors.node.open_store import CurrentStore
from actors.shard.write_batch import EntryPlan
from graphdb.model import Confirmation, EntryKind
from graphdb.namespaces import (
    ClearNamespaces,
    NamespaceBook,
    NamespaceCommand,
    RemoveNamespace,
    SetNamespace,
)

__all__ = ["NamespaceLog", "NamespaceService", "OwnNamespaces"]


class NamespaceLog(Protocol):
    """The prefixes, as the log has them."""

    def book(self) -> NamespaceBook:
        """As far as this node has followed the log. Raises LogUnavailable."""

    async def change(self, command: NamespaceCommand, request_id: bytes | None = None) -> Confirmation:
        """Have a command logged by the node that leads, and applied here, if that does not take long.

        Raises InvalidParameter, LimitExceeded, KeyReused, UnavailableError.
        """


class OwnNamespaces:
    """See `NamespaceLog`: commands are logged by this node."""

    def __init__(self, current: CurrentStore) -> None:
        self._current = current

    def book(self) -> NamespaceBook:
        """See `NamespaceLog.book`."""
        return self._current.opened().kept.namespaces

    async def change(
        self, command: NamespaceCommand, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `NamespaceLog.change`, and `ShardWriter.write` for since."""
        store = self._current.opened()
        plan = EntryPlan(EntryKind.NAMESPACES, lambda: store.kept.namespaces.plan(command))
        return await store.writer.write(plan, request_id=request_id, since=since)


class NamespaceService:
    """See `serve.backend.Namespaces`. Owned by a node, on its event loop."""

    def __init__(self, log: NamespaceLog) -> None:
        self._log = log

    def namespaces(self) -> Mapping[str, str]:
        """See `serve.backend.Namespaces.namespaces`."""
        return self._log.book().namespaces

    async def set(self, prefix: str, iri: str, request_id: bytes | None) -> Confirmation:
        """See `serve.backend.Namespaces.set`."""
        return await self._log.change(SetNamespace(prefix, iri), request_id)

    async def remove(self, prefix: str | None, request_id: bytes | None) -> Confirmation:
        """See `serve.backend.Namespaces.remove`."""
        command = ClearNamespaces() if prefix is None else RemoveNamespace(prefix)
        return await self._log.change(command, request_id)
