"""`SearchRecovery`: from what is on disk (`SearchDirectory`), or at a peer (`PeerRecovery`), to indexes that
have what the log has.

Of a data directory it has:

    search/            the catalogue and the indexes (`graphdb.search.catalog.files`)
    search.incoming/   the same as a peer has sent it, complete; takes the place of search/ where it is ahead
    search.fetched/    what is arriving because this node has asked for it (`actors.search.recovery`)
    search.taken/      one of those while it is looked at: another may arrive meanwhile
    search.starting    a file: the indexes are about to pass over entries of the log, as other nodes can see
    search.replaced/   what search/ was before that, or what was not ahead; removed at once
    search.damaged/    a directory that could not be opened, when the log could make it anew
"""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

from actors.clustering.cluster_follower import ClusterFollower
from actors.disk_room import DiskRoom
from actors.log.client import LogAccess
from actors.raft.log_requests import ForwardedRequest
from actors.raft.raft_log_client import RaftLogClient
from actors.raft.search_requests import (
    NO_COPY,
    SEARCH_COPY,
    SEARCH_STATE,
    CopyPart,
    decode_part,
    decode_state,
    encode_copy_request,
    encode_needed,
)
from actors.raft.snapshot_transfer import TREE, IncomingSnapshot, free_bytes
from actors.search.catalog_view import CatalogView
from actors.search.open_search import OpenSearch, SearchConfig
from actors.shard.incoming import sync_tree
from actors.shard.search_state import STARTING
from graphdb.errors import CorruptionError, LogCompacted, LogUnavailable, RequestError, UnavailableError
from graphdb.log.file_system import RealFileSystem, storage_error
from graphdb.log.views import SEARCH
from graphdb.raft.membership import Members
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.files import CatalogFiles, read_log_index
from graphdb.search.catalog.late_start import Fetch, LateStart, PassOver, SearchState, Wait, late_start
from graphdb.search.following.settings import check_graph

__all__ = ["PeerRecovery", "SearchDirectory", "SearchRecovery"]


class SearchDirectory:
    """Used by one process, on any thread, one call at a time. Everything raises UnavailableError where the
    disk refuses.
    """

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / "search"
        self._data_dir = data_dir
        self._incoming = data_dir / "search.incoming"
        self._taken = data_dir / "search.taken"
        self.fetched = data_dir / "search.fetched"
        self._starting = data_dir / STARTING
        self._replaced = data_dir / "search.replaced"
        self._damaged = data_dir / "search.damaged"

    def open(self) -> CatalogView:
        """The catalogue as it is on disk. Raises CorruptionError."""
        files = CatalogFiles(RealFileSystem(), str(self.path))
        catalog, log_index = files.load() or (Catalog(), 0)
        catalog.check_graph = check_graph
        return CatalogView(catalog, files, log_index)

    def adopt_incoming(self, applied_index: int) -> bool:
        """Take over what a peer has sent, if it is ahead of applied_index; else it is of no use.

        Nobody has search/ open. A crash leaves it to the next call. Raises CorruptionError.
        """
        adopted = False
        with _disk_failures("taking over the search indexes of a snapshot"):
            while self._take():
                log_index = read_log_index(str(self._taken)) or 0
                if log_index > applied_index:
                    applied_index, adopted = log_index, True
                    self._make_room(self.path)
                    self._taken.rename(self.path)
                    sync_tree(self.path)
                    RealFileSystem().sync_directory(str(self._data_dir))
                    shutil.rmtree(self._replaced, ignore_errors=True)
                else:
                    self._make_room(self._taken)
                    shutil.rmtree(self._replaced, ignore_errors=True)
        return adopted

    def _take(self) -> bool:
        """Have for oneself what has arrived, or what was taken before a crash; whether there is any."""
        if not self._taken.exists():
            with contextlib.suppress(FileNotFoundError):
                self._incoming.rename(self._taken)
        return self._taken.exists()

    def _make_room(self, path: Path) -> None:
        """Have nothing there: a name that is whole or not there at all, whenever this is cut short."""
        if self._replaced.exists():
            shutil.rmtree(self._replaced)
        with contextlib.suppress(FileNotFoundError):
            path.rename(self._replaced)

    def show_starting(self, is_starting: bool) -> None:
        """Whether the indexes are about to pass over entries of the log."""
        with _disk_failures("showing that the search indexes are starting"):
            if is_starting:
                self._starting.touch()
            else:
                self._starting.unlink(missing_ok=True)

    def take(self, catalog: Path) -> None:
        """Have a directory, complete and durable, for the next call of adopt_incoming."""
        with _disk_failures("taking over search indexes"):
            self._make_room(self._taken)
            catalog.rename(self._taken)
            RealFileSystem().sync_directory(str(self._data_dir))
            shutil.rmtree(self._replaced, ignore_errors=True)
            shutil.rmtree(self.fetched, ignore_errors=True)

    def set_aside(self) -> None:
        """Make room for a catalogue begun anew; the damaged one is kept for whoever wants to look at it."""
        with _disk_failures("setting damaged search indexes aside"):
            shutil.rmtree(self._damaged, ignore_errors=True)
            self.path.rename(self._damaged)


@contextlib.contextmanager
def _disk_failures(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(error, doing) from error


logger = logging.getLogger(__name__)

_STATE_S = 8.0  # a node may be starting
_PART_S = 30.0


class PeerRecovery:
    """For one event loop."""

    def __init__(self, node_id: int, log: RaftLogClient, directory: Path) -> None:
        """directory: for what is being received."""
        self._node_id, self._log, self._directory = node_id, log, directory

    async def step(self, saved_index: int, first_index: int) -> LateStart:
        """What to do about indexes of saved_index under a log that begins at first_index, behind them."""
        members = (await self._log.watch(0, 0)).members
        others = [member.node_id for member in members if member.node_id != self._node_id]
        if len(others) == len(members):
            return Wait("this node is in no cluster yet")
        states = await asyncio.gather(*(self._state_of(node_id, first_index - 1) for node_id in others))
        own = SearchState(self._node_id, True, saved_index, first_index, saved_index)
        return late_start(own, dict(zip(others, states, strict=True)))

    async def _state_of(self, node_id: int, needed_index: int) -> SearchState | None:
        try:
            return decode_state(await self._ask(node_id, SEARCH_STATE, encode_needed(needed_index), _STATE_S))
        except UnavailableError as error:
            logger.info("node %d does not say what search indexes it has: %s", node_id, error)
            return None

    async def fetch(self, node_id: int) -> Path:
        """A catalogue's directory as that node has it, complete and durable. Raises UnavailableError."""
        first = await self._part(node_id, NO_COPY, 0)
        logger.info("receiving search indexes as of %d from node %d", first.log_index, node_id)
        try:
            return await self._receive(node_id, first)
        except Malformed as error:
            raise LogUnavailable(f"node {node_id} has sent no search indexes: {error}") from error
        except OSError as error:
            raise storage_error(error, "receiving search indexes") from error

    async def _receive(self, node_id: int, part: CopyPart) -> Path:
        incoming = await asyncio.to_thread(self._begin, part)
        offset = 0
        while True:
            await asyncio.to_thread(incoming.write, offset, part.data)
            offset += len(part.data)
            if part.is_last:
                break
            part = await self._part(node_id, part.copy_id, offset)
        await asyncio.to_thread(incoming.finish)
        return self._directory / TREE / "search"

    def _begin(self, part: CopyPart) -> IncomingSnapshot:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)
        self._directory.mkdir()
        mark = SnapshotMark(part.log_index, 0, Members(()))
        return IncomingSnapshot(RealFileSystem(), self._directory, mark, free_bytes)

    async def _part(self, node_id: int, copy_id: bytes, offset: int) -> CopyPart:
        body = encode_copy_request(copy_id, offset)
        return decode_part(await self._ask(node_id, SEARCH_COPY, body, _PART_S))

    async def _ask(self, node_id: int, operation: str, body: bytes, timeout_s: float) -> bytes:
        try:
            return await self._log.forward(node_id, ForwardedRequest(0, operation, "", body), timeout_s)
        except RequestError as error:  # of another version
            raise LogUnavailable(f"node {node_id} does not understand: {error}") from error


_LOOK_S = 0.2
_ASK_S = 1.0  # what other nodes have
_MEND_S = 30.0  # so long they may take to say that they have what is damaged here


class SearchRecovery:
    """Owned by a `SearchNode`, on its event loop."""

    def __init__(
        self,
        directory: SearchDirectory,
        log: LogAccess,
        config: SearchConfig,
        room: DiskRoom,
        cluster: ClusterFollower | None,
        peer_recovery: PeerRecovery | None = None,
    ) -> None:
        """The last two are of a cluster's node."""
        self._directory, self._log, self._config, self._cluster = directory, log, config, cluster
        self._peer_recovery, self._room = peer_recovery, room
        self.waits_for: str | None = None  # what keeps the indexes from being opened, in a cluster

    async def open(self) -> OpenSearch:
        """Indexes with what the log holds now; in a cluster, with what is committed as far as a node that
        knows its leader can tell.

        Raises UnavailableError, CorruptionError where the indexes cannot be opened, nor made anew.
        """
        while True:
            view = await self._open_view()
            opened = OpenSearch(view, self._log, self._config, self._room)
            try:
                await self._log.truncate_before(view.saved_index + 1, SEARCH)
                await self._catch_up(opened)
                await opened.upkeep.refresh(view.catalog.indexes())  # as before a crash
            except BaseException as error:
                await opened.close(LogUnavailable("the node is starting"))
                if not isinstance(error, LogCompacted):
                    raise
            else:
                return opened

    async def _catch_up(self, opened: OpenSearch) -> None:
        while True:
            await opened.runner.catch_up()
            if self._cluster is None:
                return
            view = self._cluster.view
            if view is not None and view.leader_id is not None and opened.has_applied(view.committed_index):
                return
            await self._cluster.change(_LOOK_S)

    async def _open_view(self) -> CatalogView:
        """The catalogue as it is on disk, or as a peer has sent it; the log goes on right behind it."""
        self._room.make_room()
        self._directory.show_starting(False)
        view = await self._open_or_make_anew()
        while True:
            is_coming = await self._is_snapshot_coming()  # before the look for it
            if await asyncio.to_thread(self._directory.adopt_incoming, view.saved_index):
                view = await asyncio.to_thread(self._directory.open)
                continue
            first_index = (await self._log.status()).first_index
            if first_index <= view.saved_index + 1:
                self.waits_for = None
                return view
            if not is_coming and await self._may_pass_over(view, first_index):
                await self._go_on_without(view, first_index)
            else:
                await asyncio.sleep(_LOOK_S)

    async def _may_pass_over(self, view: CatalogView, first_index: int) -> bool:
        """Whether nobody else has what is missing; else it is being got, or waited for."""
        if self._peer_recovery is None:
            return True
        step = await self._peer_recovery.step(view.saved_index, first_index)
        if isinstance(step, PassOver):
            self._directory.show_starting(True)
            step = await self._peer_recovery.step(view.saved_index, first_index)
            if isinstance(step, PassOver):
                return True
            self._directory.show_starting(False)
        if isinstance(step, Fetch):
            await self._fetch(step.node_id)
        else:
            self._tell_wait(step.reason)
            await asyncio.sleep(_ASK_S)
        return False

    async def _fetch(self, node_id: int) -> None:
        assert self._peer_recovery is not None
        catalog = await self._peer_recovery.fetch(node_id)
        await asyncio.to_thread(self._directory.take, catalog)

    def _tell_wait(self, reason: str) -> None:
        if reason != self.waits_for:
            logger.warning(
                "the search indexes lack entries that the log has no more, so they wait: %s", reason
            )
        self.waits_for = reason

    async def _open_or_make_anew(self) -> CatalogView:
        try:
            return await asyncio.to_thread(self._directory.open)
        except CorruptionError as damage:
            first_index = (await self._log.status()).first_index
            if first_index <= 1:
                logger.error("%s: making the search indexes anew from the log", damage)
            elif await self._is_replaced(first_index):
                logger.error("%s: taking the search indexes of another node", damage)
            else:
                raise CorruptionError(
                    f"{damage.what}, and the log begins at {first_index}, too late to make the search indexes"
                    " anew: see docs/operations.md",
                    damage.where,
                ) from damage
            await asyncio.to_thread(self._directory.set_aside)
            return await asyncio.to_thread(self._directory.open)

    async def _is_replaced(self, first_index: int) -> bool:
        """Whether another node has given its indexes in place of damaged ones."""
        if self._peer_recovery is None:
            return False
        give_up_at = asyncio.get_running_loop().time() + _MEND_S
        while asyncio.get_running_loop().time() < give_up_at:
            step = await self._peer_recovery.step(0, first_index)
            if isinstance(step, Fetch):
                await self._fetch(step.node_id)
                return True
            if isinstance(step, PassOver):
                return False
            await asyncio.sleep(_ASK_S)
        return False

    async def _is_snapshot_coming(self) -> bool:
        """Whether the store of this node has a peer's snapshot before it, of which the indexes are a part."""
        if not isinstance(self._log, RaftLogClient):
            return False
        return (await self._log.watch(0, 0)).received is not None

    async def _go_on_without(self, view: CatalogView, first_index: int) -> None:
        """What stood between them is lost to search, or never concerned it: search was off meanwhile.

        That is put on disk, so that other nodes can tell.
        """
        gap = f"entries {view.saved_index + 1} to {first_index - 1} of the log are gone"
        if view.saved_index == 0:
            logger.info("new search indexes begin at entry %d: %s", first_index, gap)
        else:
            logger.error("SEARCH MAY LACK DOCUMENTS: %s, and the search indexes have not seen them", gap)
        view.pass_over(first_index - 1)
        await asyncio.to_thread(view.flush)
        self._directory.show_starting(False)
