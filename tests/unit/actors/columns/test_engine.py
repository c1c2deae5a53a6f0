"""The column view's process ends where a query in it does not, or takes too much memory, and comes back."""

import asyncio
import json
import os
import random
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, serialize

from actors.columns import column_view
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import QueryTimeout, UnavailableError
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.results import ResultFormat
from serve.backend import AnswerStream
from tests.support.columns import ColumnNode, open_columns
from tests.support.readers import exists
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

SUBJECTS = 30_000
EXAMPLE = "http://example.org/"
PREFIX = f"PREFIX : <{EXAMPLE}> "
COUNTED = PREFIX + "SELECT (COUNT(*) AS ?n) (MAX(?v) AS ?max) { ?s :value ?v ; :other ?o }"
COUNTS = f"n,max\r\n{SUBJECTS},{2**40}\r\n".encode()
LISTED = PREFIX + "SELECT ?s ?v ?o { ?s :value ?v ; :other ?o }"
TEXTS = 16
# over random texts of a and b, which make the states of such an expression so many that none can be kept: two
# seconds of a processor for each of them, and all in what the engine takes as one piece of work
MATCHED = " || ".join(f"REGEX(?t, 'a{'(a|b)' * 20}(c|d){number}')" for number in range(300))
UNENDING = PREFIX + f"SELECT (COUNT(*) AS ?n) {{ ?s :text ?t ; :kind ?k FILTER({MATCHED}) }}"
# a long string for each of some subjects: DuckDB does not count the memory of what it is working on
SWOLLEN = (
    PREFIX + "SELECT (SUM(STRLEN(CONCAT(?t, ?t, ?t, ?t, STR(?s)))) AS ?n) "
    "{ :text0 :text ?t . ?s :value ?v FILTER(?v < 1000) }"
)
LENGTHS = sum(len(f"{EXAMPLE}s{place}") + 4_000_000 for place in range(1000))
SWOLLEN_ANSWER = f"n\r\n{LENGTHS}\r\n".encode()


async def fill(node: ColumnNode) -> None:
    """Subjects with two small numbers each, but for the last one's, whose product is beyond 64 bits."""
    await node.following()
    value, other = NamedNode(EXAMPLE + "value"), NamedNode(EXAMPLE + "other")
    numbers = [*range(SUBJECTS - 1), 2**40]
    subjects = [NamedNode(f"{EXAMPLE}s{place}") for place in range(SUBJECTS)]
    quads = [
        Quad(subject, each, Literal(number))
        for subject, number in zip(subjects, numbers, strict=True)
        for each in (value, other)
    ]
    content = serialize(quads, format=RdfFormat.N_TRIPLES)
    assert content is not None

    async def body() -> AsyncIterator[bytes]:
        yield content

    await node.shard.writes(FULL_VISIBILITY).write_graph(
        body(), RdfSyntax.N_TRIPLES, graph=None, whole_dataset=False, replace=False, base_iri=None
    )
    assert await node.query(COUNTED) == ("columns", COUNTS)


async def back(node: ColumnNode, before: int) -> None:
    """Wait until another process than before answers as the first one did."""
    async with asyncio.timeout(120):  # it gives way to all else, also while it starts
        while True:
            try:
                status = await node.columns.status()
                if status.state == "following" and status.pid != before:
                    break
            except UnavailableError:
                pass
            await asyncio.sleep(0.05)
    assert await node.query(COUNTED) == ("columns", COUNTS)


def peak_mb(of_pid: int) -> int:
    """The most memory that a process has ever had."""
    (kilobytes,) = re.findall(
        r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{of_pid}/status").read_text(), re.MULTILINE
    )
    return int(kilobytes) >> 10


async def rest(stream: AnswerStream) -> bytes:
    """What is left of an answer."""
    pieces = []
    while (piece := await stream.read()) is not None:
        pieces.append(piece)
    return b"".join(pieces)


async def pid(node: ColumnNode) -> int:
    return (await node.columns.status()).pid


async def test_a_query_that_does_not_heed_its_interrupt_ends_the_process(tmp_path: Path) -> None:
    async with open_columns(tmp_path) as node:
        await fill(node)
        chance = random.Random(0)
        texts = ("".join(chance.choices("ab", k=500_000)) for _ in range(TEXTS))
        lines = " ".join(f":text{number} :text '{text}' ; :kind :k ." for number, text in enumerate(texts))
        await node.update(f"{PREFIX} INSERT DATA {{ {lines} }}")
        async with asyncio.timeout(HANG_S):
            explained = await node.shard.explain_columns(node.request(UNENDING))
            while (
                explained["path"] != "columns"
            ):  # it waits for less than the view may take on a busy machine
                explained = await node.shard.explain_columns(node.request(UNENDING))
        before = await pid(node)
        async with asyncio.timeout(240):
            for timeout_s in (5, 10, 20, 40):
                with pytest.raises(QueryTimeout):
                    await node.query(UNENDING, timeout_s=timeout_s)
                if await ends(before, 10):
                    break  # else, on a busy machine, it had not come to what it cannot leave
            else:
                pytest.fail("the process heeded each interrupt")
        await back(node, before)


async def ends(pid: int, within_s: float) -> bool:
    """Whether a process ends within this time, which is more than it is given to heed an interrupt."""
    for _ in range(round(within_s * 20)):
        if not exists(pid):
            return True
        await asyncio.sleep(0.05)
    return False


async def fill_with_text(node: ColumnNode) -> None:
    await fill(node)
    await node.update(f"{PREFIX} INSERT DATA {{ :text0 :text '{'ab' * 500_000}' }}")


async def test_a_process_that_takes_too_much_memory_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A query that takes it fast may be ended first, by the kernel's limit: then its process goes on."""
    monkeypatch.setattr(column_view, "_BESIDE_MB", 100)
    async with open_columns(tmp_path, columns={"memory_limit_mb": 64}) as node:
        await fill_with_text(node)
        assert await node.query(SWOLLEN, timeout_s=60) == ("reader", SWOLLEN_ANSWER)
        before = (await node.following()).pid
        engine = node.view._engine
        assert engine is not None
        engine._memory_limit_mb = 1  # so what the process has is too much, until another one is there
        await back(node, before)
    assert f"(process {before}) took more than its memory and was killed" in caplog.text


async def test_memory_that_is_not_given_ends_the_query_alone(tmp_path: Path) -> None:
    async with open_columns(tmp_path, columns={"memory_limit_mb": 64}) as node:
        await fill_with_text(node)
        before = await pid(node)
        assert await node.query(SWOLLEN, timeout_s=60) == ("reader", SWOLLEN_ANSWER)
        assert await node.query(COUNTED) == ("columns", COUNTS)
        assert peak_mb(before) < 1000  # the strings of one vector alone are 4000 MB


async def test_a_process_that_says_nothing_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_columns(tmp_path) as node:
        await fill(node)
        with monkeypatch.context() as patch:
            patch.setattr(column_view, "_SILENCE_S", 2.0)
            await asyncio.sleep(1)  # it counts from when the process has said next that it is alive
        before = await pid(node)
        os.kill(before, signal.SIGSTOP)
        assert await node.query(COUNTED) == ("reader", COUNTS)
        await back(node, before)


async def test_a_process_that_dies_leaves_its_queries_to_the_readers(tmp_path: Path) -> None:
    async with open_columns(tmp_path) as node:
        await fill(node)
        before = await pid(node)
        begun = await node.shard.start_query(node.request(LISTED))
        assert begun.where.startswith("columns")
        assert await begun.read()
        os.kill(before, signal.SIGKILL)
        assert await node.query(COUNTED) == ("reader", COUNTS)
        with pytest.raises(UnavailableError):
            await rest(begun)
        begun.close()
        await back(node, before)


async def test_an_answer_that_is_not_read_ends_at_its_deadline(tmp_path: Path) -> None:
    pairs = (
        PREFIX + "SELECT ?s ?t ?v { ?s :value ?v ; :other ?o . ?t :value ?w ; :other ?o2 FILTER(?v > ?w) }"
    )
    async with open_columns(tmp_path) as node:
        await fill(node)
        before = await pid(node)
        stream = await node.shard.start_query(node.request(pairs, timeout_s=1))
        assert stream.where.startswith("columns")
        async with asyncio.timeout(HANG_S):
            while (await node.columns.status()).running:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        with pytest.raises(QueryTimeout):
            await rest(stream)
        stream.close()
        assert await pid(node) == before


async def test_a_construct_that_is_larger_than_its_estimate_goes_to_a_reader_in_the_midst(
    tmp_path: Path,
) -> None:
    """What the columns collect of it has its bound: in the process it is not DuckDB's to count."""
    template = " ".join(f"?s :p{number} ?v ." for number in range(8))
    pattern = "?s :value ?v ; :other ?o FILTER(?v >= 0)"
    few = f"{PREFIX} CONSTRUCT {{ ?s :p ?v }} WHERE {{ {pattern} }}"
    many = f"{PREFIX} CONSTRUCT {{ {template} }} WHERE {{ {pattern} }}"
    async with open_columns(tmp_path) as node:
        await fill(node)
        before = await pid(node)
        where, answer = await node.query(few, ResultFormat.N_TRIPLES)
        assert (where, answer.count(b"\n")) == ("columns", SUBJECTS)
        where, answer = await node.query(many, ResultFormat.PLAIN_JSON)
        assert (where, len(json.loads(answer))) == ("reader", 8 * SUBJECTS)
        where, answer = await node.query(many, ResultFormat.N_TRIPLES)  # which collects nothing
        assert (where, answer.count(b"\n")) == ("columns", 8 * SUBJECTS)
        assert await pid(node) == before


async def test_a_construct_of_many_triples_goes_to_a_reader_at_once(tmp_path: Path) -> None:
    text = f"{PREFIX} CONSTRUCT {{ ?s :p ?v . ?s :q ?o }} WHERE {{ ?s :value ?v ; :other ?o }}"
    async with open_columns(tmp_path) as node:
        await fill(node)
        explained = await node.shard.explain_columns(node.request(text, ResultFormat.PLAIN_JSON))
        reason = f"it makes about {2 * SUBJECTS} triples, which a reader sends as it finds them"
        assert (explained["path"], explained["reason"]) == ("reader", reason)
        where, answer = await node.query(text, ResultFormat.PLAIN_JSON)
        assert (where, len(json.loads(answer))) == ("reader", 2 * SUBJECTS)
        where, answer = await node.query(text, ResultFormat.N_TRIPLES)
        assert (where, answer.count(b"\n")) == ("columns", 2 * SUBJECTS)


async def test_what_only_the_last_row_shows_comes_before_the_first_byte(tmp_path: Path) -> None:
    multiplied = PREFIX + "SELECT ?s (?v * ?o AS ?product) { ?s :value ?v ; :other ?o } ORDER BY ?v"
    async with open_columns(tmp_path) as node:
        await fill(node)
        where, answer = await node.query(multiplied)
        lines = answer.decode().splitlines()
        assert (where, len(lines)) == ("reader", SUBJECTS + 1)
        assert lines[-1] == f"{EXAMPLE}s{SUBJECTS - 1},"
        assert lines[-2] == f"{EXAMPLE}s{SUBJECTS - 2},{(SUBJECTS - 2) ** 2}"
