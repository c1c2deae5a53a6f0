"""`text:query` on a node: after its start and writes, at once and by readers, and as principals see it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.config.limits import GateLimits
from graphdb.errors import EvaluationFailed, InvalidParameter, LimitExceeded
from graphdb.live.live_queries import read_live_query
from graphdb.node import Evaluated, QueryRequest
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.text_tables import TextTable
from graphdb.store.join_walk import OverBudget
from graphdb.store.small_joins import small_join
from tests.support.shards import Shard, open_shard

pytestmark = pytest.mark.anyio

PREFIXES = """PREFIX : <urn:> PREFIX text: <http://jena.apache.org/text#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
DATA = """INSERT DATA {
    :a rdfs:label "Red wine" ; :year 1 . :b rdfs:label "White wine"@en ; :year 2 .
    :c rdfs:comment "wine, wine" ; :year 3 . [] rdfs:label "Blank wine" ; :year 4 .
    GRAPH :g { :a rdfs:label "Red wine" . :d rdfs:label "Hidden wine" ; :year 5 }
}"""
WINE = "SELECT ?year { ?s text:query (rdfs:label 'wine') ; :year ?year }"


async def update(shard: Shard, text: str) -> int:
    done = await shard.writes(FULL_VISIBILITY).update(parse_update(PREFIXES + text), Dataset())
    return done.snapshot_index


async def read(reads: Any, text: str, *, explain: bool = False) -> bytes:
    """By a reader."""
    request = QueryRequest(parse_query(PREFIXES + text), Dataset(), ResultFormat.CSV, 30, None, explain)
    stream = await reads.start_query(request)
    try:
        pieces = []
        while (piece := await stream.read()) is not None:
            pieces.append(piece)
        return b"".join(pieces[:1] if explain else pieces)
    finally:
        stream.close()


async def rows(reads: Any, text: str, **options: Any) -> list[str]:
    return sorted((await read(reads, text, **options)).decode().split("\r\n")[1:-1])


def _cells_at_once(found: Evaluated) -> list[list[str]]:
    answer = found.answer
    solutions = answer.solutions() if isinstance(answer, TextTable) else answer
    return [[term.value for term in row] for row in solutions]  # type: ignore[union-attr]


async def in_arrays(reads: Any, text: str) -> list[str]:
    """Asked for until it is joined in arrays, and by a reader on the way."""
    request = QueryRequest(parse_query(PREFIXES + text), Dataset(), ResultFormat.CSV, 30)
    for _ in range(500):
        stream = await reads.start_query(request)
        stream.close()
        if stream.where.startswith("port"):
            return await rows(reads, text)
        await asyncio.sleep(0.01)
    raise TimeoutError("the columns are not read")


async def at_once(shard: Shard, text: str) -> list[str]:
    """Once what was written is taken in."""
    query = parse_query(PREFIXES + text)
    join = small_join(query)
    assert join is not None
    for _ in range(2000):
        found: Evaluated | None = shard.node.queries.whole.search(join, lambda: query)
        if found is not None:
            return sorted(map(" ".join, _cells_at_once(found)))
        await asyncio.sleep(0.01)
    raise TimeoutError("the index is not ready")


@pytest.fixture
async def shard(tmp_path: Path) -> AsyncIterator[Shard]:
    async with open_shard(tmp_path, text={"predicates": ["*"], "max_hits": 5}) as shard:
        await update(shard, DATA)
        yield shard


async def test_readers_join_what_is_found(shard: Shard) -> None:
    assert await rows(shard, WINE) == ["1", "2", "4"]
    assert await rows(shard, WINE.replace("rdfs:label ", "")) == ["1", "2", "3", "4"]
    assert await rows(shard, WINE.replace("'wine'", "'red'")) == ["1"]
    assert await rows(shard, WINE.replace("'wine'", "'wine' 'lang:en'")) == ["2"]
    assert await rows(shard, "SELECT ?year { GRAPH ?g { ?s text:query 'wine' ; :year ?year } }") == ["5"]


async def test_the_best_come_first(shard: Shard) -> None:
    assert await rows(shard, "SELECT ?s { ?s text:query ('wine' 1) }") == ["urn:c"]
    answer = await read(shard, "SELECT ?s { (?s ?score) text:query 'red wine' } ORDER BY DESC(?score)")
    assert answer.decode().split("\r\n")[1] == "urn:a"


async def test_small_ones_are_answered_at_once(shard: Shard) -> None:
    text = "SELECT ?year { ?s text:query (rdfs:label 'wine' 3) ; :year ?year }"
    assert await at_once(shard, text) == ["1", "2", "4"]
    assert await at_once(shard, text.replace("?year }", "?year FILTER(?year > 1) }")) == ["2", "4"]


async def test_large_ones_are_not(shard: Shard) -> None:
    there = " ".join(f":a :part :p{number} ." for number in range(200))
    await update(shard, f"INSERT DATA {{ {there} }}")
    with pytest.raises(OverBudget):
        await at_once(shard, "SELECT ?part { ?s text:query (rdfs:label 'red' 3) ; :part ?part }")


async def test_writes_are_found_at_once(shard: Shard) -> None:
    await update(shard, "INSERT DATA { :new rdfs:label 'novel' ; :year 7 }")
    novel = WINE.replace("wine", "novel")
    assert await rows(shard, novel) == ["7"]
    await update(shard, "DELETE DATA { :new rdfs:label 'novel' }")
    assert await rows(shard, novel) == []


async def test_hits_are_of_the_state_that_is_read(shard: Shard) -> None:
    """While it is written all the time: a literal and the number beside it are always those of one write."""
    is_done = False

    async def write() -> None:
        for number in range(60):
            await update(
                shard,
                "DELETE { :x rdfs:label ?l ; :n ?n } "
                f"INSERT {{ :x rdfs:label 'mark m{number}' ; :n {number} }} "
                "WHERE { OPTIONAL { :x rdfs:label ?l ; :n ?n } }",
            )
        nonlocal is_done
        is_done = True

    query = "SELECT ?l ?n { (?s ?score ?l) text:query 'mark' . ?s :n ?n }"
    await in_arrays(shard, query)
    join = small_join(parse_query(PREFIXES + query))
    assert join is not None
    writing = asyncio.create_task(write())
    while not is_done:
        found = shard.node.queries.whole.search(join, lambda: parse_query(PREFIXES + query))
        at_once = [] if found is None else [",".join(row) for row in _cells_at_once(found)]
        for row in [*at_once, *await rows(shard, query)]:
            label, number = row.split(",")
            assert label == f"mark m{number}"
    await writing


async def test_a_start_indexes_what_there_is(tmp_path: Path) -> None:
    async with open_shard(tmp_path, text={"predicates": ["*"]}) as shard:
        await update(shard, DATA)
    async with open_shard(tmp_path, text={"predicates": ["*"]}) as shard:
        assert await rows(shard, WINE) == ["1", "2", "4"]


async def test_a_large_load_is_taken_in(shard: Shard) -> None:
    async def body() -> AsyncIterator[bytes]:
        for number in range(60_000):
            yield b'<urn:s%d> <urn:p> "item word%d" .\n' % (number, number)

    await shard.writes(FULL_VISIBILITY).write_graph(
        body(), RdfSyntax.N_TRIPLES, graph=None, whole_dataset=False, replace=False, base_iri=None
    )
    assert await rows(shard, "SELECT ?s { ?s text:query 'word777' }") == ["urn:s777"]


async def test_principals_find_what_they_see(shard: Shard) -> None:
    visibility = Visibility(default_graph=False, patterns=frozenset({"urn:g"}))
    reads = await shard.node.queries.reads(visibility)
    text = "SELECT ?s { GRAPH :g { ?s text:query ('wine' 1) } }"
    assert await rows(reads, "SELECT ?s { ?s text:query 'wine' }") == []
    assert await rows(reads, text.replace(" 1", "")) == ["urn:a", "urn:d"]
    await update(shard, "INSERT DATA { GRAPH :g { :e rdfs:label 'novel' } :f rdfs:label 'novel' }")
    reads = await shard.node.queries.reads(visibility)
    assert await rows(reads, "SELECT ?s { GRAPH ?g { ?s text:query 'novel' } }") == ["urn:e"]


async def test_hits_are_joined_in_arrays_after_a_while(shard: Shard) -> None:
    assert await in_arrays(shard, WINE) == ["1", "2", "4"] == await at_once(shard, WINE)
    await update(shard, "INSERT DATA { :a :year 8 } ; DELETE DATA { :b :year 2 }")
    assert await rows(shard, WINE) == ["1", "4", "8"] == await at_once(shard, WINE)
    await update(shard, "INSERT DATA { :new rdfs:label 'new wine' ; :year 9 }")
    assert await at_once(shard, WINE) == ["1", "4", "8", "9"] == await rows(shard, WINE)
    await update(shard, "INSERT DATA { :x rdfs:label 'wine', 'wine 2', 'wine 3' }")
    with pytest.raises(LimitExceeded, match="max_hits"):
        await rows(shard, WINE)


async def test_principals_join_what_they_see(shard: Shard) -> None:
    visibility = Visibility(default_graph=False, patterns=frozenset({"urn:g"}))
    reads = await shard.node.queries.reads(visibility)
    text = "SELECT ?s ?year { GRAPH :g { ?s text:query 'wine' ; :year ?year } }"
    for asked in (reads, shard):
        assert await in_arrays(asked, text) == ["urn:d,5"]
    default = "SELECT ?s ?year { ?s text:query 'wine' ; :year ?year }"
    assert len(await in_arrays(shard, default)) == 4
    assert await in_arrays(reads, default) == []


async def test_merged_graphs_have_a_triple_once(shard: Shard) -> None:
    text = "SELECT ?s FROM :g FROM :h { ?s text:query 'wine' }"
    await update(shard, "INSERT DATA { GRAPH :h { :a rdfs:label 'Red wine' } }")
    assert await rows(shard, text) == ["urn:a", "urn:d"]


async def test_explain_shows_the_search(shard: Shard) -> None:
    found = json.loads(await read(shard, WINE, explain=True))
    (report,) = found["lookups"]
    assert (report["query"], report["hits"], report["rows"]) == ("wine", 3, 3)
    assert report["seconds"] >= 0
    assert report["log_index"] == shard.snapshot_index()


async def test_more_hits_than_allowed_are_refused(shard: Shard) -> None:
    await update(shard, "INSERT DATA { :x rdfs:label 'wine', 'wine 2', 'wine 3', 'wine 4' }")
    with pytest.raises(LimitExceeded, match="max_hits"):
        await rows(shard, "SELECT ?s { ?s text:query 'wine' }")
    assert len(await rows(shard, "SELECT ?s { ?s text:query ('wine' 5) }")) == 5


async def test_what_cannot_be_searched_is_refused(shard: Shard) -> None:
    with pytest.raises(InvalidParameter, match="text:query"):
        await rows(shard, "SELECT ?s { ?s text:query 'wine AND (' }")
    with pytest.raises(EvaluationFailed, match="update"):
        await update(shard, "DELETE { ?s ?p ?o } WHERE { ?s text:query 'wine' ; ?p ?o }")
    with pytest.raises(EvaluationFailed, match="search"):
        read_live_query(f"LIVE {PREFIXES} {WINE}", GateLimits())


async def test_predicates_that_are_not_indexed_are_refused(tmp_path: Path) -> None:
    label = "http://www.w3.org/2000/01/rdf-schema#label"
    async with open_shard(tmp_path, text={"predicates": [label]}) as shard:
        await update(shard, DATA)
        assert await rows(shard, "SELECT ?year { ?s text:query 'wine' ; :year ?year }") == ["1", "2", "4"]
        with pytest.raises(InvalidParameter, match=r"text\.predicates"):
            await rows(shard, WINE.replace("rdfs:label", "rdfs:comment"))


async def test_without_an_index_searches_are_refused(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        with pytest.raises(EvaluationFailed, match=r"text\.predicates"):
            await rows(shard, WINE)
