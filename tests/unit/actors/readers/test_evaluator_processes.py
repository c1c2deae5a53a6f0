"""The processes of readers: how they start; what becomes of them and their queries when they are killed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import uvloop

from actors.readers import client as reader_client
from actors.readers import evaluator_pool
from actors.readers.client import Lease, ReaderClient
from graphdb.errors import QueryTimeout, UnavailableError
from tests.support.reader_tasks import CRASHING, ENDLESS, FEW, MANY, in_process, task
from tests.support.readers import Readers, answering, exists, readers, rest, start_reader, wait_gone
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[4]


async def test_it_finds_its_modules_without_an_installation(tmp_path: Path) -> None:
    async with readers(tmp_path) as there:
        lease = await there.client.lease("q", 30)
        assert os.readlink(f"/proc/{_process(lease)}/cwd") == str(ROOT)
        lease.close()


async def test_a_query_whose_evaluator_is_killed_is_tried_again_once(
    tmp_path: Path, checkpoint: Path
) -> None:
    async with readers(tmp_path, count=2) as there:
        lease = await there.client.lease("q", 30)
        os.kill(_process(lease), signal.SIGSTOP)  # so that it does not finish before
        lease.evaluate(task(checkpoint, FEW))
        os.kill(_process(lease), signal.SIGKILL)
        assert await rest(lease) == in_process(task(checkpoint, FEW))
        lease.close()
        lease = await there.client.lease("q", 30)
        lease.evaluate(task(checkpoint, ENDLESS))
        for _ in range(2):  # the evaluator at work, then that of the second attempt
            pid = await there.busy_pid()
            os.kill(pid, signal.SIGKILL)
            await wait_gone([pid])
        with pytest.raises(UnavailableError, match=r"ended \(signal 9\)"):
            await lease.read()
        lease.close()
        await there.until(lambda status: len(status.evaluators) == 2)


async def test_more_evaluators_than_the_first_start_when_they_are_needed(tmp_path: Path) -> None:
    reader = await asyncio.to_thread(start_reader, tmp_path, count=4)
    there = Readers(reader)
    try:
        await there.until(lambda status: len(status.evaluators) == 1)
        leases = [await there.client.lease("q", 30)]
        await there.until(lambda status: (len(status.evaluators), status.running) == (2, 1))
        leases += [await there.client.lease("q", 30) for _ in range(2)]
        await there.until(lambda status: (len(status.evaluators), status.running) == (3, 3))
        for lease in leases:
            lease.close()
        await there.until(lambda status: (len(status.evaluators), status.running) == (3, 0))
    finally:
        await there.client.close()
        await asyncio.to_thread(reader.close)


async def test_evaluators_that_are_killed_before_they_begin_cost_a_query_nothing(
    tmp_path: Path, checkpoint: Path
) -> None:
    async with readers(tmp_path, count=4) as there:
        lease = await there.client.lease("q", 30)
        killed = await there.pids()
        for pid in killed:
            os.kill(pid, signal.SIGSTOP)  # so that the query waits in front of it
        lease.evaluate(task(checkpoint, FEW))
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
            await wait_gone([pid])
        assert await rest(lease) == in_process(task(checkpoint, FEW))
        lease.close()


async def test_one_that_ends_before_it_gets_its_query_is_replaced_unseen(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on uvloop, where a transport that is closed does not let itself be written to."""
    monkeypatch.setattr(asyncio, "new_event_loop", uvloop.new_event_loop)
    async with readers(tmp_path, count=2) as there:
        lease = await there.client.lease("q", 30)
        os.kill(_process(lease), signal.SIGKILL)
        await wait_gone([_process(lease)])
        lease.evaluate(task(checkpoint, FEW))
        assert await rest(lease) == in_process(task(checkpoint, FEW))
        lease.close()


async def test_an_answer_that_was_begun_is_not_begun_again(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=2) as there:
        lease = await there.client.lease("q", 30)
        lease.evaluate(task(checkpoint, MANY))
        assert await lease.read()
        os.kill(_process(lease), signal.SIGKILL)
        with pytest.raises(UnavailableError, match=r"ended \(signal 9\)"):
            await rest(lease)
        lease.close()


async def test_a_query_that_crashes_the_engine_is_not_tried_again(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=2) as there:
        before = await there.pids()
        with pytest.raises(UnavailableError, match=r"ended \(signal 11\)"):
            await there.answer(task(checkpoint, CRASHING))
        status = await there.until(lambda status: len(status.evaluators) == 2)
        assert len({each.pid for each in status.evaluators} - set(before)) == 1


async def test_what_is_deep_but_allowed_needs_no_more_stack_than_there_is(
    tmp_path: Path, checkpoint: Path
) -> None:
    """The gate's limits were measured for 8 MB of stack, which 3,000 nested groups overflow."""
    deep = "SELECT * WHERE {" + "{ " * 10_000 + "<urn:s1> ?p ?o" + " }" * 10_000 + "}"
    async with readers(tmp_path, count=1) as there:
        assert b"o 1" in await there.answer(task(checkpoint, deep))


async def test_evaluators_give_way(tmp_path: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        [pid] = await there.pids()
        assert os.getpriority(os.PRIO_PROCESS, pid) == 10
        assert os.sched_getscheduler(pid) == os.SCHED_BATCH
        assert _oom_score_adj(pid) == 1000


async def test_an_evaluator_that_keeps_memory_is_replaced(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with readers(tmp_path, count=1) as there:
        before = await there.pids()
        await there.answer(task(checkpoint, FEW))
        assert await there.pids() == before
        monkeypatch.setattr(evaluator_pool, "_KEPT_MB", 1)
        await there.answer(task(checkpoint, FEW))
        await there.until(lambda status: len(status.evaluators) == 1)
        assert await there.pids() != before


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged of evaluators that do not start."""
    return [each.message for each in caplog.records if "does not start" in each.message]


async def test_an_evaluator_that_does_not_start_is_not_started_in_a_spin(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with readers(tmp_path, count=1) as there:
        [pid] = await there.pids()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", "/bin/false")
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            while len(failures(caplog)) < 2 or time.monotonic() - began < 1:
                assert time.monotonic() - began < HANG_S
                await asyncio.sleep(0.01)
            assert len(failures(caplog)) <= 4 * (time.monotonic() - began)
        assert "exit code 1" in failures(caplog)[0]
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))


def test_everything_ends_with_the_parent(tmp_path: Path, checkpoint: Path) -> None:
    """One evaluator is idle, one in the midst of its work."""
    given = msgspec.json.encode(task(checkpoint, ENDLESS)).decode()
    command = [sys.executable, "-m", "tests.support.readers", str(tmp_path), given]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(exists, pids))
        parent.kill()
    asyncio.run(wait_gone(pids))


async def test_closing_ends_queries_and_processes(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path) as there:
        lease = await there.client.lease("q", 30)
        lease.evaluate(task(checkpoint, ENDLESS))
        reading = asyncio.create_task(lease.read())
        pids = await there.pids()
        await there.busy_pid()
    with pytest.raises(UnavailableError):
        await reading
    assert not any(map(exists, pids)), "it is closed when they are gone"
    assert not (tmp_path / "readers.sock").exists()


async def test_a_reader_that_is_started_again_is_waited_for(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with readers(tmp_path, count=1) as there:
        client = ReaderClient(answering(there.reader.endpoint()))
        held = await client.lease("held", 30)
        queued = asyncio.create_task(client.lease("queued", 30))
        await there.until(lambda status: status.queued == 1)
    with pytest.raises(UnavailableError, match="went away"):
        await held.read()
    late = asyncio.create_task(client.lease("late", 30))
    await asyncio.sleep(0.3)
    # Not `readers`, which waits until it has leased all evaluators itself: those that wait have both.
    again = await asyncio.to_thread(start_reader, tmp_path, count=2)
    for lease in (held, await queued, await late):
        lease.close()
    await asyncio.to_thread(again.close)
    monkeypatch.setattr(reader_client, "_AWAY_S", 0.2)
    with pytest.raises(UnavailableError, match="do not answer"):
        await client.lease("never", 30)
    with pytest.raises(QueryTimeout):
        await client.lease("short", 0.1)
    await client.release_checkpoint(str(checkpoint))


def test_an_evaluator_imports_little() -> None:
    """Each start costs what it imports; the parser alone would double that."""
    heavy = {"asyncio", "graphdb.sparql.parser", "graphdb.config", "lark", "pydantic", "ray", "httpx"}
    program = "import sys, actors.readers.evaluator; print(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not heavy & set(done.stdout.split())


def _process(lease: Lease) -> int:
    """The process that it says it has."""
    return int(lease.where.rstrip(")").split()[-1])


def _oom_score_adj(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())
