"""The graph as the search port asks it: over a real port's Unix domain socket."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

from benchmarks.service import free_port
from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.model import ChangeSet
from graphdb.search.errors import SearchError
from serve.graph_app import build_app
from serve.port.listen import Listen
from serve.port.server import PortServer
from serve.search.graph.local_graph import LocalGraph
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S

XSD = "http://www.w3.org/2001/XMLSchema#"
_DATA = "".join(
    f'<urn:{name}> <urn:p> "{number}"^^<{XSD}integer> .\n' for name, number in (("a", 1), ("b", 2))
)


@pytest.fixture
def socket_path() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:  # a socket's path is short; pytest's are not
        yield f"{directory}/graph.sock"


@pytest.fixture
def port(socket_path: str, tmp_path: Path) -> Iterator[PortServer]:
    class Hosted:
        speaks_websocket = False

        def __init__(self) -> None:
            backend = MemoryBackend()
            quads = tuple(parse(_DATA, RdfFormat.N_QUADS))
            backend.store.apply(ChangeSet(added=quads))
            self.app = build_app(backend, Settings.model_validate({"server": {"data_dir": tmp_path}}))

        async def start(self) -> None:
            pass

        async def close(self) -> None:
            pass

    async def host() -> Hosted:
        return Hosted()

    server = PortServer(Listen("127.0.0.1", free_port()), host, socket_path)
    assert server.ready.wait(HANG_S)
    yield server
    server.stop(10)
    assert not server.is_alive


def asked(socket_path: str, query: str) -> object:
    async def ask() -> object:
        graph = LocalGraph(socket_path, 5)
        try:
            if query.startswith("CONSTRUCT"):
                return await graph.construct(query, "application/n-triples")
            return await graph.select(query)
        finally:
            await graph.close()

    return asyncio.run(ask())


@pytest.mark.usefixtures("port")
def test_queries_are_answered(socket_path: str) -> None:
    answer = asked(socket_path, "SELECT ?s WHERE { ?s <urn:p> 2 }")
    assert answer == {
        "head": {"vars": ["s"]},
        "results": {"bindings": [{"s": {"type": "uri", "value": "urn:b"}}]},
    }
    assert asked(socket_path, "ASK { <urn:a> <urn:p> 1 }") == {"head": {}, "boolean": True}
    triples = asked(socket_path, "CONSTRUCT { ?s a <urn:C> } WHERE { ?s <urn:p> 1 }")
    assert triples == "<urn:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:C> .\n"


@pytest.mark.usefixtures("port")
def test_a_query_that_the_gate_refuses_is_refused_here_too(socket_path: str) -> None:
    with pytest.raises(SearchError) as refused:
        asked(socket_path, "SELECT * WHERE { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }")
    assert (refused.value.kind, refused.value.status) == ("security_exception", 403)
    with pytest.raises(SearchError) as malformed:
        asked(socket_path, "SELECT nonsense")
    assert (malformed.value.kind, malformed.value.status) == ("sparql_exception", 400)


@pytest.mark.usefixtures("port")
def test_rows_come_as_they_are_found(socket_path: str) -> None:
    async def rows(query: str) -> bytes:
        graph = LocalGraph(socket_path, 5)
        try:
            return b"".join([piece async for piece in graph.rows(query)])
        finally:
            await graph.close()

    assert asyncio.run(rows("SELECT ?s WHERE { ?s <urn:p> 2 }")) == b"?s\n<urn:b>\n"
    with pytest.raises(SearchError) as malformed:
        asyncio.run(rows("SELECT nonsense"))
    assert (malformed.value.kind, malformed.value.status) == ("sparql_exception", 400)


def test_without_a_graph_port_the_graph_is_unavailable(socket_path: str) -> None:
    with pytest.raises(UnavailableError):
        asked(socket_path, "ASK { ?s ?p ?o }")
