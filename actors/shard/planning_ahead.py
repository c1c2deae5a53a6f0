"""`PlanningAhead`: plans the next batch of a `ShardWriter` while the last one is on its way to the log.

The planned requests are laid over the state that the last batch will make. They go to the log only when that
batch is applied, so one append is under way at a time; where it has failed, they wait anew, and nothing has
come of their plans. So the port works while the log syncs, and the log while the port does.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter

from actors.shard.write_batch import Batch, plan_batch
from actors.shard.write_queue import WriteJob, WriteQueue
from graphdb.log.replay import Replayer
from graphdb.log.request_ids import key_part
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["PlanningAhead"]


class PlanningAhead:
    """Owned by a `ShardWriter`. It plans on the event loop, and only what is quick."""

    def __init__(
        self,
        quads: QuadStore,
        queue: WriteQueue,
        replayer: Replayer,
        answer_known: Callable[[WriteJob], bool],
        *,
        requests_max: int,
        part_bytes_max: int,
    ) -> None:
        """answer_known: see `Outcomes`. requests_max: of a batch; part_bytes_max: see `WriterConfig`."""
        self._quads, self._queue, self._replayer = quads, queue, replayer
        self._answer_known = answer_known
        self._requests_max, self._part_bytes_max = requests_max, part_bytes_max
        self._logging: Batch | None = None  # on its way to the log
        self._next: Batch | None = None
        self._quad_entries = 0  # fed to the replayer when the state is there that `_next` is planned on
        self._is_due = False
        self.worked_at = 0.0  # when the port last had something to do for it, by `perf_counter`

    def __len__(self) -> int:
        """How many requests are planned, and wait for their turn."""
        return 0 if self._next is None else len(self._next.attempts)

    def begin(self, logging: Batch) -> None:
        """A batch is on its way to the log. What comes until `end` is planned upon it."""
        self._logging = logging
        self._quad_entries = self._replayer.quad_entries + len(logging.logged)
        self.worked_at = perf_counter()
        if self._queue:
            self.note_request()

    def note_request(self) -> None:
        """Something has come into the queue."""
        if self._logging is not None and not self._is_due:
            self._is_due = True
            # after all else that was received in this step of the event loop
            asyncio.get_running_loop().call_soon(self._plan)

    def end(self) -> None:
        """The log has answered, or failed."""
        self._logging = None

    def take(self) -> Batch | None:
        """The batch that was planned, to be logged now. None where there is none, or where the store has come
        to another state since: then its requests are the first in the queue again.
        """
        if self._replayer.quad_entries != self._quad_entries or self._quads.is_removing:
            self.drop()
        batch, self._next = self._next, None
        if batch is None or not batch.attempts:
            return None
        batch.overlay.rest_on(self._quads)
        return batch

    def drop(self) -> None:
        """Nothing was planned: the requests are the first in the queue again."""
        if self._next is not None:
            self._queue.put_back(self._next.jobs)
            self._next = None

    def _plan(self) -> None:
        self._is_due = False
        if self._logging is None:
            return
        batch = self._next or Batch(Overlay(self._logging.overlay, is_whole=True))
        jobs = self._take(self._logging, batch)
        if not jobs:
            return
        self._next = batch
        plan_batch(batch, jobs, self._quads, self._replayer.applied_index, self._part_bytes_max, None)
        if batch.deferred or batch.parked:  # they wait for what is on its way, and so do those behind them
            self._queue.put_back([*batch.parked, *batch.deferred])
            batch.deferred, batch.parked = [], []
            self.end()
        self.worked_at = perf_counter()

    def _take(self, logging: Batch, batch: Batch) -> list[WriteJob]:
        """No two that have the same id or key, on their way or planned."""
        parts: set[bytes] | None = None

        def takes(job: WriteJob) -> bool:
            nonlocal parts
            if parts is None:
                parts = {key_part(one.request_id) for one in (*logging.jobs, *batch.jobs)}
            part = key_part(job.request_id)
            is_first = part not in parts
            parts.add(part)
            return is_first

        jobs = self._queue.take_quick(self._requests_max - len(batch.attempts), takes)
        return [job for job in jobs if job.is_new or not self._answer_known(job)]
