"""`LiveCopy`: a copy of the graph that live queries are matched against, going from change to change."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from graphdb.errors import ChangesForgotten
from graphdb.live.changes import LoggedChange
from graphdb.live.matcher import FollowedQuery, Match, Matcher
from graphdb.model import ChangeSet
from graphdb.store.quad_store import QuadStore

__all__ = ["CopiedState", "LiveCopy", "Step"]

T = TypeVar("T")
QUADS_MAX = 250_000  # of one change: it is held in memory while it is matched


@dataclass(frozen=True, slots=True)
class CopiedState:
    """A store of its own, in exactly the state of a log index."""

    quads: QuadStore
    index: int
    path: str | None = None  # of its directory, which goes with it


@dataclass(slots=True)
class Step:
    """The whole change of one entry."""

    index: int
    parts: list[ChangeSet]


class LiveCopy:
    """Everything happens on one thread; index is that of the last step."""

    def __init__(
        self,
        state: CopiedState,
        thread: ThreadPoolExecutor,
        *,
        union_default_graph: bool = False,
        owns_thread: bool = False,
    ) -> None:
        """union_default_graph is for what is watched."""
        self.index = state.index
        self._path, self._thread, self._owns_thread = state.path, thread, owns_thread
        self._matcher: Matcher | None = Matcher(state.quads, union_default_graph=union_default_graph)
        self._open: list[ChangeSet] = []  # the pieces of an entry that is not whole yet
        self._open_quads = 0

    async def watch(self, query: FollowedQuery) -> None:
        """From the next change on."""
        await self.perform(lambda matcher: matcher.watch(query))

    async def forget(self, query: FollowedQuery) -> None:
        """Tell nothing of it any more."""
        await self.perform(lambda matcher: matcher.forget(query))

    def whole_steps(self, changes: Sequence[LoggedChange]) -> list[Step]:
        """The entries that are whole with these changes. Raises ChangesForgotten: one is too large."""
        found: list[Step] = []
        for one in changes:
            self._open.append(one.change)
            self._open_quads += one.change.affected_triples
            if self._open_quads > QUADS_MAX:
                raise ChangesForgotten(self.index, changes[-1].index + 1)
            if one.is_last:
                found.append(Step(one.index, self._open))
                self._open, self._open_quads = [], 0
        return found

    async def go(self, steps: Sequence[Step], through: int) -> list[Match]:
        """On through these steps; what they tell, in order. Nothing else changes up to through."""

        def on_thread(matcher: Matcher) -> list[Match]:
            told: list[Match] = []
            for step in steps:
                told += matcher.step(step.index, step.parts)
            return told

        told = await self.perform(on_thread) if steps else []
        self.index = through
        return told

    async def go_back(self, steps: Sequence[Step], index: int) -> None:
        """Back through these steps, which led here from index."""

        def on_thread(matcher: Matcher) -> None:
            for step in reversed(steps):
                matcher.go_back(step.parts)

        await self.perform(on_thread)
        self.index = index

    async def perform(self, function: Callable[[Matcher], T]) -> T:
        """On the thread of the copy, behind what is under way, and to its end."""

        def on_thread() -> T:
            assert self._matcher is not None, "the copy is closed"
            return function(self._matcher)

        work: Awaitable[T] = asyncio.get_running_loop().run_in_executor(self._thread, on_thread)
        return await asyncio.shield(work)

    async def close(self) -> None:
        """Let go of it, behind what is under way."""

        def let_go() -> None:
            self._matcher = None  # with the last reference the engine closes
            if self._path is not None:
                shutil.rmtree(self._path, ignore_errors=True)

        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, let_go))
        if self._owns_thread:
            self._thread.shutdown(wait=False)
