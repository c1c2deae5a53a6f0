"""A query with a search, while the graph is written to: answered of a state that can still be searched."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from pyoxigraph import NamedNode, Quad, Store

from actors.log.applied_index import AppliedIndex
from actors.readers.checkpoints import Checkpoints
from actors.readers.client import ReaderClient
from actors.readers.query_runner import QueryRunner
from actors.readers.running_queries import RunningQueries
from graphdb.config.limits import GateLimits
from graphdb.errors import Overloaded, QueryTimeout
from graphdb.node import Entities, QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.results import ResultFormat
from graphdb.store.quad_store import QuadStore
from graphdb.store.search_tables import Stale, Table
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


class Written:
    """A store that is written to whenever it is searched; its first states are too old by then."""

    def __init__(self, directory: Path, known_from: int) -> None:
        (directory / "scratch").mkdir()
        self._store, self.index, self._known_from = Store(directory / "store"), 1, known_from
        self.quads = QuadStore(self._store)
        self._applied = AppliedIndex(lambda: self.index)
        self.searched: list[int] = []
        self.checkpoints = Checkpoints(directory / "scratch", self.quads, self._applied, self._release)

    async def _release(self, _path: str) -> None:
        return

    async def search(self, index: int, _entities: Entities) -> Mapping[str, Table]:
        self.searched.append(index)
        with self._applied.changing():
            self._store.add(Quad(NamedNode(f"urn:{self.index}"), NamedNode("urn:p"), NamedNode("urn:o")))
            self.index += 1
        if index < self._known_from:
            raise Stale
        return {}


class NoReaders:
    async def lease(self, _query_id: str, _timeout_s: float) -> Any:
        raise Overloaded("all readers are busy")


async def ask(written: Written, timeout_s: float) -> None:
    running = RunningQueries()
    runner = QueryRunner(cast(ReaderClient, NoReaders()), GateLimits(), running)
    query = parse_query("SELECT * { ?s ?p ?o }")
    request = QueryRequest(query, Dataset(), ResultFormat.JSON, timeout_s, searching=written.search)
    run = running.begin(query.text, query.form)
    await runner.start(run, request, written.checkpoints, written.quads)


async def test_searches_a_later_state_where_one_is_forgotten(tmp_path: Path) -> None:
    written = Written(tmp_path, known_from=3)
    with pytest.raises(Overloaded, match="all readers are busy"):  # it has come as far as that
        await ask(written, HANG_S)
    assert written.searched == [1, 2, 3]
    await written.checkpoints.close()
    assert not list((tmp_path / "scratch").iterdir())


async def test_gives_up_at_its_time_limit(tmp_path: Path) -> None:
    written = Written(tmp_path, known_from=1 << 60)
    with pytest.raises(QueryTimeout):
        await ask(written, 0.2)
    await written.checkpoints.close()
    assert not list((tmp_path / "scratch").iterdir())
