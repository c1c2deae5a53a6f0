"""`SearchRecovery`: from what is on disk to indexes that have what the log has."""

import asyncio
import logging

from actors.clustering.cluster_follower import ClusterFollower
from actors.log.client import LogAccess
from actors.raft.raft_log_client import RaftLogClient
from actors.search.catalog_view import CatalogView
from actors.search.open_search import OpenSearch, SearchConfig
from actors.search.search_directory import SearchDirectory
from graphdb.errors import CorruptionError, LogCompacted, LogUnavailable
from graphdb.log.views import SEARCH

__all__ = ["SearchRecovery"]

logger = logging.getLogger(__name__)

_LOOK_S = 0.2


class SearchRecovery:
    """Owned by a `SearchNode`, on its event loop."""

    def __init__(
        self,
        directory: SearchDirectory,
        log: LogAccess,
        config: SearchConfig,
        cluster: ClusterFollower | None,
    ) -> None:
        self._directory, self._log, self._config, self._cluster = directory, log, config, cluster

    async def open(self) -> OpenSearch:
        """Indexes with what the log holds now; in a cluster, with what is committed as far as a node that
        knows its leader can tell.

        Raises UnavailableError, CorruptionError where the indexes cannot be opened, nor made anew.
        """
        while True:
            view = await self._open_view()
            opened = OpenSearch(view, self._log, self._config)
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
            await opened.follower.catch_up()
            if self._cluster is None:
                return
            view = self._cluster.view
            if view is not None and view.leader_id is not None and opened.has_applied(view.committed_index):
                return
            await self._cluster.change(_LOOK_S)

    async def _open_view(self) -> CatalogView:
        """The catalogue as it is on disk, or as a peer has sent it; the log goes on right behind it."""
        view = await self._open_or_make_anew()
        while True:
            is_coming = await self._is_snapshot_coming()  # before the look for it
            if await asyncio.to_thread(self._directory.adopt_incoming, view.saved_index):
                return await asyncio.to_thread(self._directory.open)
            first_index = (await self._log.status()).first_index
            if first_index <= view.saved_index + 1:
                return view
            if not is_coming:
                return self._go_on_without(view, first_index)
            await asyncio.sleep(_LOOK_S)

    async def _open_or_make_anew(self) -> CatalogView:
        try:
            return await asyncio.to_thread(self._directory.open)
        except CorruptionError as damage:
            first_index = (await self._log.status()).first_index
            if first_index > 1:
                raise CorruptionError(
                    f"{damage.what}, and the log begins at {first_index}, too late to make the search indexes"
                    " anew: see docs/operations.md",
                    damage.where,
                ) from damage
            logger.error("%s: making the search indexes anew from the log", damage)
            await asyncio.to_thread(self._directory.set_aside)
            return await asyncio.to_thread(self._directory.open)

    async def _is_snapshot_coming(self) -> bool:
        """Whether the store of this node has a peer's snapshot before it, of which the indexes are a part."""
        if not isinstance(self._log, RaftLogClient):
            return False
        return (await self._log.watch(0, 0)).received is not None

    def _go_on_without(self, view: CatalogView, first_index: int) -> CatalogView:
        """What stood between them is lost to search, or never concerned it: search was off meanwhile."""
        gap = f"entries {view.saved_index + 1} to {first_index - 1} of the log are gone"
        if view.saved_index == 0:
            logger.info("new search indexes begin at entry %d: %s", first_index, gap)
        else:
            logger.error("SEARCH MAY LACK DOCUMENTS: %s, and the search indexes have not seen them", gap)
        view.pass_over(first_index - 1)
        return view
