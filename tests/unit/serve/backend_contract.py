"""`BackendContract`: what every `serve.backend.Backend` promises, as tests that run over each of them.

A subclass gives the fixture `node`; what is async of it runs on `loop`, one loop for the whole test.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

import pytest
from pyoxigraph import NamedNode, Quad, QueryBoolean, QuerySolutions

from graphdb.errors import (
    AlreadyExists,
    BodyTooLarge,
    HostNotAllowed,
    InvalidParameter,
    LimitExceeded,
    RdfSyntaxError,
    UnknownGraph,
)
from graphdb.model import Confirmation
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from serve.backend import Backend

__all__ = ["BackendContract"]

T = TypeVar("T")
G = NamedNode("http://g/1")
ONE = b'<http://x/s> <http://x/p> "one" .\n'
TWO = b'<http://x/s> <http://x/p> "two" .\n'


async def body(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


class BackendContract:
    """Each test gets a node that holds nothing."""

    @pytest.fixture(autouse=True)
    def loop(self) -> Iterator[asyncio.Runner]:
        with asyncio.Runner() as self._loop:
            yield self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something that the node offers."""
        return self._loop.run(work)

    def update(self, node: Backend, text: str, using: Dataset | None = None) -> Confirmation:
        return self.run(node.update(parse_update(text, None), using or Dataset()))

    def write(
        self,
        node: Backend,
        *pieces: bytes,
        graph: NamedNode | None = None,
        replace: bool = True,
        whole: bool = False,
        syntax: RdfSyntax = RdfSyntax.N_QUADS,
    ) -> Confirmation:
        return self.run(
            node.write_graph(
                body(*pieces), syntax, graph=graph, whole_dataset=whole, replace=replace, base_iri=None
            )
        )

    @staticmethod
    def lines(node: Backend) -> list[str]:
        return sorted(str(quad) for quad in node.dataset_quads())

    def test_a_write_is_visible_at_the_index_it_confirms(self, node: Backend) -> None:
        before = node.snapshot_index()
        confirmation = self.update(node, "INSERT DATA { <http://x/s> <http://x/p> 1 }")
        assert confirmation.affected_triples == 1
        assert confirmation.snapshot_index == node.snapshot_index() == before + 1
        evaluated = node.query(parse_query("SELECT * { ?s ?p ?o }", None), Dataset())
        assert evaluated.snapshot_index == confirmation.snapshot_index
        assert isinstance(evaluated.answer, QuerySolutions)
        assert len(list(evaluated.answer)) == 1

    def test_a_write_without_effect(self, node: Backend) -> None:
        text = "INSERT DATA { <http://x/s> <http://x/p> 1 }"
        first = self.update(node, text)
        again = self.update(node, text)
        assert again.affected_triples == 0
        assert again.snapshot_index >= first.snapshot_index

    def test_an_update_is_all_or_nothing(self, node: Backend) -> None:
        with pytest.raises(UnknownGraph):
            self.update(node, "INSERT DATA { <http://x/s> <http://x/p> 1 } ; DROP GRAPH <http://g/none>")
        assert self.lines(node) == []

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("CREATE GRAPH <http://g/1> ; CREATE GRAPH <http://g/1>", AlreadyExists),
            ("LOAD <http://127.0.0.1:9/>", HostNotAllowed),
            ("INSERT { ?s ?p 1 } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", HostNotAllowed),
        ],
    )
    def test_updates_that_are_refused(self, node: Backend, text: str, error: type[Exception]) -> None:
        with pytest.raises(error):
            self.update(node, text)
        assert not node.graph_exists(G)

    def test_what_is_too_large_is_refused(self, node: Backend) -> None:
        pattern = " . ".join(f"?s <http://x/p> ?o{number}" for number in range(60))
        with pytest.raises(LimitExceeded, match="patterns per group"):
            node.query(parse_query(f"ASK {{ {pattern} }}", None), Dataset())
        with pytest.raises(LimitExceeded, match="patterns per group"):
            self.update(node, f"INSERT DATA {{ <http://x/s> <http://x/p> 1 }} ; DELETE WHERE {{ {pattern} }}")
        assert self.lines(node) == []

    def test_service_in_a_query_is_refused(self, node: Backend) -> None:
        with pytest.raises(HostNotAllowed):
            node.query(parse_query("ASK { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", None), Dataset())

    def test_the_dataset_of_the_protocol(self, node: Backend) -> None:
        self.write(node, ONE, graph=G)
        query = parse_query('ASK { ?s ?p "one" }', None)
        for dataset, expected in ((Dataset(), False), (Dataset((G,)), True)):
            answer = node.query(query, dataset).answer
            assert isinstance(answer, QueryBoolean)
            assert bool(answer) is expected

    def test_a_query_sees_one_state(self, node: Backend) -> None:
        self.write(node, *(f"<http://x/s> <http://x/p> <http://x/{n}> .\n".encode() for n in range(5_000)))
        answer = node.query(parse_query("SELECT ?o { ?s ?p ?o }", None), Dataset()).answer
        quads = node.graph_quads(None)
        assert isinstance(answer, QuerySolutions)
        next(answer), next(quads)
        self.update(node, "DROP ALL")
        assert len(list(answer)) == len(list(quads)) == 4_999

    def test_replacing_and_merging_a_graph(self, node: Backend) -> None:
        assert self.write(node, ONE, graph=G).affected_triples == 1
        assert self.write(node, TWO, graph=G, replace=False).affected_triples == 1
        assert len(list(node.graph_quads(G))) == 2
        assert self.write(node, ONE, graph=G).affected_triples == 1
        assert self.lines(node) == ['<http://x/s> <http://x/p> "one" <http://g/1>']

    def test_replacing_the_graphs_that_a_body_names(self, node: Backend) -> None:
        self.write(
            node, b"<http://x/s> <http://x/p> 1 <http://g/1> .\n".replace(b"1 <", b'"old" <'), ONE, whole=True
        )
        self.write(node, b'<http://x/s> <http://x/p> "new" <http://g/1> .\n', whole=True)
        assert self.lines(node) == [
            '<http://x/s> <http://x/p> "new" <http://g/1>',
            '<http://x/s> <http://x/p> "one"',
        ]

    def test_a_graph_in_the_body_of_a_named_graph(self, node: Backend) -> None:
        with pytest.raises(InvalidParameter):
            self.write(node, b'<http://x/s> <http://x/p> "x" <http://g/2> .\n', graph=G)
        assert not node.graph_exists(G)

    def test_a_body_that_does_not_parse_changes_nothing(self, node: Backend) -> None:
        self.write(node, ONE, graph=G)
        with pytest.raises(RdfSyntaxError):
            self.write(node, TWO, b"<http://x/s> <", graph=G)
        assert self.lines(node) == ['<http://x/s> <http://x/p> "one" <http://g/1>']

    def test_a_body_that_fails_to_arrive_changes_nothing(self, node: Backend) -> None:
        async def too_large() -> AsyncIterator[bytes]:
            yield ONE
            raise BodyTooLarge(10)

        with pytest.raises(BodyTooLarge):
            self.run(
                node.write_graph(
                    too_large(),
                    RdfSyntax.N_TRIPLES,
                    graph=G,
                    whole_dataset=False,
                    replace=True,
                    base_iri=None,
                )
            )
        assert not node.graph_exists(G)

    def test_the_life_of_a_graph(self, node: Backend) -> None:
        assert not node.graph_exists(G)
        with pytest.raises(UnknownGraph):
            node.graph_quads(G)
        with pytest.raises(UnknownGraph):
            self.run(node.delete_graph(G))
        self.write(node, b"", graph=G)
        assert node.graph_exists(G)
        assert self.run(node.delete_graph(G)).affected_triples == 0
        assert not node.graph_exists(G)

    def test_the_default_graph_can_be_emptied_but_not_deleted(self, node: Backend) -> None:
        self.write(node, ONE)
        assert self.run(node.delete_graph(None)).affected_triples == 1
        assert list(node.graph_quads(None)) == []
        assert self.run(node.delete_graph(None)).affected_triples == 0

    def test_blank_nodes_of_two_bodies_differ(self, node: Backend) -> None:
        for _ in range(2):
            self.write(node, b'_:a <http://x/p> "x" .\n', replace=False)
        quads: list[Quad] = list(node.graph_quads(None))
        assert len({quad.subject for quad in quads}) == 2

    def test_status(self, node: Backend) -> None:
        status = node.status()
        assert (status.status, status.role) == ("healthy", "standalone")
        assert status.snapshot_index == node.snapshot_index()
        assert [member.node_id for member in status.cluster_members] == [status.node_id]
