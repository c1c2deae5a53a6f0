"""A node's spatial index: behind its start, behind its writes, and in the answers of its readers."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import QuerySolutions

from actors.shard import index_keeper
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.geo.entailment import Entailment, asked_text
from graphdb.geo.function_calls import load
from graphdb.geo.spatial_index import SpatialIndex
from graphdb.geometry.geosparql_names import GEO
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from graphdb.store.small_joins import small_join
from tests.support.shards import Shard, open_shard

pytestmark = pytest.mark.anyio

PREFIXES = """PREFIX : <urn:> PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/>
"""
AREA = '"POLYGON((9 9, 12 9, 12 12, 9 12, 9 9))"^^geo:wktLiteral'
WITHIN = f"SELECT ?g {{ ?g geo:asWKT ?w FILTER(geof:sfWithin(?w, {AREA})) }}"
ORIGIN = '"POINT(0 10)"^^geo:wktLiteral'
NEAREST = f"SELECT ?g {{ ?g geo:asWKT ?w }} ORDER BY geof:distance(?w, {ORIGIN}, uom:metre) LIMIT 2"


def points(begin: int, end: int) -> str:
    """Points to the east of each other, each a geometry of its own."""
    there = (f':g{n} geo:asWKT "POINT({n / 10} 10)"^^geo:wktLiteral .' for n in range(begin, end))
    return "INSERT DATA { " + " ".join(there) + " }"


async def update(shard: Shard, text: str) -> None:
    await shard.writes(FULL_VISIBILITY).update(parse_update(PREFIXES + text), Dataset())


async def read(shard: Shard, text: str, *, explain: bool = False) -> bytes:
    """By a reader."""
    request = QueryRequest(parse_query(PREFIXES + text), Dataset(), ResultFormat.CSV, 30, None, explain)
    stream = await shard.start_query(request)
    try:
        pieces = []
        while (piece := await stream.read()) is not None:
            pieces.append(piece)
        return b"".join(pieces[:1] if explain else pieces)
    finally:
        stream.close()


async def names(shard: Shard, text: str) -> list[str]:
    return [row.removeprefix("urn:") for row in (await read(shard, text)).decode().split()[1:]]


async def lookups(shard: Shard, text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(await read(shard, text, explain=True)).get("lookups", [])
    return found


async def ready(shard: Shard) -> SpatialIndex:
    """Once there is nothing left to do for it."""
    assert shard.open is not None
    for _ in range(2000):
        index = shard.open.quads.spatial_index
        if index is not None and not index.has_work:
            return index
        await asyncio.sleep(0.01)
    raise TimeoutError("the index is not ready")


@pytest.fixture
async def shard(tmp_path: Path) -> AsyncIterator[Shard]:
    """Of a thousand points."""
    async with open_shard(tmp_path) as shard:
        await update(shard, points(0, 1000))
        await ready(shard)
        yield shard


def is_small_join(shard: Shard, text: str) -> bool:
    load()  # as whoever is asked does before
    join = small_join(parse_query(PREFIXES + text))
    return join is not None and shard.is_small_join(join)


async def test_readers_are_given_what_it_finds(shard: Shard) -> None:
    expected = sorted(f"g{number}" for number in range(91, 120))  # not those on the boundary
    assert sorted(await names(shard, WITHIN)) == expected
    assert await lookups(shard, WITHIN) == [
        {"variable": "w", "sought": "meeting", "values": 31, "reason": ""}
    ]


async def test_what_it_finds_is_small_join(shard: Shard) -> None:
    assert is_small_join(shard, WITHIN)
    answer = shard.query(parse_query(PREFIXES + WITHIN), Dataset()).answer
    assert isinstance(answer, QuerySolutions)
    assert len(list(answer)) == 29
    wide = WITHIN.replace("12", "60")
    assert not is_small_join(shard, wide)


async def test_the_nearest(shard: Shard) -> None:
    assert await names(shard, NEAREST) == ["g0", "g1"]
    assert [lookup["values"] for lookup in await lookups(shard, NEAREST)] == [14, 50]


async def test_the_nearest_when_few_have_what_else_is_asked_for(shard: Shard) -> None:
    """No attempt has enough rows, so all is looked through."""
    await update(shard, "INSERT DATA { :g800 a :Tall . :g900 a :Tall }")
    assert await names(shard, NEAREST.replace("?g geo:asWKT", "?g a :Tall ; geo:asWKT")) == ["g800", "g900"]


async def test_writes_are_seen_at_once(shard: Shard) -> None:
    await update(shard, 'INSERT DATA { :new geo:asWKT "POINT(10.01 10.01)"^^geo:wktLiteral }')
    assert "new" in await names(shard, WITHIN)
    await update(shard, "DELETE WHERE { :new geo:asWKT ?w }")
    assert "new" not in await names(shard, WITHIN)


async def test_topology_properties_with_one_end_given(shard: Shard) -> None:
    await update(shard, f"INSERT DATA {{ :area geo:hasGeometry :shape . :shape geo:asWKT {AREA} }}")
    await ready(shard)
    text = "SELECT ?x { ?x geo:sfWithin :area FILTER(?x != :area && ?x != :shape) }"
    assert len(await names(shard, text)) == 29
    assert [lookup["values"] for lookup in await lookups(shard, text)] == [32]
    assert len(await names(shard, asked_text(parse_query(PREFIXES + text), Entailment.SIMPLE))) == 0


async def test_a_property_of_ones_own_once_it_was_asked_for(shard: Shard) -> None:
    await update(shard, "INSERT { ?g :place ?w } WHERE { ?g geo:asWKT ?w }")
    text = WITHIN.replace("geo:asWKT", ":place")
    assert (await lookups(shard, text))[0][
        "reason"
    ] == "the index does not have the values of <urn:place> yet"
    assert len(await names(shard, text)) == 29
    await ready(shard)
    assert (await lookups(shard, text))[0]["values"] == 31
    assert len(await names(shard, text)) == 29


async def test_after_a_start(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        await update(shard, points(0, 200))
    async with open_shard(tmp_path) as shard:
        assert len(await names(shard, WITHIN)) == 29  # ready or not
        await ready(shard)
        assert (await lookups(shard, WITHIN))[0]["values"] == 31
        assert len(await names(shard, WITHIN)) == 29


async def test_a_failure_costs_the_index_and_no_answer(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(index: SpatialIndex) -> bool:
        raise OSError("no room")

    monkeypatch.setattr(index_keeper, "_AFTER_FAILURE_S", 0.05)
    with monkeypatch.context() as patched:
        patched.setattr(SpatialIndex, "step", fail)
        await update(shard, points(1000, 1010))
        assert await is_gone(shard)
        assert len(await names(shard, WITHIN)) == 29
    await ready(shard)
    assert (await lookups(shard, WITHIN))[0]["values"] == 31


async def is_gone(shard: Shard) -> bool:
    assert shard.open is not None
    for _ in range(1000):
        if shard.open.quads.spatial_index is None:
            return True
        await asyncio.sleep(0.001)
    return False


async def test_a_store_without_geometries_has_nothing_to_do(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        index = await ready(shard)
        await update(shard, "INSERT DATA { :a :b :c }")
        assert not index.has_work
        assert index.values(GEO + "asWKT") is not None
        assert await names(shard, WITHIN) == []
        assert (await lookups(shard, WITHIN))[0]["values"] == 0
