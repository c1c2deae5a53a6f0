"""Requests that are sent again, over crashes, lost answers and other writers: each takes effect once.

The log is that of a cluster, as the port of one node sees it. What became of an append whose answer was lost
is decided later, and another node may lead and write meanwhile, this node's requests too (a client may ask
there). Whenever the writer appends, and at the end, its store is what a naive replay makes of the log.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest
from pyoxigraph import Quad, Store

from actors.log.protocol import LogStatus
from actors.shard.shard_writer import ShardWriter
from graphdb.errors import (
    GraphDBError,
    LogUnavailable,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    UnavailableError,
)
from graphdb.log.payloads import decode_changes, decode_close, encode_changes, encode_close
from graphdb.log.recent_requests import RecentRequests
from graphdb.log.replay import Replayer
from graphdb.log.request_ids import fresh, keyed
from graphdb.log.views import ViewStatus
from graphdb.model import ChangeSet, Confirmation, EntryKind, LogEntry
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from tests.support.small_writes import CONFIG, at, quad

State = frozenset[Quad]


class Crash(BaseException):
    """The end of a process."""


class Request:
    """Toggles some quads, and counts how often it has done so: a mark for each time."""

    def __init__(self, random: Random, number: int) -> None:
        self.number = number
        self.id = (
            keyed(f"k{number}", "POST", b"/", ()) if random.randrange(2) else fresh(random.randbytes(16))
        )
        self.names = [f"n{i}" for i in random.sample(range(30), random.choice([1, 1, 2, 5, 20]))]
        self.answers: list[Confirmation | GraphDBError] = []

    def mark(self, time: int) -> Quad:
        return quad(f"mark{self.number}-{time}", 0)

    def change(self, holds: Callable[[Quad], bool]) -> ChangeSet:
        time = next(time for time in range(100) if not holds(self.mark(time)))
        quads = [quad(name, 0) for name in self.names]
        removed = tuple(each for each in quads if holds(each))
        return ChangeSet(removed, (self.mark(time), *(each for each in quads if each not in removed)))

    def plan(self, state: Overlay) -> Iterator[ChangeSet]:
        change = self.change(state.contains)
        if len(self.names) < 20:
            yield change
        else:
            yield ChangeSet(change.removed, change.added[:3])
            yield ChangeSet((), change.added[3:])

    def entries(self, state: State, parts: bool, dead: bool) -> list[LogEntry]:
        """As another node would log it, from the state that it has."""
        change = self.change(state.__contains__)
        if not parts and not dead:
            return [entry(EntryKind.CHANGES, self.id, encode_changes(change))]
        pieces = [ChangeSet(change.removed, ()), ChangeSet((), change.added)]
        made = [entry(EntryKind.PART, self.id, encode_changes(piece)) for piece in pieces]
        return made[:1] if dead else [*made, entry(EntryKind.CLOSE, self.id, encode_close(2))]


def entry(kind: EntryKind, request_id: bytes, payload: bytes = b"") -> LogEntry:
    return LogEntry(0, 0, kind, request_id, 0, payload)


class ClusterLog:
    """The committed entries, one append whose fate is open, and others who write."""

    settles_at_once = False

    def __init__(self, random: Random, requests: list[Request]) -> None:
        self.random = random
        self.requests = requests
        self.has_faults = True
        self.entries: list[LogEntry] = []
        self.states: list[State] = [frozenset()]  # by log index
        self.floating: tuple[list[LogEntry], int] | None = None
        self.is_stuck = False  # no majority: the fate stays open until somebody writes again
        self.parts: list[bytes] = []  # side by side at the end of the log, of one request
        self.done: set[bytes] = set()
        self.faults: list[str] = []  # an error raised here would be the writer's to survive
        self.crashed = asyncio.Event()
        self.searching = True
        self.expect_state: Callable[[int], None] = lambda index: None

    def _commit(self, new: LogEntry) -> None:
        state = set(self.states[-1])
        if new.kind is EntryKind.PART:
            concerning = [each for each in self.entries if each.kind is not EntryKind.SEARCH]
            same = concerning and concerning[-1].request_id == new.request_id
            self.parts = [*(self.parts if same else []), new.payload]
        elif new.kind is not EntryKind.SEARCH:
            payloads = {
                EntryKind.CHANGES: lambda: [new.payload],
                EntryKind.CLOSE: lambda: self.parts[-decode_close(new.payload) :],
            }.get(new.kind, list)()
            for change in map(decode_changes, payloads):
                state = (state - {*change.removed}) | {*change.added}
            if payloads:
                if new.request_id in self.done:
                    self.faults.append(f"entry {len(self.entries) + 1} repeats a request")
                self.done.add(new.request_id)
            self.parts = []
        self.entries.append(at(new, len(self.entries) + 1))
        self.states.append(frozenset(state))

    def _admits(self, expected_index: int) -> bool:
        """Whether nothing but entries of other writers stands from there on."""
        return all(each.kind is EntryKind.SEARCH for each in self.entries[expected_index - 1 :])

    def _search(self) -> None:
        """Documents are written, by another writer, which expects nothing."""
        if self.searching:
            for _ in range(self.random.choice([0, 0, 1, 3])):
                self._commit(entry(EntryKind.SEARCH, bytes(16)))

    def _decide(self) -> None:
        """What was floating is stored, from its beginning to wherever, or not at all."""
        if self.floating is None:
            return
        entries, expected = self.floating
        self.floating = None
        if self._admits(expected):
            for new in entries[: self.random.randrange(len(entries) + 1)]:
                self._commit(new)
            self._commit(entry(EntryKind.NOTHING, bytes(16)))

    def _other_writer(self) -> None:
        """Another node leads for a while."""
        self._decide()
        self._commit(entry(EntryKind.NOTHING, bytes(16)))
        for request in self.random.sample(self.requests, 2):
            if request.id not in self.done:
                parts, dead = self.random.randrange(3) == 0, self.random.randrange(4) == 0
                for new in request.entries(self.states[-1], parts, dead):
                    self._commit(new)
                    self._search()
        if self.random.randrange(2):
            self._commit(entry(EntryKind.NOTHING, bytes(16)))

    async def _reach(self) -> None:
        await asyncio.sleep(0)
        self._search()
        if not self.has_faults:
            self._decide()
            return
        match self.random.randrange(60):
            case 0 | 1:
                self._other_writer()
            case 2 | 3 | 4:
                raise LogUnavailable("no connection")
            case 5:
                self.crashed.set()
                raise Crash
            case number if number < 30 and not self.is_stuck:
                self._decide()

    async def append(self, entries: list[LogEntry], expected_index: int = 0) -> int:
        self.expect_state(expected_index - 1)
        await self._reach()
        fate = self.random.randrange(14) if self.has_faults else 0
        if fate == 1:
            raise NotLeader("another node leads")
        if fate == 2:
            raise Overloaded("too much")
        if fate in (3, 4):
            self._decide()
            self.floating, self.is_stuck = (entries, expected_index), self.random.randrange(4) == 0
            raise self.random.choice([OutcomeUnknown, LogUnavailable])("no answer")
        if fate == 5:
            self._other_writer()
        self._decide()
        self._search()
        if not self._admits(expected_index):
            return 0
        for new in entries:
            self._commit(new)
        first_index = len(self.entries) + 1 - len(entries)
        self._search()
        if fate == 6:
            self.crashed.set()
            raise Crash
        return first_index

    async def read(self, from_index: int, max_bytes: int = 0) -> list[LogEntry]:
        await self._reach()
        return self.entries[from_index - 1 :][: self.random.choice([1, 3, 100])]

    async def confirm(self, index: int) -> bool:
        await self._reach()
        self._decide()
        return self._admits(index + 1)

    async def status(self) -> LogStatus:
        return LogStatus(1, len(self.entries))

    async def append_unconditionally(self, entries: Sequence[LogEntry]) -> int:
        raise NotImplementedError

    async def watch_index(self, known_index: int, timeout_s: float = 0) -> int:
        return len(self.entries)

    async def truncate_before(self, index: int, view: str) -> None: ...

    async def drop_before(self, index: int) -> int:
        return index

    async def report_view(self, status: ViewStatus) -> None: ...

    async def reported_views(self) -> list[ViewStatus]:
        return []

    async def close(self) -> None: ...


class Node:
    """A store that survives crashes as its last checkpoint, or with more of the log in it."""

    def __init__(self, random: Random, log: ClusterLog) -> None:
        self.random, self.log = random, log
        self.kept: tuple[int, bytes, State] = (0, RecentRequests().to_bytes(), frozenset())
        self.start()

    def start(self) -> None:
        applied, requests, quads = self.kept
        self.store = QuadStore(Store())
        self.store.apply(ChangeSet((), tuple(quads)))
        self.replayer = Replayer(self.store.apply_many, applied, requests=RecentRequests.from_bytes(requests))
        self.writer = ShardWriter(
            self.store,
            self.log,
            self.replayer,
            CONFIG,
            clock_ms=lambda: 0,
            fresh_request_id=lambda: fresh(self.random.randbytes(16)),
        )
        self.log.crashed.clear()
        self.log.expect_state = self.expect_state
        self.writer.hear(len(self.log.entries))
        self.writer.start()

    def expect_state(self, index: int) -> None:
        if frozenset(self.store.dataset_quads()) != self.log.states[index]:
            self.log.faults.append(f"the store is not what the log makes of it at {index}")
        if self.random.randrange(3) == 0:  # a checkpoint; the store may be flushed once more after it
            self.kept = (self.replayer.resume_index, self.replayer.requests.to_bytes(), self.kept[2])
        if self.random.randrange(3) == 0 or self.kept[0] == self.replayer.resume_index:
            self.kept = (*self.kept[:2], self.log.states[index])


async def send(node: Node, request: Request, random: Random) -> None:
    """As a client that asks again until it knows, or gives up."""
    since = random.choice([0, node.writer.applied_index]) if not request.answers else 0
    for _ in range(random.randrange(1, 5)):
        await asyncio.sleep(0.0005 * random.randrange(4))
        try:
            answer = await node.writer.write(
                request.plan, quick=random.random() < 0.5, request_id=request.id, since=since
            )
        except UnavailableError as error:
            request.answers.append(error)
        else:
            request.answers.append(answer)
            assert node.writer.applied_index >= answer.snapshot_index


async def run(seed: int, lives: int = 4) -> None:
    random = Random(seed)
    requests = [Request(random, number) for number in range(12)]
    log = ClusterLog(random, requests)
    node = Node(random, log)
    for life in range(lives):
        log.has_faults = life < lives - 1
        if life:
            node.start()
        senders: asyncio.Future[list[None]] = asyncio.gather(
            *(send(node, request, random) for request in random.choices(requests, k=16))
        )
        end = asyncio.create_task(log.crashed.wait())
        end.add_done_callback(lambda _, senders=senders: senders.cancel())  # type: ignore[misc]
        with contextlib.suppress(asyncio.CancelledError):
            await senders
        end.cancel()
        if not log.has_faults:
            log.searching = False
            node.writer.hear(len(log.entries))
            await node.writer.in_turn(lambda index: None)
        with contextlib.suppress(Crash):
            await node.writer.close()
    check(log, node, requests)


def check(log: ClusterLog, node: Node, requests: list[Request]) -> None:
    assert log.faults == []
    index = len(log.entries)
    assert node.writer.applied_index == index
    assert frozenset(node.store.dataset_quads()) == log.states[index]
    for request in requests:
        times = [time for time in range(3) if request.mark(time) in log.states[index]]
        assert times == ([0] if request.id in log.done else [])
        confirmed = [answer for answer in request.answers if isinstance(answer, Confirmation)]
        assert len({(answer.snapshot_index, answer.affected_triples) for answer in confirmed}) <= 1
        if confirmed:
            assert log.entries[confirmed[0].snapshot_index - 1].request_id == request.id
            assert confirmed[0].affected_triples == len(request.names) + 1


@pytest.mark.parametrize("ten", range(20))
def test_a_request_takes_effect_once(ten: int) -> None:
    for seed in range(ten * 10, ten * 10 + 10):
        try:
            asyncio.run(run(seed))
        except Exception as error:
            raise AssertionError(f"run({seed})") from error
