"""`ReevaluatedQuery`: a query that is evaluated on one state after the other. `Lane`: the copy of the graph
that such queries share, going from change to change.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from actors.live.change_log import ChangeStream
from actors.live.listeners import Group
from actors.live.live_copy import LiveCopy, Step
from actors.live.whole_evaluation import FrozenState, WholeEvaluation
from graphdb.errors import GraphDBError, LimitExceeded, LogUnavailable
from graphdb.live.notifications import Notification
from graphdb.live.whole import Rows, WholeQuery, differences
from graphdb.public_text import fault_text

__all__ = ["Lane", "ReevaluatedQuery"]

logger = logging.getLogger(__name__)
_NOT_BEGUN = 1 << 63
_AT_ONCE = 200  # notifications between which others have their turn


class ReevaluatedQuery:
    """For one event loop. Each state that it is given is evaluated, in order; the first one tells nothing."""

    def __init__(
        self,
        query: WholeQuery,
        evaluation: WholeEvaluation,
        waiting_max: int,
        begins_at: int | None,
        on_told: Callable[[int], None],
        on_end: Callable[["ReevaluatedQuery"], None],
    ) -> None:
        """begins_at: the index of the first state that it will be given, where that is known. on_told hears
        how many were told something; on_end, that nothing more will be evaluated.
        """
        self.query, self.group = query, Group()
        self._joining = 0  # who waits for the first answer, and is told nothing before he has it
        self.done_index = _NOT_BEGUN if begins_at is None else begins_at  # everything up to there was told
        self.error: GraphDBError | None = None  # once it has ended
        self._evaluation, self._waiting_max = evaluation, waiting_max
        self._on_told, self._on_end = on_told, on_end
        self._waiting: deque[tuple[int, FrozenState]] = deque()
        self._taken_index = -1  # the state of it, or a later one, was given
        self._changed = asyncio.Event()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_unused(self) -> bool:
        return not self.group.members and not self._joining

    @property
    def is_behind(self) -> bool:
        """Whether there are states to be evaluated still."""
        return bool(self._waiting)

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[None]:
        """With the first answer there, and with nothing told meanwhile. Raises what has ended it."""
        self._joining += 1
        try:
            await self._ready.wait()
            if self.error is not None:
                raise self.error
            yield
        finally:
            self._joining -= 1
            self._changed.set()
            if self.is_unused:
                self.end(LogUnavailable("nobody listens"))

    def put(self, index: int, state: FrozenState) -> None:
        """Evaluate it on this state too; of an index that it was given already it has no need."""
        if self.error is not None or index <= self._taken_index:
            return state.let_go()
        if self._task is None:
            self.done_index = index
        self._taken_index = index
        self._waiting.append((index, state))
        self._changed.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def expect(self, count: int) -> None:
        """So many changes are to be evaluated beside those that wait: too many are the end of it."""
        waiting = len(self._waiting) + count
        if waiting > self._waiting_max:
            name = "changes that wait for a live query (live.max_reevaluation_backlog)"
            self.end(LimitExceeded(name, waiting, self._waiting_max))

    async def room(self, waiting_max: int) -> None:
        """Return when no more than so many states wait, or it has ended."""
        while len(self._waiting) > waiting_max and self.error is None:
            self._changed.clear()
            await self._changed.wait()

    def end(self, error: GraphDBError) -> None:
        """Nothing more is evaluated or told; who listens hears why."""
        if self.error is not None:
            return
        self.error = error
        self._on_end(self)
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        while self._waiting:
            self._waiting.popleft()[1].let_go()
        self._ready.set()
        self._changed.set()

    async def _run(self) -> None:
        rows: Rows | None = None
        try:
            while True:
                while not self._waiting:
                    self._changed.clear()
                    await self._changed.wait()
                rows = await self._evaluate(rows)
        except GraphDBError as error:
            self.end(error)
        except Exception as error:
            logger.exception("evaluating a live query failed")
            self.end(LogUnavailable(f"evaluating a live query failed: {fault_text(error)}"))

    async def _evaluate(self, before: Rows | None) -> Rows:
        """The first of those that wait, which stays there as long."""
        index, state = self._waiting[0]
        while self._joining and before is not None:
            self._changed.clear()
            await self._changed.wait()
        answer = await self._evaluation.answer(self.query, state.frozen)
        after, told = await asyncio.to_thread(self._compared, index, before, answer)
        self.done_index = index  # who comes while it is told has it in what he has read
        self._ready.set()
        for number, notification in enumerate(told, 1):
            self._on_told(self.group.tell(notification))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        if self.error is None:
            self._waiting.popleft()
            state.let_go()
        self._changed.set()
        return after

    def _compared(self, index: int, before: Rows | None, answer: bytes) -> tuple[Rows, list[Notification]]:
        after = Rows(answer)
        found = [] if before is None else differences(self.query, before, after)
        told = [Notification(index, one.action, one.result) for one in found]
        for notification in told:
            _ = notification.tail  # here, and not on the event loop
        return after, told


_WAIT_S = 10.0
_AHEAD_MAX = 4  # states that a lane which catches up makes before they are evaluated


class Lane:
    """For one event loop. Its queries are given each state that a change has led to which concerns them."""

    def __init__(
        self,
        copy: LiveCopy,
        stream: ChangeStream,
        evaluation: WholeEvaluation,
        *,
        is_patient: bool,
    ) -> None:
        """All of these are its own from here on. A patient lane waits for its queries, however far it falls
        behind; of another, those that fall behind are ended.
        """
        self.queries: list[ReevaluatedQuery] = []
        self.is_patient = is_patient
        self.is_closed = False
        self.turn = asyncio.Lock()  # around whatever moves the copy
        self._copy, self._stream, self._evaluation = copy, stream, evaluation
        self._task: asyncio.Task[None] | None = None
        self._releasing: set[asyncio.Task[None]] = set()

    @property
    def index(self) -> int:
        return self._copy.index

    async def add(self, query: ReevaluatedQuery) -> None:
        """Within the turn: it is evaluated on the present state, then after each change that concerns it."""
        state = await self._freeze(1)
        query.put(self.index, state)
        self.queries.append(query)

    def run(self, steps: Sequence[Step], merge: Callable[["Lane"], None]) -> None:
        """Through these steps, then on with the stream. merge is called when a patient one has gone
        through all that there was.
        """
        self._task = asyncio.get_running_loop().create_task(self._run(steps, merge))

    async def _run(self, steps: Sequence[Step], merge: Callable[["Lane"], None]) -> None:
        try:
            for step in steps:
                await self._go(step)
            while not self.is_closed:
                if self.is_patient:
                    merge(self)
                changes = await self._stream.read(_WAIT_S)
                if changes is None:
                    raise LogUnavailable("the node is stopping")
                steps = self._copy.whole_steps(changes)
                if not self.is_patient:
                    for query in tuple(self.queries):
                        query.expect(sum(query.query.concerns(step.parts) for step in steps))
                for step in steps:
                    await self._go(step)
                async with self.turn:
                    await self._copy.go([], self._stream.through)
        except GraphDBError as error:
            self.end(error)
        except Exception as error:
            logger.exception("following the log for live queries failed")
            self.end(LogUnavailable(f"following the log failed: {fault_text(error)}"))

    async def _go(self, step: Step) -> None:
        async with self.turn:
            await self._copy.go([step], step.index)
            concerned = [query for query in self.queries if query.query.concerns(step.parts)]
            if not concerned:
                return
            state = await self._freeze(len(concerned))
            for query in concerned:
                query.put(step.index, state)
        if self.is_patient:
            for query in concerned:
                await query.room(_AHEAD_MAX)

    async def _freeze(self, holders: int) -> FrozenState:
        frozen = await self._copy.perform(lambda matcher: self._evaluation.freeze(matcher.quads))
        return FrozenState(frozen, self._release, holders)

    def _release(self, frozen: object) -> None:
        task = asyncio.get_running_loop().create_task(self._evaluation.release(frozen))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    def end(self, error: GraphDBError) -> None:
        """End all its queries."""
        self.is_closed = True
        for query in tuple(self.queries):
            query.end(error)

    async def close(self) -> None:
        """Let go of everything, behind what is under way."""
        self.is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._stream.close()
        await self._copy.close()
        await asyncio.gather(*self._releasing, return_exceptions=True)
