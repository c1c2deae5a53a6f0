"""A search that is ended while it runs: whoever waits for its next step is told, and no thread stays."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphdb.errors import UnavailableError
from graphdb.search.deadline import checkpoint
from graphdb.search.query import QueryContext, ShardSearcher
from graphdb.search.sharded import SearchShard, SearchTask
from graphdb.search.sharded.search_task import SearchPart
from tests.support.search_apart import shards_of
from tests.support.timing import HANG_S
from tests.unit.search.catalog.catalogs import Commands

runs = threading.Event()


class Endless(SearchTask):
    """Never comes to rest."""

    def run(self, searcher: ShardSearcher, context: QueryContext) -> SearchPart:
        while True:
            runs.set()
            checkpoint()


@pytest.fixture
def shard() -> SearchShard:
    commands = Commands()
    commands.create("i", {})
    index = commands.catalog.find("i")
    assert index is not None
    return shards_of(index)[0]


def test_whoever_waits_for_a_search_that_is_ended_is_told(shard: SearchShard) -> None:
    runs.clear()
    with ThreadPoolExecutor(1) as callers:
        step = callers.submit(shard.begin, "endless", 1, 0, pickle.dumps(Endless({})))
        assert runs.wait(HANG_S)
        shard.end("endless")
        with pytest.raises(UnavailableError, match="the search has ended"):
            step.result(HANG_S)
    with pytest.raises(UnavailableError):
        shard.go_on("endless", 1, pickle.dumps([]))
    for thread in threading.enumerate():
        if thread.name == "search-task":
            thread.join(HANG_S)
            assert not thread.is_alive()
