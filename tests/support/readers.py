"""`Readers`: a StoreReader with its evaluator processes and a client of it, without Ray.

`python -m tests.support.readers DIRECTORY TASK` runs one until it is killed: it has an evaluator work on the
task, and prints the process ids of its two evaluators.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from actors.readers.client import Lease, ReaderClient
from actors.readers.protocol import EvaluatorStatus, ReaderStatus, ReaderTask, Task
from actors.readers.store_reader import StoreReader
from graphdb.config import Settings
from tests.support.timing import HANG_S

__all__ = ["FIRST", "Readers", "answering", "cpu_s", "exists", "readers", "rest", "start_reader", "wait_gone"]

FIRST = 1  # of the evaluators, which starts without a query


class Readers:
    """A StoreReader and a client of it."""

    def __init__(self, reader: StoreReader) -> None:
        self.reader = reader
        self.client = ReaderClient(answering(reader.endpoint()))

    async def answer(self, task: Task, timeout_s: float = 30) -> bytes:
        """The whole answer to a task."""
        lease = await self.client.lease("q", timeout_s)
        try:
            lease.evaluate(task)
            return await rest(lease)
        finally:
            lease.close()

    async def have_all_started(self, count: int) -> None:
        """Ask for so many at a time where there are more than the first: they start when they are needed."""
        if count > FIRST:
            leases = await asyncio.gather(*(self.client.lease("q", 30) for _ in range(count)))
            for lease in leases:
                lease.close()
            await self.until(lambda status: status.running == 0)
        await self.until(lambda status: len(status.evaluators) == count)

    async def pids(self) -> list[int]:
        """The processes of the evaluators that are there, by their number."""
        return [evaluator.pid for evaluator in (await self.client.status()).evaluators]

    async def until(self, holds: Callable[[ReaderStatus], bool]) -> ReaderStatus:
        """Wait until the status is so, and return it."""
        deadline = time.monotonic() + HANG_S
        while not holds(status := await self.client.status()):
            assert time.monotonic() < deadline, status
            await asyncio.sleep(0.01)
        return status

    async def busy_pid(self) -> int:
        """The process of the one query that runs, once it works hard."""
        status = await self.until(lambda status: any(map(_is_at_work, status.evaluators)))
        [pid] = [evaluator.pid for evaluator in status.evaluators if evaluator.state == "busy"]
        return pid


@asynccontextmanager
async def readers(directory: Path, **settings: Any) -> AsyncIterator[Readers]:
    """With two evaluators unless settings, of `[readers]`, say otherwise; all of them have started."""
    section = {"count": 2, "queue_timeout_seconds": HANG_S} | settings
    reader = await asyncio.to_thread(start_reader, directory, **section)
    there = Readers(reader)
    try:
        await there.have_all_started(section["count"])
        yield there
    finally:
        await there.client.close()
        await asyncio.to_thread(reader.close)


def start_reader(directory: Path, **settings: Any) -> StoreReader:
    """A StoreReader whose socket is in this directory. settings are those of `[readers]`."""
    of_node = Settings.model_validate({"server": {"data_dir": directory}, "readers": settings})
    return StoreReader(of_node, socket_directory=str(directory))


def answering(path: str) -> Callable[[], Awaitable[str]]:
    """A ReaderClient's way to its StoreReader."""

    async def endpoint() -> str:
        return path

    return endpoint


async def rest(lease: Lease) -> bytes:
    """What has not been read yet of an answer, to its end."""
    chunks = []
    while (chunk := await lease.read()) is not None:
        chunks.append(chunk)
    return b"".join(chunks)


def _is_at_work(evaluator: EvaluatorStatus) -> bool:
    """Whether it is evaluating, and has spent more processor time than a start and a short query take."""
    return evaluator.state == "busy" and exists(evaluator.pid) and cpu_s(evaluator.pid) > 0.4


def cpu_s(pid: int) -> float:
    """The processor time of a process, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def exists(pid: int) -> bool:
    """Whether there is more of a process than its exit code."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def wait_gone(pids: Iterable[int]) -> None:
    """Raise AssertionError unless the processes end. One that is killed needs the processor for it too."""
    deadline = time.monotonic() + HANG_S
    while left := [pid for pid in pids if exists(pid)]:
        assert time.monotonic() < deadline, f"{left} are still there"
        await asyncio.sleep(0.01)


async def _run(directory: Path, task: ReaderTask) -> None:
    async with readers(directory) as there:
        lease = await there.client.lease("q", 60)
        lease.evaluate(task)
        await there.busy_pid()
        print(*await there.pids(), flush=True)
        await lease.read()


if __name__ == "__main__":
    asyncio.run(_run(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=ReaderTask)))
