"""`RaftDriver`: owns a `RaftNode` and turns it, on the thread of the transport's loop. `Inbox`: what has come
for it, mail and requests, since its last turn.

One turn takes everything that has come meanwhile, mail, requests and time, and does with it what
`graphdb.raft.raft_node` prescribes, with one sync for all of it. What comes while the disk syncs shares the
next.

The sync keeps the loop waiting. A thread of its own for the node would cost four hand-overs a commit and win
nothing: whatever comes over the network waits for the node, and the node for the disk.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Protocol, TypeVar

from actors.futures import answer, fail
from actors.loop_thread import LoopThread, set_event
from actors.raft.pending import PendingProposals, PendingReads, PendingRefusals
from actors.raft.rate_limited_log import RateLimitedLog
from graphdb.errors import GraphDBError, LogUnavailable, OutcomeUnknown, UnavailableError
from graphdb.model import LogEntry
from graphdb.raft.messages import Append, Envelope, SnapshotChunk, SnapshotMark
from graphdb.raft.raft_node import RaftNode, RaftStatus

__all__ = ["Inbox", "Job", "RaftDriver", "StateMachine", "Transport"]

_TURN_MAX = 256  # of mail and of requests: a turn must be over well before the next heartbeat
_MAIL_MAX = 8192
_MAIL_BYTES_MAX = 256 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """What a request does on the driver's thread, or that it never will be done. perform may raise only what
    ends the driver.
    """

    perform: Callable[[], None]
    abandon: Callable[[], None]


class Inbox:
    """Bounded for mail: what does not fit is dropped, for peers send again what matters."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """loop is the driver's."""
        self._loop = loop
        self._filled = asyncio.Event()
        self._lock = Lock()
        self._mail: deque[Envelope] = deque()
        self._mail_bytes = 0
        self._jobs: deque[Job] = deque()
        self._closed = False
        self.dropped_count = 0

    def put_mail(self, envelope: Envelope) -> None:
        """Add a message, or drop it. On the loop's thread."""
        size = _payload_bytes(envelope)
        with self._lock:
            full = len(self._mail) >= _MAIL_MAX or self._mail_bytes + size > _MAIL_BYTES_MAX
            if self._closed or (full and self._mail):
                self.dropped_count += 1
                return
            self._mail.append(envelope)
            self._mail_bytes += size
        self._filled.set()

    def put_job(self, job: Job) -> None:
        """Add a request; where nobody takes any more, it is abandoned."""
        with self._lock:
            if not self._closed:
                self._jobs.append(job)
                if len(self._jobs) == 1:
                    set_event(self._loop, self._filled)
                return
        job.abandon()

    async def take(self, timeout_s: float) -> tuple[list[Envelope], deque[Job]]:
        """What has come, in order, but no more than a turn should hold; waits for something, yet no longer
        than that.
        """
        alarm = self._loop.call_later(timeout_s, self._filled.set)
        await asyncio.sleep(0)  # waiting for what is there already would not let others have their turn
        await self._filled.wait()
        alarm.cancel()
        with self._lock:
            mail = [self._mail.popleft() for _ in range(min(len(self._mail), _TURN_MAX))]
            self._mail_bytes -= sum(map(_payload_bytes, mail))
            jobs = deque(self._jobs.popleft() for _ in range(min(len(self._jobs), _TURN_MAX)))
            if not self._mail and not self._jobs:
                self._filled.clear()
            return mail, jobs

    def close(self) -> None:
        """Take nothing more, and abandon the requests that wait."""
        with self._lock:
            self._closed = True
            jobs, self._jobs = self._jobs, deque()
        for job in jobs:
            job.abandon()


def _payload_bytes(envelope: Envelope) -> int:
    body = envelope.body
    if isinstance(body, Append):
        return sum(len(entry.payload) for entry in body.entries)
    return len(body.data) if isinstance(body, SnapshotChunk) else 0


logger = logging.getLogger(__name__)

T = TypeVar("T")
_TICK_S = 0.02
_STALL_S = 0.1
_PAUSE_AFTER_ERROR_S = 0.2


class StateMachine(Protocol):
    """What follows the log, in another process perhaps, and reads it itself. Called on the driver's thread:
    what takes long it does elsewhere.
    """

    @property
    def applied_index(self) -> int:
        """How far it has come: reads that wait for an index are answered when it has that."""

    def advance(self, committed_index: int) -> None:
        """Entries up to there may be read (`RaftNode.read_committed`). Called when that has grown; short, and
        must not fail.
        """

    def install(self, mark: SnapshotMark) -> bool | None:
        """Make the snapshot that has arrived the durable state; False: it is none, None: it is being done,
        and asked for again at the next turn. Raises UnavailableError: the same, after a pause.
        """


class Transport(Protocol):
    """What carries mail; `PeerTransport` is the one in service."""

    def send(self, envelopes: Sequence[Envelope]) -> None: ...
    def update_peers(self, peers: Mapping[int, str]) -> None: ...


class RaftDriver:
    """Methods may be called on any thread and return at once, but for `close`, which waits and is not for the
    loop's own. Futures are answered on the loop's thread.

    When the driver ends, by `close` or because the journal is damaged (`failure`), whoever waits is told.
    """

    def __init__(
        self,
        loop_thread: LoopThread,
        node: RaftNode,
        transport: Transport,
        machine: StateMachine,
        founders: Mapping[int, str],
    ) -> None:
        """founders: addresses by node id, which are called until the journal names members."""
        self._loop_thread = loop_thread
        self._node = node
        self._transport = transport
        self._machine = machine
        self._founders = founders
        self._inbox = Inbox(loop_thread.loop)
        self._jobs: deque[Job] = deque()  # of this turn
        self._proposals = PendingProposals()
        self._refusals = PendingRefusals()
        self._reads = PendingReads(secrets.randbits(62))
        self._status = node.status()
        self._advanced_to = 0  # what the state machine was last told
        self._turned_at = float("-inf")
        self._disk_refuses = False
        self._log = RateLimitedLog(logger)
        self._closing = False
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begin to turn; the transport must have been started."""
        self._update_peers()
        self._ended = asyncio.run_coroutine_threadsafe(self._run(), self._loop_thread.loop)

    def close(self) -> None:
        """Turn no more. What is proposed and not yet committed has an unknown outcome."""
        self._inbox.put_job(Job(self._begin_to_close, lambda: None))
        self._ended.result()

    def receive(self, envelope: Envelope) -> None:
        """A message has come; dropped where too many wait."""
        self._inbox.put_mail(envelope)

    def status(self) -> RaftStatus:
        """As of the last turn."""
        return self._status

    def propose(
        self, entries: Sequence[LogEntry], expected_index: int = 0, *, timeout_s: float
    ) -> "Future[int]":
        """The first entry's index, when all are committed and the state machine was told.

        0 where expected_index is given and was not admitted (`LogEnd`): nothing is stored, and what stood
        there instead is committed by now, so that whoever sees committed entries only can plan anew. Raises
        NotLeader, Overloaded (the entries are not in the log and never will be), OutcomeUnknown.
        """
        future: Future[int] = Future()
        deadline = time.monotonic() + timeout_s

        def perform() -> None:
            proposal = self._node.propose(entries, expected_index)
            if proposal is None:
                self._refusals.add(self._node.last_entry(), future, deadline)
            else:
                self._proposals.add(proposal, future, deadline)

        return self._submit(perform, future)

    def read_index(self, *, timeout_s: float) -> "Future[int]":
        """An index that the state machine has, and with which a read is linearizable.

        Raises NotLeader where no leader has answered in time.
        """
        future: Future[int] = Future()
        deadline = time.monotonic() + timeout_s
        return self._submit(lambda: self._reads.add(future, deadline), future)

    def hear_commit(self, term: int, index: int) -> None:
        """See `RaftNode.hear_commit`."""
        self._inbox.put_job(Job(lambda: self._node.hear_commit(term, index), lambda: None))

    def committed(self) -> tuple[int, int]:
        """The term that this node leads, and how far its log is committed; (0, 0) where it does not lead. On
        the loop's thread.
        """
        term = self._node.leads_term
        return (0, 0) if term is None else (term, self._node.committed_index)

    def call(self, perform: Callable[[RaftNode], T]) -> "Future[T]":
        """Anything else that is asked of the node: members, hand-over, compaction, entries."""
        future: Future[T] = Future()
        return self._submit(lambda: answer(future, perform(self._node)), future)

    def _submit(self, perform: Callable[[], None], future: "Future[T]") -> "Future[T]":
        def guarded() -> None:
            try:
                perform()
            except GraphDBError as error:
                fail(future, error)
            except BaseException:
                fail(future, OutcomeUnknown("this node's part in the cluster has failed"))
                raise

        def abandon() -> None:
            fail(future, LogUnavailable("this node's part in the cluster has ended"))

        self._inbox.put_job(Job(guarded, abandon))
        return future

    # on the loop's thread

    async def _run(self) -> None:
        try:
            while not self._closing:
                await self._turn()
        except BaseException as error:
            self.failure = error
            logger.exception("this node's part in the cluster has ended")
        self._inbox.close()
        for job in self._jobs:
            job.abandon()
        self._proposals.abandon()
        self._refusals.abandon()
        self._reads.abandon()

    def _begin_to_close(self) -> None:
        self._closing = True

    async def _turn(self) -> None:
        mail, self._jobs = await self._inbox.take(max(0.0, min(_TICK_S, self._node.tick_due_s)))
        now = time.monotonic()
        stalled, self._turned_at = now > self._turned_at + _STALL_S, now
        for envelope in mail:
            with self._unavailable_is_no_end():
                self._node.receive(envelope)
        if not stalled:  # else what peers have sent meanwhile is heard first, before anyone is missed
            with self._unavailable_is_no_end():
                self._node.tick()
        while self._jobs:
            self._jobs.popleft().perform()
        self._reads.ask(self._node, now)
        with self._unavailable_is_no_end():
            if self._send():
                # two steps: the links take the messages, then they begin to write; so they travel while this
                # node's disk works
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            self._node.persist()
            self._send()
            self._install_snapshot()
        self._follow(now)
        if self._disk_refuses:
            self._disk_refuses = False
            await asyncio.sleep(_PAUSE_AFTER_ERROR_S)

    @contextmanager
    def _unavailable_is_no_end(self) -> Iterator[None]:
        """A disk that refuses now may take it later; the node goes on as after a restart."""
        try:
            yield
        except UnavailableError as error:
            self._disk_refuses = True
            self._warn(error)

    def _warn(self, error: UnavailableError) -> None:
        self._log.warn("disk", "the journal or a snapshot cannot be used: %s", error)

    def _send(self) -> bool:
        """Whether there was anything."""
        messages = self._node.take_messages()
        if (fault := self._node.take_fault()) is not None:
            self._warn(fault)
        if messages:
            self._transport.send(messages)
        return bool(messages)

    def _install_snapshot(self) -> None:
        mark = self._node.snapshot_to_install()
        installed = self._machine.install(mark) if mark is not None else None
        if installed:
            self._node.snapshot_installed()
        elif installed is False:
            self._node.discard_snapshot()

    def _follow(self, now: float) -> None:
        """Give out what has become of it all."""
        committed = self._node.committed_index
        if committed > self._advanced_to:
            self._advanced_to = committed
            self._machine.advance(committed)
        self._proposals.settle(self._node, now)
        self._refusals.settle(self._node, now)
        self._reads.settle(self._node.take_reads(), self._machine.applied_index)
        self._reads.expire(now)
        members, self._status = self._status.members, self._node.status()
        if members != self._status.members:
            self._update_peers()

    def _update_peers(self) -> None:
        members = {member.peer.node_id: member.address for member in self._status.members}
        self._transport.update_peers(members or self._founders)
