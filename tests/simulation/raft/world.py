"""A cluster in one thread: a clock, a network and disks that do the worst they may, all from one seed."""

import errno
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from graphdb.errors import MembershipRefused, UnavailableError
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.membership import decode_members
from graphdb.raft.messages import decode_envelope
from graphdb.raft.raft_node import RaftNode
from graphdb.raft.replica import RaftConfig
from tests.simulation.lossy_file_system import Crash
from tests.simulation.raft.checker import Checker, Violation
from tests.simulation.raft.peer import Peer, Variant

__all__ = ["World", "run_seed"]

TICK_S = 0.02
STORM_S = 12.0
CALM_S = 6.0
CALMS_MAX = 8  # a peer that is fed one entry at a time takes long to catch up


@dataclass(slots=True)
class Weather:
    """How bad the network is at present; probabilities by message, delays in seconds."""

    drop: float = 0.0
    double: float = 0.0
    late: float = 0.0
    late_s: float = 0.0
    delay_s: float = 0.004
    blocked: set[tuple[int, int]] = field(default_factory=set)  # (from, to)


class World:
    """The peers, and everything that happens to them, in the order of a simulated clock."""

    def __init__(self, seed: int, variant: Variant, *, told_late: bool = False) -> None:
        """told_late: what is committed is said with later entries, and becomes known by other ways too."""
        self.random = Random(seed)
        self._told_late, self._hearsay = told_late, Random(seed)
        self.now = 0.0
        self.checker = Checker()
        self.weather = Weather()
        self.stormy = True
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._payloads = 0
        self._tickets = 0
        size = self.random.choice([3, 5])
        spare = self.random.choice([0, 1])  # may be added while running
        addresses = {node_id: f"10.0.0.{node_id}:7002" for node_id in range(1, size + spare + 1)}
        founders = {node_id: addresses[node_id] for node_id in range(1, size + 1)}
        config = RaftConfig(
            election_timeout_s=self.random.choice([0.15, 0.3]),
            heartbeat_s=0.06,
            append_bytes_max=self.random.choice([80, 600, 4000]),
            inflight_messages_max=self.random.choice([1, 4]),
            snapshot_chunk_bytes=40,
            commit_notice_s=0.04 if self._told_late else 0.0,
        )
        self.peers = {
            node_id: Peer(
                node_id,
                founders if node_id in founders else {**founders, node_id: addresses[node_id]},
                variant,
                self.checker,
                Random(self.random.getrandbits(64)),
                lambda: self.now,
                self.post,
                config,
            )
            for node_id in addresses
        }
        self._working: set[int] = set()
        self.first_index = 1  # of the cluster's own entries
        if self.random.random() < 0.25:
            self._begin_with_data(self.random.choice([1, 7, 100]))

    def _begin_with_data(self, index: int) -> None:
        """The founding node stood alone before."""
        self.first_index = index + 1
        self.peers[1].begin_with_data(index, self.checker.begin_with_data(index))

    # time

    def at(self, delay_s: float, event: Callable[[], None]) -> None:
        """Let something happen after a while."""
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay_s, self._sequence, event))

    def run_until(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = end

    # the network

    def post(self, source: int, target: int, data: bytes) -> None:
        """Carry a message, or not, or twice, or much later."""
        weather, random = self.weather, self.random
        for _ in range(2 if random.random() < weather.double else 1):
            if (source, target) in weather.blocked or random.random() < weather.drop:
                continue
            delay = random.random() * weather.delay_s
            if random.random() < weather.late:
                delay += random.random() * weather.late_s
            self.at(delay, lambda: self._deliver(target, data))

    def _deliver(self, target: int, data: bytes) -> None:
        peer = self.peers.get(target)
        if peer is None or peer.node is None:
            return
        if peer.paused_until > self.now:
            self.at(peer.paused_until - self.now, lambda: self._deliver(target, data))
            return
        node = peer.node
        self._have(peer, lambda: node.receive(decode_envelope(data)))

    # peers

    def _have(self, peer: Peer, do: Callable[[], None]) -> None:
        """Have a node do something, and work soon. A disk that refuses does not end it; a crash does."""
        try:
            do()
        except (UnavailableError, MembershipRefused):
            pass
        except Crash:
            self._restart(peer)
        self.work_soon(peer)

    def start(self, peer: Peer) -> None:
        """Start a node, and again a little later where its disk fails."""
        if peer.node is not None:
            return
        try:
            peer.start()
        except (UnavailableError, Crash):
            self.stop(peer)
            self.at(0.2, lambda: self.start(peer))
            return
        self.at(0.0, lambda: self._tick(peer, peer.node))

    def stop(self, peer: Peer) -> None:
        """kill -9, or a power cut."""
        peer.stop(self.random.choice([peer.disk.crash, peer.disk.kill]))
        peer.disk.fault = lambda operation: None

    def _tick(self, peer: Peer, node: object) -> None:
        if peer.node is not node or peer.node is None:
            return
        if peer.paused_until <= self.now:
            self._have(peer, peer.node.tick)
        self.at(TICK_S * (0.8 + 0.4 * self.random.random()), lambda: self._tick(peer, node))

    def work_soon(self, peer: Peer) -> None:
        """Let events gather, then have the node work."""
        if peer.node_id not in self._working:
            self._working.add(peer.node_id)
            self.at(self.random.random() * 0.002, lambda: self._work(peer))

    def _work(self, peer: Peer) -> None:
        self._working.discard(peer.node_id)
        if peer.node is None:
            return
        if peer.paused_until > self.now:
            self._working.add(peer.node_id)
            self.at(peer.paused_until - self.now, lambda: self._work(peer))
            return
        known = len(self.checker.applied)
        self._spread_word(peer)
        try:
            peer.work()
        except Crash:
            self._restart(peer)
        journals = [each.journal for each in self.peers.values() if each.journal is not None]
        if len(self.checker.applied) > known:
            self.checker.check_committed(journals)
        if peer.node is not None and peer.journal is not None:
            self.checker.check_matched(peer.node.status(), peer.journal, journals)

    def _spread_word(self, peer: Peer) -> None:
        """What a leader has committed becomes known elsewhere by the answers to forwarded requests, perhaps
        much later.
        """
        assert peer.node is not None
        term, index = peer.node.leads_term, peer.node.committed_index
        if term is None or not self._told_late:
            return
        for other in self.peers.values():
            if other is not peer and self._hearsay.random() < 0.1:
                delay = self._hearsay.random() * self._hearsay.choice([0.01, 1.0])
                self.at(delay, lambda other=other: self._hear_commit(other, term, index))  # type: ignore[misc]

    def _hear_commit(self, peer: Peer, term: int, index: int) -> None:
        node = peer.node
        if node is not None and peer.paused_until <= self.now:
            self._have(peer, lambda: node.hear_commit(term, index))

    def _restart(self, peer: Peer) -> None:
        self.stop(peer)
        self.at(self.random.random() * 1.5, lambda: self.start(peer))

    def ask(self, peer: Peer, operation: Callable[[RaftNode], None]) -> None:
        """Ask a node for something that it may refuse."""
        node = peer.node
        if node is not None and peer.paused_until <= self.now:
            self._have(peer, lambda: operation(node))

    # clients

    def client(self) -> None:
        """One client does one thing; then another, soon."""
        peer = self.random.choice([*self.peers.values()])
        if peer.node is not None and peer.paused_until <= self.now:
            if self.random.random() < 0.5:
                self._have(peer, lambda: self._propose(peer, self.random.choice([1, 1, 2, 5])))
            else:
                self._tickets += 1
                self._have(peer, lambda: peer.read(self._tickets))
        self.at(self.random.random() * 0.03, self.client)

    def burst(self, peer: Peer) -> None:
        """Many proposals at once."""
        self.ask(peer, lambda node: self._propose(peer, 30))

    def _propose(self, peer: Peer, count: int) -> None:
        """Two writers: one of changes, some planned upon a state, and one that appends anywhere."""
        kind = EntryKind.SEARCH if self._payloads % 3 == 0 else EntryKind.CHANGES
        entries = []
        for _ in range(count):
            self._payloads += 1
            payload = b"%d " % self._payloads + bytes(self.random.choice([0, 20, 300]))
            entries.append(LogEntry(0, 0, kind, bytes(16), 0, payload))
        expected = 0
        if self.random.random() < 0.3 and peer.journal is not None and kind is EntryKind.CHANGES:
            expected = max(1, peer.journal.last_index + self.random.choice([1, 0, -2]))
        peer.propose(entries, self.checker.floor, expected)

    # what the checks need to know

    def newest_members(self) -> tuple[int, frozenset[object]]:
        """The newest configuration that was applied anywhere: (index of its entry, voters)."""
        for index in range(len(self.checker.applied), self.first_index - 1, -1):
            payload = self.checker.applied[index - 1].payload
            kind = self.checker.entries[index, self.checker.applied[index - 1].raft_term][0]
            if kind is EntryKind.MEMBERS:
                return index, frozenset(decode_members(payload).voters)
        return 0, frozenset()

    def may_wipe(self, peer: Peer) -> bool:
        """Whether losing this disk leaves a majority of sound ones, whichever configuration comes to hold."""
        index, voters = self.newest_members()
        journals = [each.journal for each in self.peers.values() if each.journal is not None]
        settled = all(journal.members_index <= index for journal in journals)
        lives = {each.journal.peer for each in self.peers.values() if each.journal is not None}
        whole = len(voters) >= 3 and voters <= lives
        return settled and whole and len(journals) == len(self.peers) and peer.journal is not None


def fail_disk(peer: Peer, random: Random) -> None:
    """Let the machine stop, or the disk fail, at one of the next operations and perhaps for some time."""
    left = random.randrange(1, 25)
    error = random.choice([None, None, errno.ENOSPC, errno.EIO])
    failures = random.choice([1, 1, 4, 40])

    def fault(operation: str) -> None:
        nonlocal left
        left -= 1
        if -failures < left <= 0:
            if error is None:
                raise Crash
            raise OSError(error, "no")

    peer.disk.fault = fault


def run_seed(seed: int, variant: Variant | None = None, only: str | None = None) -> World:
    """One run, with all kinds of fault or only one (`Storm`).

    Raises Violation, or another AssertionError, where something does not hold.
    """
    from tests.simulation.raft.storm import Storm

    world = World(seed, variant or Variant(), told_late=only is None and seed % 2 == 1)
    for peer in world.peers.values():
        world.at(world.random.random() * 0.5, lambda peer=peer: world.start(peer))  # type: ignore[misc]
    world.at(0.5, world.client)
    Storm(world, only).begin()
    world.run_until(STORM_S)
    clear_up(world)
    for patience in range(CALMS_MAX):
        world.run_until(STORM_S + CALM_S * (patience + 1))
        try:
            check_end(world)
        except Violation:
            if patience == CALMS_MAX - 1:
                raise
        else:
            break
    world.checker.check_survival()
    return world


def clear_up(world: World) -> None:
    """All faults end, and every node runs."""
    world.stormy = False
    world.weather = Weather()
    for peer in world.peers.values():
        peer.disk.fault = lambda operation: None
        peer.paused_until = 0.0
        world.start(peer)


def check_end(world: World) -> None:
    """Once all is calm the cluster works, and all its members hold the same."""
    checker = world.checker
    leaders = [p for p in world.peers.values() if p.node is not None and p.node.status().role == "leader"]
    if not leaders:
        raise Violation("no leader, though nothing is in the way")
    leader = max(leaders, key=lambda peer: peer.node.status().term if peer.node else 0)
    assert leader.node is not None
    if max(checker.acknowledged, default=0) < leader.node.status().last_index - 60:
        raise Violation("proposals are not committed, though nothing is in the way")
    for member in leader.node.status().members:
        peer = world.peers[member.peer.node_id]
        if member.peer != peer.peer_id() or not member.voting:
            raise Violation(f"node {peer.node_id} was not admitted")
        if peer.machine.applied_index < len(checker.applied) - 60:
            raise Violation(f"node {peer.node_id} is at {peer.machine.applied_index}, and does not catch up")
