"""`LiveCopy`: a copy of the graph that live queries are matched against, going from change to change.
`StateCopier`: makes such copies, of hard links where possible.
"""

import asyncio
import itertools
import shutil
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from pyoxigraph import Store

from actors.live.change_log import ChangeStream
from graphdb.errors import ChangesForgotten, LogUnavailable, StorageFull
from graphdb.live.changes import LoggedChange
from graphdb.live.matcher import FollowedQuery, Matcher, Told
from graphdb.model import ChangeSet
from graphdb.public_text import fault_text
from graphdb.store.quad_store import QuadStore

__all__ = ["CopiedState", "InTurn", "LiveCopy", "StateCopier", "Step", "go_back_to"]

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

    async def go(self, steps: Sequence[Step], through: int) -> list[Told]:
        """On through these steps; what they tell, in order. Nothing else changes up to through."""

        def on_thread(matcher: Matcher) -> list[Told]:
            told: list[Told] = []
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


_WAIT_S = 10.0
REPLAYED_QUADS_MAX = 1_000_000  # that have changed since the index that somebody resumes from


async def go_back_to(copy: LiveCopy, stream: ChangeStream) -> list[Step]:
    """Take the copy back to where the stream is; the steps that lead from there to where the copy was, or a
    little further, which is where the stream is then.

    Raises ChangesForgotten, LogUnavailable.
    """
    since, quads = stream.through, 0
    steps: list[Step] = []
    while stream.through < copy.index:
        changes = await stream.read(_WAIT_S)
        if changes is None:
            raise LogUnavailable("the node is stopping")
        quads += sum(one.change.affected_triples for one in changes)
        if quads > REPLAYED_QUADS_MAX:
            raise ChangesForgotten(since, stream.through)
        steps += copy.whole_steps(changes)
    await copy.go([step for step in steps if step.index > copy.index], stream.through)
    await copy.go_back(steps, since)
    return steps


InTurn: TypeAlias = Callable[[Callable[[int], int]], Awaitable[int]]


class StateCopier:
    """Owns the directory: what is in it at the start is of a process before this one."""

    def __init__(self, directory: Path) -> None:
        """It is on the store's file system."""
        self._directory = directory
        self._names = (f"copy-{number}" for number in itertools.count())
        self._is_clean = False

    async def copy(self, quads: QuadStore, in_turn: InTurn) -> CopiedState:
        """The state of a store while it stands still. in_turn calls what it is given then, with the index.

        Raises StorageFull, CorruptionError, LogUnavailable.
        """
        path = self._directory / next(self._names)
        await asyncio.to_thread(self._clean)

        def make(index: int) -> int:
            quads.checkpoint(path)
            return index

        try:
            index = await in_turn(make)
            store = await asyncio.to_thread(Store, path)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            raise StorageFull(f"copying the store for live queries: {fault_text(error)}", 5) from error
        return CopiedState(QuadStore(store), index, str(path))

    def _clean(self) -> None:
        if not self._is_clean:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory.mkdir(parents=True, exist_ok=True)
            self._is_clean = True
