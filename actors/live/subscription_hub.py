"""`SubscriptionHub`: who listens to which live query on this node, and what each is told."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from actors.live.change_log import ChangeStream
from actors.live.listeners import Group, LiveSink, Subscription
from actors.live.live_copy import CopiedState, LiveCopy, go_back_to
from actors.live.reevaluation import Reevaluation
from actors.live.whole_evaluation import WholeEvaluation
from graphdb.config import Live
from graphdb.errors import GraphDBError, LogUnavailable, Overloaded, RequestError
from graphdb.live.matcher import FollowedQuery, LiveQuery, Match, Unfollowable
from graphdb.live.notifications import Notification
from graphdb.live.sparql_queries import WholeQuery
from graphdb.node import EmbeddedStore, LiveReport

__all__ = ["SubscriptionHub"]

logger = logging.getLogger(__name__)

_WAIT_S = 10.0
_GATHER_S = 0.005  # changes that come one after the other go to each socket together


class SubscriptionHub:
    """Owned by a node, on its event loop. Without subscriptions it holds and does nothing."""

    def __init__(
        self,
        follow: Callable[[int | None, float], Awaitable[ChangeStream]],
        copy_state: Callable[[], Awaitable[CopiedState]],
        evaluation: WholeEvaluation,
        *,
        union_default_graph: bool,
        limits: Live,
        timeout_s: float,
    ) -> None:
        """follow: see `GraphLive.follow_changes`; copy_state makes a copy of the present state. timeout_s:
        how long a subscriber waits for the node to reach the index that it names.
        """
        self._reevaluation = Reevaluation(
            follow,
            copy_state,
            evaluation,
            queries_max=limits.max_reevaluated_queries,
            waiting_max=limits.max_reevaluation_backlog,
            timeout_s=timeout_s,
            on_told=self._count,
            on_ended=self._forget,
        )
        self._follow, self._copy_state = follow, copy_state
        self._union_default_graph = union_default_graph
        self._subscriptions_max, self._timeout_s = limits.max_subscriptions, timeout_s
        self._notification_count = 0
        self._thread: ThreadPoolExecutor | None = None
        self._copy: LiveCopy | None = None
        self._running: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # around whatever changes the copy or what it watches
        self._groups: dict[FollowedQuery, Group] = {}
        self._moving: set[asyncio.Task[None]] = set()
        self._subscriptions: dict[str, Subscription] = {}
        self._joining: set[str] = set()  # those that are on their way there
        self._next_at = 0.0  # on the loop's clock
        self._closed = False

    def status(self, role: str, applied_index: int | None) -> EmbeddedStore:
        """For /health. applied_index: None while the node has not opened its store."""
        told_index = self._told_index()
        ready = applied_index is not None and not self._closed
        return EmbeddedStore(
            url="embedded:live",
            namespace="graphdb",
            database="default",
            ready=ready,
            projection_bootstrapped=ready,  # a copy is links: there is nothing to build up before it
            last_projected_log_index=(applied_index or 0) if told_index is None else told_index,
            active_listener_count=len(self._subscriptions),
            listener_role=role,
        )

    def report(self, applied_index: int | None) -> LiveReport:
        """For /metrics."""
        told_index = self._told_index()
        behind = 0 if told_index is None or applied_index is None else applied_index - told_index
        return LiveReport(
            subscriptions=len(self._subscriptions),
            queries=len(self._groups) + self._reevaluation.query_count,
            reevaluated_queries=self._reevaluation.query_count,
            notifications=self._notification_count,
            lag_entries=max(behind, 0),
        )

    def _told_index(self) -> int | None:
        """Up to where all have been told; None where nobody listens."""
        near = None if self._copy is None else self._copy.index
        told = [one for one in (near, self._reevaluation.told_index) if one is not None]
        return min(told, default=None)

    @property
    def subscription_count(self) -> int:
        """How many there are, with those that are being opened."""
        return len(self._subscriptions) + len(self._joining)

    def _count(self, told: int) -> None:
        self._notification_count += told

    def _forget(self, subscription_ids: Iterable[str]) -> None:
        for one in subscription_ids:
            self._subscriptions.pop(one, None)

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """Tell a sink what becomes of a query's records behind since, None: from now on; the id of it.

        Raises ChangesForgotten, IndexNotReached, Overloaded, UnavailableError; for a query that is evaluated
        anew LimitExceeded, EvaluationFailed.
        """
        count = self.subscription_count
        if count >= self._subscriptions_max:
            raise Overloaded(f"{count} subscriptions are open already (live.max_subscriptions)")
        if self._closed:
            raise LogUnavailable("the node is stopping")
        subscription = Subscription(str(uuid.uuid4()), query, sink)
        self._joining.add(subscription.id)
        try:
            await self._begin(subscription, query, since)
        finally:
            self._joining.discard(subscription.id)
        return subscription.id

    async def _begin(self, subscription: Subscription, query: LiveQuery, since: int | None) -> None:
        # what is confirmed before the call is not told: so the copy has to be where the node is
        stream = await self._follow(since, self._timeout_s)
        if isinstance(query, WholeQuery):
            await self._reevaluate(subscription, stream, replay=since is not None)
            return
        try:
            await self._join(subscription, query, stream, replay=since is not None)
        except _CannotFollow as reason:
            if isinstance(reason.then, RequestError):
                raise reason.then from None
            subscription.query = reason.then
            again = await self._follow(since, self._timeout_s)
            await self._reevaluate(subscription, again, replay=True)
        finally:
            stream.close()

    def _enter(self, subscription: Subscription) -> None:
        self._joining.discard(subscription.id)
        self._subscriptions[subscription.id] = subscription

    async def _reevaluate(self, subscription: Subscription, stream: ChangeStream, *, replay: bool) -> None:
        self._enter(subscription)
        try:
            await self._reevaluation.join(subscription, stream, replay=replay)
        except BaseException:
            self._subscriptions.pop(subscription.id, None)
            raise

    async def unsubscribe(self, subscription_id: str) -> bool:
        """Tell it nothing more, from the call on; False where there is none such."""
        found = self._subscriptions.pop(subscription_id, None)
        if found is None:
            return False
        found.is_open, query = False, found.query
        if isinstance(query, WholeQuery):
            self._reevaluation.leave(found)
            return True
        group = self._groups[query]
        group.remove(subscription_id)
        if not group.members:
            async with self._turn:
                if not group.members and self._groups.get(query) is group:
                    del self._groups[query]
                    if self._copy is not None:
                        await self._copy.forget(query)
        return True

    async def end_all(self, error: GraphDBError) -> None:
        """End what is open for this reason, and let go of the copies; whoever wants may subscribe again."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
            self._running = None
        await self._reevaluation.end_all(error)
        async with self._turn:
            await self._let_go(error)

    async def close(self) -> None:
        """End what is open, let go of the copy."""
        self._closed = True
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        stopping = LogUnavailable("the node is stopping")
        await self._reevaluation.close(stopping)
        await asyncio.gather(*self._moving, return_exceptions=True)
        async with self._turn:
            await self._let_go(stopping)
        if self._thread is not None:
            self._thread.shutdown()

    # joining

    async def _join(
        self, subscription: Subscription, query: FollowedQuery, stream: ChangeStream, *, replay: bool
    ) -> None:
        since = stream.through
        async with self._turn:
            await self._start()
            assert self._copy is not None
            if self._copy.index <= since:
                # the copy will come there, and everything behind it is told
                await self._register(subscription, query, since)
                return
            if not replay:
                await self._register(subscription, query, self._copy.index)
                return
        await self._replay(subscription, query, stream)

    async def _register(self, subscription: Subscription, query: FollowedQuery, from_index: int) -> None:
        """Within the turn: begin to tell what is behind from_index."""
        assert self._copy is not None
        await self._watch(query)
        subscription.sink.opened(subscription.id, from_index)
        self._add(subscription, query, from_index)

    async def _watch(self, query: FollowedQuery) -> None:
        assert self._copy is not None
        if query not in self._groups:
            await self._copy.watch(query)
            self._groups[query] = Group()

    def _add(self, subscription: Subscription, query: FollowedQuery, from_index: int) -> None:
        self._groups[query].add(subscription, from_index)
        self._enter(subscription)

    async def _replay(self, subscription: Subscription, query: FollowedQuery, stream: ChangeStream) -> None:
        """What has changed since: on a copy of its own that goes back to where the subscriber was, then on
        until it meets the copy of all.
        """
        since = stream.through
        copy = self._new_copy(await self._copy_state())
        told: list[Notification] = []
        try:
            steps = await go_back_to(copy, stream)
            await copy.watch(query)
            told += _notifications(await copy.go(steps, stream.through))
            while True:
                async with self._turn:
                    if self._copy is None:
                        raise LogUnavailable("the node cannot follow its log now")
                    if copy.index >= self._copy.index:
                        return await self._hand_over(subscription, query, since, copy.index, told)
                changes = await stream.read(_WAIT_S)
                if changes is None:
                    raise LogUnavailable("the node is stopping")
                told += _notifications(await copy.go(copy.whole_steps(changes), stream.through))
        finally:
            await copy.close()

    async def _hand_over(
        self,
        subscription: Subscription,
        query: FollowedQuery,
        since: int,
        index: int,
        told: Sequence[Notification],
    ) -> None:
        """Within the turn: tell what was replayed, then go on with the copy of all."""
        await self._watch(query)
        subscription.sink.opened(subscription.id, since)
        for notification in told:
            subscription.sink.notify((subscription.id,), notification)
        self._count(len(told))
        self._add(subscription, query, index)

    # the copy of all

    async def _start(self) -> None:
        """Within the turn: have a copy, and follow the log with it."""
        if self._closed:
            raise LogUnavailable("the node is stopping")
        if self._copy is None:
            self._copy = self._new_copy(await self._copy_state())
            try:
                stream = await self._follow(self._copy.index, self._timeout_s)
            except BaseException:
                copy, self._copy = self._copy, None
                await copy.close()
                raise
            self._running = asyncio.get_running_loop().create_task(self._run(stream))

    def _new_copy(self, state: CopiedState) -> LiveCopy:
        if self._thread is None:
            # one thread: the engine's iterators end the process when used on another than their own
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="live")
        return LiveCopy(state, self._thread, union_default_graph=self._union_default_graph)

    async def _run(self, stream: ChangeStream) -> None:
        error: GraphDBError = LogUnavailable("the node cannot follow its log now")
        try:
            while await self._tell_some(stream):
                pass
        except asyncio.CancelledError:
            raise
        except GraphDBError as failure:
            error = failure
        except Exception as failure:
            logger.exception("matching live queries failed")
            error = LogUnavailable(f"matching live queries failed: {failure!r}")
        finally:
            stream.close()
        async with self._turn:
            if self._running is asyncio.current_task():
                await self._let_go(error)

    async def _tell_some(self, stream: ChangeStream) -> bool:
        """What comes next; False where nothing more will come, or nobody listens any more."""
        await asyncio.sleep(self._next_at - asyncio.get_running_loop().time())
        changes = await stream.read(_WAIT_S)
        self._next_at = asyncio.get_running_loop().time() + _GATHER_S
        if changes is None:
            return False
        async with self._turn:
            assert self._copy is not None
            for query, told in await self._copy.go(self._copy.whole_steps(changes), stream.through):
                if (group := self._groups.get(query)) is None:
                    continue
                if isinstance(told, Notification):
                    self._count(group.tell(told))
                else:
                    await self._stop_following(query, group, told)
            if self._groups or changes:
                return True
            # so long nothing has come, and nobody was there: within the turn, before somebody joins
            self._running = None
            await self._let_go(LogUnavailable("nobody listens"))
            return False

    async def _stop_following(self, query: FollowedQuery, group: Group, told: Unfollowable) -> None:
        """Within the turn: from here on it is evaluated anew, or it has ended."""
        del self._groups[query]
        assert self._copy is not None
        members = list(group.members.values())
        if isinstance(told.then, RequestError):
            for one in members:
                del self._subscriptions[one.id]
                one.sink.ended((one.id,), told.then)
        elif members:
            for one in members:
                one.query = told.then
            moving = self._reevaluation.adopt(members, told.index - 1)
            task = asyncio.get_running_loop().create_task(moving)
            self._moving.add(task)
            task.add_done_callback(self._moving.discard)
        await self._copy.forget(query)

    async def _let_go(self, error: GraphDBError) -> None:
        """Within the turn: nobody is told anything any more."""
        by_sink: dict[LiveSink, list[str]] = {}
        for group in self._groups.values():
            for one in group.members.values():
                del self._subscriptions[one.id]
                by_sink.setdefault(one.sink, []).append(one.id)
        self._groups.clear()
        copy, self._copy = self._copy, None
        for sink, ids in by_sink.items():
            sink.ended(ids, error)
        if copy is not None:
            await copy.close()


class _CannotFollow(Exception):
    """A query that is replayed alone cannot be followed near its changes."""

    def __init__(self, then: WholeQuery | RequestError) -> None:
        super().__init__(then)
        self.then = then


def _notifications(told: Sequence[Match]) -> list[Notification]:
    """Of a query that is alone. Raises _CannotFollow."""
    found: list[Notification] = []
    for _, one in told:
        if isinstance(one, Unfollowable):
            raise _CannotFollow(one.then)
        found.append(one)
    return found
