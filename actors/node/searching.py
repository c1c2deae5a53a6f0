"""`QuerySearches`: what the searches of one query find, in the literals of a store and in other indexes."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from actors.shard.text_keeper import TextKeeper
from graphdb.access.principal import Principal
from graphdb.errors import EvaluationFailed
from graphdb.node import Entities
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.search_requests import IndexSearch
from graphdb.store.search_tables import Table

__all__ = ["Indexes", "JoinedAnswer", "QuerySearches"]


class Indexes(Protocol):
    """The indexes of the search port."""

    async def table(self, search: TextSearch, caller: Principal, log_index: int, entities: Entities) -> Table:
        """What a search finds at a log index or later, for this caller. entities are those of the patterns in
        the state of this log index.

        Raises InvalidParameter, LimitExceeded, UnavailableError.
        """

    async def purge(self, log_index: int) -> None:
        """Have nothing on disk that is not in the documents as of a log index: those of what follows the
        graph, and of all others. Until then the log keeps its entries.

        Raises UnavailableError; then it may be called again.
        """

    async def close(self) -> None: ...


class JoinedAnswer:
    """See `serve.backend.AnswerStream`; all of it is there."""

    def __init__(self, pieces: Iterable[bytes], snapshot_index: int, query_id: str | None) -> None:
        self.snapshot_index, self.query_id = snapshot_index, query_id or ""
        self.is_exact = True
        self.where = f"port (process {os.getpid()})"
        self._pieces = iter(pieces)

    async def read(self) -> bytes | None:
        """See `serve.backend.AnswerStream`."""
        return next(self._pieces, None)

    def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True)
class QuerySearches:
    """For one event loop. literals are those of the store that the query reads."""

    searches: Sequence[TextSearch]
    dataset: Dataset
    literals: TextKeeper
    indexes: Indexes | None
    caller: Principal | None

    async def prepare(self) -> None:
        """Return once there is an index to search. Raises EvaluationFailed where there is none."""
        if any(not isinstance(each.request, IndexSearch) for each in self.searches):
            await self.literals.wait_ready()

    async def tables(self, log_index: int, entities: Entities) -> dict[str, Table]:
        """By the names of the searches, in the state of a log index. See `TextKeeper.tables`, `Indexes`.

        Raises Stale.
        """
        own = [each for each in self.searches if not isinstance(each.request, IndexSearch)]
        others = [each for each in self.searches if isinstance(each.request, IndexSearch)]
        tables = await self.literals.tables(own, self.dataset, log_index) if own else {}
        if others:
            found = await asyncio.gather(*(self._of_index(each, log_index, entities) for each in others))
            tables |= {each.name: table for each, table in zip(others, found, strict=True)}
        return tables

    async def _of_index(self, search: TextSearch, log_index: int, entities: Entities) -> Table:
        if self.indexes is None:
            raise EvaluationFailed("there is no search port (search.enabled)")
        if self.caller is None:
            raise EvaluationFailed("indexes are searched only by queries of clients")
        return await self.indexes.table(search, self.caller, log_index, entities)
