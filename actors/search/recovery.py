"""`SearchRecovery`: from what is on disk to indexes that have what the log has."""

import asyncio
import logging

from actors.clustering.cluster_follower import ClusterFollower
from actors.disk_room import DiskRoom
from actors.log.client import LogAccess
from actors.raft.raft_log_client import RaftLogClient
from actors.search.catalog_view import CatalogView
from actors.search.late_joiner import LateJoiner
from actors.search.open_search import OpenSearch, SearchConfig
from actors.search.search_directory import SearchDirectory
from graphdb.errors import CorruptionError, LogCompacted, LogUnavailable
from graphdb.log.views import SEARCH
from graphdb.search.catalog.late_start import Fetch, PassOver

__all__ = ["SearchRecovery"]

logger = logging.getLogger(__name__)

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
        joiner: LateJoiner | None = None,
    ) -> None:
        """The last two are of a cluster's node."""
        self._directory, self._log, self._config, self._cluster = directory, log, config, cluster
        self._joiner, self._room = joiner, room
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
        if self._joiner is None:
            return True
        step = await self._joiner.step(view.saved_index, first_index)
        if isinstance(step, PassOver):
            self._directory.show_starting(True)
            step = await self._joiner.step(view.saved_index, first_index)
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
        assert self._joiner is not None
        catalog = await self._joiner.fetch(node_id)
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
        if self._joiner is None:
            return False
        give_up_at = asyncio.get_running_loop().time() + _MEND_S
        while asyncio.get_running_loop().time() < give_up_at:
            step = await self._joiner.step(0, first_index)
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
