"""`Reevaluation`: the live queries of a node that are evaluated anew after each change that concerns them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from actors.live.change_log import ChangeStream
from actors.live.lane import Lane, ReevaluatedQuery
from actors.live.listeners import LiveSink, Subscription
from actors.live.live_copy import CopiedState, LiveCopy, Step, go_back_to
from actors.live.whole_evaluation import WholeEvaluation
from graphdb.errors import GraphDBError, LogUnavailable, Overloaded
from graphdb.live.sparql_queries import WholeQuery

__all__ = ["Reevaluation"]


class Reevaluation:
    """Owned by a `SubscriptionHub`, on its event loop. Without subscriptions it holds and does nothing.

    One lane goes with the log, for all. Who resumes gets a lane of his own, until that has caught up.
    """

    def __init__(
        self,
        follow: Callable[[int | None, float], Awaitable[ChangeStream]],
        copy_state: Callable[[], Awaitable[CopiedState]],
        evaluation: WholeEvaluation,
        *,
        queries_max: int,
        waiting_max: int,
        timeout_s: float,
        on_told: Callable[[int], None],
        on_ended: Callable[[Iterable[str]], None],
    ) -> None:
        """See `SubscriptionHub`. waiting_max: changes that may wait for one query. on_told hears how many
        were told something, on_ended of subscriptions that are no more, before their sinks do.
        """
        self._follow, self._copy_state, self._evaluation = follow, copy_state, evaluation
        self._queries_max, self._waiting_max, self._timeout_s = queries_max, waiting_max, timeout_s
        self._on_told, self._on_ended = on_told, on_ended
        self._queries: list[ReevaluatedQuery] = []
        self._lanes: list[Lane] = []
        self._beginning = asyncio.Lock()  # around the start of the lane for all
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def query_count(self) -> int:
        """How many queries there are."""
        return len(self._queries)

    @property
    def told_index(self) -> int | None:
        """Up to where all have been told; None where nobody listens."""
        return min(
            (one.done_index if one.is_behind else lane.index for lane in self._lanes for one in lane.queries),
            default=None,
        )

    async def join(self, subscription: Subscription, stream: ChangeStream, *, replay: bool) -> None:
        """Tell a new subscription what changes behind the place of the stream, which is closed in the end.

        Raises ChangesForgotten, LimitExceeded, EvaluationFailed, Overloaded, UnavailableError.
        """
        try:
            since = stream.through
            query = await self._found(_whole(subscription), stream, replay=replay)
        except BaseException:
            stream.close()
            raise
        async with query.joined():
            from_index = since if replay else max(since, query.done_index)
            subscription.sink.opened(subscription.id, from_index)
            query.group.add(subscription, from_index)

    async def adopt(self, subscriptions: Sequence[Subscription], since: int) -> None:
        """Go on with open subscriptions to one query, who have been told everything up to since."""
        try:
            stream = await self._follow(since, self._timeout_s)
            try:
                query = await self._found(_whole(subscriptions[0]), stream, replay=True)
            except BaseException:
                stream.close()
                raise
            async with query.joined():
                for one in subscriptions:
                    if one.is_open:
                        query.group.add(one, max(one.from_index, since))
        except GraphDBError as error:
            self._tell_end((one for one in subscriptions if one.is_open), error)

    def leave(self, subscription: Subscription) -> None:
        """Tell it nothing more, from the call on."""
        for query in tuple(self._queries):
            if subscription.id in query.group.members:
                query.group.remove(subscription.id)
                if query.is_unused:
                    query.end(LogUnavailable("nobody listens"))

    async def close(self, error: GraphDBError) -> None:
        """End all that is open."""
        self._closed = True
        await self.end_all(error)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def end_all(self, error: GraphDBError) -> None:
        """End all that is open now."""
        for lane in tuple(self._lanes):
            lane.end(error)
        for query in tuple(self._queries):
            query.end(error)
        while self._lanes:
            await self._lanes.pop().close()

    # the queries

    async def _found(self, asked: WholeQuery, stream: ChangeStream, *, replay: bool) -> ReevaluatedQuery:
        """The query that tells what is asked for, there or begun."""
        since = stream.through
        for query in self._queries:
            if query.query == asked and (not replay or since >= query.done_index):
                stream.close()
                return query
        if len(self._queries) >= self._queries_max:
            raise Overloaded(
                f"{len(self._queries)} live queries are evaluated anew already (live.max_reevaluated_queries)"
            )
        query = ReevaluatedQuery(
            asked,
            self._evaluation,
            self._waiting_max,
            since if replay else None,
            self._on_told,
            self._ended,
        )
        self._queries.append(query)
        try:
            if replay:
                await self._resume(query, stream)
            else:
                stream.close()
                await self._begin(query)
        except GraphDBError as error:
            query.end(error)
            raise
        except BaseException:
            query.end(LogUnavailable("who asked for it has gone"))
            raise
        return query

    def _ended(self, query: ReevaluatedQuery) -> None:
        self._queries.remove(query)
        for lane in tuple(self._lanes):
            if query in lane.queries:
                lane.queries.remove(query)
                self._let_go_of_empty(lane)
        members = list(query.group.members.values())
        query.group.members.clear()
        query.group.by_sink = None
        assert query.error is not None
        self._tell_end(members, query.error)

    def _tell_end(self, subscriptions: Iterable[Subscription], error: GraphDBError) -> None:
        by_sink: dict[LiveSink, list[str]] = {}
        for one in subscriptions:
            by_sink.setdefault(one.sink, []).append(one.id)
        for sink, ids in by_sink.items():
            self._on_ended(ids)
            sink.ended(ids, error)

    # the lanes

    async def _begin(self, query: ReevaluatedQuery) -> None:
        """In the lane of all, as it is now."""
        while True:
            async with self._beginning:
                lane = self._lane_of_all()
                if lane is None:
                    lane = await self._new_lane(await self._new_copy(), None, is_patient=False)
                    lane.run((), lambda _: None)
            try:
                async with lane.turn:
                    if not lane.is_closed:
                        return await lane.add(query)
            finally:
                self._let_go_of_empty(lane)

    async def _resume(self, query: ReevaluatedQuery, stream: ChangeStream) -> None:
        """In a lane of its own, from where the stream is."""
        copy = await self._new_copy()
        steps: list[Step] = []
        try:
            steps = await go_back_to(copy, stream)
        except BaseException:
            await copy.close()
            raise
        lane = await self._new_lane(copy, stream, is_patient=True)
        try:
            async with lane.turn:
                await lane.add(query)
        finally:
            self._let_go_of_empty(lane)
        lane.run(steps, self._merge)

    async def _new_copy(self) -> LiveCopy:
        if self._closed:
            raise LogUnavailable("the node is stopping")
        # one thread: the engine's iterators end the process when used on another than their own
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="live-lane")
        return LiveCopy(await self._copy_state(), thread, owns_thread=True)

    async def _new_lane(self, copy: LiveCopy, stream: ChangeStream | None, *, is_patient: bool) -> Lane:
        if stream is None:
            try:
                stream = await self._follow(copy.index, self._timeout_s)
            except BaseException:
                await copy.close()
                raise
        lane = Lane(copy, stream, self._evaluation, is_patient=is_patient)
        self._lanes.append(lane)
        return lane

    def _merge(self, lane: Lane) -> None:
        """Its queries go on in the lane of all, where there is one and it is not further."""
        of_all = self._lane_of_all()
        if of_all is None:
            lane.is_patient = False
        elif of_all.index <= lane.index:
            of_all.queries += lane.queries
            lane.queries = []
            self._let_go_of_empty(lane)

    def _lane_of_all(self) -> Lane | None:
        return next((one for one in self._lanes if not one.is_patient and not one.is_closed), None)

    def _let_go_of_empty(self, lane: Lane) -> None:
        if not lane.queries and lane in self._lanes:
            self._lanes.remove(lane)
            lane.is_closed = True
            task = asyncio.get_running_loop().create_task(lane.close())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


def _whole(subscription: Subscription) -> WholeQuery:
    assert isinstance(subscription.query, WholeQuery)
    return subscription.query
