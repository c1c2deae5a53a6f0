"""`Tasks`: the long requests of this node, which others may watch, slow down and end; the results of those
whose client did not wait.
"""

import asyncio
import itertools
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson

from graphdb.access.permissions import Permission
from graphdb.access.principal import Principal
from graphdb.search.errors import SearchError

__all__ = ["Finished", "Task", "Tasks", "Work"]

_BACKGROUND_MAX = 100  # that run at once
_FINISHED_MAX = 1_000
_FINISHED_BYTES_MAX = 16 * 1024 * 1024
_DESCRIPTION_MAX = 1_000
_PAUSE_S_MAX = 1e9
_BY_USER = "by user request"
Work: TypeAlias = Callable[[], Awaitable[tuple[str, bytes]]]
"""What a task does: returns `response` or `error`, and its value as JSON."""


@dataclass(slots=True)
class Task:
    """A request that runs. started_ms: Unix epoch. rate: documents a second, math.inf: no limit.

    status: counts of what it has done so far, None for a task that has none. cancelled: why it is to end.
    """

    number: int
    action: str
    description: str
    author: Principal
    started_ms: int
    headers: Mapping[str, str]
    rate: float = math.inf
    status: Callable[[], dict[str, Any]] | None = None
    is_cancellable: bool = True
    parent: int | None = None
    cancelled: str | None = None
    end: Callable[[], object] | None = None  # ends what has no batches
    throttled_s: float = 0.0
    throttled_until: float | None = None  # time.monotonic()
    began: float = field(default_factory=time.monotonic)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def is_shown_to(self, principal: Principal) -> bool:
        """Its description and counts tell what its author sees: others do not see the task."""
        if principal.permission >= Permission.ADMIN and principal.index_visibility.is_whole:
            return True
        author = self.author
        return (author.provider, author.name, author.index_visibility) == (
            principal.provider,
            principal.name,
            principal.index_visibility,
        )

    def cancel(self, reason: str = _BY_USER) -> None:
        """It ends after the batch that it is at."""
        self.cancelled = self.cancelled or reason
        self._changed.set()
        if self.end is not None:
            self.end()

    def rethrottle(self, rate: float) -> None:
        """A pause is as long as the new rate makes it, but never longer than it was to be."""
        self.rate = rate
        self._changed.set()

    async def pause(self, documents: int, since: float) -> None:
        """As long as so many documents are to take, as of `since` (time.monotonic())."""
        before, last = time.monotonic(), math.inf
        try:
            while self.cancelled is None:
                last = min(last, since + min(documents / self.rate, _PAUSE_S_MAX))
                self.throttled_until, left = last, last - time.monotonic()
                if left <= 0:
                    break
                self._changed.clear()
                try:
                    async with asyncio.timeout(left):
                        await self._changed.wait()
                except TimeoutError:
                    continue
        finally:
            self.throttled_until = None
            self.throttled_s += time.monotonic() - before

    def to_json(self, node_id: str, *, detailed: bool) -> dict[str, Any]:
        """As `_tasks` shows it."""
        told: dict[str, Any] = {"node": node_id, "id": self.number, "type": "transport"}
        told["action"] = self.action
        if detailed:
            if self.status is not None:
                told["status"] = self.status()
            told["description"] = self.description
        told["start_time_in_millis"] = self.started_ms
        told["running_time_in_nanos"] = int((time.monotonic() - self.began) * 1e9)
        told["cancellable"] = self.is_cancellable
        if self.is_cancellable:
            told["cancelled"] = self.cancelled is not None
        if self.parent is not None:
            told["parent_task_id"] = f"{node_id}:{self.parent}"
        told["headers"] = dict(self.headers)
        return told


@dataclass(frozen=True, slots=True)
class Finished:
    """A task that is over: as it was shown last, and `response` or `error`, with its value as JSON."""

    task: Task
    shown: bytes
    member: str
    value: bytes

    def __len__(self) -> int:
        return len(self.shown) + len(self.value)


class Tasks:
    """Of one node, owned by its application. For the event loop only. A stop of the node ends them."""

    def __init__(self, first: int) -> None:
        """first: the number of the first one, higher than those of earlier starts: no task is taken for
        another, and those that a stop has ended are known by their numbers.
        """
        self._first = first
        self._numbers = itertools.count(first)
        self._running: dict[int, Task] = {}
        self._background: dict[int, asyncio.Task[None]] = {}
        self._finished: OrderedDict[int, Finished] = OrderedDict()
        self._finished_bytes = 0

    def begin(
        self,
        action: str,
        description: str,
        author: Principal,
        started_ms: int,
        headers: Mapping[str, str],
        *,
        is_cancellable: bool = True,
        parent: int | None = None,
    ) -> Task:
        """A task that is not shown before it runs."""
        number, shown = next(self._numbers), description[:_DESCRIPTION_MAX]
        task = Task(number, action, shown, author, started_ms, headers)
        task.is_cancellable, task.parent = is_cancellable, parent
        return task

    @contextmanager
    def shown(self, task: Task) -> Iterator[None]:
        """While it runs."""
        self._running[task.number] = task
        try:
            yield
        finally:
            self._running.pop(task.number, None)
            task.ended.set()

    def check_place(self) -> None:
        """For one without a client, or with a rate: its client may have gone long before it ends.

        Errors: es_rejected_execution_exception.
        """
        lasting = sum(
            number in self._background or not math.isinf(task.rate) for number, task in self._running.items()
        )
        if lasting >= _BACKGROUND_MAX:
            raise SearchError(
                "es_rejected_execution_exception",
                f"rejected execution: [{lasting}] tasks run in the background or with a rate already",
                429,
            )

    def start(self, task: Task, node_id: str, work: Work) -> None:
        """Run it without its client, and keep what it comes to. work never raises.

        Errors: es_rejected_execution_exception.
        """
        self.check_place()
        running = asyncio.get_running_loop().create_task(self._performed(task, node_id, work))
        self._background[task.number] = running
        self._running[task.number] = task
        running.add_done_callback(lambda _: self._ended(task))

    def _ended(self, task: Task) -> None:
        self._background.pop(task.number, None)
        self._running.pop(task.number, None)
        task.ended.set()

    async def _performed(self, task: Task, node_id: str, work: Work) -> None:
        member, value = await work()
        self._keep(Finished(task, orjson.dumps(task.to_json(node_id, detailed=True)), member, value))

    def _keep(self, finished: Finished) -> None:
        """The oldest results make place for it."""
        self._finished[finished.task.number] = finished
        self._finished_bytes += len(finished)
        while len(self._finished) > _FINISHED_MAX or (
            self._finished_bytes > _FINISHED_BYTES_MAX and len(self._finished) > 1
        ):
            self._finished_bytes -= len(self._finished.popitem(last=False)[1])

    def running(self, principal: Principal) -> list[Task]:
        """Those that it may see, the oldest first."""
        return [self._running[number] for number in sorted(self._running) if self.find(number, principal)]

    def find(self, number: int, principal: Principal) -> Task | None:
        """One that runs; None where there is none that it may see."""
        task = self._running.get(number)
        return task if task is not None and task.is_shown_to(principal) else None

    def is_of_earlier_start(self, number: int) -> bool:
        """Whether a task of this number, if there was one, has ended with the node at the latest."""
        return number < self._first

    def finished(self, number: int, principal: Principal) -> Finished | None:
        """The result of one that ran without its client, where it is kept still."""
        found = self._finished.get(number)
        return found if found is not None and found.task.is_shown_to(principal) else None
