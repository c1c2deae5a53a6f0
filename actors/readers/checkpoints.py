"""`Checkpoints`: hard-linked copies of the store for readers; shared while current, deleted when nobody reads
them.
"""

import asyncio
import itertools
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from pyoxigraph import NamedNode

from actors.log.applied_index import AppliedIndex
from actors.worker_thread import on_thread
from graphdb.errors import LogUnavailable
from graphdb.store.quad_store import QuadStore

__all__ = ["Checkpoint", "CheckpointSource", "Checkpoints", "FixedCheckpoints"]

logger = logging.getLogger(__name__)
_IDLE_S = 5.0  # an outdated checkpoint that nobody has asked for this long holds on to deleted data in vain


Still: TypeAlias = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Checkpoint:
    """A copy on disk that nobody writes. Its path is never used again, by this process or the next."""

    path: Path
    index: int  # the log index that it is of, or a later one
    is_exact: bool  # of exactly this one
    hidden_graphs: frozenset[NamedNode] = frozenset()  # it has their quads, which are not of its state
    holders: int = 0


@dataclass(frozen=True, slots=True)
class _Wanted:
    index: int  # or a later one
    is_exact: bool = False
    may_hide: bool = False

    def is_met_by(self, checkpoint: Checkpoint) -> bool:
        if checkpoint.index < self.index or (self.is_exact and not checkpoint.is_exact):
            return False
        return self.may_hide or not checkpoint.hidden_graphs


class CheckpointSource(Protocol):
    """Whom readers get a checkpoint from; see `Checkpoints`."""

    async def take(self) -> Checkpoint: ...
    async def take_hiding(self) -> Checkpoint: ...
    async def take_exact(self) -> Checkpoint: ...
    def is_present(self, checkpoint: Checkpoint) -> bool: ...
    def give_back(self, checkpoint: Checkpoint) -> None: ...


class FixedCheckpoints:
    """A `CheckpointSource` of a store that nobody writes: its own directory is the one checkpoint."""

    def __init__(self, path: Path, index: int, quads: QuadStore) -> None:
        """quads is the store at path, of exactly index; the files stay while somebody holds it."""
        self._checkpoint, self._quads = Checkpoint(path, index, is_exact=True), quads

    async def take(self) -> Checkpoint:
        """See `Checkpoints.take`."""
        return self._checkpoint

    async def take_hiding(self) -> Checkpoint:
        """See `Checkpoints.take_hiding`."""
        return self._checkpoint

    async def take_exact(self) -> Checkpoint:
        """See `Checkpoints.take_exact`."""
        return self._checkpoint

    def is_present(self, checkpoint: Checkpoint) -> bool:
        """It is of the past."""
        return False

    def give_back(self, checkpoint: Checkpoint) -> None:
        """It stays; until then its holder, who has this method, has held the files."""


class Checkpoints:
    """Owned by an open store or a view, on its event loop."""

    def __init__(
        self,
        directory: Path,
        quads: QuadStore,
        applied: AppliedIndex,
        release: Callable[[str], Awaitable[None]],
        still: Still | None = None,
    ) -> None:
        """directory exists and is on the store's file system. release has readers that hold a checkpoint
        open, without a query, let go of it. still performs something while no change is being applied, for
        `take_exact`.
        """
        self._directory = directory
        self._quads = quads
        self._applied = applied
        self._still = still
        self._release = release
        self._names = (f"checkpoint-{os.urandom(6).hex()}-{number}" for number in itertools.count())
        self._current: Checkpoint | None = None
        self._making = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._idle_timer: asyncio.TimerHandle | None = None

    async def take(self) -> Checkpoint:
        """A checkpoint that has in it whatever was applied at the call. Give it back after use.

        Those who ask while one is being made share the next one. It waits for what is being removed.
        Raises StorageFull, CorruptionError, LogUnavailable (once closed).
        """
        return await self._take(_Wanted(self._applied.current))

    async def take_hiding(self) -> Checkpoint:
        """The same at once: it may have hidden_graphs."""
        return await self._take(_Wanted(self._applied.current, may_hide=True))

    async def _take(self, wanted: "_Wanted") -> Checkpoint:
        while (current := self._current) is None or not wanted.is_met_by(current):
            # on a task of its own: who no longer waits does not leave a copy behind that nobody knows of
            await asyncio.shield(self._begin(self._renew(wanted)))
        current.holders += 1
        return current

    async def take_exact(self) -> Checkpoint:
        """As `take`, but of exactly its log index: writes wait while it is made, if need be."""
        while True:
            checkpoint = await self.take()
            if checkpoint.is_exact:
                return checkpoint
            self.give_back(checkpoint)
            assert self._still is not None
            await self._still(self._renew_exactly)

    async def _renew_exactly(self) -> None:
        await asyncio.shield(self._begin(self._renew(_Wanted(self._applied.current, is_exact=True))))

    def is_present(self, checkpoint: Checkpoint) -> bool:
        """Whether the store is still as the checkpoint has it."""
        return checkpoint.is_exact and checkpoint.index == self._applied.exact

    def give_back(self, checkpoint: Checkpoint) -> None:
        """A holder is done with it."""
        checkpoint.holders -= 1
        if checkpoint.holders:
            return
        if checkpoint is not self._current:
            self._remove(checkpoint)
        elif self._idle_timer is None:
            self._look_later()

    async def close(self) -> None:
        """Delete all; whoever holds one gives it back still."""
        self._is_closed = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._current is not None:
            self._remove(self._current)
            self._current = None
        await asyncio.gather(*self._tasks)

    async def _renew(self, wanted: "_Wanted") -> None:
        if not wanted.may_hide:  # before it is held up: others need not wait for that
            await on_thread(self._quads.remove_hidden)
        async with self._making:
            if self._is_closed:
                raise LogUnavailable("the node is starting or stopping")
            current = self._current
            if current is None or not wanted.is_met_by(current):
                self._replace(await self._make(may_hide=wanted.may_hide))

    async def _make(self, *, may_hide: bool) -> Checkpoint:
        path = self._directory / next(self._names)
        index, before = self._applied.current, self._applied.exact
        hidden: frozenset[NamedNode] = frozenset()
        if may_hide:
            hidden = await on_thread(self._quads.checkpoint_hiding, path)
        else:
            await on_thread(self._quads.checkpoint, path)
        # every change moves the index on: where it stands still, nothing came in between
        is_exact = before is not None and before == self._applied.exact
        return Checkpoint(path, index, is_exact, hidden)

    def _replace(self, fresh: Checkpoint) -> None:
        outdated, self._current = self._current, fresh
        if outdated is not None and not outdated.holders:
            self._remove(outdated)

    def _look_later(self) -> None:
        self._idle_timer = asyncio.get_running_loop().call_later(_IDLE_S, self._drop_outdated)

    def _drop_outdated(self) -> None:
        self._idle_timer = None
        current = self._current
        if current is None or current.holders:
            return
        if current.index < self._applied.current:
            self._current = None
            self._remove(current)
        else:
            self._look_later()

    def _remove(self, checkpoint: Checkpoint) -> None:
        self._begin(self._remove_now(checkpoint.path))

    def _begin(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _remove_now(self, path: Path) -> None:
        try:
            await self._release(str(path))
        except Exception as error:  # noqa: BLE001 a reader that cannot be asked dies, and lets go so
            logger.debug("no reader could be told to let go of %s: %s", path, error)
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
