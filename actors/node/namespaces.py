"""`NamespaceService`: what clients ask of the prefixes that they keep."""

from collections.abc import Mapping
from typing import TypeAlias

from actors.node.own_book import BookLog, OwnBook
from graphdb.model import Confirmation
from graphdb.namespaces import (
    ClearNamespaces,
    NamespaceBook,
    NamespaceCommand,
    RemoveNamespace,
    SetNamespace,
)

__all__ = ["NamespaceService", "OwnNamespaces"]

OwnNamespaces: TypeAlias = OwnBook[NamespaceBook, NamespaceCommand]


class NamespaceService:
    """See `serve.backend.Namespaces`. Owned by a node, on its event loop."""

    def __init__(self, log: BookLog[NamespaceBook, NamespaceCommand]) -> None:
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
