"""Indexes of a node that follow the graph: built, brought up to date, over restarts, failures and rivals."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from actors.search import log_reading
from actors.search.index_follower import FollowerContext, IndexFollower
from actors.search.log_reading import RecentEntries
from actors.search.search_node import SearchNode
from graphdb.errors import QueryTimeout
from graphdb.search.catalog.catalog_commands import CreateIndex, DeleteIndices, PutSettings
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError
from tests.support.logged_graph import LoggedGraph
from tests.support.memory_log import MemoryLog
from tests.support.search_nodes import index_of, indexed, started
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

WORK = {"settings": {"graph": {"shape": "http://example.org/Work"}}}
EX = "http://example.org/"


@pytest.fixture
def graph() -> LoggedGraph:
    return LoggedGraph(MemoryLog())


@asynccontextmanager
async def open_node(directory: Path, graph: LoggedGraph) -> AsyncIterator[SearchNode]:
    async with started(directory, graph.log, graph=graph) as node:
        yield node


async def made(node: SearchNode, body: Any = WORK) -> None:
    await node.perform(CreateIndex("works", "u1", body))


def documents(node: SearchNode) -> dict[str, Any]:
    """What is stored, by `_id`."""
    shard = index_of(node, "works").shards
    sources = {doc_id: shard.get(doc_id) for doc_id in shard.ids()}
    return {doc_id: orjson.loads(found.source) for doc_id, found in sources.items() if found is not None}


def titles(node: SearchNode) -> set[str]:
    return {document["title"] for document in documents(node).values()}


def status(node: SearchNode) -> dict[str, Any]:
    return dict(node.following(index_of(node, "works")) or {})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not holds():  # noqa: ASYNC110 what is waited for tells nobody
            await asyncio.sleep(0.01)


async def has_titles(node: SearchNode, *wanted: str) -> None:
    try:
        await until(lambda: titles(node) == set(wanted))
    except TimeoutError:
        raise AssertionError(f"{titles(node)}, not {set(wanted)}: {status(node)}") from None


async def test_an_index_is_made_of_the_graph_and_follows_it(tmp_path: Path, graph: LoggedGraph) -> None:
    graph.insert(":a a :Work ; :title 'one' ; :year 1900 ; :frame _:f . _:f :wood 'oak' .")
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await has_titles(node, "one")
        assert documents(node)[f"{EX}a"] == {
            "id": f"{EX}a",
            "type": f"{EX}Work",
            "title": "one",
            "year": 1900,
            "frame": {"wood": "oak"},
        }
        graph.insert(":b a :Work ; :title 'two' . _:blank a :Work ; :title 'three' .")
        await has_titles(node, "one", "two", "three")
        assert documents(node)["_:blank"]["id"] == "_:blank"
        graph.insert("_:f :wood 'ash' .")
        await until(lambda: documents(node)[f"{EX}a"]["frame"] == {"wood": ["ash", "oak"]})
        graph.delete(":b a :Work . _:blank a :Work .")
        await has_titles(node, "one")
        await until(lambda: status(node)["state"] == "following" and status(node)["cursor"] > 0)


async def test_an_index_that_was_just_made_is_searched_when_it_has_followed(
    tmp_path: Path, graph: LoggedGraph
) -> None:
    async with open_node(tmp_path, graph) as node:
        for number in range(5):
            name = f"works{number}"
            await node.perform(CreateIndex(name, name, WORK))
            graph.insert(f":a{number} a :Work ; :title 'one' .")
            await node.reach(name, graph.log.last_index)
            assert f"{EX}a{number}" in index_of(node, name).shards.ids()


async def test_what_is_annotated_is_in_no_index(tmp_path: Path, graph: LoggedGraph) -> None:
    rdf, acl = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies>", "<urn:graphdb:acl#allowedSid>"
    hides_two = f"_:r {rdf} <<( :b :title 'two' )>> ; {acl} 'S-1' ."
    graph.insert(f":a a :Work ; :title 'one' . :b a :Work ; :title 'two' ; :year 1900 . {hides_two}")
    async with open_node(tmp_path, graph) as node:

        def shown() -> set[str | None]:
            return {document.get("title") for document in documents(node).values()}

        await made(node)
        await until(lambda: len(documents(node)) == 2)
        assert "title" not in documents(node)[f"{EX}b"]
        graph.delete(hides_two)
        await until(lambda: shown() == {"one", "two"})
        graph.insert(f":later {acl} 'S-1' .")
        graph.insert(f":later {rdf} <<( :a :title 'one' )>> .")
        await until(lambda: "title" not in documents(node)[f"{EX}a"])
        graph.delete(f":later {acl} 'S-1' .")
        await until(lambda: shown() == {"one", "two"})
        graph.insert(f":other {rdf} <<( :a :title 'one' )>> .")  # hides nothing
        graph.insert(":a :year 1901 .")
        await until(lambda: documents(node)[f"{EX}a"].get("year") == 1901)
        await until(lambda: shown() == {"one", "two"})


async def test_what_happened_meanwhile_is_followed_from_the_cursor(
    tmp_path: Path, graph: LoggedGraph
) -> None:
    graph.insert(":a a :Work ; :title 'one' . :b a :Work ; :title 'two' .")
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await has_titles(node, "one", "two")
        await until(lambda: status(node)["cursor"] > 0)
    graph.delete(":a :title 'one' .")
    graph.insert(":a :title 'uno' .")
    graph.asked.clear()
    async with open_node(tmp_path, graph) as node:
        await has_titles(node, "uno", "two")
    assert not [query for query in graph.asked if query.startswith("SELECT DISTINCT ?s")], (
        "nothing was rebuilt"
    )


async def test_a_change_in_many_entries(tmp_path: Path, graph: LoggedGraph) -> None:
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await until(lambda: status(node)["state"] == "following")
        wanted = [f"title {number}" for number in range(700)]
        graph.insert(
            "".join(f":w{number} a :Work ; :title '{title}' ." for number, title in enumerate(wanted)),
            part_bytes=5_000,
        )
        await has_titles(node, *wanted)


async def test_more_changes_than_can_be_followed(
    tmp_path: Path, graph: LoggedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reading, "QUADS_MAX", 10)
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await until(lambda: status(node)["state"] == "following")
        graph.insert("".join(f":w{number} a :Work ; :title 't{number}' ." for number in range(20)))
        await has_titles(node, *(f"t{number}" for number in range(20)))
        graph.delete("".join(f":w{number} a :Work ; :title 't{number}' ." for number in range(19)))
        await has_titles(node, "t19")


async def test_a_log_that_has_forgotten_the_changes(tmp_path: Path, graph: LoggedGraph) -> None:
    graph.insert(":a a :Work ; :title 'one' . :b a :Work ; :title 'two' .")
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await has_titles(node, "one", "two")
        await until(lambda: status(node)["cursor"] > 0)
        graph.failing = QueryTimeout("too slow")
        graph.delete(":a :title 'one' .")
        await until(lambda: status(node)["state"] == "failing")
        await until(lambda: status(node)["entries_behind"] > 0)
        for _ in range(3):
            graph.insert(":other :title 'nothing' .")
        await node.flush()
    graph.delete(":a a :Work .")
    graph.log.forget_before(graph.log.last_index)
    graph.failing = None
    async with open_node(tmp_path, graph) as node:
        await has_titles(node, "two")


async def test_a_graph_that_refuses_is_asked_again_and_the_error_is_shown(
    tmp_path: Path, graph: LoggedGraph
) -> None:
    graph.insert(":a a :Work ; :title 'one' .")
    graph.failing = QueryTimeout("the query took too long")
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await until(lambda: status(node)["state"] == "failing")
        assert "took too long" in status(node)["error"]
        graph.failing = None
        await has_titles(node, "one")
        await until(lambda: status(node)["state"] == "following" and "error" not in status(node))


async def test_clients_do_not_write_and_the_index_goes_when_it_is_deleted(
    tmp_path: Path, graph: LoggedGraph
) -> None:
    graph.insert(":a a :Work ; :title 'one' .")
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await has_titles(node, "one")
        (result,) = await node.write([indexed(1, "works")])
        assert result.result.error is not None
        assert (result.result.error.status, "follows the graph" in str(result.result.error)) == (400, True)
        await node.perform(DeleteIndices(("u1",)))
        graph.insert(":b a :Work ; :title 'two' .")
        await made(node)
        await has_titles(node, "one", "two")


async def test_a_document_that_the_mapping_refuses_is_counted_and_no_old_form_of_it_stays(
    tmp_path: Path, graph: LoggedGraph
) -> None:
    graph.insert(":a a :Work ; :title 'one' ; :year 1900 . :b a :Work ; :title 'two' .")
    async with open_node(tmp_path, graph) as node:
        await made(node, {**WORK, "mappings": {"properties": {"year": {"type": "long"}}}})
        await has_titles(node, "one", "two")
        graph.insert(":a :year 'about 1900' .")
        await has_titles(node, "two")
        await until(lambda: status(node).get("failed_documents") == 1)
        assert f"[{EX}a]" in status(node)["last_failed_document"]


async def test_a_blocked_index_is_followed_further_once_it_is_not(tmp_path: Path, graph: LoggedGraph) -> None:
    graph.insert(":a a :Work ; :title 'one' .")
    async with open_node(tmp_path, graph) as node:
        await made(node)
        await has_titles(node, "one")
        await node.perform(PutSettings(("u1",), {"blocks.write": True}))
        graph.insert(":b a :Work ; :title 'two' .")
        await until(lambda: status(node)["state"] == "failing")
        assert ("FORBIDDEN/8" in status(node)["error"], titles(node)) == (True, {"one"})
        await node.perform(PutSettings(("u1",), {"blocks.write": None}))
        await has_titles(node, "one", "two")


async def test_two_nodes_that_both_lead_do_no_harm(tmp_path: Path, graph: LoggedGraph) -> None:
    graph.insert(":a a :Work ; :title 'one' .")
    async with AsyncExitStack() as stack:
        nodes = []
        for name in ("x", "y"):
            (tmp_path / name).mkdir()
            nodes.append(await stack.enter_async_context(open_node(tmp_path / name, graph)))
        await made(nodes[0])
        await until(lambda: nodes[1].catalog.find("works") is not None)
        for number in range(10):
            graph.insert(f":w{number} a :Work ; :title 't{number}' .")
            await asyncio.sleep(0.05)
        for node in nodes:
            await has_titles(node, "one", *(f"t{number}" for number in range(10)))
        graph.delete("".join(f":w{number} a :Work ." for number in range(10)))
        for node in nodes:
            await has_titles(node, "one")


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (5, "must be the IRI of a class"),
        ("no iri", "not an absolute IRI"),
        ({"class": f"{EX}a", "query": "SELECT * {}"}, "exactly one of"),
        ({}, "exactly one of"),
        ({"query": "SELECT * {"}, "syntax error"),
        ({"query": "ASK {}"}, "must be a SELECT"),
        ({"query": "SELECT ?s { ?s ?p ?o }", "graph": EX}, "says FROM"),
        ({"query": f"SELECT ?s {{ ?s ?p ?o SERVICE <{EX}> {{ ?s ?q ?r }} }}"}, "has SERVICE"),
        (
            {"query": f"SELECT ?s {{ {{ SELECT ?s {{ SERVICE SILENT <{EX}> {{ ?s ?q ?r }} }} }} }}"},
            "has SERVICE",
        ),
        ({"query": "SELECT ?s { ?s ?p ?o FILTER EXISTS { SERVICE ?o { ?s ?q ?r } } }"}, "has SERVICE"),
        ({"query": "SELECT ?s (NOW() AS ?at) { ?s ?p ?o }"}, "of the clock"),
        ({"query": "SELECT ?s { ?s ?p ?o BIND(STRUUID() AS ?id) }"}, "of chance"),
        ({"shape": f"{EX}none"}, "there is no SHACL shape"),
        ({"shacl": "nonsense"}, "no Turtle"),
        ({"shacl": "<http://x/s> <http://x/p> 1 ."}, "one node shape with a target"),
        ({"class": f"{EX}a", "deep": 1}, "unknown setting"),
    ],
)
async def test_shapes_that_cannot_be(tmp_path: Path, graph: LoggedGraph, shape: Any, reason: str) -> None:
    async with open_node(tmp_path, graph) as node:
        with pytest.raises(SearchError, match=reason) as caught:
            await made(node, {"settings": {"index.graph.shape": shape}})
        assert caught.value.status == 400
        assert node.catalog.find("works") is None


async def test_a_query_with_a_byte_order_mark_is_followed(tmp_path: Path, graph: LoggedGraph) -> None:
    graph.insert(":a a :Work ; :title 'one' .")
    query = f"\ufeffSELECT ?id ?title {{ ?id <{EX}title> ?title }}"
    async with open_node(tmp_path, graph) as node:
        await made(node, {"settings": {"graph": {"shape": {"query": query}}}})
        await has_titles(node, "one")
        graph.insert(":b :title 'two' .")
        await has_titles(node, "one", "two")


async def test_fields_of_a_shacl_shape_in_the_graph(tmp_path: Path, graph: LoggedGraph) -> None:
    shapes = """@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
        :Shape sh:targetClass :Work ; sh:property _:p1 , _:p2 , _:p3 .
        _:p1 sh:path :title ; sh:datatype xsd:string .
        _:p2 sh:path :year ; sh:datatype xsd:integer ; sh:name "made" .
        _:p3 sh:path _:l1 ; sh:name "maker" .
        _:l1 rdf:first :by ; rdf:rest _:l2 . _:l2 rdf:first :name ; rdf:rest rdf:nil ."""
    graph.insert(shapes + ":a a :Work ; :title 'one' ; :year 1900 ; :by :m . :m :name 'Ada' .")
    async with open_node(tmp_path, graph) as node:
        body = {"settings": {"graph": {"shape": {"shape": f"{EX}Shape"}}}}
        given = {"title": {"type": "keyword"}}
        await made(node, {**body, "mappings": {"properties": given}})
        properties = index_of(node, "works").mapping.as_json()["properties"]
        assert (properties["title"], properties["made"]) == ({"type": "keyword"}, {"type": "long"})
        wanted = {"id": f"{EX}a", "title": "one", "made": 1900, "maker": "Ada"}
        await until(lambda: documents(node) == {f"{EX}a": wanted})
        graph.insert(":m :name 'Lovelace' .")
        await until(lambda: documents(node)[f"{EX}a"]["maker"] == ["Ada", "Lovelace"])
        graph.delete("@prefix sh: <http://www.w3.org/ns/shacl#> . :Shape sh:property _:p3 .")
        await until(lambda: "maker" not in documents(node)[f"{EX}a"])


async def test_a_follower_that_is_ended_as_something_comes_ends(
    graph: LoggedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a node that leads no more would go on, and could not stop."""
    recent = RecentEntries(5)
    index = Index("works", "u1", 0, {}, None, None)  # type: ignore[arg-type]
    index.cursor = 5
    around = FollowerContext(None, graph, graph, graph.log, recent)  # type: ignore[arg-type]
    follower = IndexFollower(lambda: index, None, around)  # type: ignore[arg-type]
    monkeypatch.setattr(follower, "_has_followed", True)
    task = asyncio.create_task(follower.run())
    await asyncio.sleep(0.05)
    graph.insert(":a a :Work .")
    recent.take([graph.log.entries[0].at(6)])
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    assert done == {task}
