"""`Chores`: what a node does for its cluster beside following the log: snapshots for peers, giving the lead
away.
"""

import asyncio
import logging
import secrets
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from actors.raft.log_requests import ClusterView
from actors.raft.raft_log_client import RaftLogClient
from actors.shard.store_shard import OpenShard
from graphdb.errors import GraphDBError

__all__ = ["Chores"]

logger = logging.getLogger(__name__)

_AGAIN_S = 1.0
_TROUBLE_S = 5.0  # a leader that cannot write for so long lets another node try
_HAND_OVER_EVERY_S = 30.0  # all may be in the same trouble


class Chores:
    """Owned by a `ClusteredShard`, on its event loop. One of each kind at a time, each on its own task."""

    def __init__(
        self,
        log: RaftLogClient,
        has_trouble: Callable[[], bool],
        hand_over: Callable[[], Awaitable[None]],
    ) -> None:
        """has_trouble: whether this node could not write. hand_over gives the lead away, if it can."""
        self._log = log
        self._has_trouble = has_trouble
        self._hand_over = hand_over
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._well_at = 0.0

    def see_to(self, view: ClusterView, shard: OpenShard) -> None:
        """Begin what this view of the cluster asks for."""
        if view.snapshot_wanted:
            self._begin("snapshot", lambda: self._offer_snapshot(shard))
        received = view.received
        if received is not None and received.index <= shard.writer.applied_index:
            self._begin("received", lambda: self._forget_received(received.index))
        now = asyncio.get_running_loop().time()
        if view.role != "leader" or not self._has_trouble():
            self._well_at = now
        elif now > self._well_at + _TROUBLE_S:
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

    async def _offer_snapshot(self, shard: OpenShard) -> None:
        """Some peer needs what the log no longer has."""
        tree = shard.directory.scratch / f"snapshot-{secrets.token_hex(6)}"
        try:
            index = await shard.make_snapshot(tree)
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


def _remove(tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
