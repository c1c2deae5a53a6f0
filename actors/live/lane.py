"""`Lane`: a copy of the graph that goes from change to change, for queries that are evaluated anew."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from actors.live.change_log import ChangeStream
from actors.live.live_copy import LiveCopy, Step
from actors.live.reevaluated_query import ReevaluatedQuery
from actors.live.whole_evaluation import FrozenState, WholeEvaluation
from graphdb.errors import GraphDBError, LogUnavailable
from graphdb.public_text import fault_text

__all__ = ["Lane"]

logger = logging.getLogger(__name__)
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
