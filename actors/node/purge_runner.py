"""`PurgeRunner`: has a node's files without what was purged, however often it is started meanwhile."""

import asyncio
import contextlib
import logging
import shutil
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from actors.bounded_process import BoundedProcess, spawn
from actors.history.history_keeper import HistoryKeeper
from actors.history.state_process import MODULE, Rewriting, outcome_of, read_outcome
from actors.log.client import LogAccess
from actors.node.open_store import CurrentStore
from actors.node.own_book import BookLog
from actors.node.searching import Indexes
from actors.shard.store_directory import StoreDirectory
from actors.worker_thread import on_thread
from graphdb.errors import GraphDBError, LogUnavailable, NotFound, StorageFull
from graphdb.history.purges import NodePurged, PurgeBook, PurgeCommand
from graphdb.log.views import ViewStatus
from graphdb.node import ClusterReport, NodeStatus
from graphdb.public_text import fault_text

__all__ = ["PurgeMeans", "PurgeRunner"]

logger = logging.getLogger(__name__)
_AGAIN_S = 5.0  # after a failure, and while other nodes have not done yet
_LOOK_S = 0.2
_LOG_S = 60.0  # that the views of the log may take to need its older entries no more
_PEERS_S = 10.0
_COLUMNS = "columns"  # the view of that name
_LIVE = "live"  # in the data directory


class ReplaceStore(Protocol):
    """See `StoreLifecycle.replace_store`."""

    def __call__(self, directory: StoreDirectory, tree: Path, index: int, /) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True)
class PurgeMeans:
    """What a node's purging is done with."""

    data_dir: Path
    node_id: int
    memory_mb: int  # of the process that writes the store anew
    current: CurrentStore
    log: LogAccess
    book: BookLog[PurgeBook, PurgeCommand]
    keeper: HistoryKeeper
    indexes: Indexes | None
    replace_store: ReplaceStore
    forget: Callable[[], Awaitable[None]]  # what is in memory, and what live queries have on disk
    status: Callable[[], NodeStatus]
    report: Callable[[], ClusterReport | None]
    views: Callable[[], Sequence[ViewStatus]]  # as they have reported
    has_columns: bool


class PurgeRunner:
    """Owned by a node, on its event loop: have `run` run. It waits for the first purge without doing
    anything.

    Each step can be repeated, and is until the data directory says that it is done. So a node that was down,
    or was killed, does it when it is started.
    """

    def __init__(self) -> None:
        self._wake = asyncio.Event()
        self._stepped = asyncio.Event()  # replaced with each step
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done_index = -1  # of this node
        self._began_at = time.time()
        self.error: str | None = None  # why it does not get on; for `/health`, which anybody reads

    def wake(self) -> None:
        """Something was purged, or done. Any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    async def wait_done(self, log_index: int, timeout_s: float) -> None:
        """Return when this node has done with the purge there, or the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._done_index < log_index:
                    await self._stepped.wait()

    async def run(self, means: PurgeMeans) -> None:
        """Until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            must_look_again = True
            try:
                must_look_again = await self._look(means)
                self.error = None
            except (GraphDBError, OSError) as error:
                self.error = fault_text(error)
                logger.warning("a purge does not get on now: %s", error)
            except Exception as error:
                self.error = fault_text(error)
                logger.exception("a purge has failed, and is tried again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_S if must_look_again else None):
                    await self._wake.wait()

    async def _look(self, means: PurgeMeans) -> bool:
        """Do what is to be done; whether to look again although nobody calls."""
        through = means.book.book().last_index
        if through and self._done_of(means) < through:
            await self._purge(means, through)
        await self._report(means, self._done_of(means))
        is_open = any(not record.is_done for record in means.book.book().purges)
        if not is_open and await on_thread(means.current.opened().directory.keeps_open_purges):
            # no file names it any more; nor do copies of the store for peers, which go with the first entries
            await means.current.opened().checkpointer.checkpoint()
            await means.log.drop_before(1)
        self._note_done(self._done_of(means))
        return is_open

    def _done_of(self, means: PurgeMeans) -> int:
        directory = means.current.opened().directory
        return min(directory.store_purged, directory.history_purged)

    def _note_done(self, log_index: int) -> None:
        self._done_index = log_index
        stepped, self._stepped = self._stepped, asyncio.Event()
        stepped.set()

    async def _report(self, means: PurgeMeans, done: int) -> None:
        """Tell what this node has done; the one that leads also tells who is no member any more."""
        status = means.status()
        members = {member.node_id for member in status.cluster_members}
        for record in means.book.book().purges:
            gone = [node for node in record.waiting if node not in members]
            if record.log_index <= done:
                ended = gone if status.role in ("leader", "standalone") else []
                if means.node_id in record.waiting and means.node_id not in ended:
                    ended = [means.node_id, *ended]
                for node in ended:
                    with contextlib.suppress(NotFound):  # told meanwhile
                        await means.book.change(NodePurged(record.log_index, node))

    # the steps

    async def _purge(self, means: PurgeMeans, through: int) -> None:
        await self._end_log(means, through)
        await self._purge_history(means, through)
        await self._purge_store(means, through)
        await means.forget()
        await on_thread(_drop_old_copies, means.data_dir / _LIVE, self._began_at)
        await self._until_columns(means, through)
        await on_thread(means.current.opened().directory.write_store_purged, through)

    async def _end_log(self, means: PurgeMeans, through: int) -> None:
        """Have the log begin behind the purge, and behind what indexes that follow the graph have written for
        it: what stands before goes to the history, if it is kept.
        """
        if means.indexes is not None:
            await self._purge_indexes(means, means.indexes, through)
        index = (await means.log.status()).last_index
        await self._until_followed(means, index)
        give_up_at = asyncio.get_running_loop().time() + _LOG_S
        while await means.log.drop_before(index + 1) <= through:
            if asyncio.get_running_loop().time() > give_up_at:
                raise LogUnavailable("the log keeps entries that a view, or another node, needs still")
            if means.indexes is not None:
                await self._purge_indexes(means, means.indexes, through)
            await means.current.opened().checkpointer.checkpoint()
            await asyncio.sleep(_LOOK_S)

    async def _until_followed(self, means: PurgeMeans, index: int) -> None:
        """Let peers that are up come to index first: they would get a snapshot, and lose their history."""
        for _ in range(int(_PEERS_S / _LOOK_S)):
            report = means.report()
            if report is None or report.leader_id != means.node_id:
                return
            if all(not member.reachable or (member.matched_index or 0) >= index for member in report.members):
                return
            await asyncio.sleep(_LOOK_S)

    async def _purge_indexes(self, means: PurgeMeans, indexes: Indexes, through: int) -> None:
        """Those of the node that leads first, which follow the graph; the others follow those."""
        report = means.report()
        leader = means.node_id if report is None else report.leader_id
        waiting = {
            node
            for record in means.book.book().purges
            if record.log_index <= through
            for node in record.waiting
        }
        if leader not in (None, means.node_id) and leader in waiting:
            raise LogUnavailable(f"the search indexes of node {leader}, which leads, are purged first")
        await indexes.purge(means.current.opened().writer.applied_index)

    async def _purge_history(self, means: PurgeMeans, through: int) -> None:
        store = means.current.opened()
        purges = [one for one in store.unpurged if one.log_index <= through]
        await on_thread(means.keeper.purge, purges)
        await on_thread(store.directory.write_history_purged, through)

    async def _purge_store(self, means: PurgeMeans, through: int) -> None:
        """The engine never forgets the texts of terms. So the store is written anew, and takes the place of
        the present one.
        """
        directory = means.current.opened().directory
        if directory.store_purged >= through:
            return
        tree = directory.scratch / f"purged-{token_hex(6)}"
        try:
            index = await _copy(means.current, tree)
            await self._rewrite(means, tree)
            await means.replace_store(directory, tree, index)
        finally:
            _let_log_go(means.current, directory)
            await asyncio.to_thread(shutil.rmtree, tree, ignore_errors=True)
        await means.log.drop_before(index + 1)  # and with it copies of the old store, for peers
        await on_thread(means.current.opened().directory.drop_damaged)

    async def _rewrite(self, means: PurgeMeans, tree: Path) -> None:
        task = Rewriting(str(tree / "new"), str(tree / "store"))
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)
            with theirs:
                process = BoundedProcess(spawn(MODULE, theirs, [str(means.memory_mb)]), means.memory_mb)
            process.watch_memory()
            try:
                outcome = await outcome_of(task, ours)
            finally:
                process.kill()
                await process.ended.wait()
        try:
            read_outcome(outcome)
        except ValueError:
            raise LogUnavailable(f"writing the store anew has failed: {process.how()}") from None
        await asyncio.to_thread(_exchange, tree)

    async def _until_columns(self, means: PurgeMeans, through: int) -> None:
        """The column view makes itself anew, of the store, when it comes to a purge."""
        while means.has_columns:
            found = [status for status in means.views() if status.name == _COLUMNS]
            if found and all(one.state == "following" and one.index >= through for one in found):
                return
            await asyncio.sleep(_LOOK_S)


async def _copy(current: CurrentStore, tree: Path) -> int:
    """The log index that it is of; the log is kept from there on. Whoever calls has nothing of the store."""
    store = current.opened()
    table_bytes, _ = await asyncio.to_thread(store.directory.engine_files)
    if not store.checkpointer.room.admits(table_bytes):
        raise StorageFull("the disk has no room for the store that a purge writes anew")
    store.checkpointer.held_from = store.replayer.resume_index
    return await store.make_snapshot(tree)


def _let_log_go(current: CurrentStore, directory: StoreDirectory) -> None:
    store = current.open
    if store is not None and store.directory is directory:
        store.checkpointer.held_from = None


def _exchange(tree: Path) -> None:
    shutil.rmtree(tree / "store")
    (tree / "new").rename(tree / "store")


def _drop_old_copies(directory: Path, began_at: float) -> None:
    """What live queries of a process before this one have left."""
    with contextlib.suppress(FileNotFoundError):
        for path in directory.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < began_at:
                    shutil.rmtree(path, ignore_errors=True)
