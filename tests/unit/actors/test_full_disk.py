"""A node on a disk that fills up: what it takes, what it answers, and that it goes on when there is room."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import GraphDBError, StorageFull
from graphdb.model import Confirmation
from graphdb.node import QueryRequest
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from graphdb.store.quad_store import QuadStore
from tests.support.shards import Shard, open_shard
from tests.support.small_disk import ToldDisk, fill, mounted
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

COUNT = "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }"
RESERVE_MB = 24


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A real file system of 300 MB."""
    with mounted(tmp_path / "disk", 300, request.param) as place:
        yield place


async def update(shard: Shard, text: str) -> Confirmation:
    return await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())


def inserting(graph: str, first: int, count: int) -> str:
    triples = " ".join(f'<urn:s{n}> <urn:p> "{n} of them all" .' for n in range(first, first + count))
    return f"INSERT DATA {{ GRAPH <urn:{graph}> {{ {triples} }} }}"


async def counted(shard: Shard) -> int:
    """As a reader counts them, from a checkpoint."""
    request = QueryRequest(parse_query(COUNT), Dataset(), ResultFormat.JSON, HANG_S)
    stream = await shard.start_query(request)
    try:
        body = b""
        while (piece := await stream.read()) is not None:
            body += piece
    finally:
        stream.close()
    ((row,),) = [json.loads(body)["results"]["bindings"]]
    return int(row["n"]["value"])


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = HANG_S) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 a node has no event for it
            await asyncio.sleep(0.2)


async def test_a_full_disk_takes_deletions_answers_reads_and_goes_on(disk: Path) -> None:
    data_dir, filler = disk / "data", disk / "filler"
    data_dir.mkdir()
    server = {"disk_reserve_mb": RESERVE_MB}
    async with open_shard(data_dir, server=server) as shard:
        for place in range(8):
            await update(shard, inserting(f"g{place % 4}", place * 1000, 1000))
        await until(lambda: _is(lambda: (data_dir / "reserve").exists()))
        fill(filler)
        assert (shard.status().status, shard.status().reason) != ("healthy", None)
        assert "full" in (shard.status().reason or "")
        with pytest.raises(StorageFull, match="nothing can be added"):
            await update(shard, "INSERT DATA { <urn:a> <urn:b> 1 }")
        assert await counted(shard) == 8000, "in a copy of the store that is made now"
        await update(shard, "DROP GRAPH <urn:g0>")
        await update(shard, "CLEAR GRAPH <urn:g1>")
        await update(shard, "DELETE WHERE { GRAPH <urn:g2> { ?s ?p ?o } }")
        await shard.writes(FULL_VISIBILITY).delete_graph(NamedNode("urn:g3"))
        assert await counted(shard) == 0
        with pytest.raises(StorageFull):
            await update(shard, "INSERT DATA { <urn:a> <urn:b> 1 }")
        filler.unlink()
        assert (await update(shard, "INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:b> 1 } }")).affected_triples
        assert await counted(shard) == 1
        assert shard.status().status == "healthy"
    async with open_shard(data_dir, server=server) as shard:
        assert await counted(shard) == 1


async def test_a_start_on_a_full_disk_serves_reads_and_deletions(disk: Path) -> None:
    data_dir = disk / "data"
    data_dir.mkdir()
    server = {"disk_reserve_mb": RESERVE_MB}
    async with open_shard(data_dir, server=server) as shard:
        await update(shard, inserting("g", 0, 5000))
        await until(lambda: _is(lambda: (data_dir / "reserve").exists()))
    fill(disk / "filler")
    async with open_shard(data_dir, server=server) as shard:
        assert shard.status().status == "degraded"
        assert await counted(shard) == 5000
        await update(shard, "DROP GRAPH <urn:g>")
        assert await counted(shard) == 0


async def test_data_that_fills_the_disk_can_be_deleted_and_written_again(disk: Path) -> None:
    """No other file is in the way: it is the room of what was deleted that writing goes on with."""
    data_dir = disk / "data"
    data_dir.mkdir()
    fill(disk / "filler", leave_bytes=120 << 20)
    async with open_shard(data_dir, server={"disk_reserve_mb": RESERVE_MB}) as shard:
        await until(lambda: _is(lambda: (data_dir / "reserve").exists()))
        stored = 0
        with suppress(StorageFull):
            while True:
                await update(shard, inserting(f"g{stored // 1000 % 20}", stored, 1000))
                stored += 1000
        assert stored >= 10_000
        assert await counted(shard) == stored, "what was confirmed, and nothing of what was refused"
        for graph in range(20):
            await update(shard, f"DROP GRAPH <urn:g{graph}>")
        assert await counted(shard) == 0

        async def is_taken() -> bool:
            try:
                await update(shard, inserting("again", 0, 1000))
            except GraphDBError:
                return False
            return True

        await until(is_taken)
        assert await counted(shard) == 1000


async def _is(holds: Callable[[], bool]) -> bool:
    return holds()


async def test_a_large_document_is_refused_before_it_fills_the_disk(disk: Path) -> None:
    data_dir = disk / "data"
    data_dir.mkdir()

    async def body() -> AsyncIterator[bytes]:
        for start in range(0, 2_000_000, 10_000):
            yield b"".join(b"<urn:s%d> <urn:p> <urn:o%d> .\n" % (n, n) for n in range(start, start + 10_000))

    async with open_shard(data_dir, server={"disk_reserve_mb": RESERVE_MB}) as shard:
        await until(lambda: _is(lambda: (data_dir / "reserve").exists()))
        with pytest.raises(StorageFull):
            await shard.writes(FULL_VISIBILITY).write_graph(
                body(),
                RdfSyntax.N_TRIPLES,
                graph=NamedNode("urn:large"),
                whole_dataset=False,
                replace=True,
                base_iri=None,
            )
        assert await counted(shard) == 0
        assert (await update(shard, "INSERT DATA { <urn:a> <urn:b> 1 }")).affected_triples == 1


async def test_an_injected_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without a mount: the disk says what the test tells it."""
    disk = ToldDisk(monkeypatch, tmp_path)
    async with open_shard(tmp_path, server={"disk_reserve_mb": RESERVE_MB}) as shard:
        await update(shard, inserting("g", 0, 100))
        await until(lambda: _is(lambda: (tmp_path / "reserve").exists()))
        disk.beside_bytes = (RESERVE_MB << 20) + (1 << 20)
        await until(lambda: _is(lambda: shard.status().status == "degraded"))
        assert "full" in (shard.status().reason or "")
        with pytest.raises(StorageFull):
            await update(shard, "INSERT DATA { <urn:a> <urn:b> 1 }")
        with pytest.raises(StorageFull):
            await update(shard, "CREATE GRAPH <urn:new>")
        assert (
            await update(shard, "DELETE DATA { GRAPH <urn:g> { <urn:s0> <urn:p> '0 of them all' } }")
        ) == (Confirmation(2, 1))
        assert (tmp_path / "reserve").stat().st_size < RESERVE_MB << 20, "it took from the reserve"
        assert await counted(shard) == 99
        disk.beside_bytes = disk.total_bytes
        assert (await update(shard, "INSERT DATA { <urn:a> <urn:b> 1 }")).affected_triples == 1
        assert shard.status().status == "healthy"


async def test_a_store_that_could_not_be_copied_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a flush that met the end of the disk the engine gives no copy any more, also when there is room:
    nothing was written meanwhile, so nothing but the reads shows it.
    """
    real, refusing = QuadStore._back_up, list[int]()

    def back_up(quads: QuadStore, path: Path) -> None:
        if not refusing:
            refusing.append(id(quads))
        if id(quads) in refusing:
            quads.is_starved = True
            raise StorageFull("the store has no room")
        real(quads, path)

    monkeypatch.setattr(QuadStore, "_back_up", back_up)
    async with open_shard(tmp_path) as shard:
        await update(shard, inserting("g", 0, 10))
        with pytest.raises(StorageFull):
            await counted(shard)

        async def is_read() -> bool:
            try:
                return await counted(shard) == 10
            except GraphDBError:
                return False

        await until(is_read)


def test_the_support_fills_a_disk(disk: Path) -> None:
    fill(disk / "filler")
    assert shutil.disk_usage(disk).free < 1 << 16
