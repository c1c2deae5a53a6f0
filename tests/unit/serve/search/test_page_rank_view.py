"""PageRank as a view: when it is computed, and that nobody waits for a refresh."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from graphdb.errors import UnavailableError
from graphdb.search.errors import SearchError
from serve.search.graph.extension_stage import LINKS_QUERY, PageRankView
from tests.support.memory_graph import MemoryGraph

LINKS = "INSERT DATA { <urn:a> <urn:p> <urn:b> . GRAPH <urn:g> { <urn:c> <urn:p> <urn:b>, 'text' } }"


class Clock:
    def __init__(self) -> None:
        self.now_s, self.index = 0.0, 1


def view_of(graph: MemoryGraph, clock: Clock, wait_s: float = 5) -> PageRankView:
    return PageRankView(graph, lambda: clock.index, wait_s, lambda: clock.now_s)


def test_all_graphs_count_and_literals_do_not() -> None:
    ranks = asyncio.run(view_of(MemoryGraph(LINKS), Clock()).ranks())
    assert ranks.of(["urn:b"]).tolist() == [1.0]
    a, c, none = ranks.of(["urn:a", "urn:c", "text"]).tolist()
    assert 0 < a == c < 1
    assert none == 0


def test_it_is_computed_again_when_the_graph_has_changed_and_time_has_passed() -> None:
    graph, clock = MemoryGraph(LINKS), Clock()

    async def story() -> None:
        view = view_of(graph, clock)
        await view.ranks()
        graph.store.update("INSERT DATA { <urn:b> <urn:p> <urn:new> }")
        clock.now_s = 1000
        assert await _settled(view, graph) == 1  # as far as the log tells, nothing has changed
        clock.index, clock.now_s = 2, 30
        assert await _settled(view, graph) == 1  # too early
        clock.now_s = 61
        assert (await view.ranks()).of(["urn:new"]).tolist() == [0.0]  # the old ones meanwhile
        assert await _settled(view, graph) == 2
        assert (await view.ranks()).of(["urn:new"])[0] > 0

    asyncio.run(story())


async def _settled(view: PageRankView, graph: MemoryGraph) -> int:
    """How often it was computed so far."""
    await view.ranks()
    if view._task is not None:
        await view._task
    return graph.asked.count(LINKS_QUERY)


def test_a_first_computation_that_takes_long_is_not_waited_for_for_ever() -> None:
    class Slow(MemoryGraph):
        async def rows(self, query: str) -> AsyncIterator[bytes]:
            await asyncio.sleep(0.2)
            async for piece in super().rows(query):
                yield piece

    async def story() -> None:
        view = view_of(Slow(LINKS), Clock(), wait_s=0.01)
        with pytest.raises(UnavailableError, match="for the first time"):
            await view.ranks()
        assert view._task is not None
        await view._task
        assert len((await view.ranks()).hashes) == 3

    asyncio.run(story())


def test_a_failure_is_told_and_tried_again() -> None:
    graph = MemoryGraph(LINKS)
    limits = graph.limits
    graph.limits = limits.model_copy(update={"max_patterns": 0})

    async def story() -> None:
        view = view_of(graph, Clock())
        with pytest.raises(SearchError, match="max_patterns"):
            await view.ranks()
        graph.limits = limits
        assert len((await view.ranks()).hashes) == 3

    asyncio.run(story())
