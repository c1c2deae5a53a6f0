"""`MemorySearch`: the promises of `serve.search.backend.SearchBackend` kept in memory, without a log.

Commands are applied at once, to the real catalogue. What is missing is durability.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from actors.egress.remote_clusters import RemoteClusters
from actors.egress.reranking import RerankingModels
from graphdb.access.principal import Principal
from graphdb.config.service import RerankerAddress, Security
from graphdb.errors import UnavailableError
from graphdb.node import NodeStatus
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import (
    Command,
    DocumentWrite,
    RefreshIndices,
    WriteDocuments,
    WriteResult,
)
from graphdb.search.catalog.state import Index, KnownNode
from graphdb.search.contexts import SearchContexts
from graphdb.search.hybrid.reranker import Rerankers
from graphdb.search.pool_use import PoolUse
from graphdb.search.segments.index_shard import MergePlan
from serve.search.backend import GraphAccess, RemoteCaller, SearchHelpers, ShardSearch, ToldWrite

__all__ = ["MemorySearch", "NoGraph"]


class NoGraph:
    """A graph that cannot be reached."""

    def acting_for(self, principal: Principal) -> "NoGraph":
        return self

    async def select(self, query: str, min_index: int | None = None) -> dict[str, Any]:
        raise UnavailableError("there is no graph here")

    async def construct(self, query: str, media_type: str) -> str:
        raise UnavailableError("there is no graph here")

    async def rows(self, query: str) -> AsyncIterator[bytes]:
        raise UnavailableError("there is no graph here")
        yield b""


class MemorySearch:
    """A node that forgets everything at its end. Its clock stands still, unless a test moves `clock_ms`."""

    def __init__(
        self,
        graph: GraphAccess | None = None,
        security: Security | None = None,
        rerankers: Mapping[str, RerankerAddress] | None = None,
    ) -> None:
        self.clock_ms = 1_700_000_000_000
        self.catalog = Catalog()
        self._numbers = count(1)
        self.contexts = SearchContexts(self.now_ms, self._new_id)
        self.own = KnownNode("memory", "127.0.0.1:9200")
        self.filling: set[str] = set()
        self.shards: ShardSearch | None = None
        self.helpers: SearchHelpers | None = None
        self.graph: GraphAccess = graph or NoGraph()
        self.remotes: RemoteCaller = RemoteClusters(security or Security())
        self.rerankers: Rerankers = RerankingModels(rerankers or {})
        self.others: dict[int, Callable[[bytes], Awaitable[bytes]]] = {}  # how other nodes answer, by number
        self.failing: Exception | None = None  # what every change meets, where a test says so
        self.writes: list[int] = []  # how many documents each call of `write` had
        self.begins_no_write = False  # every one is for `write`
        self._writing: set[asyncio.Task[list[WriteResult]]] = set()
        self._log_index = 0
        self._applying = threading.Lock()

    async def perform(self, command: Command) -> Any:
        if self.failing is not None:
            raise self.failing
        self.catalog.check(command)
        return self._apply(command)

    async def write(self, writes: Sequence[DocumentWrite], refresh: str = "false") -> list[WriteResult]:
        self.writes.append(len(writes))
        command = WriteDocuments(tuple(self.catalog.prepare(writes)), refresh != "false")
        results: list[WriteResult] = await self.perform(command)
        return results

    def begin_write(self, write: DocumentWrite, told: ToldWrite) -> bool:
        if self.begins_no_write:
            return False
        writing = asyncio.get_running_loop().create_task(self.write([write]))
        self._writing.add(writing)
        writing.add_done_callback(lambda _: self._tell(writing, told))
        return True

    def _tell(self, writing: "asyncio.Task[list[WriteResult]]", told: ToldWrite) -> None:
        self._writing.discard(writing)
        error = writing.exception()
        if isinstance(error, Exception):
            told.set_exception(error)
        else:
            told.set_result(writing.result()[0])

    async def refresh(self, indexes: Sequence[Index]) -> None:
        await self.perform(RefreshIndices(tuple(index.uuid for index in indexes)))

    async def flush(self, indexes: Sequence[Index]) -> None:
        """There is no disk."""

    async def force_merge(
        self, indexes: Sequence[Index], segments_max: int | None, *, only_deletions: bool = False
    ) -> None:
        for index in indexes:
            for shard in index.shards:
                if segments_max is not None and len(shard.leaves()) > segments_max:
                    name = f"_merged_{next(self._numbers)}"
                    plan = MergePlan(shard.leaves(), name, shard.number, shard.order)
                    index.shards.adopt_merge(plan, plan.merged())

    async def ask_other(self, node_id: int, request: bytes, timeout_s: float) -> bytes:
        if node_id not in self.others:
            raise UnavailableError("there is no such node")
        return await self.others[node_id](request)

    def writing(self) -> PoolUse:
        return PoolUse(1, completed=len(self.writes))

    def following(self, index: Index) -> dict[str, Any] | None:
        return None

    def status(self) -> NodeStatus:
        return NodeStatus("healthy", "standalone", 1, self._log_index, 0, (), None, True, 0)

    def now_ms(self) -> int:
        return self.clock_ms

    def _apply(self, command: Command) -> Any:
        with self._applying:
            self._log_index += 1
            return self.catalog.apply(command, self._log_index, self.clock_ms).get()

    def _new_id(self) -> str:
        return UUID(int=next(self._numbers)).hex
