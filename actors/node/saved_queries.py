"""`SavedQueryService`: what clients ask of the queries that users keep."""

import time
from contextlib import suppress
from typing import TypeAlias
from uuid import UUID, uuid4

from actors.node.own_book import BookLog, OwnBook
from graphdb.access.principal import Principal
from graphdb.errors import NotFound
from graphdb.model import Confirmation
from graphdb.saved_queries import (
    CreateQuery,
    DeleteQuery,
    QueryCommand,
    QueryDraft,
    QueryWriter,
    ReplaceQuery,
    SavedQuery,
    SavedQueryBook,
)

__all__ = ["OwnSavedQueries", "SavedQueryService"]

OwnSavedQueries: TypeAlias = OwnBook[SavedQueryBook, QueryCommand]


class SavedQueryService:
    """See `serve.backend.SavedQueries`. Owned by a node, on its event loop."""

    def __init__(self, log: BookLog[SavedQueryBook, QueryCommand]) -> None:
        self._log = log

    def list(self, principal: Principal) -> list[SavedQuery]:
        """See `serve.backend.SavedQueries.list`."""
        return self._log.book().visible(QueryWriter.of(principal))

    def show(self, query_id: str, principal: Principal) -> SavedQuery:
        """See `serve.backend.SavedQueries.show`."""
        return self._log.book().find(query_id, QueryWriter.of(principal))

    async def create(self, draft: QueryDraft, principal: Principal, request_id: bytes | None) -> SavedQuery:
        """See `serve.backend.SavedQueries.create`."""
        # the same request again gets the same query
        query_id = (uuid4() if request_id is None else UUID(bytes=request_id)).hex
        command = CreateQuery(query_id, draft, QueryWriter.of(principal), _now_ms())
        confirmation = await self._log.change(command, request_id)
        return self._shown(query_id, principal, confirmation, command.made())

    async def replace(
        self, query_id: str, draft: QueryDraft, principal: Principal, request_id: bytes | None
    ) -> SavedQuery:
        """See `serve.backend.SavedQueries.replace`."""
        known = self.show(query_id, principal)
        command = ReplaceQuery(query_id, draft, QueryWriter.of(principal), _now_ms())
        confirmation = await self._log.change(command, request_id)
        return self._shown(query_id, principal, confirmation, command.made(known))

    async def delete(self, query_id: str, principal: Principal, request_id: bytes | None) -> None:
        """See `serve.backend.SavedQueries.delete`."""
        await self._log.change(DeleteQuery(query_id, QueryWriter.of(principal)), request_id)

    def _shown(
        self, query_id: str, principal: Principal, confirmation: Confirmation, made: SavedQuery
    ) -> SavedQuery:
        """What a command made: for a repeated one the query that there is. For a new one this node may not
        have followed the log so far yet.
        """
        if confirmation.is_repeated:
            with suppress(NotFound):
                return self.show(query_id, principal)
        return made


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
