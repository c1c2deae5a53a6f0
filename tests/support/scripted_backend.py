"""A node whose answers to queries are whatever a test wants to happen while they are read."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from serve.backend import AnswerStream, QueryRequest
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_cluster import MemoryCluster

__all__ = ["HANG", "ScriptedBackend", "ScriptedStream", "Step"]

HANG = asyncio.Event  # in a script: nothing more happens

Step: TypeAlias = bytes | Exception | type[asyncio.Event]


class ScriptedStream:
    """Hands out bytes, raises exceptions, hangs. It knows no time limit."""

    query_id = "scripted"
    where = "script"

    def __init__(self, *steps: Step, snapshot_index: int = 0, is_exact: bool = True) -> None:
        self.snapshot_index, self.is_exact = snapshot_index, is_exact
        self._steps = iter(steps)
        self.is_closed = False
        self.hangs_since: float | None = None  # time.monotonic()

    async def read(self) -> bytes | None:
        step = next(self._steps, None)
        if isinstance(step, Exception):
            raise step
        if step is HANG:
            self.hangs_since = time.monotonic()
            await asyncio.Event().wait()
        assert step is None or isinstance(step, bytes)
        return step

    def close(self) -> None:
        self.is_closed = True


class ScriptedBackend(MemoryBackend):
    """Memory, unless a test says how the next queries start."""

    def __init__(self) -> None:
        super().__init__()
        self.start: Callable[[QueryRequest], Awaitable[AnswerStream]] | None = None
        self.requests: list[QueryRequest] = []
        self.exact_indexes: list[int | None] = []  # what exact_index tells next, before it tells the truth

    async def explain_columns(self, request: QueryRequest) -> dict[str, Any]:
        return {"path": "reader", "reason": "there is no column view", "plan": None, "ways": []}

    async def start_query(self, request: QueryRequest) -> AnswerStream:
        self.requests.append(request)
        if self.start is not None:
            return await self.start(request)
        return await super().start_query(request)

    def answer_with(self, stream: AnswerStream | Exception) -> None:
        async def start(_request: QueryRequest) -> AnswerStream:
            if isinstance(stream, Exception):
                raise stream
            return stream

        self.start = start

    def exact_index(self) -> int | None:
        return self.exact_indexes.pop(0) if self.exact_indexes else super().exact_index()

    def forget(self) -> None:
        """What a test has said."""
        self.start, self.requests, self.exact_indexes = None, [], []
        self.peers = MemoryCluster()
