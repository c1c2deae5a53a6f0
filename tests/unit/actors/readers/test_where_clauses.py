"""WHERE clauses of updates that readers evaluate: the same effect, but with an end."""

import asyncio
import json
import os
import threading
import time
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad

from actors.readers.write_evaluation import UpdateTurn
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import EvaluationFailed, QueryCancelled, QueryTimeout
from graphdb.model import Confirmation
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from tests.support.shards import Shard, open_shard
from tests.support.timing import HANG_S, quick_enough

pytestmark = pytest.mark.anyio

CROSS = "?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?q ?r ?s"
RUNAWAY = f"INSERT {{ <urn:x> <urn:n> ?n }} WHERE {{ SELECT (COUNT(*) AS ?n) {{ {CROSS} }} }}"
ROWS = 300
MANY_SOLUTIONS = (
    "INSERT { <urn:x> <urn:n> ?a } WHERE "
    "{ SELECT ?a { ?a <urn:knows> ?b . ?c <urn:age> ?d . ?e <urn:age> ?f } LIMIT 20000 }"
)


def people() -> str:
    rows = "".join(f"<urn:{n}> <urn:knows> <urn:{n + 1}> ; <urn:age> {n} ." for n in range(ROWS))
    return f"INSERT DATA {{ {rows} _:b <urn:label> 'é\"\\n'@en--rtl , <<( _:b <urn:p> 1.50 )>> }}"


async def update(shard: Shard, text: str) -> Confirmation:
    return await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())


def quads(shard: Shard) -> list[Quad]:
    return list(shard.dataset_quads())


async def test_effect_of_a_join(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        await update(shard, people())
        before = quads(shard)
        done = await update(
            shard,
            """DELETE { ?a <urn:age> ?n } INSERT { GRAPH <urn:g> { ?a <urn:next> ?m } }
            WHERE { ?a <urn:knows> ?b . ?a <urn:age> ?n . ?b <urn:age> ?m }""",
        )
        assert (done.snapshot_index, done.affected_triples) == (2, 2 * (ROWS - 1))
        assert len(quads(shard)) == len(before)
        assert [entry for entry in os.listdir(tmp_path / "scratch") if entry.startswith("where")] == []


async def test_terms_come_back_as_they_are(tmp_path: Path) -> None:
    """Blank nodes, tagged and typed literals and triple terms go to the reader and return."""
    async with open_shard(tmp_path) as shard:
        await update(shard, people())
        before = [quad for quad in quads(shard) if quad.predicate.value == "urn:label"]
        assert len(before) == 2
        everything = "{ { ?s <urn:label> ?o } UNION { ?s <urn:label> ?o } }"
        done = await update(shard, f"INSERT {{ GRAPH <urn:g> {{ ?s <urn:label> ?o }} }} WHERE {everything}")
        assert done.affected_triples == 2
        copies = [
            Quad(quad.subject, quad.predicate, quad.object) for quad in shard.graph_quads(NamedNode("urn:g"))
        ]
        assert set(copies) == set(before)
        done = await update(shard, f"DELETE {{ ?s <urn:label> ?o }} WHERE {everything}")
        assert done.affected_triples == 2


async def test_operations_see_those_before_them(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        done = await update(
            shard,
            """INSERT DATA { <urn:a> <urn:p> 1 , 2 , 3 } ;
            INSERT { <urn:sum> <urn:is> ?n } WHERE { SELECT (SUM(?o) AS ?n) { <urn:a> <urn:p> ?o } } ;
            DELETE { <urn:a> <urn:p> ?o } WHERE { <urn:a> <urn:p> ?o . <urn:sum> <urn:is> 6 . ?x ?y ?z }""",
        )
        assert done.affected_triples == 1
        assert [str(quad.object) for quad in quads(shard)] == [
            '"6"^^<http://www.w3.org/2001/XMLSchema#integer>'
        ]


async def test_with_and_using(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        await update(
            shard,
            """INSERT DATA { <urn:a> <urn:p> 0
            GRAPH <urn:g> { <urn:a> <urn:p> 1 } GRAPH <urn:h> { <urn:a> <urn:p> 2 } }""",
        )
        union = "{ { ?s <urn:p> ?o } UNION { GRAPH ?g { ?s <urn:p> ?o } } }"
        done = await update(shard, f"WITH <urn:g> INSERT {{ ?s <urn:q> ?o }} WHERE {union}")
        assert done.affected_triples == 2, "the default graph is g, and all graphs are named: 1 and 2"
        done = await update(
            shard, f"INSERT {{ ?s <urn:r> ?o }} USING <urn:g> USING NAMED <urn:h> WHERE {union}"
        )
        assert sorted(str(quad.object)[1] for quad in quads(shard) if quad.predicate.value == "urn:r") == [
            "1",
            "2",
        ]


async def test_a_runaway_ends_and_changes_nothing(tmp_path: Path) -> None:
    async with open_shard(tmp_path, server={"query_timeout_seconds": 1}) as shard:
        await update(shard, people())
        before = len(quads(shard))
        for took in quick_enough(3):
            with took, pytest.raises(QueryTimeout):
                await update(shard, f"INSERT DATA {{ <urn:new> <urn:p> 1 }} ; {RUNAWAY}")
        assert len(quads(shard)) == before
        await update(shard, "INSERT DATA { <urn:new> <urn:p> 1 }")


async def test_silent_does_not_hide_a_runaway(tmp_path: Path) -> None:
    """A failure of the node is no failure of the request, whatever it says of SILENT."""
    async with open_shard(tmp_path, server={"query_timeout_seconds": 1}) as shard:
        await update(shard, people())
        with pytest.raises(QueryTimeout):
            await update(shard, f"CLEAR SILENT GRAPH <urn:none> ; {RUNAWAY}")


async def test_it_can_be_seen_and_cancelled(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        await update(shard, people())
        running = asyncio.create_task(update(shard, RUNAWAY))
        while not (shown := shard.running_queries()) or shown[0].where == "writer":
            assert not running.done(), await running
            await asyncio.sleep(0.01)
        assert (shown[0].form, shown[0].text, shown[0].state) == ("UPDATE", RUNAWAY, "running")
        assert shard.cancel_query(shown[0].id)
        with pytest.raises(QueryCancelled):
            await running
        assert shard.running_queries() == []
        await update(shard, "INSERT DATA { <urn:new> <urn:p> 1 }")


@pytest.fixture
def slow_solutions(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """To go through the solutions of MANY_SOLUTIONS takes minutes from now on; set when it has begun."""
    check, begun = UpdateTurn.check, threading.Event()

    def check_slowly(turn: UpdateTurn) -> None:
        begun.set()
        time.sleep(0.01)
        check(turn)

    monkeypatch.setattr(UpdateTurn, "check", check_slowly)
    return begun


async def test_going_through_the_solutions_can_be_cancelled(
    tmp_path: Path, slow_solutions: threading.Event
) -> None:
    async with open_shard(tmp_path) as shard:
        await update(shard, people())
        for took in quick_enough(1):
            slow_solutions.clear()
            running = asyncio.create_task(update(shard, MANY_SOLUTIONS))
            assert await asyncio.to_thread(slow_solutions.wait, HANG_S)
            [shown] = shard.running_queries()
            assert shown.where == "writer"
            with took:
                assert shard.cancel_query(shown.id)
                with pytest.raises(QueryCancelled):
                    await running
        await update(shard, "INSERT DATA { <urn:new> <urn:p> 1 }")


async def test_going_through_the_solutions_counts_in_the_time_limit(
    tmp_path: Path, slow_solutions: threading.Event
) -> None:
    async with open_shard(tmp_path, server={"query_timeout_seconds": 4}) as shard:
        await update(shard, people())
        before = len(quads(shard))
        for took in quick_enough(5):
            with took, pytest.raises(QueryTimeout, match="the update took longer than 4 s"):
                await update(shard, MANY_SOLUTIONS)
        assert slow_solutions.is_set()
        assert len(quads(shard)) == before


async def test_queries_go_on_while_an_update_runs_away(tmp_path: Path) -> None:
    async with open_shard(tmp_path, server={"query_timeout_seconds": 5}, readers={"count": 2}) as shard:
        await update(shard, people())
        running = asyncio.create_task(update(shard, RUNAWAY))
        await asyncio.sleep(0.2)
        query = parse_query("SELECT (COUNT(*) AS ?n) { ?a <urn:knows> ?b . ?b <urn:knows> ?c }")
        stream = await shard.start_query(QueryRequest(query, Dataset(), ResultFormat.JSON, 5))
        body = b""
        while (piece := await stream.read()) is not None:
            body += piece
        stream.close()
        assert json.loads(body)["results"]["bindings"][0]["n"]["value"] == str(ROWS - 1)
        with pytest.raises(QueryTimeout):
            await running


async def test_engine_errors_are_the_requests(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        with pytest.raises(EvaluationFailed):
            await update(
                shard,
                "INSERT { ?a ?b ?c } WHERE { ?a ?b ?c . ?a ?b ?d BIND(<urn:no-such-function>(1) AS ?x) }",
            )


async def test_a_term_of_many_megabytes_is_refused(tmp_path: Path) -> None:
    """The engine reads documents 16 MB at a time, of which a term has to leave some."""
    async with open_shard(tmp_path) as shard:
        await update(shard, people())
        await update(shard, f"INSERT DATA {{ <urn:0> <urn:text> '{'x' * (14 << 20)}' }}")
        copied = "INSERT { ?a <urn:copy> ?c } WHERE { ?a <urn:knows> ?b ; <urn:text> ?c . ?b <urn:age> ?d }"
        with pytest.raises(EvaluationFailed, match="many megabytes"):
            await update(shard, copied)
