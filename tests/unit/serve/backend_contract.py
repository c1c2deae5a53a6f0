"""`BackendContract`: what every `serve.backend.GraphNode` promises, as tests that run over each of them.

A subclass gives the fixture `node`; what is async of it runs on `loop`, one loop for the whole test.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import pytest
from pyoxigraph import Literal, NamedNode, Quad, QueryBoolean, QuerySolutions

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import (
    AlreadyExists,
    BadGeometry,
    BodyTooLarge,
    EditRefused,
    HostNotAllowed,
    IndexNotReached,
    InvalidParameter,
    KeyReused,
    LimitExceeded,
    MalformedShapes,
    NotAcceptable,
    NotClustered,
    QueryCancelled,
    QueryTimeout,
    RdfSyntaxError,
    UnknownFunction,
    UnknownGraph,
)
from graphdb.graphql.edits import EditKind, Edits, EditTerm, ResourceEdit
from graphdb.live.changes import LoggedChange
from graphdb.log import request_ids
from graphdb.model import Confirmation
from graphdb.node import Consistency, MergedGraphs, ShapesDocument
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from graphdb.store.view import StoreView
from serve.backend import (
    Admin,
    AnswerStream,
    Changes,
    FunctionCall,
    Functions,
    GraphLive,
    GraphReads,
    Progress,
    Queries,
    QueryRequest,
    RunningQueries,
    ValidationRequest,
    Writing,
)
from tests.support.timing import quick_enough

__all__ = ["BackendContract", "WholeNode"]

T = TypeVar("T")
G = NamedNode("http://g/1")
ONE = b'<http://x/s> <http://x/p> "one" .\n'
TWO = b'<http://x/s> <http://x/p> "two" .\n'


# Rows without end, for what is called a second here, over the data of `fill`; and no row for seconds.
ENDLESS = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
SILENT = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"


SHACL = b"http://www.w3.org/ns/shacl#"
NAMES = (
    b"""PREFIX sh: <%s> <http://x/Names> sh:targetSubjectsOf <http://x/p> ; sh:property <http://x/Name> .
<http://x/Name> sh:path <http://x/p> ; sh:maxCount 1 ."""
    % SHACL
)


GIVEN = ShapesDocument(NAMES, RdfSyntax.TURTLE)


def validation(
    shapes: ShapesDocument | NamedNode | MergedGraphs = GIVEN, data_graph: str | MergedGraphs = "default"
) -> ValidationRequest:
    return ValidationRequest(shapes, data_graph, None, 30)


def asked(
    text: str, fmt: ResultFormat = ResultFormat.TSV, dataset: Dataset | None = None, timeout_s: float = 30
) -> QueryRequest:
    return QueryRequest(parse_query(text, None), dataset or Dataset(), fmt, timeout_s)


def edited(
    kind: EditKind, *, values: tuple[EditTerm, ...] = (), graph: NamedNode | None = None
) -> ResourceEdit:
    given = {NamedNode("http://x/p"): values} if values else {}
    return ResourceEdit(kind, NamedNode("http://x/s"), graph, (NamedNode("http://x/C"),), given)


async def pieces_of(stream: AnswerStream) -> list[bytes]:
    """Everything that is still to be read; the stream is closed then."""
    pieces = []
    try:
        while (piece := await stream.read()) is not None:
            pieces.append(piece)
    finally:
        stream.close()
    return pieces


async def body(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


class WholeNode(
    Queries,
    Functions,
    RunningQueries,
    Progress,
    Writing,
    Changes,
    Admin,
    GraphReads,
    GraphLive,
    Protocol,
):
    """A node that is all of its capabilities by itself, and what a whole visibility shows."""


class BackendContract:
    """Each test gets a node that holds nothing."""

    @pytest.fixture(autouse=True)
    def loop(self) -> Iterator[asyncio.Runner]:
        with asyncio.Runner() as self._loop:
            yield self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something that the node offers."""
        return self._loop.run(work)

    def update(self, node: WholeNode, text: str, using: Dataset | None = None) -> Confirmation:
        return self.run(node.writes(FULL_VISIBILITY).update(parse_update(text, None), using or Dataset()))

    def write(
        self,
        node: WholeNode,
        *pieces: bytes,
        graph: NamedNode | None = None,
        replace: bool = True,
        whole: bool = False,
        syntax: RdfSyntax = RdfSyntax.N_QUADS,
    ) -> Confirmation:
        return self.run(
            node.writes(FULL_VISIBILITY).write_graph(
                body(*pieces), syntax, graph=graph, whole_dataset=whole, replace=replace, base_iri=None
            )
        )

    @staticmethod
    def lines(node: WholeNode) -> list[str]:
        return sorted(str(quad) for quad in node.dataset_quads())

    def test_a_request_that_is_sent_again_takes_effect_once(self, node: WholeNode) -> None:
        insert = parse_update("INSERT DATA { <http://x/s> <http://x/p> 1 }", None)
        sent, other = (request_ids.keyed("k", "POST", b"/update", (text,)) for text in (b"1", b"2"))
        first = self.run(node.writes(FULL_VISIBILITY).update(insert, Dataset(), sent))
        self.update(node, "DELETE WHERE { ?s ?p ?o }")
        again = self.run(node.writes(FULL_VISIBILITY).update(insert, Dataset(), sent))
        assert again == replace(first, message="applied before")
        assert self.lines(node) == []
        with pytest.raises(KeyReused):
            self.run(node.writes(FULL_VISIBILITY).update(insert, Dataset(), other))
        assert self.lines(node) == []

    def test_graphs_are_written_and_deleted_once_for_one_request(self, node: WholeNode) -> None:
        put, delete = (request_ids.fresh(bytes([number] * 16)) for number in (1, 2))

        def write() -> Confirmation:
            writing = node.writes(FULL_VISIBILITY).write_graph(
                body(ONE),
                RdfSyntax.N_TRIPLES,
                graph=G,
                whole_dataset=False,
                replace=True,
                base_iri=None,
                request_id=put,
            )
            return self.run(writing)

        first = write()
        deleted = self.run(node.writes(FULL_VISIBILITY).delete_graph(G, delete))
        assert (first.affected_triples, deleted.affected_triples) == (1, 1)
        assert write() == replace(first, message="applied before")
        assert self.run(node.writes(FULL_VISIBILITY).delete_graph(G, delete)) == replace(
            deleted, message="applied before"
        )
        assert not node.graph_exists(G)

    def test_a_patch_is_one_change(self, node: WholeNode) -> None:
        s, p = NamedNode("http://x/s"), NamedNode("http://x/p")
        a, b = Quad(s, p, Literal("a")), Quad(s, p, Literal("b"), G)
        key = request_ids.keyed("k", "POST", b"/data", [b"1"])
        writes = node.writes(FULL_VISIBILITY)
        first = self.run(writes.patch(QuadPatch((b,), (a,)), key))
        assert first.affected_triples == 1
        assert self.run(writes.patch(QuadPatch((b,), (a,)), key)) == replace(first, message="applied before")
        assert self.run(writes.patch(QuadPatch((a,), (b,)))).affected_triples == 2
        assert node.graph_exists(G)
        assert self.run(writes.patch(QuadPatch((), (a,), replaces_all=True))).affected_triples == 2
        assert self.lines(node) == [str(a)]
        assert not node.graph_exists(G)
        index = node.snapshot_index()
        assert self.run(writes.patch(QuadPatch((b,), (a,)))).snapshot_index == index

    # edits of resources

    def edit(self, node: WholeNode, *edits: ResourceEdit, request_id: bytes | None = None) -> Confirmation:
        return self.run(node.writes(FULL_VISIBILITY).edit(Edits(edits), request_id))

    def refusal(self, node: WholeNode, *edits: ResourceEdit) -> list[tuple[int | None, str]]:
        """Which edit was refused, and why; nothing was stored."""
        before = self.lines(node), node.snapshot_index()
        with pytest.raises(EditRefused) as raised:
            self.edit(node, *edits)
        assert (self.lines(node), node.snapshot_index()) == before
        return [(one["edit"], one["code"]) for one in raised.value.refusals]

    def test_edits_are_one_change_in_order(self, node: WholeNode) -> None:
        made = edited(EditKind.CREATE, values=(Literal("a"),))
        changed = edited(EditKind.UPDATE, values=(Literal("b"), Literal("c")))
        confirmed = self.edit(node, made, changed, edited(EditKind.CREATE, graph=G))
        assert (confirmed.snapshot_index, confirmed.affected_triples) == (node.snapshot_index(), 4)
        assert node.graph_exists(G)
        assert self.refusal(node, edited(EditKind.DELETE), edited(EditKind.UPDATE)) == [(1, "NOT_FOUND")]
        assert self.refusal(node, changed, made) == [(1, "CONFLICT")]
        self.edit(node, edited(EditKind.DELETE), edited(EditKind.DELETE, graph=G))
        assert self.lines(node) == []

    def test_edits_that_are_sent_again_take_effect_once(self, node: WholeNode) -> None:
        key = request_ids.keyed("k", "POST", b"/graphql", [b"1"])
        made = replace(edited(EditKind.CREATE), unchanged_since=0)
        first = self.edit(node, made, request_id=key)
        again = self.edit(node, made, request_id=key)
        assert again == replace(first, message="applied before")

    def test_edits_hold_to_the_snapshot_that_they_name(self, node: WholeNode) -> None:
        self.edit(node, edited(EditKind.CREATE))
        index = node.snapshot_index()
        change = replace(edited(EditKind.UPDATE, values=(Literal("b"),)), unchanged_since=index)
        self.update(node, "INSERT DATA { <http://x/other> <http://x/p> 1 }")
        self.edit(node, change)
        assert self.refusal(node, change) == [(0, "CONFLICT")]
        late = replace(change, unchanged_since=node.snapshot_index())
        self.update(node, "DELETE WHERE { <http://x/s> <http://x/p> ?o }")
        assert self.refusal(node, edited(EditKind.CREATE, graph=G), late) == [(1, "CONFLICT")]

    def test_of_edits_at_once_that_name_the_same_snapshot_one_wins(self, node: WholeNode) -> None:
        self.edit(node, edited(EditKind.CREATE))
        index = node.snapshot_index()

        async def race() -> list[Confirmation | BaseException]:
            edits = (
                replace(edited(EditKind.UPDATE, values=(Literal(n),)), unchanged_since=index)
                for n in range(8)
            )
            return await asyncio.gather(
                *(node.writes(FULL_VISIBILITY).edit(Edits((one,))) for one in edits), return_exceptions=True
            )

        outcomes = self.run(race())
        assert sum(isinstance(one, Confirmation) for one in outcomes) == 1
        assert sum(isinstance(one, EditRefused) for one in outcomes) == 7

    def test_edits_satisfy_shapes_unless_they_need_not(self, node: WholeNode) -> None:
        self.write(node, NAMES.replace(b"maxCount 1", b"maxCount 0"), graph=G, syntax=RdfSyntax.TURTLE)
        wrong = edited(EditKind.CREATE, values=(Literal("a"),))
        fine = replace(edited(EditKind.CREATE), subject=NamedNode("http://x/t"))
        assert self.refusal(node, fine, wrong) == [(1, "VALIDATION_FAILED")]
        self.run(node.writes(FULL_VISIBILITY).edit(Edits((wrong,), by_shapes=False)))

    def test_a_write_is_refused_by_its_precondition(self, node: WholeNode) -> None:
        def check(state: StoreView) -> None:
            if next(state.quads_matching(None, None, None, G), None) is not None:
                raise AlreadyExists("graph", G.value)

        async def write_all() -> list[Confirmation | BaseException]:
            writes = (
                node.writes(FULL_VISIBILITY).write_graph(
                    body(b'<http://x/s> <http://x/p> "%d" .' % number),
                    RdfSyntax.N_TRIPLES,
                    graph=G,
                    whole_dataset=False,
                    replace=True,
                    base_iri=None,
                    precondition=check,
                )
                for number in range(8)
            )
            return await asyncio.gather(*writes, return_exceptions=True)

        before = node.snapshot_index()
        outcomes = self.run(write_all())
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [
            *["AlreadyExists"] * 7,
            "Confirmation",
        ]
        assert node.snapshot_index() == before + 1
        stored = next(i for i, outcome in enumerate(outcomes) if isinstance(outcome, Confirmation))
        assert self.lines(node) == [f'<http://x/s> <http://x/p> "{stored}" {G}']

    def test_quads_are_found_by_their_terms(self, node: WholeNode) -> None:
        self.update(node, "INSERT DATA { <urn:a> <urn:p> 1 GRAPH <http://g/1> { <urn:a> <urn:p> 1, 2 } }")
        a, p = NamedNode("urn:a"), NamedNode("urn:p")
        assert len(list(node.quads_matching(a, p, None, G))) == 2
        assert len(list(node.quads_matching(None, None, None, None))) == 3
        assert list(node.quads_matching(p, None, None, G)) == []
        assert list(node.quads_matching(a, None, None, NamedNode("http://g/2"))) == []

    def test_a_write_is_visible_at_the_index_it_confirms(self, node: WholeNode) -> None:
        before = node.snapshot_index()
        confirmation = self.update(node, "INSERT DATA { <http://x/s> <http://x/p> 1 }")
        assert confirmation.affected_triples == 1
        assert confirmation.snapshot_index == node.snapshot_index() == before + 1
        evaluated = node.query(parse_query("SELECT * { ?s ?p ?o }", None), Dataset())
        assert evaluated.snapshot_index == confirmation.snapshot_index
        assert isinstance(evaluated.answer, QuerySolutions)
        assert len(list(evaluated.answer)) == 1

    def test_a_write_without_effect(self, node: WholeNode) -> None:
        text = "INSERT DATA { <http://x/s> <http://x/p> 1 }"
        first = self.update(node, text)
        again = self.update(node, text)
        assert again.affected_triples == 0
        assert again.snapshot_index >= first.snapshot_index

    def test_changes_are_handed_to_who_follows_them(self, node: WholeNode) -> None:
        before = self.write(node, ONE).snapshot_index
        now = self.run(node.follow_changes(None, 1))
        assert now.through == before
        last = self.write(node, TWO, replace=False).snapshot_index
        for since, expected in ((before - 1, [ONE, TWO]), (None, [TWO])):
            stream = now if since is None else self.run(node.follow_changes(since, 1))
            found: list[LoggedChange] = []
            while stream.through < last:
                changes = self.run(stream.read(5))
                found += changes or []
            stream.close()
            assert [f"{quad} .\n".encode() for one in found for quad in one.change.added] == expected
            assert found[-1].index == last
            assert self.run(stream.read(5)) is None

    def test_an_update_is_all_or_nothing(self, node: WholeNode) -> None:
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
    def test_updates_that_are_refused(self, node: WholeNode, text: str, error: type[Exception]) -> None:
        with pytest.raises(error):
            self.update(node, text)
        assert not node.graph_exists(G)

    def test_what_is_too_large_is_refused(self, node: WholeNode) -> None:
        pattern = " . ".join(f"?s <http://x/p> ?o{number}" for number in range(60))
        with pytest.raises(LimitExceeded, match="patterns per group"):
            node.query(parse_query(f"ASK {{ {pattern} }}", None), Dataset())
        with pytest.raises(LimitExceeded, match="patterns per group"):
            self.update(node, f"INSERT DATA {{ <http://x/s> <http://x/p> 1 }} ; DELETE WHERE {{ {pattern} }}")
        assert self.lines(node) == []

    def test_service_in_a_query_is_refused(self, node: WholeNode) -> None:
        with pytest.raises(HostNotAllowed):
            node.query(parse_query("ASK { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", None), Dataset())

    def test_the_dataset_of_the_protocol(self, node: WholeNode) -> None:
        self.write(node, ONE, graph=G)
        query = parse_query('ASK { ?s ?p "one" }', None)
        for dataset, expected in ((Dataset(), False), (Dataset((G,)), True)):
            answer = node.query(query, dataset).answer
            assert isinstance(answer, QueryBoolean)
            assert bool(answer) is expected

    def test_a_query_sees_one_state(self, node: WholeNode) -> None:
        self.write(node, *(f"<http://x/s> <http://x/p> <http://x/{n}> .\n".encode() for n in range(5_000)))
        answer = node.query(parse_query("SELECT ?o { ?s ?p ?o }", None), Dataset()).answer
        quads = node.graph_quads(None)
        assert isinstance(answer, QuerySolutions)
        next(answer), next(quads)
        self.update(node, "DROP ALL")
        assert len(list(answer)) == len(list(quads)) == 4_999

    def test_replacing_and_merging_a_graph(self, node: WholeNode) -> None:
        assert self.write(node, ONE, graph=G).affected_triples == 1
        assert self.write(node, TWO, graph=G, replace=False).affected_triples == 1
        assert len(list(node.graph_quads(G))) == 2
        assert self.write(node, ONE, graph=G).affected_triples == 1
        assert self.lines(node) == ['<http://x/s> <http://x/p> "one" <http://g/1>']

    def test_replacing_the_graphs_that_a_body_names(self, node: WholeNode) -> None:
        self.write(
            node, b"<http://x/s> <http://x/p> 1 <http://g/1> .\n".replace(b"1 <", b'"old" <'), ONE, whole=True
        )
        self.write(node, b'<http://x/s> <http://x/p> "new" <http://g/1> .\n', whole=True)
        assert self.lines(node) == [
            '<http://x/s> <http://x/p> "new" <http://g/1>',
            '<http://x/s> <http://x/p> "one"',
        ]

    def test_a_graph_in_the_body_of_a_named_graph(self, node: WholeNode) -> None:
        with pytest.raises(InvalidParameter):
            self.write(node, b'<http://x/s> <http://x/p> "x" <http://g/2> .\n', graph=G)
        assert not node.graph_exists(G)

    def test_a_body_that_does_not_parse_changes_nothing(self, node: WholeNode) -> None:
        self.write(node, ONE, graph=G)
        with pytest.raises(RdfSyntaxError):
            self.write(node, TWO, b"<http://x/s> <", graph=G)
        assert self.lines(node) == ['<http://x/s> <http://x/p> "one" <http://g/1>']

    def test_a_body_that_fails_to_arrive_changes_nothing(self, node: WholeNode) -> None:
        async def too_large() -> AsyncIterator[bytes]:
            yield ONE
            raise BodyTooLarge(10)

        with pytest.raises(BodyTooLarge):
            self.run(
                node.writes(FULL_VISIBILITY).write_graph(
                    too_large(),
                    RdfSyntax.N_TRIPLES,
                    graph=G,
                    whole_dataset=False,
                    replace=True,
                    base_iri=None,
                )
            )
        assert not node.graph_exists(G)

    def test_the_life_of_a_graph(self, node: WholeNode) -> None:
        assert not node.graph_exists(G)
        with pytest.raises(UnknownGraph):
            node.graph_quads(G)
        with pytest.raises(UnknownGraph):
            self.run(node.writes(FULL_VISIBILITY).delete_graph(G))
        self.write(node, b"", graph=G)
        assert node.graph_exists(G)
        assert self.run(node.writes(FULL_VISIBILITY).delete_graph(G)).affected_triples == 0
        assert not node.graph_exists(G)

    def test_the_default_graph_can_be_emptied_but_not_deleted(self, node: WholeNode) -> None:
        self.write(node, ONE)
        assert self.run(node.writes(FULL_VISIBILITY).delete_graph(None)).affected_triples == 1
        assert list(node.graph_quads(None)) == []
        assert self.run(node.writes(FULL_VISIBILITY).delete_graph(None)).affected_triples == 0

    def test_blank_nodes_of_two_bodies_differ(self, node: WholeNode) -> None:
        for _ in range(2):
            self.write(node, b'_:a <http://x/p> "x" .\n', replace=False)
        quads: list[Quad] = list(node.graph_quads(None))
        assert len({quad.subject for quad in quads}) == 2

    def test_status(self, node: WholeNode) -> None:
        status = node.status()
        assert (status.status, status.role) == ("healthy", "standalone")
        assert status.snapshot_index == node.snapshot_index()
        assert [member.node_id for member in status.cluster_members] == [status.node_id]

    def test_every_read_level_holds_on_a_node_that_stands_alone(self, node: WholeNode) -> None:
        for consistency in Consistency:
            self.run(node.reach(consistency, 0.0))

    def test_a_node_that_stands_alone_has_no_cluster(self, node: WholeNode) -> None:
        assert node.cluster() is None
        for change in (node.add_member(2, "127.0.0.1:7012"), node.remove_member(2), node.hand_over(2)):
            with pytest.raises(NotClustered):
                self.run(change)

    # Queries that readers evaluate

    def fill(self, node: WholeNode) -> None:
        """250 triples."""
        self.write(node, *(f"<http://x/s> <http://x/p> <http://x/{n}> .\n".encode() for n in range(250)))

    def answer(self, node: WholeNode, request: QueryRequest) -> bytes:
        async def work() -> bytes:
            return b"".join(await pieces_of(await node.start_query(request)))

        return self.run(work())

    def test_a_reader_gives_the_whole_answer(self, node: WholeNode) -> None:
        self.write(node, ONE, TWO)

        async def work() -> None:
            stream = await node.start_query(asked("SELECT ?o { ?s ?p ?o } ORDER BY ?o"))
            assert (stream.snapshot_index, stream.is_exact) == (node.snapshot_index(), True)
            assert stream.where
            assert await pieces_of(stream) == [b'?o\n"one"\n"two"\n']

        self.run(work())
        assert node.running_queries() == []

    def test_a_long_answer_comes_in_pieces(self, node: WholeNode) -> None:
        self.fill(node)

        async def work() -> list[bytes]:
            return await pieces_of(await node.start_query(asked("SELECT ?s ?t { ?s ?p ?o . ?t ?q ?r }")))

        pieces = self.run(work())
        assert len(pieces) > 2
        assert max(map(len, pieces)) < 200_000
        assert b"".join(pieces) == b"?s\t?t\n" + b"<http://x/s>\t<http://x/s>\n" * 250 * 250

    def test_an_explanation_of_a_query(self, node: WholeNode) -> None:
        """It is of the dataset and the state that the answer would be of."""
        self.write(node, ONE, TWO, graph=G)
        self.write(node, TWO)
        text = "SELECT * { ?s ?p ?o . ?s ?q ?x }"

        async def explain(dataset: Dataset) -> list[bytes]:
            request = replace(asked(text, dataset=dataset), explain=True)
            stream = await node.start_query(request)
            assert (stream.snapshot_index, stream.is_exact) == (node.snapshot_index(), True)
            return await pieces_of(stream)

        assert self.run(explain(Dataset())) == [b'{"quads": [1, 1]}', b'{"rows": 1}']
        assert self.run(explain(Dataset((G,)))) == [b'{"quads": [2, 2]}', b'{"rows": 4}']

    def test_a_reader_sees_what_was_confirmed(self, node: WholeNode) -> None:
        for count in range(1, 6):
            written = self.update(node, f"INSERT DATA {{ <http://x/s> <http://x/p> {count} }}")

            async def work() -> tuple[int, bytes]:
                stream = await node.start_query(asked("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"))
                return stream.snapshot_index, b"".join(await pieces_of(stream))

            index, answer = self.run(work())
            assert index >= written.snapshot_index
            assert answer == b"?n\n%d\n" % count

    def test_a_reader_and_the_dataset_of_the_protocol(self, node: WholeNode) -> None:
        self.write(node, ONE, graph=G)
        self.write(node, TWO)
        text = f"SELECT ?o FROM <{G.value}> {{ ?s ?p ?o }}"
        assert self.answer(node, asked("SELECT ?o { ?s ?p ?o }")) == b'?o\n"two"\n'
        assert self.answer(node, asked(text)) == b'?o\n"one"\n'
        other = Dataset((NamedNode("http://g/2"),))
        assert self.answer(node, asked(text, dataset=other)) == b"?o\n"
        assert self.answer(node, asked("SELECT ?o { ?s ?p ?o }", dataset=Dataset((G,)))) == b'?o\n"one"\n'

    @pytest.mark.parametrize(
        ("text", "fmt", "answer"),
        [
            ("ASK { ?s ?p 1 }", ResultFormat.JSON, b'{"head":{},"boolean":false}'),
            ("SELECT ?o { ?s ?p ?o }", ResultFormat.CSV, b"o\r\none\r\n"),
            ("SELECT ?o { ?s ?p ?o }", ResultFormat.NDJSON, b'{"o":{"type":"literal","value":"one"}}\n'),
            ("CONSTRUCT WHERE { ?s ?p ?o }", ResultFormat.N_TRIPLES, ONE),
            ("DESCRIBE <http://x/s>", ResultFormat.CANONICAL_N_TRIPLES, ONE),
        ],
    )
    def test_formats_of_a_reader(self, node: WholeNode, text: str, fmt: ResultFormat, answer: bytes) -> None:
        self.write(node, ONE)
        assert self.answer(node, asked(text, fmt)) == answer

    def test_what_a_reader_refuses(self, node: WholeNode) -> None:
        pattern = " . ".join(f"?s <http://x/p> ?o{number}" for number in range(60))
        with pytest.raises(LimitExceeded, match="patterns per group"):
            self.answer(node, asked(f"SELECT * {{ {pattern} }}"))
        with pytest.raises(HostNotAllowed):
            self.answer(node, asked("SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }"))
        with pytest.raises(NotAcceptable):
            self.answer(node, asked(r'SELECT ("\u0001" AS ?x) {}', ResultFormat.XML))
        assert node.running_queries() == []
        assert self.answer(node, asked("SELECT ?o { ?s ?p ?o }")) == b"?o\n"

    @pytest.mark.parametrize("text", [ENDLESS, SILENT], ids=["with rows", "without rows"])
    def test_a_query_past_its_time_limit(self, node: WholeNode, text: str) -> None:
        self.fill(node)
        for took in quick_enough(2):
            with took, pytest.raises(QueryTimeout):
                self.answer(node, asked(text, timeout_s=0.5))
            assert took.seconds > 0.3
        assert node.running_queries() == []
        assert self.answer(node, asked("SELECT (1 AS ?x) {}")) == b"?x\n1\n"

    def test_running_queries_are_listed_and_cancelled(self, node: WholeNode) -> None:
        self.fill(node)

        async def work() -> None:
            stream = await node.start_query(asked(ENDLESS))
            assert await stream.read()
            [shown] = node.running_queries()
            assert (shown.id, shown.text, shown.form) == (stream.query_id, ENDLESS, "SELECT")
            assert (shown.state, shown.where) == ("running", stream.where)
            assert shown.age_seconds >= 0
            assert node.cancel_query(stream.query_id)
            with pytest.raises(QueryCancelled):
                await pieces_of(stream)
            assert not node.cancel_query(stream.query_id)

        self.run(work())
        assert node.running_queries() == []

    def test_cancelling_reaches_one_who_waits(self, node: WholeNode) -> None:
        self.fill(node)

        async def work() -> None:
            for took in quick_enough(1):
                stream = await node.start_query(asked(SILENT))
                waiting = asyncio.create_task(pieces_of(stream))
                await asyncio.sleep(0.1)
                with took:
                    assert node.cancel_query(stream.query_id)
                    with pytest.raises(QueryCancelled):
                        await waiting

        self.run(work())

    def report(self, node: WholeNode, **fields: Any) -> dict[str, Any]:
        """The report of a validation, and whether it was of the present state."""

        async def work() -> dict[str, Any]:
            stream = await node.start_validation(validation(**fields))
            assert (stream.snapshot_index, stream.is_exact) == (node.snapshot_index(), True)
            report: dict[str, Any] = json.loads(b"".join(await pieces_of(stream)))
            return report

        return self.run(work())

    def test_a_validation_by_given_shapes_and_by_those_of_a_graph(self, node: WholeNode) -> None:
        self.write(node, ONE, TWO)
        self.write(node, NAMES, graph=G, syntax=RdfSyntax.TURTLE)
        for shapes in (GIVEN, G):
            report = self.report(node, shapes=shapes)
            assert [result["focusNode"] for result in report["results"]] == ["http://x/s"]
            assert self.report(node, shapes=shapes, data_graph=G.value)["conforms"]
        assert self.lines(node)
        assert node.running_queries() == []

    def test_a_validation_of_graphs_together(self, node: WholeNode) -> None:
        h, shapes, nothing = (NamedNode(f"http://g/{name}") for name in ("h", "shapes", "nothing"))
        self.write(node, ONE, graph=G)
        self.write(node, ONE, graph=h)
        self.write(node, ONE, TWO)
        self.write(node, NAMES, graph=shapes, syntax=RdfSyntax.TURTLE)

        def conforms(*graphs: NamedNode, by: tuple[NamedNode, ...] = (shapes, nothing)) -> bool:
            data, given = MergedGraphs(graphs), MergedGraphs(by)
            return bool(self.report(node, shapes=given, data_graph=data)["conforms"])

        assert conforms()
        assert conforms(nothing)
        assert conforms(G)
        assert conforms(G, h, nothing), "a triple that is in two graphs is one triple"
        self.write(node, TWO, graph=h)
        assert conforms(G)
        assert conforms(nothing, h)
        assert not conforms(G, h)
        assert conforms(G, h, by=(nothing,))

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"shapes": G}, UnknownGraph),
            ({"data_graph": G.value}, UnknownGraph),
            ({"shapes": ShapesDocument(b"<urn:a> <urn:b> 1", RdfSyntax.TURTLE)}, RdfSyntaxError),
            (
                {"shapes": ShapesDocument(b"<urn:a> <urn:b> <urn:c> <urn:g> .", RdfSyntax.N_QUADS)},
                InvalidParameter,
            ),
            (
                {"shapes": ShapesDocument(b"<urn:a> <%starget> 1 ." % SHACL, RdfSyntax.TURTLE)},
                MalformedShapes,
            ),
        ],
    )
    def test_a_validation_of_nothing(self, node: WholeNode, fields: Any, error: type[Exception]) -> None:
        with pytest.raises(error):
            self.report(node, **fields)
        assert node.running_queries() == []

    def test_a_validation_is_listed_and_cancelled(self, node: WholeNode) -> None:
        async def work() -> None:
            stream = await node.start_validation(validation())
            [shown] = node.running_queries()
            assert (shown.id, shown.form) == (stream.query_id, "VALIDATE")
            assert (shown.text, shown.where) == (
                "validate the default graph against given shapes",
                stream.where,
            )
            assert node.cancel_query(stream.query_id)
            with pytest.raises(QueryCancelled):
                await pieces_of(stream)

        self.run(work())
        assert node.running_queries() == []

    def test_a_call_of_a_function(self, node: WholeNode) -> None:
        async def called(function: str, *args: str) -> Any:
            return json.loads(await node.call_function(FunctionCall(function, args, 30)))

        within = self.run(called("geof:sfWithin", "POINT(1 1)", "POLYGON((0 0,2 0,2 2,0 2,0 0))"))
        assert within == {
            "function": "geof:sfWithin",
            "result": True,
            "datatype": "http://www.w3.org/2001/XMLSchema#boolean",
        }
        line = self.run(called("asWKT", f"LINESTRING ({', '.join(f'{at} {at}' for at in range(20_000))})"))
        assert len(line["result"]) > 200_000
        for function, args, error in (
            ("geof:nothing", (), UnknownFunction),
            ("isEmpty", (), InvalidParameter),
            ("isEmpty", ("POINT(1",), BadGeometry),
        ):
            with pytest.raises(error):
                self.run(called(function, *args))
        assert node.running_queries() == []

    def test_cancelling_what_does_not_run(self, node: WholeNode) -> None:
        assert not node.cancel_query("nothing")

    def test_closing_a_stream_ends_its_query(self, node: WholeNode) -> None:
        self.fill(node)

        async def work() -> None:
            stream = await node.start_query(asked(ENDLESS))
            await stream.read()
            stream.close()
            assert node.running_queries() == []
            stream.close()

        self.run(work())
        assert self.answer(node, asked("SELECT (1 AS ?x) {}")) == b"?x\n1\n"

    def test_several_queries_at_once(self, node: WholeNode) -> None:
        self.fill(node)

        async def work() -> list[list[bytes]]:
            async def one(number: int) -> list[bytes]:
                text = f"SELECT (COUNT(*) + {number} AS ?n) {{ ?s ?p ?o }}"
                return await pieces_of(await node.start_query(asked(text)))

            return await asyncio.gather(*map(one, range(6)))

        assert self.run(work()) == [[b"?n\n%d\n" % (250 + number)] for number in range(6)]

    def test_the_exact_index(self, node: WholeNode) -> None:
        assert node.exact_index() == node.snapshot_index()
        written = self.write(node, ONE)
        assert node.exact_index() == node.snapshot_index() == written.snapshot_index

    def test_the_schema_state_is_another_when_a_schema_may_be(self, node: WholeNode) -> None:
        before = node.schema_state()
        self.update(node, "INSERT DATA { <http://e/a> a <http://e/C> ; <http://e/p> 1 }")
        assert node.schema_state() is before
        declared = "{ GRAPH <http://e/g> { <http://e/C> a <http://www.w3.org/2002/07/owl#Class> } }"
        for operation in ("INSERT DATA", "DELETE DATA"):
            self.update(node, f"{operation} {declared}")
            assert node.schema_state() is not before
            before = node.schema_state()

    def test_waiting_for_an_index(self, node: WholeNode) -> None:
        now = node.snapshot_index()
        self.run(node.wait_for_index(now, 0.0))
        with pytest.raises(IndexNotReached, match=str(now + 1)):
            self.run(node.wait_for_index(now + 1, 0.1))

        async def work() -> None:
            waiting = asyncio.create_task(node.wait_for_index(now + 1, 10.0))
            await asyncio.sleep(0.02)
            assert not waiting.done()
            await node.writes(FULL_VISIBILITY).update(
                parse_update("INSERT DATA { <http://x/s> <http://x/p> 1 }", None), Dataset()
            )
            await waiting

        self.run(work())
