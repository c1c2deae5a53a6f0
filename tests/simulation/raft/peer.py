"""One simulated node: a disk, a state machine with durable snapshots, and the Raft node that lives between
crashes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from actors.log.protocol import decode_entries
from graphdb.errors import UnavailableError
from graphdb.log.file_log import FileLogConfig
from graphdb.log.file_system import FileSystem, storage_error
from graphdb.model import LogEntry
from graphdb.raft.journal import Journal, JournalConfig
from graphdb.raft.membership import Members, PeerId
from graphdb.raft.messages import AppendAnswer, Envelope, SnapshotMark, encode_envelope
from graphdb.raft.raft_node import Outcome, Proposal, RaftNode
from graphdb.raft.replica import RaftConfig
from tests.simulation.lossy_file_system import LossyFileSystem
from tests.simulation.raft.checker import Checker, Violation, extend_chain

__all__ = ["Peer", "Variant", "WatchedJournal"]

JOURNAL_CONFIG = JournalConfig(FileLogConfig(segment_bytes=1500, reserve_bytes=500), recent_bytes_max=400)


def refuse_at_times(disk: FileSystem) -> None:
    """Fail where the disk has a fault: its reads and what is not a file on it do not fail by themselves."""
    assert isinstance(disk, LossyFileSystem)
    try:
        disk.fault("read")
    except OSError as error:
        raise storage_error(error, "reading") from error


class WatchedJournal(Journal):
    """Tells the checker what is written, and refuses to take back what was applied."""

    checker: Checker
    applied_index: Callable[[], int]

    @property
    def disk_index(self) -> int:
        """The last entry in the files, whether it still counts or not."""
        return self._log.last_index

    def read(self, from_index: int, bytes_max: int) -> list[LogEntry]:
        if from_index < self._recent_first:
            refuse_at_times(self._file_system)
        return super().read(from_index, bytes_max)

    def _read_entry(self, index: int) -> LogEntry:
        refuse_at_times(self._file_system)
        return super()._read_entry(index)

    def append(self, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            prev_term = self.term_at(entry.log_index - 1)
            assert prev_term is not None
            super().append([entry])
            self.checker.saw_entry(entry, prev_term)

    def truncate_after(self, index: int) -> None:
        if index < self.applied_index():
            raise Violation(f"entry {index + 1} is taken back, {self.applied_index()} was applied")
        super().truncate_after(index)


@dataclass(frozen=True, slots=True)
class Variant:
    """Which classes a run is made of: the real ones, or ones with a known fault."""

    node: type[RaftNode] = RaftNode
    journal: type[WatchedJournal] = WatchedJournal
    file_system: type[LossyFileSystem] = LossyFileSystem
    lives_repeat: bool = False  # a node whose disk was wiped does not know that it was


@dataclass(slots=True)
class Machine:
    """The state machine: the index it has applied and the digest of all entries up to it."""

    mark: SnapshotMark | None = None
    applied_index: int = 0
    chain: bytes = b""


@dataclass(slots=True)
class Snapshots:
    """The `SnapshotStore` of a peer. Durable ones survive crashes whole, as renamed directories do."""

    disk: LossyFileSystem
    durable: Machine = field(default_factory=Machine)
    incoming: bytearray = field(default_factory=bytearray)

    def latest(self) -> SnapshotMark | None:
        return self.durable.mark

    def read(self, mark: SnapshotMark, offset: int, bytes_max: int) -> tuple[bytes, bool] | None:
        refuse_at_times(self.disk)
        if mark != self.durable.mark:
            return None
        content = self.durable.chain * 8
        piece = content[offset : offset + bytes_max]
        return piece, offset + len(piece) >= len(content)

    def write(self, mark: SnapshotMark, offset: int, data: bytes) -> None:
        refuse_at_times(self.disk)
        if offset == 0:
            self.incoming.clear()
        assert offset == len(self.incoming)
        self.incoming += data


@dataclass(frozen=True, slots=True)
class _Proposed:
    proposal: Proposal
    payloads: list[bytes]
    floor: int
    planned_upon: int


@dataclass(slots=True)
class _Read:
    floor: int
    known_index: int
    read_index: int | None = None


class Peer:
    """A node that can be killed, wiped and started again."""

    def __init__(
        self,
        node_id: int,
        founders: Mapping[int, str],
        variant: Variant,
        checker: Checker,
        random: Random,
        clock: Callable[[], float],
        post: Callable[[int, int, bytes], None],
        config: RaftConfig,
    ) -> None:
        self.node_id = node_id
        self.founders = founders
        self.variant = variant
        self.checker = checker
        self.random = random
        self.clock = clock
        self.post = post
        self.config = config
        self.disk = variant.file_system(random)
        self.snapshots = Snapshots(self.disk)
        self.machine = Machine()
        self.node: RaftNode | None = None
        self.journal: WatchedJournal | None = None
        self.paused_until = 0.0
        self.proposals: list[_Proposed] = []
        self.reads: dict[int, _Read] = {}
        self.incarnation = node_id

    def start(self) -> None:
        """Begin with what is on disk. Raises UnavailableError where the disk fails."""
        durable = self.snapshots.durable
        journal = self.variant.journal(
            self.disk, "state", "log", self.node_id, self._fresh_incarnation, JOURNAL_CONFIG
        )
        journal.checker, journal.applied_index = self.checker, lambda: self.machine.applied_index
        self.journal = journal
        self.node = self.variant.node(
            journal,
            self.config,
            self.founders,
            clock=self.clock,
            random_source=self.random.random,
            snapshots=self.snapshots,
            applied=durable.mark,
        )
        self.machine = Machine(durable.mark, durable.applied_index, durable.chain)

    def _fresh_incarnation(self) -> int:
        if not self.variant.lives_repeat:
            self.incarnation = self.random.getrandbits(63) + 1
        return self.incarnation

    def begin_with_data(self, index: int, chain: bytes) -> None:
        """Have a state of a time when the node stood alone."""
        mark = SnapshotMark(index, 0, Members())
        self.snapshots.durable = Machine(mark, index, chain)

    def stop(self, lose: Callable[[], None]) -> None:
        """Be killed; lose is what the disk makes of it."""
        self.node = self.journal = None
        self.proposals.clear()
        self.reads.clear()
        lose()

    def wipe(self) -> None:
        """Lose the disk while stopped."""
        self.disk = self.variant.file_system(self.random)
        self.snapshots = Snapshots(self.disk)
        self.machine = Machine()

    def work(self) -> None:
        """Do what the node's owner does after events, which a disk that refuses does not end."""
        node = self.node
        assert node is not None
        with suppress(UnavailableError):
            self._send(node)
            node.persist()
            self._send(node)
            self._install(node)
        self._watch(node)
        with suppress(UnavailableError):
            self._apply(node)
        self._answer(node)

    def _send(self, node: RaftNode) -> None:
        for envelope in node.take_messages():
            self._check_durable(envelope)
            self.post(self.node_id, envelope.target.node_id, encode_envelope(envelope))

    def _check_durable(self, envelope: Envelope) -> None:
        """Nothing is said that is not on disk.

        An answer of an earlier term may be of entries that a later leader has taken back since, in memory.
        """
        assert self.journal is not None
        body, journal = envelope.body, self.journal
        on_disk = journal.synced_index if envelope.term == journal.term else journal.disk_index
        if isinstance(body, AppendAnswer) and body.accepted and body.log_index > on_disk:
            raise Violation(f"entry {body.log_index} is acknowledged and not synced")

    def _watch(self, node: RaftNode) -> None:
        assert self.journal is not None
        status = node.status()
        if status.role == "leader":
            self.checker.saw_leader(status.term, self.journal.peer, self.journal)

    def _apply(self, node: RaftNode) -> None:
        assert self.journal is not None
        while entries := decode_entries(node.read_committed(self.machine.applied_index + 1, 1000)):
            for entry in entries:
                self.machine.chain = extend_chain(self.machine.chain, entry)
                self.machine.applied_index = entry.log_index
                self.checker.saw_applied(entry, self.machine.chain, self.journal.term)

    def _install(self, node: RaftNode) -> None:
        mark = node.snapshot_to_install()
        if mark is None:
            return
        if mark.log_index <= self.machine.applied_index:
            raise Violation(f"the snapshot at {mark.log_index} would take back what was applied")
        chain = bytes(self.snapshots.incoming[:16])
        self.checker.saw_snapshot(mark.log_index, chain)
        self.machine = Machine(mark, mark.log_index, chain)
        self.snapshots.durable = Machine(mark, mark.log_index, chain)
        node.snapshot_installed()

    # clients

    def propose(self, entries: list[LogEntry], floor: int, expected_index: int) -> None:
        """A client proposes at this node. Raises UnavailableError."""
        assert self.node is not None
        proposal = self.node.propose(entries, expected_index)
        if proposal is not None:
            planned_upon = expected_index - 1 if expected_index else proposal.first_index - 1
            payloads = [entry.payload for entry in entries]
            self.proposals.append(_Proposed(proposal, payloads, floor, planned_upon))

    def read(self, ticket: int) -> None:
        """A client begins a linearizable read at this node. Raises UnavailableError."""
        assert self.node is not None
        self.node.read_index(ticket)
        self.reads[ticket] = _Read(self.checker.floor, self.machine.applied_index)

    def _answer(self, node: RaftNode) -> None:
        self.proposals = [each for each in self.proposals if not self._tell(node, each)]
        for outcome_of_read in node.take_reads():
            read = self.reads.get(outcome_of_read.ticket)
            if read is not None:
                read.read_index = outcome_of_read.read_index
        for ticket, read in [*self.reads.items()]:
            if read.read_index is not None and read.read_index <= self.machine.applied_index:
                self.checker.saw_read(self.machine.applied_index, read.floor)
                if node.is_newest(read.known_index):
                    self.checker.saw_undisturbed(read.known_index, read.read_index)
                del self.reads[ticket]

    def _tell(self, node: RaftNode, proposed: "_Proposed") -> bool:
        """Tell a client what has become of its entries; whether that is known."""
        outcome, first_index = node.outcome(proposed.proposal), proposed.proposal.first_index
        if outcome is Outcome.LOST:
            for payload in proposed.payloads:
                self.checker.saw_lost(payload)
        elif outcome is Outcome.PARTLY:
            self.checker.saw_lost(proposed.payloads[-1])
        elif outcome is Outcome.UNKNOWN or proposed.proposal.last_index > self.machine.applied_index:
            return False
        else:
            self.checker.saw_undisturbed(proposed.planned_upon, first_index - 1)
            for position, payload in enumerate(proposed.payloads):
                self.checker.saw_acknowledged(first_index + position, payload, proposed.floor)
        return True

    # the operator

    def checkpoint(self, keep_bytes: int) -> None:
        """Make a durable snapshot, and compact the log, but for so many bytes of it."""
        node, journal = self.node, self.journal
        assert node is not None
        assert journal is not None
        index = self.machine.applied_index
        raft_term = journal.term_at(index)
        if raft_term is None or not 0 < index <= node.committed_index:
            return
        mark = SnapshotMark(index, raft_term, journal.members_at(index))
        self.machine.mark = mark
        self.snapshots.durable = Machine(mark, index, self.machine.chain)
        node.compact(journal.compactable_index(index, keep_bytes))

    def peer_id(self) -> PeerId | None:
        return self.journal.peer if self.journal is not None else None
