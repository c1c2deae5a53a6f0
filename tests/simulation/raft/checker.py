"""What must hold in every run, watched from outside of all peers (Raft paper, figure 3)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal
from graphdb.raft.membership import PeerId
from graphdb.raft.raft_node import RaftStatus

__all__ = ["Checker", "Violation", "extend_chain"]


class Violation(AssertionError):
    """Something that must hold does not."""


def extend_chain(chain: bytes, entry: LogEntry) -> bytes:
    """The state of the state machine: a digest of all entries applied, in order."""
    place = b"%d %d %d " % (entry.log_index, entry.raft_term, entry.kind)
    return hashlib.blake2b(chain + place + entry.payload, digest_size=16).digest()


@dataclass(slots=True)
class _Applied:
    raft_term: int
    chain: bytes
    payload: bytes
    known_committed_in: int  # a term in which it was committed at the latest


@dataclass(slots=True)
class Checker:
    """The one memory that no fault touches."""

    leaders: dict[int, PeerId] = field(default_factory=dict)
    entries: dict[tuple[int, int], tuple[EntryKind, bytes, int]] = field(default_factory=dict)
    applied: list[_Applied] = field(default_factory=list)  # entry i stands at i - 1
    acknowledged: dict[int, bytes] = field(default_factory=dict)
    lost: set[bytes] = field(default_factory=set)
    places: dict[bytes, int] = field(default_factory=dict)  # where each payload was applied
    floor: int = 0  # what a read that begins now must see
    reads: int = 0
    between: int = 0  # documents that were written between planning and what was planned

    def begin_with_data(self, index: int) -> bytes:
        """A node has a state that stands at index; the digest of it."""
        chain = hashlib.blake2b(b"%d" % index, digest_size=16).digest()
        self.applied = [_Applied(0, chain, b"", 0)] * index
        return chain

    def saw_entry(self, entry: LogEntry, prev_term: int) -> None:
        """Log matching: entries of one index and term are the same, and so are those before them."""
        seen = (entry.kind, entry.payload, prev_term)
        known = self.entries.setdefault((entry.log_index, entry.raft_term), seen)
        if known != seen:
            raise Violation(f"log matching: two entries ({entry.log_index}, {entry.raft_term})")

    def saw_leader(self, term: int, peer: PeerId, journal: Journal) -> None:
        """Election safety, and leader completeness."""
        if self.leaders.setdefault(term, peer) != peer:
            raise Violation(f"election safety: {peer} and {self.leaders[term]} lead term {term}")
        for index in range(len(self.applied), 0, -1):
            known = self.applied[index - 1]
            if known.known_committed_in < term:
                if index > journal.base.log_index and journal.term_at(index) != known.raft_term:
                    raise Violation(f"leader completeness: {peer} leads term {term} without entry {index}")
                return

    def saw_applied(self, entry: LogEntry, chain: bytes, term: int) -> None:
        """State machine safety: all apply the same entry at an index. chain: the state after it."""
        index = entry.log_index
        if index <= len(self.applied):
            if self.applied[index - 1].chain != chain:
                raise Violation(f"state machine safety: entry {index} differs")
            return
        if index != len(self.applied) + 1:
            raise Violation(f"entry {index} applied after {len(self.applied)}")
        if entry.payload in self.lost:
            raise Violation(f"entry {index} was reported lost")
        written = entry.kind in (EntryKind.CHANGES, EntryKind.SEARCH)
        if written and self.places.setdefault(entry.payload, index) != index:
            raise Violation(f"entry {index} was applied before, at {self.places[entry.payload]}")
        self.applied.append(_Applied(entry.raft_term, chain, entry.payload, term))

    def saw_snapshot(self, index: int, chain: bytes) -> None:
        """A snapshot is the state that others had at its index."""
        if self.applied[index - 1].chain != chain:
            raise Violation(f"state machine safety: the snapshot at {index} differs")

    def saw_acknowledged(self, index: int, payload: bytes, floor: int) -> None:
        """A client hears that its entry stands at index; floor: what was sure before it proposed."""
        if index <= floor:
            raise Violation(f"linearizability: a write at {index} began after {floor} was known")
        if index > len(self.applied) or self.applied[index - 1].payload != payload:
            raise Violation(f"acknowledged entry {index} is not what was applied")
        self.acknowledged[index] = payload
        self.floor = max(self.floor, index)

    def saw_undisturbed(self, known_index: int, until: int) -> None:
        """What was planned upon the entries up to known_index holds at until: others write documents only."""
        for index in range(known_index + 1, until + 1):
            kind = self.entries[index, self.applied[index - 1].raft_term][0]
            if kind is not EntryKind.SEARCH:
                raise Violation(f"{kind.name} at {index}, behind {known_index}, was taken for no change")
            self.between += 1

    def saw_lost(self, payload: bytes) -> None:
        """A client hears that its entry will never be."""
        if payload in self.places:
            raise Violation(f"entry {self.places[payload]} was reported lost")
        self.lost.add(payload)

    def saw_read(self, index: int, floor: int) -> None:
        """A linearizable read that began when floor was sure has seen the state at index."""
        self.reads += 1
        if index < floor:
            raise Violation(f"stale read: {index}, {floor} was known before it began")
        self.floor = max(self.floor, index)

    def check_committed(self, journals: Sequence[Journal]) -> None:
        """No peer that lacks the newest committed entry could be elected as things stand."""
        index, raft_term = len(self.applied), self.applied[-1].raft_term
        for candidate in journals:
            if candidate.base.log_index >= index or candidate.term_at(index) == raft_term:
                continue
            place = (candidate.last_term, candidate.last_index)
            friends = [each.peer for each in journals if place >= (each.last_term, each.last_index)]
            if candidate.peer in candidate.members.voters and candidate.members.is_majority(friends):
                raise Violation(f"leader completeness: {candidate.peer} could win without entry {index}")

    def check_matched(self, status: RaftStatus, leader: Journal, journals: Sequence[Journal]) -> None:
        """What a leader believes to be on its peers' disks is there, unless they follow a later leader."""
        if status.role != "leader":
            return
        for journal in journals:
            index = status.matched.get(journal.peer.node_id, 0)
            known = leader.term_at(index)
            if journal.term > leader.term or journal.peer not in leader.members.voters or known is None:
                continue
            if index > journal.base.log_index and journal.term_at(index) != known:
                raise Violation(f"{leader.peer} believes that {journal.peer} has entry {index}")

    def check_survival(self) -> None:
        """What was acknowledged is there."""
        for index, payload in self.acknowledged.items():
            if self.applied[index - 1].payload != payload:
                raise Violation(f"acknowledged entry {index} is gone")
