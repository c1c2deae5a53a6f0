"""`MemoryGraph`: a graph in the same process, asked as the graph port is: first the gate, then the engine."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
from pyoxigraph import QueryResultsFormat, RdfFormat, Store

from graphdb.access.principal import Principal
from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.planning.gate import check, read_query
from graphdb.search.errors import SearchError

__all__ = ["MemoryGraph"]


class MemoryGraph:
    """Keeps what it was asked in `asked`."""

    def __init__(self, update: str = "", limits: GateLimits | None = None) -> None:
        self.store = Store()
        self.limits = limits or GateLimits()
        self.asked: list[str] = []
        self.principals: list[Principal] = []  # for whom somebody asked
        if update:
            self.store.update(update)

    def acting_for(self, principal: Principal) -> "MemoryGraph":
        self.principals.append(principal)
        return self

    async def select(self, query: str, min_index: int | None = None) -> dict[str, Any]:
        results: dict[str, Any] = orjson.loads(self._answer(query, QueryResultsFormat.JSON))
        return results

    async def construct(self, query: str, media_type: str) -> str:
        answer = self._evaluated(query).serialize(format=RdfFormat.from_media_type(media_type))
        return bytes(answer).decode()

    async def rows(self, query: str) -> AsyncIterator[bytes]:
        answer = self._answer(query, QueryResultsFormat.TSV)
        for start in range(0, len(answer), 7):  # pieces end anywhere
            yield answer[start : start + 7]

    def _answer(self, query: str, results: QueryResultsFormat) -> bytes:
        return bytes(self._evaluated(query).serialize(format=results))

    def _evaluated(self, query: str) -> Any:
        self.asked.append(query)
        try:
            check(read_query(query, None, self.limits), self.limits)
        except RequestError as error:
            raise SearchError("sparql_exception", str(error)) from error
        return self.store.query(query)
