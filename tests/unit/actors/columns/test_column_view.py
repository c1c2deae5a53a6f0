"""A node's column view: answers as the readers do, follows, comes back, is made anew."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, serialize
from starlette.requests import Request

from actors.columns.protocol import ColumnTask
from actors.wire.connection import Stream
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.columns.applying import REMOVED_MIN
from graphdb.columns.schema import check
from graphdb.config.limits import GateLimits
from graphdb.errors import QueryCancelled, QuerySyntaxError, QueryTimeout
from graphdb.geo.entailment import Entailment
from graphdb.history.purging import PurgeScope
from graphdb.node import OwnNames
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.packing import unpacked
from graphdb.sparql.parser import parse_query
from serve.graph.asked_query import QueryReader
from tests.support.columns import ColumnNode, open_columns
from tests.support.timing import HANG_S

PREFIX = "PREFIX : <http://example.org/> "
BASE = "http://localhost/sparql"
KIND = NamedNode("http://example.org/kind")
COUNTED = PREFIX + "SELECT ?kind (COUNT(*) AS ?n) { ?s :kind ?kind } GROUP BY ?kind ORDER BY ?kind"


async def fill(node: ColumnNode, first: int = 0) -> int:
    triples = " ".join(
        f":s{number} :kind :k{number % 3} ; :value {number} ." for number in range(first, first + 30)
    )
    return await node.update(f"{PREFIX} INSERT DATA {{ {triples} GRAPH :g {{ :a :kind :k9 }} }}")


def counts(number: int) -> bytes:
    return "".join(
        ["kind,n\r\n", *(f"http://example.org/k{kind},{number}\r\n" for kind in range(3))]
    ).encode()


def test_a_count_follows_what_is_written(tmp_path: Path) -> None:
    text = PREFIX + "SELECT ?kind (COUNT(*) AS ?n) { ?s :kind ?kind ; :value ?v } GROUP BY ?kind"

    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            for number in range(3):
                facts = " ".join(f":s{number}_{n} :kind :k{n % 3} ; :value {n} ." for n in range(9))
                await node.update(f"{PREFIX} INSERT DATA {{ {facts} }}")
                answers = [await node.query(text) for _ in range(3)]  # on a thread, then at once
                assert answers == 3 * [answers[0]]
                where, answer = answers[0]
                found = dict(line.split(b",") for line in answer.splitlines()[1:])
                assert where == "columns"
                assert found == {
                    b"http://example.org/k%d" % kind: b"%d" % (3 * number + 3) for kind in range(3)
                }

    asyncio.run(run())


def test_it_answers_what_was_written_before(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            await fill(node)
            assert await node.query(COUNTED) == ("columns", counts(10))
            await fill(node, 30)
            assert await node.query(COUNTED) == ("columns", counts(20))
            await node.update(PREFIX + "DELETE WHERE { ?s :kind :k1 }")
            where, answer = await node.query(COUNTED)
            assert (where, b"k1" in answer) == ("columns", False)

    asyncio.run(run())


def test_its_process_reports_how_well_it_follows(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            index = await fill(node)
            async with asyncio.timeout(HANG_S):
                while True:
                    columns = [view for view in node.shard.view_statuses() if view.name == "columns"]
                    if columns and columns[0].index == index:
                        break
                    await asyncio.sleep(0.1)
            assert (columns[0].state, columns[0].entries_behind) == ("following", 0)

    asyncio.run(run())


def test_it_answers_for_the_union_of_all_graphs_where_there_is_one(tmp_path: Path) -> None:
    """RDF4J's clients ask so; with named graphs a reader answers."""

    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            await node.update(f"{PREFIX} INSERT DATA {{ :a :kind :k0 . :b :kind :k0 . :c :kind :k1 }}")
            alone = await node.query(COUNTED)
            assert await node.query(COUNTED, uniting=True) == alone
            assert alone[0] == "columns"
            await node.update(f"{PREFIX} INSERT DATA {{ GRAPH :g {{ :d :kind :k1 }} }}")
            assert await node.query(COUNTED) == alone
            where, united = await node.query(COUNTED, uniting=True)
            assert (where, united.count(b",2")) == ("reader", 2)
            await node.update("DROP ALL")
            await node.update(f"{PREFIX} INSERT DATA {{ :a :kind :k0 }}")
            assert (await node.query(COUNTED, uniting=True))[0] == "columns"

    asyncio.run(run())


def test_what_it_does_not_answer_goes_to_a_reader(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            await fill(node)
            where, _ = await node.query(PREFIX + "DESCRIBE :s1")
            assert where == "reader"

    asyncio.run(run())


def test_what_goes_to_a_reader_is_asked_of_it_once_for_each_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    send = Stream.send

    def counted(stream: Stream, message: object) -> None:
        if isinstance(message, ColumnTask):
            asked.append(unpacked(message.query).form)
        send(stream, message)

    async def run() -> None:
        monkeypatch.setattr(Stream, "send", counted)
        async with open_columns(tmp_path) as node:
            await node.following()
            for number in range(3):
                await fill(node, 30 * number)
                for _ in range(2):
                    assert (await node.query(PREFIX + "DESCRIBE :s1"))[0] == "reader"
                    assert (await node.query(COUNTED))[0] == "columns"

    asyncio.run(run())
    assert asked == ["DESCRIBE", "SELECT", "SELECT"] * 3


def test_the_columns_have_the_names_of_the_text_that_was_sent(tmp_path: Path) -> None:
    own = COUNTED.replace("?kind", "?type").replace("?n", "?many")
    described = PREFIX + "DESCRIBE ?one { ?one :value 3 }"

    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            await fill(node)
            for text, sent, columns in (
                (COUNTED, own, ("type", "many")),
                (PREFIX + "SELECT (COUNT(*) AS ?n) { ?s :kind ?k }", "", ("many",)),
                (described.replace("?one", "?s"), described, ()),
            ):
                where, answer = await node.query(text)
                names = OwnNames(sent, columns, (), lambda sent=sent: parse_query(sent))  # type: ignore[misc]
                for _ in range(2):
                    found = await node.answer(replace(node.request(text), own=names))
                    assert found[0] == where
                    rows = answer.partition(b"\r\n")[2]
                    head = ",".join(columns).encode() + b"\r\n"
                    assert found[1] == (head + rows if columns else answer)

    asyncio.run(run())


def test_texts_of_one_shape_get_the_answers_of_their_own(tmp_path: Path) -> None:
    """A text that is not parsed, because one like it was, against itself in full."""
    pairs = [
        ("{ ?s :value ?v FILTER(?v > 5) }", "{ ?x :value ?y FILTER(?y > 20) }"),
        ("{ ?s :value ?v FILTER(?v IN (1, 2, 77)) }", "{ ?v :value ?s FILTER(?s IN (1, 5, 7)) }"),
        ("{ ?s :kind ?k FILTER(REGEX(STR(?k), 'k1$')) }", "{ ?a :kind ?b FILTER(REGEX(STR(?b), '[12]$')) }"),
        ("{ ?s :value ?v VALUES ?v { 1 2 99 } }", "{ ?s :value ?w VALUES ?w { 3 4 5 } }"),
        (
            "{ ?s :value ?v BIND('a' AS ?x) FILTER(?x = 'a') }",
            "{ ?s :value ?v BIND('b' AS ?x) FILTER(?x = 'a') }",
        ),
        (
            "{ ?s ?p ?o FILTER(?o = 3) OPTIONAL { ?s :kind ?k } }",
            "{ ?s ?p ?o FILTER(?o = 5) OPTIONAL { ?s :kind ?k } }",
        ),
    ]

    async def mended(_request: Request, error: QuerySyntaxError) -> QuerySyntaxError:
        return error

    async def run() -> None:
        reader = QueryReader(GateLimits(), HANG_S, mended)
        async with open_columns(tmp_path) as node:
            await node.following()
            await fill(node)
            for first, other in pairs:
                for form in ("SELECT (COUNT(*) AS ?n)", "SELECT *"):
                    texts = [f"{PREFIX}{form} {where}" for where in (first, other)]
                    reader._understand_and_keep(texts[0], BASE, Entailment.GEOSPARQL)
                    found = reader.known(texts[1], BASE, Entailment.GEOSPARQL)
                    if "VALUES" in first and found is None:  # whose rows may make the join small
                        continue
                    assert found is not None
                    assert found.own is not None
                    request = replace(node.request(texts[0]), query=found.plan.like, own=found.own)
                    (_, expected), (where, answer) = await node.query(texts[1]), await node.answer(request)
                    assert where == "columns"
                    assert sorted(answer.splitlines()) == sorted(expected.splitlines())

    asyncio.run(run())


def test_a_query_waits_for_a_place(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path, columns={"queries_max": 1}) as node:
            await node.following()
            await fill(node)
            found = await asyncio.gather(*(node.query(COUNTED) for _ in range(20)))
            assert found == [("columns", counts(10))] * 20

    asyncio.run(run())


def test_a_row_that_fails_late_sends_the_whole_query_to_a_reader(tmp_path: Path) -> None:
    """The columns keep integers of 56 bits beside stored terms; the engine has 64."""

    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            values = " ".join(f":s{number:05} :value {int(number == 999)} ." for number in range(1_000))
            await node.update(f"{PREFIX} INSERT DATA {{ {values} }}")
            large = 1 << 60
            pairs = f"{{ ?s :value ?v . ?t :value ?w BIND(?v * ?w * {large} AS ?x) }}"
            query = f"SELECT ?x {{ {pairs} UNION {{ ?s :name ?x }} }}"
            where, answer = await node.query(PREFIX + query)
            rows = answer.split()
            assert (where, len(rows), rows.count(str(large).encode())) == ("reader", 1_000_001, 1)

    asyncio.run(run())


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            await fill(node)
            await node.query(COUNTED)
            made = (tmp_path / "columns" / "view.duckdb").stat().st_ino
        async with open_columns(tmp_path) as node:
            assert await node.following()
            assert await node.query(COUNTED) == ("columns", counts(10))
            assert (tmp_path / "columns" / "view.duckdb").stat().st_ino == made

    asyncio.run(run())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_a_damaged_one_is_made_anew(tmp_path: Path, share: float) -> None:
    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            await fill(node)
            await node.query(COUNTED)
        database = tmp_path / "columns" / "view.duckdb"
        content = bytearray(database.read_bytes())
        start = int(len(content) * share)
        content[start : start + 300_000] = bytes(len(content[start : start + 300_000]))
        database.write_bytes(content)
        async with open_columns(tmp_path) as node:
            await node.following()
            assert await node.query(COUNTED) == ("columns", counts(10))

    asyncio.run(run())


def test_a_query_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path, columns={"wait_seconds": 0}) as node:
            await node.following()
            await fill(node)
            assert await node.query(COUNTED) == ("reader", counts(10))

    asyncio.run(run())


def test_explain_says_which_way_and_why(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            await fill(node)
            taken = await node.shard.explain_columns(node.request(COUNTED))
            assert taken["path"] == "columns"
            assert taken["estimate"]["quads_scanned"] == 31
            assert taken["plan"]
            refused = await node.shard.explain_columns(node.request(PREFIX + "DESCRIBE :s1"))
            assert (refused["path"], refused["reason"]) == ("reader", "DESCRIBE")

    asyncio.run(run())


def test_what_a_kill_leaves_is_taken_up_again(tmp_path: Path) -> None:
    async def run() -> None:
        directory, left = tmp_path / "data", tmp_path / "left"
        directory.mkdir()
        async with open_columns(directory) as node:
            await node.following()
            await fill(node)
            await node.query(COUNTED)
            shutil.copytree(directory / "columns", left)  # as the disk has it, nothing closed
            await fill(node, 30)
            await node.query(COUNTED)
        shutil.rmtree(directory / "columns")
        left.rename(directory / "columns")
        made = (directory / "columns" / "view.duckdb").stat().st_ino
        async with open_columns(directory) as node:
            await node.following()
            assert await node.query(COUNTED) == ("columns", counts(20))
            assert (directory / "columns" / "view.duckdb").stat().st_ino == made

    asyncio.run(run())


def test_a_query_ends_at_its_deadline_and_the_view_goes_on(tmp_path: Path) -> None:
    crossed = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?l) }"

    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            for first in range(0, 300, 30):
                await fill(node, first)
            with pytest.raises(QueryTimeout, match="longer than 1 s"):
                await node.query(crossed, timeout_s=1)
            assert (await node.columns.status()).running == 0
            assert await node.query(COUNTED) == ("columns", counts(100))

    asyncio.run(run())


def test_a_query_that_is_cancelled_ends(tmp_path: Path) -> None:
    crossed = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?l) }"

    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            for first in range(0, 300, 30):
                await fill(node, first)
            asked = asyncio.create_task(node.query(crossed))
            while (await node.columns.status()).running == 0:
                assert not asked.done(), await asked
                await asyncio.sleep(0.02)
            (running,) = node.shard.running_queries()
            assert node.shard.cancel_query(running.id)
            with pytest.raises(QueryCancelled):
                await asked
            async with asyncio.timeout(HANG_S):
                while (await node.columns.status()).running:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    asyncio.run(run())


def test_a_large_change_comes_in_parts(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            quads = (Quad(NamedNode(f"http://example.org/{n}"), KIND, Literal(n)) for n in range(30_000))
            content = serialize(quads, format=RdfFormat.N_TRIPLES)
            assert content is not None

            async def body() -> AsyncIterator[bytes]:
                yield content

            await node.shard.writes(FULL_VISIBILITY).write_graph(
                body(),
                RdfSyntax.N_TRIPLES,
                graph=None,
                whole_dataset=False,
                replace=False,
                base_iri=None,
            )
            text = PREFIX + "SELECT (COUNT(*) AS ?n) (SUM(?o) AS ?sum) { ?s :kind ?o }"
            assert await node.query(text) == ("columns", b"n,sum\r\n30000,449985000\r\n")

    asyncio.run(run())


def test_terms_that_nothing_has_any_more_go_at_a_quiet_moment(tmp_path: Path) -> None:
    async def body() -> AsyncIterator[bytes]:
        for number in range(REMOVED_MIN):
            yield b'<http://example.org/%d> <http://example.org/text> "text %d" .\n' % (number, number)

    async def run() -> None:
        # with the past, nothing is dead before it is forgotten
        async with open_columns(tmp_path, columns={"past": False}) as node:
            await node.following()
            await fill(node)
            graph = NamedNode("http://example.org/large")
            await node.shard.writes(FULL_VISIBILITY).write_graph(
                body(), RdfSyntax.N_TRIPLES, graph=graph, whole_dataset=False, replace=False, base_iri=None
            )
            await node.shard.writes(FULL_VISIBILITY).delete_graph(graph)
            assert (await node.query(COUNTED))[1] == counts(10)
            await be_quiet(node)

    async def be_quiet(node: ColumnNode) -> None:
        await asyncio.sleep(8)  # a second without changes for each of the two predicates, and one more
        await node.following()
        assert await node.query(COUNTED) == ("columns", counts(10))

    async def run_on() -> None:
        async with open_columns(tmp_path, columns={"past": False}) as node:
            await node.following()
            await be_quiet(node)

    def terms() -> int:
        with duckdb.connect(str(tmp_path / "columns" / "view.duckdb")) as connection:
            check(connection)
            ((count,),) = connection.execute("SELECT count(*) FROM terms").fetchall()
        return int(count)

    asyncio.run(run())
    for _ in range(5):  # as the engine gives way, the moment may come later
        if terms() >= 100:
            asyncio.run(run_on())
    assert terms() < 100


def test_it_is_made_anew_behind_a_query_that_runs(tmp_path: Path) -> None:
    """What was purged is in its files: DuckDB lets go of these when no query works on them any more."""
    crossed = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?a != ?l) }"

    async def ask(node: ColumnNode) -> None:
        with pytest.raises(QueryTimeout):
            await node.query(crossed, timeout_s=5)

    async def run() -> None:
        async with open_columns(tmp_path) as node:
            await node.following()
            for first in range(0, 300, 30):
                await fill(node, first)
            asked = asyncio.create_task(ask(node))  # an error would keep the store
            while (await node.columns.status()).running == 0:
                assert not asked.done()
                await asyncio.sleep(0.02)
            scope = PurgeScope("resource", "http://example.org/s0")
            assert (await node.shard.purges.purge(scope, "ann", None, HANG_S)).is_done
            await asked
            assert await node.query(COUNTED) == ("columns", counts(100).replace(b"k0,100", b"k0,99"))

    asyncio.run(run())
