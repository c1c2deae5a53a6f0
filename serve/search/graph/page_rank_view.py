"""`PageRankView`: the PageRank of the graph's resources, computed when first asked for, then refreshed."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from graphdb.errors import GraphDBError, LimitExceeded, UnavailableError
from graphdb.search.extension.page_rank import LINKS_MAX, LinkCollector, PageRanks

__all__ = ["LINKS_QUERY", "LinkSource", "PageRankView"]

log = logging.getLogger(__name__)

LINKS_QUERY = (
    "SELECT ?s ?o WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } FILTER(isIRI(?o) || isBlank(?o)) }"
)
_AGE_S_MIN = 60.0  # between two computations at least
_SHARE = 10  # and so many times as long as one takes
_PIECE_BYTES = 1 << 20  # read on a thread at a time


class LinkSource(Protocol):
    """A graph that gives the rows of a SELECT as they come."""

    def rows(self, query: str) -> AsyncIterator[bytes]:
        """SPARQL 1.1 results as TSV, in pieces of any length. Raises SearchError, UnavailableError."""


class PageRankView:
    """For one event loop. What it gives may be behind the graph by some minutes: a change of the graph makes
    the ranks stale, but they are computed again only when somebody asks, beside requests, and not too often.
    """

    def __init__(
        self,
        graph: LinkSource,
        index: Callable[[], int],
        first_wait_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """index: how far the log is applied, so that what has not changed is not computed again."""
        self._graph, self._index = graph, index
        self._first_wait_s, self._clock_s = first_wait_s, clock_s
        self._ranks: PageRanks | None = None
        self._of_index = -1
        self._next_s = 0.0
        self._task: asyncio.Task[None] | None = None

    async def ranks(self) -> PageRanks:
        """Of the graph as it is, or was a while ago.

        Raises UnavailableError as long as they are computed for the first time, SearchError with the reason
        of the graph, LimitExceeded for a graph with too many links.
        """
        if self._ranks is not None:
            if self._index() != self._of_index and self._clock_s() >= self._next_s:
                self._begin()
            return self._ranks
        task = self._begin()
        done, _ = await asyncio.wait([task], timeout=self._first_wait_s)
        if not done:
            raise UnavailableError("PageRank of the graph is being computed for the first time: try again", 5)
        task.result()
        assert self._ranks is not None
        return self._ranks

    def _begin(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._compute())
            self._task.add_done_callback(_note_failure)
        return self._task

    async def _compute(self) -> None:
        start, index = self._clock_s(), self._index()
        collector, held = LinkCollector(), bytearray()
        try:
            async for piece in self._graph.rows(LINKS_QUERY):
                held += piece
                if len(held) >= _PIECE_BYTES:
                    await asyncio.to_thread(collector.feed, bytes(held))
                    held.clear()
            await asyncio.to_thread(collector.feed, bytes(held))
            self._ranks = await asyncio.to_thread(collector.ranks)
            self._of_index = index
        except OverflowError:
            raise LimitExceeded("links of the graph, for PageRank", collector.count, LINKS_MAX) from None
        finally:
            took_s = self._clock_s() - start
            self._next_s = self._clock_s() + max(_AGE_S_MIN, _SHARE * took_s)
        log.info("PageRank of %d links took %.1f s", collector.count, took_s)


def _note_failure(task: asyncio.Task[None]) -> None:
    """Whoever waits meets it too; behind an older result nobody does."""
    if task.cancelled():
        return
    error = task.exception()
    if isinstance(error, GraphDBError):
        log.warning("PageRank could not be computed: %s", error)
    elif error is not None:
        log.error("PageRank could not be computed", exc_info=error)
