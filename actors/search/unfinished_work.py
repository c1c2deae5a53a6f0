"""`UnfinishedWork`: indexes that were not filled to their end, and work on snapshots that nobody does now.

A node ends its own at once when it is there again. What a node has begun that is not reached for a while, the
node that leads ends: half an index would look like a whole one, and its work would keep others from theirs.
Should that node be there still, apart from the rest, its index is gone, which it is told as an error.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Set
from typing import Any

from graphdb.errors import UnavailableError
from graphdb.search.catalog.catalog_commands import Command, DeleteIndices, EndSnapshotWork
from graphdb.search.catalog.filling import AwayNodes, filling_nodes, left_unfilled, left_working
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError

__all__ = ["UnfinishedWork"]

logger = logging.getLogger(__name__)


class UnfinishedWork:
    """Of one node.

    filling: the uuids of what it does now. reached: the numbers of the members that it reaches, None where
    another node leads. away_s: how long a node is missed before its work is ended.
    """

    def __init__(
        self,
        node_id: int,
        filling: Set[str],
        perform: Callable[[Command], Awaitable[Any]],
        reached: Callable[[], Set[int] | None],
        away_s: float,
    ) -> None:
        self._node_id, self._filling = node_id, filling
        self._perform, self._reached = perform, reached
        self._away = AwayNodes(away_s)

    async def end(self, state: CatalogState) -> None:
        """End what is left in the catalogue. What cannot be logged now is tried with the next call."""
        await self._end_of(self._node_id, state, self._filling)
        nodes, reached = filling_nodes(state), self._reached()
        met = nodes if reached is None else {self._node_id, *reached}  # who does not lead misses nobody
        for node_id in self._away.look(nodes, met, time.monotonic()):
            await self._end_of(node_id, state, frozenset())

    async def _end_of(self, node_id: int, state: CatalogState, filling: Set[str]) -> None:
        for index in left_unfilled(state, node_id, filling):
            logger.warning("index [%s] was not filled to its end: deleting it", index.name)
            try:
                await self._perform(DeleteIndices((index.uuid,), unfilled=True))
            except (SearchError, UnavailableError) as error:
                logger.warning("index [%s] cannot be deleted yet: %s", index.name, error)
        for uuid in left_working(state, node_id, filling):
            logger.warning("node [%s] stopped while it worked on a snapshot: the work has ended", node_id)
            try:
                await self._perform(EndSnapshotWork(uuid))
            except (SearchError, UnavailableError) as error:
                logger.warning("the end of the work on a snapshot cannot be logged yet: %s", error)
