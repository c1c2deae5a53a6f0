"""`fetch`: the whole answer of a reader for work that keeps the writer waiting."""

from collections.abc import Callable

from actors.readers.client import ReaderClient
from actors.readers.protocol import Task
from actors.readers.running_queries import QueryRun

__all__ = ["fetch"]


async def fetch(
    readers: ReaderClient, run: QueryRun, task: Task, timeout_s: float, sink: Callable[[bytes], object]
) -> None:
    """Have a reader perform a task, and hand on what it answers; nobody has its checkpoint open then.

    Raises what `AnswerStream.read` raises, Overloaded.
    """
    lease = await run.unless_cancelled(readers.lease(run.id, timeout_s))
    before, run.where, run.on_cancel = run.where, lease.where, lease.close
    try:
        lease.evaluate(task)
        while (chunk := await run.unless_cancelled(lease.read())) is not None:
            sink(chunk)
    finally:
        lease.close()
        run.where = before
        await readers.release_checkpoint(task.checkpoint)
