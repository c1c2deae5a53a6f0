"""Readers as a service: real evaluator processes behind a real socket, without Ray."""

import asyncio
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from actors import bounded_process
from actors.readers import client as reader_client
from actors.readers.evaluator_pool import EvaluatorProcess
from graphdb.errors import (
    EvaluationFailed,
    NotAcceptable,
    Overloaded,
    QueryMemoryExceeded,
    QueryTimeout,
    UnavailableError,
)
from graphdb.sparql.results import ResultFormat, formats_for
from tests.support.reader_tasks import DOUBLED, ENDLESS, FEW, GREEDY, MANY, in_process, task
from tests.support.readers import Readers, cpu_s, readers, rest, wait_gone
from tests.support.timing import HANG_S, quick_enough

pytestmark = pytest.mark.anyio

FORMS = {
    "SELECT": "SELECT * WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } OPTIONAL { ?s <urn:no> ?x } }",
    "ASK": "ASK { ?s ?p ?o }",
    "CONSTRUCT": "CONSTRUCT WHERE { ?s ?p ?o }",
    "DESCRIBE": "DESCRIBE <urn:s1>",
}


async def test_answers_are_the_bytes_that_the_port_would_write(tmp_path: Path, checkpoint: Path) -> None:
    tasks = [task(checkpoint, text, fmt) for form, text in FORMS.items() for fmt in formats_for(form)]
    all_triples = "SELECT * { ?s ?p ?o }"
    tasks.append(task(checkpoint, all_triples, default_graphs=["urn:g"], named_graphs=[]))
    tasks.append(task(checkpoint, all_triples, default_graphs=[], named_graphs=["urn:g"]))
    tasks.append(task(checkpoint, all_triples, union_default_graph=True))
    tasks.append(task(checkpoint, "SELECT * { <s1> ?p ?o }", base_iri="urn:"))
    async with readers(tmp_path) as there:
        for each in tasks:
            assert await there.answer(each) == in_process(each), each


async def test_errors_keep_their_class_and_cost_no_evaluator(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        before = await there.pids()
        with pytest.raises(EvaluationFailed, match="expected"):
            await there.answer(task(checkpoint, "SELECT (a"))
        with pytest.raises(NotAcceptable) as raised:
            await there.answer(task(checkpoint, 'SELECT ("\\u0001" AS ?x) {}', ResultFormat.XML))
        assert raised.value.offered == ("application/sparql-results+json",)
        with pytest.raises(UnavailableError, match="checkpoint cannot be opened"):
            await there.answer(task(tmp_path / "nothing", FEW))
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))
        assert await there.pids() == before


async def test_a_large_answer_waits_for_who_reads_it(tmp_path: Path, checkpoint: Path) -> None:
    """While nobody reads, the evaluator stands still: what waits on the way is bounded."""
    async with readers(tmp_path, count=1) as there:
        lease = await there.client.lease("q", 60)
        lease.evaluate(task(checkpoint, MANY))
        first = await lease.read()
        assert first is not None
        assert len(first) < 1 << 17
        [pid] = await there.pids()
        async with asyncio.timeout(HANG_S):
            while await _worked_s(pid, 0.5) >= 0.02:
                pass
        assert (await there.client.status()).running == 1
        assert first + await rest(lease) == in_process(task(checkpoint, MANY))
        assert (await there.client.status()).running == 0
        lease.close()
        assert await there.pids() == [pid]


async def _worked_s(pid: int, within_s: float) -> float:
    """The processor time that a process takes within a time from now."""
    before = cpu_s(pid)
    await asyncio.sleep(within_s)
    return cpu_s(pid) - before


async def test_the_deadline_ends_a_query_and_its_process(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        for took in quick_enough(1.0):
            [pid] = await there.pids()
            with took, pytest.raises(QueryTimeout, match=r"longer than 0\.5 s"):
                await there.answer(task(checkpoint, ENDLESS), timeout_s=0.5)
            assert took.seconds >= 0.5
            await wait_gone([pid])
            assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))


async def test_an_answer_past_the_deadline_never_looks_whole(tmp_path: Path, checkpoint: Path) -> None:
    """A client that reads too slowly gets what was on its way, then the error."""
    async with readers(tmp_path, count=1) as there:
        [pid] = await there.pids()
        lease = await there.client.lease("q", 2)
        lease.evaluate(task(checkpoint, MANY))
        assert await lease.read()
        await asyncio.sleep(2)
        await wait_gone([pid])
        with pytest.raises(QueryTimeout):
            await rest(lease)
        lease.close()


async def test_a_query_that_fills_the_memory_is_ended(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1, memory_limit_mb=64) as there:
        [pid] = await there.pids()
        with pytest.raises(QueryMemoryExceeded, match=r"64 MB that readers\.memory_limit_mb"):
            await there.answer(task(checkpoint, GREEDY))
        await wait_gone([pid])
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))


async def test_the_kernel_refuses_what_grows_too_fast_to_be_seen(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_process.BoundedProcess, "look_s", 60)
    async with readers(tmp_path, count=1, memory_limit_mb=64) as there:
        with pytest.raises(QueryMemoryExceeded, match="64 MB"):
            await there.answer(task(checkpoint, DOUBLED))
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))


async def test_memory_is_looked_at_as_often_whatever_the_number_of_queries(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    look = EvaluatorProcess._look_at_memory

    def counted(evaluator: EvaluatorProcess) -> None:
        nonlocal looks
        looks += 1
        look(evaluator)

    monkeypatch.setattr(EvaluatorProcess, "_look_at_memory", counted)
    async with readers(tmp_path, count=1) as there:
        began = time.monotonic()
        for _ in range(50):
            await asyncio.gather(*(there.answer(task(checkpoint, FEW)) for _ in range(4)))
        seconds = time.monotonic() - began
    assert 0 < looks <= 2 * seconds / 0.05 + 2  # one each 50 ms, and one where a query comes just after


async def test_closing_a_lease_cancels_its_query(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        lease = await there.client.lease("q", 30)
        lease.evaluate(task(checkpoint, ENDLESS))
        pid = await there.busy_pid()
        lease.close()
        lease.close()
        await wait_gone([pid])
        status = await there.until(lambda status: len(status.evaluators) == 1)
        assert (status.running, status.evaluators[0].state) == (0, "idle")


async def test_a_lease_that_was_not_used_costs_no_evaluator(tmp_path: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        before = await there.pids()
        lease = await there.client.lease("some query", 30)
        status = await there.client.status()
        assert [(each.query_id, each.state) for each in status.evaluators] == [("some query", "busy")]
        assert lease.where == f"reader 1 (process {before[0]})"
        lease.close()
        await there.until(lambda status: status.running == 0)
        assert await there.pids() == before


async def test_the_queue_is_bounded_in_length_and_in_time(tmp_path: Path) -> None:
    async with readers(tmp_path, count=1, queue_max=1, queue_timeout_seconds=2.5) as there:
        held = await there.client.lease("held", 60)
        for took in quick_enough(5):
            with took:
                queued = asyncio.create_task(there.client.lease("queued", 60))
                await there.until(lambda status: status.queued == 1)
                with pytest.raises(Overloaded, match=r"readers\.queue_max"):
                    await there.client.lease("refused", 60)
                assert not queued.done()
                with pytest.raises(Overloaded, match=r"readers\.queue_timeout_seconds"):
                    await queued
            assert took.seconds >= 2.5
        with pytest.raises(QueryTimeout):
            await there.client.lease("short", 0.1)
        held.close()
        (await there.client.lease("free again", 30)).close()


async def test_who_came_first_is_served_first_and_who_left_is_not(tmp_path: Path) -> None:
    served: list[str] = []

    async def use(there: Readers, name: str) -> None:
        lease = await there.client.lease(name, 30)
        served.append(name)
        lease.close()

    async with readers(tmp_path, count=1) as there:
        held = await there.client.lease("held", 30)
        tasks = []
        for name in "abcd":
            tasks.append(asyncio.create_task(use(there, name)))
            await there.until(lambda status: status.queued == len(tasks))
        tasks[1].cancel()
        await there.until(lambda status: status.queued == 3)
        held.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert served == ["a", "c", "d"]
        assert (await there.client.status()).queued == 0


async def test_a_released_checkpoint_is_let_go_of(tmp_path: Path, checkpoint: Path) -> None:
    copies = [tmp_path / "copy1", tmp_path / "copy2"]
    for copy in copies:
        shutil.copytree(checkpoint, copy)
    async with readers(tmp_path, count=1) as there:
        [pid] = await there.pids()
        for copy in copies:
            await there.answer(task(copy, FEW))
        assert [_holds(pid, copy) for copy in copies] == [False, True]
        await there.client.release_checkpoint(str(copies[0]))
        assert _holds(pid, copies[1])
        await there.client.release_checkpoint(str(copies[1]))
        assert not _holds(pid, copies[1])
        shutil.rmtree(copies[1])
        assert await there.answer(task(copies[0], FEW)) == in_process(task(checkpoint, FEW))
        assert await there.pids() == [pid]


async def test_an_evaluator_that_does_not_let_go_of_a_checkpoint_is_replaced(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with readers(tmp_path, count=1) as there:
        [pid] = await there.pids()
        await there.answer(task(checkpoint, FEW))
        os.kill(pid, signal.SIGSTOP)
        with monkeypatch.context() as patched:
            patched.setattr(reader_client, "_CALL_S", 0.2)
            await there.client.release_checkpoint(str(checkpoint))
        await wait_gone([pid])
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))


def _holds(pid: int, directory: Path) -> bool:
    """Whether the process has files in the directory open."""
    descriptors = Path(f"/proc/{pid}/fd").iterdir()
    return any(os.readlink(each).startswith(f"{directory}/") for each in descriptors)
