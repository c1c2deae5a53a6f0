"""`Maintenance`: what a node does for its cluster beside following the log: snapshots for peers, giving the
lead away.
"""

import asyncio
import logging
import secrets
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from actors.node.open_store import OpenStore
from actors.raft.log_requests import ClusterView
from actors.raft.raft_log_client import RaftLogClient
from actors.shard.search_state import copy_search, saved_search_index
from graphdb.errors import CorruptionError, GraphDBError, LogUnavailable, UnavailableError

__all__ = ["Maintenance"]

logger = logging.getLogger(__name__)

_AGAIN_S = 1.0
_SEARCH_S, _LOOK_S = 15.0, 0.2
_LOOK_EVERY_S = 1.0  # at whether this node can write: views come with every commit, a look takes the disk
_FAULT_S = 5.0  # a leader that cannot write for so long lets another node try
_HAND_OVER_EVERY_S = 30.0  # all may be in the same fault


class Maintenance:
    """Owned by a clustered node, on its event loop. One of each kind at a time, each on its own task."""

    def __init__(
        self,
        log: RaftLogClient,
        has_fault: Callable[[], bool],
        hand_over: Callable[[], Awaitable[None]],
        *,
        carries_search: bool,
    ) -> None:
        """has_fault: whether this node could not write. hand_over gives the lead away, if it can.

        carries_search: whether a snapshot is to have the search indexes too.
        """
        self._log = log
        self._has_fault = has_fault
        self._hand_over = hand_over
        self._carries_search = carries_search
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._well_at = self._look_at = 0.0

    def see_to(self, view: ClusterView, shard: OpenStore) -> None:
        """Begin what this view of the cluster asks for."""
        if view.snapshot_wanted:
            self._begin("snapshot", lambda: self._offer_snapshot(shard))
        received = view.received
        if received is not None and received.index <= shard.writer.applied_index:
            self._begin("received", lambda: self._forget_received(received.index))
        now = asyncio.get_running_loop().time()
        if view.role != "leader":
            self._well_at = self._look_at = now
        elif now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self._see_whether_well(now)

    def _see_whether_well(self, now: float) -> None:
        if not self._has_fault():
            self._well_at = now
        elif now > self._well_at + _FAULT_S:
            self._begin("hand over", self._let_another_lead)

    async def close(self) -> None:
        """Leave what is not done."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _begin(self, kind: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = self._tasks.get(kind)
        if task is None or task.done():
            self._tasks[kind] = asyncio.get_running_loop().create_task(work())

    async def _offer_snapshot(self, shard: OpenStore) -> None:
        """Some peer needs what the log no longer has."""
        tree = shard.directory.scratch / f"snapshot-{secrets.token_hex(6)}"
        try:
            index = await shard.make_snapshot(tree)
            if self._carries_search:
                await _try_to_add_search(shard.directory.path, tree, index)
            await self._log.offer(index, str(tree))
        except GraphDBError as error:
            logger.warning("no snapshot for a peer that needs one: %s", error)
            await asyncio.to_thread(_remove, tree)
        del shard  # nothing here may hold the engine open
        await asyncio.sleep(_AGAIN_S)

    async def _forget_received(self, index: int) -> None:
        """The entries came faster than the snapshot that stands for them."""
        try:
            await self._log.adopted(index)
        except GraphDBError as error:
            logger.debug("the snapshot at %d stays for now: %s", index, error)
        await asyncio.sleep(_AGAIN_S)

    async def _let_another_lead(self) -> None:
        logger.warning("this node leads and cannot write: letting another one lead")
        try:
            await self._hand_over()
        except GraphDBError as error:
            logger.warning("nobody else can lead: %s", error)
        await asyncio.sleep(_HAND_OVER_EVERY_S)


async def _try_to_add_search(data_dir: Path, tree: Path, index: int) -> None:
    """Without them the peer has its quads, and looks for the indexes itself (`actors.search.recovery`)."""
    try:
        await _add_search(data_dir, tree, index)
    except (UnavailableError, CorruptionError) as error:
        logger.warning("a snapshot for a peer is without search indexes: %s", error)
        await asyncio.to_thread(_remove, tree / "search")


async def _add_search(data_dir: Path, tree: Path, index: int) -> None:
    """Add the search indexes to a snapshot of the store at index, once they are on disk as of that or later:
    whoever has both goes on with the entries behind index, and passes over those that the indexes have.

    Their owner puts them there when a snapshot is wanted. Raises LogUnavailable where that takes too long.
    """
    give_up_at = asyncio.get_running_loop().time() + _SEARCH_S
    while (await asyncio.to_thread(saved_search_index, data_dir) or 0) < index:
        if asyncio.get_running_loop().time() > give_up_at:
            raise LogUnavailable(f"the search indexes are not on disk as of {index}")
        await asyncio.sleep(_LOOK_S)
    await asyncio.to_thread(copy_search, data_dir, tree)


def _remove(tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
