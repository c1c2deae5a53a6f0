"""Enforced shapes: which writes are refused, what they are told, and that nothing else notices."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Store, parse

from actors.node.shape_guard import ShapeGuard
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config.limits import GateLimits
from graphdb.errors import GraphDBError, MalformedShapes, ShapesViolated
from graphdb.model import ChangeSet, Confirmation
from graphdb.node import RunningQuery
from graphdb.rdf.formats import RdfSyntax
from graphdb.shacl.change_check import check_report
from graphdb.shacl.shapes import Shapes, read_shapes
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import Term
from tests.support.shards import Shard, open_shard

SHAPES_GRAPH = NamedNode("http://g/shapes")
PREFIXES = "PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX x: <http://x/> "
PERSON = (
    PREFIXES + "x:Person sh:targetClass x:P ; sh:property x:Name , x:Nick ."
    "x:Name sh:path x:name ; sh:minCount 1 ; sh:maxCount 1 ."
    "x:Nick sh:path x:nick ; sh:maxCount 1 ; sh:severity sh:Warning ."
)
FRIENDS = (  # of a person every friend has a friend who has a name
    PREFIXES + "x:Friends sh:targetClass x:P ; sh:property [ sh:path x:friend ; sh:node x:Friend ] ."
    "x:Friend sh:property x:FriendOfFriend . x:FriendOfFriend sh:path (x:friend x:name) ; sh:minCount 1 ."
)
SPARQL = (
    PREFIXES + "x:Older sh:targetClass x:P ; sh:sparql [ sh:message 'too old' ; "
    "sh:select 'SELECT $this { $this <http://x/age> ?age FILTER(?age > 99) }' ] ."
)


class Guarded:
    """A store in memory behind a guard, which a test changes as a writer does."""

    def __init__(self, shapes: str = PERSON, data_graph: str = "default") -> None:
        self.store = QuadStore(Store())
        self.index = 0
        self.apart: list[list[Term] | None] = []  # what the guard did not validate itself
        self.guard = ShapeGuard(SHAPES_GRAPH, data_graph, GateLimits(), self._validate_apart)
        self.put_shapes(shapes)

    def _validate_apart(
        self, shapes: NamedNode | Shapes, state: QuadStore, focus: Iterable[Term] | None
    ) -> dict[str, Any]:
        nodes = None if focus is None else list(focus)
        self.apart.append(nodes)
        if isinstance(shapes, NamedNode):
            shapes = read_shapes(quad.triple for quad in state.quads_matching(None, None, None, shapes))
        return check_report(state._store, None, shapes, nodes, monotonic)

    def put_shapes(self, turtle: str) -> None:
        """By somebody else: nothing is checked."""
        old = tuple(self.store.quads_matching(None, None, None, SHAPES_GRAPH))
        self._apply(ChangeSet(old, tuple(in_graph(turtle, SHAPES_GRAPH))))

    def _apply(self, change: ChangeSet) -> None:
        self.store.apply(change)
        self.index += 1

    def write(self, *changes: ChangeSet) -> list[Exception | None]:
        """As one batch."""
        outcomes: list[Exception | None] = []
        batch = Overlay(self.store)
        self.guard.begin(batch, self.index)
        for change in changes:
            try:
                self.guard.check(batch, change)
            except Exception as error:  # noqa: BLE001 whatever it is
                outcomes.append(error)
            else:
                outcomes.append(None)
                batch.push(change)
        self._apply(batch.pending)
        self.guard.note(batch.pending, self.index)
        return outcomes

    def add(self, turtle: str, graph: NamedNode | None = None) -> Exception | None:
        [outcome] = self.write(ChangeSet(added=tuple(in_graph(PREFIXES + turtle, graph))))
        return outcome

    def remove(self, turtle: str) -> Exception | None:
        [outcome] = self.write(ChangeSet(removed=tuple(in_graph(PREFIXES + turtle, None))))
        return outcome


def in_graph(turtle: str, graph: NamedNode | None) -> Iterator[Quad]:
    for quad in parse(turtle, RdfFormat.TURTLE, rename_blank_nodes=True):
        yield quad if graph is None else Quad(quad.subject, quad.predicate, quad.object, graph)


def places(outcome: Exception | None) -> list[tuple[str, str]]:
    """Where a refused write violates what."""
    assert isinstance(outcome, ShapesViolated)
    assert outcome.report is not None
    assert not outcome.report["conforms"]
    return sorted((result["focusNode"], result["resultPath"]) for result in outcome.report["results"])


def test_a_violation_is_refused_with_its_report() -> None:
    there = Guarded()
    outcome = there.add("x:a a x:P .")
    assert places(outcome) == [("http://x/a", "http://x/name")]
    assert str(outcome).startswith("the write violates the shapes of <http://g/shapes>, at http://x/a: ")
    assert list(there.store.graph_quads(None)) == []
    assert there.add("x:a a x:P ; x:name 'Ada' .") is None
    assert places(there.add("x:a x:name 'Bea' .")) == [("http://x/a", "http://x/name")]
    assert places(there.remove("x:a x:name 'Ada' .")) == [("http://x/a", "http://x/name")]
    assert there.remove("x:a a x:P ; x:name 'Ada' .") is None
    assert there.apart == []


def test_advice_refuses_nothing() -> None:
    there = Guarded()
    assert there.add("x:a a x:P ; x:name 'Ada' ; x:nick 'A', 'B' .") is None
    outcome = there.add("x:b a x:P ; x:nick 'A', 'B' .")
    assert isinstance(outcome, ShapesViolated)
    assert outcome.report is not None
    assert [result["sourceShape"] for result in outcome.report["results"]] == [
        "http://x/Name",
        "http://x/Nick",
    ]
    assert (outcome.report["stats"]["violations"], outcome.report["stats"]["warnings"]) == (1, 1)


def test_what_a_write_does_not_concern_is_not_looked_at() -> None:
    there = Guarded()
    there.store.apply(ChangeSet(added=tuple(in_graph(PREFIXES + "x:old a x:P .", None))))
    assert there.add("x:a a x:P ; x:name 'Ada' .") is None
    assert there.add("x:z x:y 1 .") is None
    assert there.add("x:old a x:P ; x:other 1 .", NamedNode("http://g/1")) is None
    assert places(there.add("x:old x:nick 'O' .")) == [("http://x/old", "http://x/name")]
    assert there.apart == []


def test_a_change_is_found_along_paths() -> None:
    there = Guarded(FRIENDS)
    assert there.add("x:a a x:P ; x:friend x:b . x:b x:friend x:c . x:c x:name 'C' .") is None
    assert places(there.remove("x:c x:name 'C' .")) == [("http://x/a", "http://x/friend")]
    assert places(there.remove("x:b x:friend x:c .")) == [("http://x/a", "http://x/friend")]
    assert places(there.add("x:a x:friend x:d .")) == [("http://x/a", "http://x/friend")]
    assert there.add("x:a x:friend x:d . x:d x:friend x:c .") is None
    assert there.apart == []


def test_a_class_above_makes_targets() -> None:
    there = Guarded()
    assert there.add("x:a a x:Student .") is None
    outcome = there.add("x:Student <http://www.w3.org/2000/01/rdf-schema#subClassOf> x:P .")
    assert places(outcome) == [("http://x/a", "http://x/name")]


def test_the_writes_of_a_batch_see_each_other() -> None:
    there = Guarded()
    name, other, person, gone = (
        ChangeSet(added=tuple(in_graph(PREFIXES + turtle, None)))
        for turtle in ("x:a x:name 'A' .", "x:a x:name 'B' .", "x:a a x:P .", "x:b a x:P .")
    )
    outcomes = there.write(name, person, gone, other)
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), ShapesViolated, ShapesViolated]
    assert len(list(there.store.graph_quads(None))) == 2


def test_blank_nodes() -> None:
    there = Guarded()
    node = BlankNode("n1")
    person = Quad(node, NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), NamedNode("http://x/P"))
    name = Quad(node, NamedNode("http://x/name"), NamedNode("http://x/N"))
    assert places(there.write(ChangeSet(added=(person,)))[0]) == [("_:n1", "http://x/name")]
    assert there.write(ChangeSet(added=(person, name))) == [None]
    assert there.apart == []


@pytest.mark.parametrize(
    ("data_graph", "concerns"), [("union", True), ("http://g/1", True), ("default", False)]
)
def test_the_data_graph(data_graph: str, concerns: bool) -> None:
    there = Guarded(data_graph=data_graph)
    outcome = there.add("x:a a x:P .", NamedNode("http://g/1"))
    assert isinstance(outcome, ShapesViolated) == concerns
    assert there.apart == []


def test_what_sparql_looks_at_is_validated_apart() -> None:
    there = Guarded(PERSON + SPARQL)
    assert there.add("x:a a x:P ; x:name 'Ada' .") is None
    assert isinstance(there.add("x:a x:age 100 ."), ShapesViolated)
    assert len(there.apart) == 2


def test_much_is_validated_apart() -> None:
    there = Guarded()
    many = " ".join(f"x:n{number} a x:P ; x:name 'N' ." for number in range(300))
    assert there.add(many) is None
    assert [len(nodes or ()) for nodes in there.apart] == [300]
    hub = Guarded(
        PREFIXES + "x:S sh:targetClass x:P ; sh:property [ sh:path x:knows ; sh:nodeKind sh:IRI ] ."
    )
    assert hub.add("x:a x:knows " + ", ".join(f"x:n{number}" for number in range(6000)) + " .") is None
    assert hub.add("x:a a x:P .") is None
    assert len(hub.apart) == 1


def test_shapes_that_the_data_violate_are_refused() -> None:
    there = Guarded("")
    assert there.add("x:a a x:P .") is None
    assert places(there.add(PERSON, SHAPES_GRAPH)) == [("http://x/a", "http://x/name")]
    assert there.add("x:a x:name 'Ada' .") is None
    assert there.add(PERSON, SHAPES_GRAPH) is None
    assert places(there.add("x:b a x:P .")) == [("http://x/b", "http://x/name")]


def test_malformed_shapes_are_refused() -> None:
    there = Guarded("")
    outcome = there.add("x:S sh:targetClass x:P ; sh:property 5 .", SHAPES_GRAPH)
    assert isinstance(outcome, MalformedShapes)
    assert "sh:property of <http://x/S>" in str(outcome)
    assert not there.store.graph_exists(SHAPES_GRAPH)


def test_nothing_is_written_while_the_shapes_cannot_be_read() -> None:
    """Such as were there before anybody looked."""
    there = Guarded(PREFIXES + "x:S sh:targetClass x:P ; sh:property 5 .")
    outcome = there.add("x:a x:b 1 .")
    assert isinstance(outcome, ShapesViolated)
    assert outcome.report is None
    assert "until the shapes of <http://g/shapes> are mended: malformed shapes: sh:property" in str(outcome)
    quads = tuple(there.store.graph_quads(SHAPES_GRAPH))
    assert there.write(ChangeSet(removed=quads, dropped_graphs=(SHAPES_GRAPH,))) == [None]
    assert there.add("x:a a x:P .") is None


def test_behind_a_change_of_the_shapes_a_batch_begins_anew() -> None:
    there = Guarded("")
    shapes = ChangeSet(added=tuple(in_graph(PERSON, SHAPES_GRAPH)))
    person = ChangeSet(added=tuple(in_graph(PREFIXES + "x:a a x:P .", None)))
    outcomes = there.write(shapes, person)
    assert [type(outcome).__name__ for outcome in outcomes] == ["NoneType", "BaseNotApplied"]
    assert isinstance(there.write(person)[0], ShapesViolated)


def test_shapes_that_somebody_else_has_changed_hold() -> None:
    there = Guarded("")
    assert there.add("x:b a x:P .") is None
    there.put_shapes(PERSON)
    assert isinstance(there.add("x:a a x:P ."), ShapesViolated)
    there.put_shapes("")
    assert there.add("x:a a x:P .") is None


# in a shard, over a real log and real readers


@asynccontextmanager
async def shard(directory: Path, *, shapes: str = PERSON, **server: Any) -> AsyncIterator[Shard]:
    enforced = {"enforce_graph": SHAPES_GRAPH.value}
    async with open_shard(directory, shacl=enforced, server=server) as opened:
        if shapes:
            await put(opened, shapes, SHAPES_GRAPH)
        yield opened


async def put(opened: Shard, turtle: str, graph: NamedNode | None, *, replace: bool = True) -> Confirmation:
    async def body() -> AsyncIterator[bytes]:
        yield turtle.encode()

    return await opened.writes(FULL_VISIBILITY).write_graph(
        body(), RdfSyntax.TURTLE, graph=graph, whole_dataset=False, replace=replace, base_iri=None
    )


async def update(opened: Shard, text: str) -> Confirmation:
    return await opened.writes(FULL_VISIBILITY).update(
        parse_update("PREFIX x: <http://x/> " + text, None), Dataset()
    )


async def until_listed(opened: Shard) -> list[RunningQuery]:
    """What runs, once there is something."""
    for _ in range(500):
        if running := opened.running_queries():
            return running
        await asyncio.sleep(0.01)
    raise AssertionError("nothing runs")


async def outcome(work: Any) -> str:
    try:
        await work
    except GraphDBError as error:
        return type(error).__name__
    return "stored"


def test_several_writers_at_once_one_of_whom_violates(tmp_path: Path) -> None:
    async def go() -> None:
        async with shard(tmp_path) as opened:
            before = opened.snapshot_index()
            texts = [f"INSERT DATA {{ x:n{number} a x:P ; x:name 'N' }}" for number in range(6)]
            texts[2] = "INSERT DATA { x:n2 a x:P }"
            texts[4] = "INSERT DATA { x:n1 x:name 'another' }"
            outcomes = await asyncio.gather(*(outcome(update(opened, text)) for text in texts))
            assert [*outcomes] == ["stored", "stored", "ShapesViolated", "stored", "ShapesViolated", "stored"]
            assert opened.snapshot_index() == before + 4
            subjects = {str(quad.subject) for quad in opened.graph_quads(None)}
            assert subjects == {f"<http://x/n{number}>" for number in (0, 1, 3, 5)}

    asyncio.run(go())


RENAME = "DELETE DATA { x:a x:name 'Ada' } ; INSERT { ?s x:name 'B', 'C' } WHERE { ?s a x:P }"
MOVE = "CREATE GRAPH x:g ; INSERT DATA { GRAPH x:g { x:c a x:P } } ; MOVE x:g TO DEFAULT"


def test_every_way_to_write(tmp_path: Path) -> None:
    async def go() -> list[str]:
        async with shard(tmp_path) as opened:
            await put(opened, PREFIXES + "x:a a x:P ; x:name 'Ada' .", None)
            index = opened.snapshot_index()
            found = [
                await outcome(put(opened, PREFIXES + "x:b a x:P .", None)),
                await outcome(put(opened, PREFIXES + "x:b a x:P .", None, replace=False)),
                await outcome(update(opened, "DELETE { ?s x:name ?n } WHERE { ?s x:name ?n }")),
                await outcome(update(opened, "INSERT DATA { x:c a x:P } ; INSERT DATA { x:d x:y 1 }")),
                await outcome(update(opened, RENAME)),
                await outcome(update(opened, MOVE)),
            ]
            assert opened.snapshot_index() == index
            found.append(await outcome(opened.writes(FULL_VISIBILITY).delete_graph(None)))
            return found

    assert asyncio.run(go()) == ["ShapesViolated"] * 6 + ["stored"]


def test_a_large_write_is_checked_as_a_whole(tmp_path: Path) -> None:
    good = "".join(f"x:n{number} a x:P ; x:name 'N{number}' .\n" for number in range(10_500))

    async def go() -> None:
        async with shard(tmp_path, query_timeout_seconds=100) as opened:
            index = opened.snapshot_index()
            with pytest.raises(ShapesViolated) as raised:
                await put(opened, PREFIXES + good + "x:bad a x:P .", None)
            assert places(raised.value) == [("http://x/bad", "http://x/name")]
            assert (opened.snapshot_index(), [*opened.graph_quads(None)]) == (index, [])
            assert (await put(opened, PREFIXES + good, None)).affected_triples == 21_000
            assert await outcome(update(opened, "INSERT DATA { x:n7 x:name 'x' }")) == "ShapesViolated"

    asyncio.run(go())


def test_shapes_hold_after_a_restart(tmp_path: Path) -> None:
    async def go() -> None:
        async with shard(tmp_path) as opened:
            assert await outcome(update(opened, "INSERT DATA { x:a a x:P }")) == "ShapesViolated"
        async with shard(tmp_path, shapes="") as opened:
            assert await outcome(update(opened, "INSERT DATA { x:a a x:P }")) == "ShapesViolated"
            assert await outcome(opened.writes(FULL_VISIBILITY).delete_graph(SHAPES_GRAPH)) == "stored"
            assert await outcome(update(opened, "INSERT DATA { x:a a x:P }")) == "stored"
            assert await outcome(put(opened, PERSON, SHAPES_GRAPH)) == "ShapesViolated"
            assert not opened.graph_exists(SHAPES_GRAPH)

    asyncio.run(go())


def test_a_check_is_listed_and_cancelled(tmp_path: Path) -> None:
    endless = (
        PREFIXES + "x:S sh:targetClass x:P ; sh:sparql [ sh:select '''SELECT $this { $this ?p ?o . "
        "?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l "
        "FILTER(CONCAT(STR(?c), STR(?f), STR(?i), STR(?l)) = STR($this)) }''' ] ."
    )
    data = " ".join(f"x:n{number} x:y {number} ." for number in range(200))

    async def go() -> None:
        async with shard(tmp_path, shapes=endless) as opened:
            await put(opened, PREFIXES + data, None)
            index = opened.snapshot_index()
            writing = asyncio.create_task(outcome(update(opened, "INSERT DATA { x:b a x:P }")))
            running = await until_listed(opened)
            assert [shown.form for shown in running] == ["VALIDATE"]
            assert running[0].text == "check a write against the shapes of <http://g/shapes>"
            assert opened.cancel_query(running[0].id)
            assert await writing == "QueryCancelled"
            assert opened.snapshot_index() == index
            assert await outcome(update(opened, "INSERT DATA { x:c x:d 1 }")) == "stored"

    asyncio.run(go())
