"""The shard over a real log in this process: its directory, its recovery, its checkpoints and backups."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node.store_lifecycle import StoreConfig
from actors.shard import checkpointer
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.errors import (
    AlreadyExists,
    CorruptionError,
    HostNotAllowed,
    LogUnavailable,
    OutcomeUnknown,
    Overloaded,
    RdfSyntaxError,
    StorageFull,
    UnavailableError,
    UnknownGraph,
)
from graphdb.log.file_log import FileLogConfig
from graphdb.model import ChangeSet, Confirmation, ForeseeingOutcome
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.store.quad_store import QuadStore
from tests.support.shards import Shard, no_readers
from tests.support.timing import HANG_S

SMALL = FileLogConfig(segment_bytes=4096, reserve_bytes=4096)
Use = Callable[[Shard], Awaitable[None]]


def with_shard(data_dir: Path, use: Use, *, checkpoint_log_bytes: int = 1 << 30) -> None:
    """Start a node on the directory, use it, stop it in order."""
    asyncio.run(_with_shard(data_dir, use, StoreConfig(checkpoint_log_bytes)))


async def _with_shard(data_dir: Path, use: Use, config: StoreConfig) -> None:
    log = UpdateLog(str(data_dir / "log"), SMALL)

    async def endpoint() -> str:
        return log.endpoint()

    shard = Shard.standalone(
        Settings(server={"data_dir": data_dir}), LogClient(endpoint), no_readers(), config
    )
    try:
        await shard.start()
        await use(shard)
    finally:
        await shard.close()
        log.close()


async def update(shard: Shard, text: str) -> Confirmation:
    return await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())


async def put(shard: Shard, body: bytes, *, graph: str, replace: bool = True) -> Confirmation:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50_000):
            yield body[start : start + 50_000]

    return await put_chunks(shard, chunks(), graph=graph, replace=replace)


async def put_chunks(
    shard: Shard, chunks: AsyncIterator[bytes], *, graph: str, replace: bool = True
) -> Confirmation:
    return await shard.writes(FULL_VISIBILITY).write_graph(
        chunks,
        RdfSyntax.N_TRIPLES,
        graph=NamedNode(graph),
        whole_dataset=False,
        replace=replace,
        base_iri=None,
    )


async def write_a_hundred(shard: Shard) -> None:
    for number in range(100):
        await update(shard, f"INSERT DATA {{ <urn:s> <urn:p> {number} }}")


async def expect_a_hundred(shard: Shard) -> None:
    assert shard.snapshot_index() == 100
    assert len(list(shard.dataset_quads())) == 100


async def nothing(shard: Shard) -> None: ...


async def _until_healthy(shard: Shard) -> None:
    async with asyncio.timeout(HANG_S):
        while shard.status().status != "healthy":  # noqa: ASYNC110 a node has no event for this
            await asyncio.sleep(0.05)


class _Told(ForeseeingOutcome):
    """Answers at once, as a port does."""

    def __init__(self) -> None:
        self.outcome: asyncio.Future[Confirmation] = asyncio.get_running_loop().create_future()
        self.done, self.set_exception = self.outcome.done, self.outcome.set_exception

    def foresee(self, result: Confirmation, /) -> None: ...

    def set_result(self, result: Confirmation, /) -> None:
        self.outcome.set_result(result)


def test_readers_wait_for_what_was_confirmed_and_the_store_could_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the log, and answered before it is applied."""

    def fail(quads: QuadStore, change: object) -> None:
        raise StorageFull("the disk is full")

    async def use(shard: Shard) -> None:
        await update(shard, "INSERT DATA { <urn:s> <urn:p> 1 }")
        with monkeypatch.context() as failing:
            failing.setattr(QuadStore, "apply", fail)
            failing.setattr(QuadStore, "apply_many", fail)
            told = _Told()
            assert shard.begin_update(parse_update("INSERT DATA { <urn:s> <urn:p> 2 }"), told)
            assert (await told.outcome).snapshot_index == 2
            with pytest.raises(LogUnavailable, match="confirmed"):
                list(shard.dataset_quads())
        await _until_healthy(shard)
        assert len(list(shard.dataset_quads())) == 2

    with_shard(tmp_path, use)


def test_bodies_that_come_slowly_keep_nothing_else_waiting(tmp_path: Path) -> None:
    async def use(shard: Shard) -> None:
        arrived, all_wait, waiting = asyncio.Event(), asyncio.Event(), 0

        async def slowly(line: bytes) -> AsyncIterator[bytes]:
            nonlocal waiting
            yield line * 10_000
            waiting += 1
            if waiting == 64:
                all_wait.set()
            await arrived.wait()

        async def put_slowly(number: int) -> Confirmation:
            line = b"<urn:s> <urn:p> <urn:o%d> .\n" % number
            return await put_chunks(shard, slowly(line), graph=f"urn:g{number}")

        slow = [asyncio.create_task(put_slowly(number)) for number in range(64)]
        async with asyncio.timeout(HANG_S):
            await all_wait.wait()
            assert (await put(shard, b"<urn:s> <urn:p> <urn:o> .", graph="urn:small")).affected_triples == 1
            with pytest.raises(Overloaded):
                await put_slowly(64)
        arrived.set()
        assert {one.affected_triples for one in await asyncio.gather(*slow)} == {1}
        assert (await put_slowly(65)).affected_triples == 1

    with_shard(tmp_path, use)


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    with_shard(tmp_path, write_a_hundred)
    with_shard(tmp_path, expect_a_hundred)
    assert (tmp_path / "FORMAT").read_text() == "graphdb data directory, format 1\n"
    assert (tmp_path / "applied").read_text() == "100\n"


def test_a_checkpoint_lets_the_log_go(tmp_path: Path) -> None:
    with_shard(tmp_path, write_a_hundred, checkpoint_log_bytes=5000)
    assert len(list((tmp_path / "log").glob("*.segment"))) < 3
    with_shard(tmp_path, expect_a_hundred)


def test_what_is_written_during_a_checkpoint_has_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the log of a load that ends during a checkpoint stays until much more is written."""
    flush, may_end = QuadStore.flush, threading.Event()

    def flush_late(quads: QuadStore) -> None:
        assert may_end.wait(HANG_S)
        flush(quads)

    async def use(shard: Shard) -> None:
        monkeypatch.setattr(QuadStore, "flush", flush_late)
        await write_a_hundred(shard)
        may_end.set()
        assert shard.open is not None
        await shard.open.checkpointer.finish()
        assert (tmp_path / "applied").read_text() == "100\n"

    with_shard(tmp_path, use, checkpoint_log_bytes=2000)


def test_a_checkpoint_that_fails_is_tried_again_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not only when the log has grown as much again."""
    flush, failing = QuadStore.flush, threading.Event()

    def flush_the_second_time(quads: QuadStore) -> None:
        if not failing.is_set():
            failing.set()
            raise UnavailableError("not now")
        flush(quads)

    async def use(shard: Shard) -> None:
        monkeypatch.setattr(QuadStore, "flush", flush_the_second_time)
        monkeypatch.setattr(checkpointer, "_AGAIN_S", 0)
        assert shard.open is not None
        number = 0
        while not failing.is_set():
            number += 1
            await update(shard, f"INSERT DATA {{ <urn:s> <urn:p> {number} }}")
            await shard.open.checkpointer.finish()
        await update(shard, "INSERT DATA { <urn:one> <urn:more> 1 }")
        await shard.open.checkpointer.finish()
        assert (tmp_path / "applied").read_text() == f"{number + 1}\n"

    with_shard(tmp_path, use, checkpoint_log_bytes=2000)


def has_checkpoint(data_dir: Path) -> bool:
    return (data_dir / "applied").exists()


def tables(data_dir: Path) -> int:
    return len(list(data_dir.rglob("*.sst")))


def test_what_the_engine_holds_is_flushed_before_it_slows_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log stays as it is, and so does what is known of it: both are for a checkpoint."""
    monkeypatch.setattr(checkpointer, "_SLOW_BYTES", 30_000)

    async def use(shard: Shard) -> None:
        assert shard.open is not None
        unflushed, before = shard.open.checkpointer.unflushed, tables(tmp_path)
        await update(shard, "INSERT DATA { <urn:s> <urn:p> 0 }")
        await shard.open.checkpointer.finish()
        assert unflushed.size_bytes
        assert tables(tmp_path) == before
        await write_a_hundred(shard)
        await shard.open.checkpointer.finish()
        assert not unflushed.slows_writes
        assert tables(tmp_path) > before
        assert not has_checkpoint(tmp_path)

    with_shard(tmp_path, use)
    with_shard(tmp_path, expect_a_hundred)


def test_a_lost_store_is_made_anew_from_a_whole_log(tmp_path: Path) -> None:
    async def without_end(shard: Shard) -> None:
        await write_a_hundred(shard)
        shutil.copytree(tmp_path / "log", tmp_path / "log-before-compaction")

    with_shard(tmp_path, without_end)
    shutil.rmtree(tmp_path / "log")
    (tmp_path / "log-before-compaction").rename(tmp_path / "log")
    (tmp_path / "store" / "CURRENT").write_text("nonsense")
    with_shard(tmp_path, expect_a_hundred)
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(CorruptionError, match="too late to make it anew"):
        with_shard(tmp_path, nothing)


def test_a_log_without_its_end_is_refused(tmp_path: Path) -> None:
    with_shard(tmp_path, write_a_hundred)
    shutil.rmtree(tmp_path / "log")
    with pytest.raises(CorruptionError, match="the log ends at 0, the store at 100"):
        with_shard(tmp_path, nothing)


def test_another_format_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("graphdb data directory, format 2\n")
    with pytest.raises(CorruptionError, match="format 2"):
        with_shard(tmp_path, nothing)


def test_a_backup_is_a_data_directory(tmp_path: Path) -> None:
    async def back_up(shard: Shard) -> None:
        await write_a_hundred(shard)
        assert await shard.backup(tmp_path / "backup") == 100
        await update(shard, "DELETE WHERE { ?s ?p ?o }")
        with pytest.raises(AlreadyExists):
            await shard.backup(tmp_path / "backup")

    async def go_on(shard: Shard) -> None:
        await expect_a_hundred(shard)
        assert (await update(shard, "INSERT DATA { <urn:s> <urn:p> 'new' }")).snapshot_index == 101

    with_shard(tmp_path / "node", back_up)
    shutil.copytree(tmp_path / "backup", tmp_path / "restored")
    with_shard(tmp_path / "restored", go_on)
    with_shard(tmp_path / "backup", expect_a_hundred)


def test_a_document_of_many_parts_appears_at_once(tmp_path: Path) -> None:
    lines = [b"<urn:s%d> <urn:p> <urn:o> .\n" % i for i in range(50_000)]
    body = b"".join(lines)

    async def go(shard: Shard) -> None:
        confirmation = await put(shard, body, graph="urn:g")
        assert confirmation.snapshot_index > 1  # it takes several entries of the log
        assert confirmation.affected_triples == 50_000
        assert len(list(shard.graph_quads(NamedNode("urn:g")))) == 50_000
        half = await put(shard, b"".join(lines[:25_000]), graph="urn:g")
        assert (half.affected_triples, len(list(shard.graph_quads(NamedNode("urn:g"))))) == (25_000, 25_000)
        assert (await put(shard, body, graph="urn:g", replace=False)).affected_triples == 25_000

    async def check(shard: Shard) -> None:
        assert len(list(shard.graph_quads(NamedNode("urn:g")))) == 50_000

    with_shard(tmp_path, go)
    with_shard(tmp_path, check)


def test_a_document_that_does_not_parse_stores_nothing(tmp_path: Path) -> None:
    async def go(shard: Shard) -> None:
        await put(shard, b'<urn:s> <urn:p> "old" .\n', graph="urn:g")
        with pytest.raises(RdfSyntaxError):
            await put(shard, b'<urn:s> <urn:p> "new" .\n' * 9000 + b"broken", graph="urn:g")
        assert [quad.object.value for quad in shard.graph_quads(NamedNode("urn:g"))] == ["old"]
        assert shard.snapshot_index() == 1

    with_shard(tmp_path, go)


def test_graphs_come_and_go(tmp_path: Path) -> None:
    graph = NamedNode("urn:g")

    async def go(shard: Shard) -> None:
        await put(shard, b"", graph="urn:g")
        assert shard.graph_exists(graph)
        assert (await shard.writes(FULL_VISIBILITY).delete_graph(graph)).affected_triples == 0
        assert not shard.graph_exists(graph)
        with pytest.raises(UnknownGraph):
            await shard.writes(FULL_VISIBILITY).delete_graph(graph)
        await update(shard, "INSERT DATA { <urn:s> <urn:p> <urn:o> }")
        assert (await shard.writes(FULL_VISIBILITY).delete_graph(None)).affected_triples == 1
        assert list(shard.dataset_quads()) == []

    with_shard(tmp_path, go)


def test_an_update_without_effect_is_not_logged(tmp_path: Path) -> None:
    async def go(shard: Shard) -> None:
        assert await update(shard, "DELETE DATA { <urn:s> <urn:p> 1 }") == Confirmation(0, 0)
        await update(shard, "INSERT DATA { <urn:s> <urn:p> 1 }")
        assert await update(shard, "INSERT DATA { <urn:s> <urn:p> 1 }") == Confirmation(1, 0)

    with_shard(tmp_path, go)


def test_hosts_that_are_not_allowed_are_not_asked(tmp_path: Path) -> None:
    async def go(shard: Shard) -> None:
        for endpoint in ("<http://127.0.0.1:1/sparql>", "?s"):
            with pytest.raises(HostNotAllowed, match="SERVICE"):
                shard.query(parse_query(f"SELECT * {{ ?s ?p ?o SERVICE {endpoint} {{}} }}"), Dataset())
        with pytest.raises(HostNotAllowed, match="LOAD"):
            await update(shard, "LOAD <http://127.0.0.1:1/x.ttl>")

    with_shard(tmp_path, go)


def test_before_and_after_its_life_a_shard_says_so(tmp_path: Path) -> None:
    kept: list[Shard] = []

    async def go(shard: Shard) -> None:
        assert (shard.status().status, shard.status().index_loaded) == ("healthy", True)
        assert list(shard.graph_quads(None)) == list[Quad]()
        kept.append(shard)

    with_shard(tmp_path, go)
    assert kept[0].status().status == "starting"
    with pytest.raises(LogUnavailable):
        kept[0].snapshot_index()


def test_a_disk_that_is_almost_full_refuses_writes_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = [0]
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(total=1 << 40, free=free[0]))

    async def go(shard: Shard) -> None:
        for request in (update(shard, "INSERT DATA { <urn:s> <urn:p> 1 }"), put(shard, b"", graph="urn:g")):
            with pytest.raises(StorageFull):
                await request
        assert shard.status().status == "degraded"
        assert list(shard.dataset_quads()) == []
        free[0] = 1 << 30
        assert (await update(shard, "INSERT DATA { <urn:s> <urn:p> 1 }")).snapshot_index == 1
        assert shard.status().status == "healthy"

    with_shard(tmp_path, go)


def test_a_store_that_could_not_be_written_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine refuses everything after its first failed write; only one opened anew takes what the log
    holds.
    """
    real, refusing = QuadStore.apply_many, list[int]()

    def apply_many(quads: QuadStore, changes: Iterable[ChangeSet]) -> None:
        if not refusing:
            refusing.append(id(quads))
        if id(quads) in refusing:
            raise StorageFull("no room")
        real(quads, changes)

    async def go(shard: Shard) -> None:
        with pytest.raises(OutcomeUnknown):
            await update(shard, "INSERT DATA { <urn:s> <urn:p> 1 }")
        assert (shard.status().status, shard.snapshot_index()) == ("degraded", 0)
        with pytest.raises(StorageFull):
            await update(shard, "INSERT DATA { <urn:s> <urn:p> 2 }")
        assert list(shard.dataset_quads()) == [], "reads go on"
        await _until_healthy(shard)
        assert [str(quad.object) for quad in shard.dataset_quads()] == [str(Literal(1))]
        assert (await update(shard, "INSERT DATA { <urn:s> <urn:p> 3 }")).snapshot_index == 2

    monkeypatch.setattr(QuadStore, "apply_many", apply_many)
    monkeypatch.setattr(QuadStore, "apply", lambda quads, change: quads.apply_many((change,)))
    with_shard(tmp_path, go)
