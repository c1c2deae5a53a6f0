"""`SubscriptionHub`: who listens to which live query on this node, and what each is told."""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from actors.live.change_log import ChangeStream
from actors.live.live_copy import CopiedState, LiveCopy, Step, StepTooLarge
from graphdb.errors import (
    ChangesForgotten,
    GraphDBError,
    LogUnavailable,
    Overloaded,
)
from graphdb.live.changes import LoggedChange
from graphdb.live.matcher import LiveQuery, Told
from graphdb.live.notifications import Notification
from graphdb.node import EmbeddedStore

__all__ = ["LiveSink", "SubscriptionHub"]

logger = logging.getLogger(__name__)

_WAIT_S = 10.0
_GATHER_S = 0.005  # changes that come one after the other go to each socket together
REPLAYED_QUADS_MAX = 1_000_000  # that have changed since the index that somebody resumes from


class LiveSink(Protocol):
    """Where notifications go. It is called on the event loop, and never waits."""

    def opened(self, subscription: str, index: int) -> None:
        """The subscription begins: what changes behind index is told, and nothing was told before."""

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        """All of these are told the same."""

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        """The node cannot go on with these; whoever wants may subscribe again behind what was told last."""


@dataclass(eq=False, slots=True)
class _Subscription:
    id: str
    query: LiveQuery
    sink: LiveSink
    from_index: int  # only what is behind it is told


@dataclass(eq=False, slots=True)
class _Group:
    """All who have asked for the same: it is matched once."""

    members: dict[str, _Subscription] = field(default_factory=dict)
    by_sink: dict[LiveSink, list[str]] | None = None  # made anew after a change of members
    later_index: int = 0  # up to there not all members are told everything

    def tell(self, notification: Notification) -> None:
        if notification.index <= self.later_index:
            for one in self.members.values():
                if notification.index > one.from_index:
                    one.sink.notify((one.id,), notification)
            return
        if self.by_sink is None:
            self.by_sink = {}
            for one in self.members.values():
                self.by_sink.setdefault(one.sink, []).append(one.id)
        for sink, ids in self.by_sink.items():
            sink.notify(ids, notification)


class SubscriptionHub:
    """Owned by a node, on its event loop. Without subscriptions it holds and does nothing."""

    def __init__(
        self,
        follow: Callable[[int | None, float], Awaitable[ChangeStream]],
        copy_state: Callable[[], Awaitable[CopiedState]],
        *,
        union_default_graph: bool,
        subscriptions_max: int,
        timeout_s: float,
    ) -> None:
        """follow: see `Backend.follow_changes`; copy_state makes a copy of the present state. timeout_s: how
        long a subscriber waits for the node to reach the index that it names.
        """
        self._follow, self._copy_state = follow, copy_state
        self._union_default_graph = union_default_graph
        self._subscriptions_max, self._timeout_s = subscriptions_max, timeout_s
        self._thread: ThreadPoolExecutor | None = None
        self._copy: LiveCopy | None = None
        self._running: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # around whatever changes the copy or what it watches
        self._groups: dict[LiveQuery, _Group] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._next_at = 0.0  # on the loop's clock
        self._closed = False

    def status(self, role: str, applied_index: int | None) -> EmbeddedStore:
        """For /health. applied_index: None while the node has not opened its store."""
        copy = self._copy
        ready = applied_index is not None and not self._closed
        return EmbeddedStore(
            url="embedded:live",
            namespace="graphdb",
            database="default",
            ready=ready,
            projection_bootstrapped=ready,  # a copy is links: there is nothing to build up before it
            last_projected_log_index=(applied_index or 0) if copy is None else copy.index,
            active_listener_count=len(self._subscriptions),
            listener_role=role,
        )

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        """Tell a sink what becomes of a query's records behind since, None: from now on; the id of it.

        Raises ChangesForgotten, IndexNotReached, Overloaded, UnavailableError.
        """
        if len(self._subscriptions) >= self._subscriptions_max:
            raise Overloaded(f"{len(self._subscriptions)} subscriptions are open already")
        if self._closed:
            raise LogUnavailable("the node is stopping")
        subscription = _Subscription(str(uuid.uuid4()), query, sink, 0)
        # what is confirmed before the call is not told: so the copy has to be where the node is
        stream = await self._follow(since, self._timeout_s)
        try:
            await self._join(subscription, stream, replay=since is not None)
        finally:
            stream.close()
        return subscription.id

    async def unsubscribe(self, subscription_id: str) -> bool:
        """Tell it nothing more, from the call on; False where there is none such."""
        found = self._subscriptions.pop(subscription_id, None)
        if found is None:
            return False
        group = self._groups[found.query]
        del group.members[subscription_id]
        group.by_sink = None
        if not group.members:
            async with self._turn:
                if not group.members and self._groups.get(found.query) is group:
                    del self._groups[found.query]
                    if self._copy is not None:
                        await self._copy.forget(found.query)
        return True

    async def close(self) -> None:
        """End what is open, let go of the copy."""
        self._closed = True
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        async with self._turn:
            await self._let_go(LogUnavailable("the node is stopping"))
        if self._thread is not None:
            self._thread.shutdown()

    # joining

    async def _join(self, subscription: _Subscription, stream: ChangeStream, *, replay: bool) -> None:
        since = stream.through
        async with self._turn:
            await self._start()
            assert self._copy is not None
            if self._copy.index <= since:
                # the copy will come there, and everything behind it is told
                await self._register(subscription, since)
                return
            if not replay:
                await self._register(subscription, self._copy.index)
                return
        await self._replay(subscription, stream)

    async def _register(self, subscription: _Subscription, from_index: int) -> None:
        """Within the turn: begin to tell what is behind from_index."""
        assert self._copy is not None
        await self._watch(subscription.query)
        subscription.sink.opened(subscription.id, from_index)
        self._add(subscription, from_index)

    async def _watch(self, query: LiveQuery) -> None:
        assert self._copy is not None
        if query not in self._groups:
            await self._copy.watch(query)
            self._groups[query] = _Group()

    def _add(self, subscription: _Subscription, from_index: int) -> None:
        group = self._groups[subscription.query]
        subscription.from_index = from_index
        group.later_index = max(group.later_index, from_index)
        group.members[subscription.id] = self._subscriptions[subscription.id] = subscription
        group.by_sink = None

    async def _replay(self, subscription: _Subscription, stream: ChangeStream) -> None:
        """What has changed since: on a copy of its own that goes back to where the subscriber was, then on
        until it meets the copy of all.
        """
        since = stream.through
        copy = self._new_copy(await self._copy_state())
        told: list[Notification] = []
        try:
            steps = await self._changes_up_to(copy, stream)
            await copy.go_back(steps, since)
            await copy.watch(subscription.query)
            told += _notifications(await copy.go(steps, stream.through))
            while True:
                async with self._turn:
                    if self._copy is None:
                        raise LogUnavailable("the node cannot follow its log now")
                    if copy.index >= self._copy.index:
                        return await self._hand_over(subscription, since, copy.index, told)
                changes = await stream.read(_WAIT_S)
                if changes is None:
                    raise LogUnavailable("the node is stopping")
                told += _notifications(await copy.go(_steps(copy, changes), stream.through))
        finally:
            await copy.close()

    async def _hand_over(
        self, subscription: _Subscription, since: int, index: int, told: Sequence[Notification]
    ) -> None:
        """Within the turn: tell what was replayed, then go on with the copy of all."""
        await self._watch(subscription.query)
        subscription.sink.opened(subscription.id, since)
        for notification in told:
            subscription.sink.notify((subscription.id,), notification)
        self._add(subscription, index)

    async def _changes_up_to(self, copy: LiveCopy, stream: ChangeStream) -> list[Step]:
        """The steps from where the stream is to where the copy is, or a little further: then the copy is
        taken there first.
        """
        since, quads = stream.through, 0
        steps: list[Step] = []
        while stream.through < copy.index:
            changes = await stream.read(_WAIT_S)
            if changes is None:
                raise LogUnavailable("the node is stopping")
            quads += sum(one.change.affected_triples for one in changes)
            if quads > REPLAYED_QUADS_MAX:
                raise ChangesForgotten(since, stream.through)
            steps += _steps(copy, changes)
        await copy.go([step for step in steps if step.index > copy.index], stream.through)
        return steps

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
            for query, told in await self._copy.go(_steps(self._copy, changes), stream.through):
                if (group := self._groups.get(query)) is None:
                    continue
                if isinstance(told, Notification):
                    group.tell(told)
                else:
                    await self._end(query, group, told)
            if self._groups or changes:
                return True
            # so long nothing has come, and nobody was there: within the turn, before somebody joins
            self._running = None
            await self._let_go(LogUnavailable("nobody listens"))
            return False

    async def _end(self, query: LiveQuery, group: _Group, error: GraphDBError) -> None:
        """Within the turn: it cannot be followed any more."""
        del self._groups[query]
        for one in group.members.values():
            del self._subscriptions[one.id]
            one.sink.ended((one.id,), error)
        assert self._copy is not None
        await self._copy.forget(query)

    async def _let_go(self, error: GraphDBError) -> None:
        """Within the turn: nobody is told anything any more."""
        by_sink: dict[LiveSink, list[str]] = {}
        for one in self._subscriptions.values():
            by_sink.setdefault(one.sink, []).append(one.id)
        self._subscriptions.clear()
        self._groups.clear()
        copy, self._copy = self._copy, None
        for sink, ids in by_sink.items():
            sink.ended(ids, error)
        if copy is not None:
            await copy.close()


def _notifications(told: Sequence[Told]) -> list[Notification]:
    """Of a query that is alone. Raises the error that is among them."""
    found: list[Notification] = []
    for _, one in told:
        if not isinstance(one, Notification):
            raise one
        found.append(one)
    return found


def _steps(copy: LiveCopy, changes: Sequence[LoggedChange]) -> list[Step]:
    """Raises ChangesForgotten."""
    try:
        return copy.steps(changes)
    except StepTooLarge:
        raise ChangesForgotten(copy.index, changes[-1].index + 1) from None
