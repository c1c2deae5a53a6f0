"""`SavedQueryService`: what clients ask of the queries that users keep. `OwnSavedQueries`: these, as the log
of this node has them.
"""

import time
from contextlib import suppress
from typing import Protocol
from uuid import UUID, uuid4

from actors.node.open_store import CurrentStore
from actors.shard.write_batch import EntryPlan
from graphdb.access.principal import Principal
from graphdb.errors import NotFound
from graphdb.model import Confirmation, EntryKind
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

__all__ = ["OwnSavedQueries", "SavedQueryLog", "SavedQueryService"]


class SavedQueryLog(Protocol):
    """The saved queries, as the log has them."""

    def book(self) -> SavedQueryBook:
        """As far as this node has followed the log. Raises LogUnavailable."""

    async def change(self, command: QueryCommand, request_id: bytes | None = None) -> Confirmation:
        """Have a command logged by the node that leads, and applied here, if that does not take long.

        Raises NotFound, Forbidden, AlreadyExists, LimitExceeded, KeyReused, UnavailableError.
        """


class OwnSavedQueries:
    """See `SavedQueryLog`: commands are logged by this node."""

    def __init__(self, current: CurrentStore) -> None:
        self._current = current

    def book(self) -> SavedQueryBook:
        """See `SavedQueryLog.book`."""
        return self._current.opened().kept.saved_queries

    async def change(
        self, command: QueryCommand, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `SavedQueryLog.change`, and `ShardWriter.write` for since."""
        store = self._current.opened()
        plan = EntryPlan(EntryKind.SAVED_QUERIES, lambda: store.kept.saved_queries.plan(command))
        return await store.writer.write(plan, request_id=request_id, since=since)


class SavedQueryService:
    """See `serve.backend.SavedQueries`. Owned by a node, on its event loop."""

    def __init__(self, log: SavedQueryLog) -> None:
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
