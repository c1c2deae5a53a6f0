"""What clients of a `RaftDriver` wait for: proposals until their fate is known, refused ones until it can be
seen why, reads until they may be made.

Every future is answered: at the latest when its time is up.
"""

from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from actors.futures import answer, fail
from graphdb.errors import LogUnavailable, NotLeader, OutcomeUnknown, UnavailableError
from graphdb.raft.raft_node import Outcome, Proposal, RaftNode
from graphdb.raft.replica import ReadOutcome

__all__ = ["PendingProposals", "PendingReads", "PendingRefusals"]

_EXPIRE_EVERY_S = 0.1
_ASK_AGAIN_S = 0.5  # a question or its answer was lost, or the leader has changed


@dataclass(frozen=True, slots=True)
class _Proposed:
    proposal: Proposal
    future: "Future[int]"
    deadline: float


class PendingProposals:
    """Proposals that this peer has made as leader."""

    def __init__(self) -> None:
        # by last index, and, for there may be several of different terms, in the order of their making
        self._waiting: list[tuple[int, int, _Proposed]] = []
        self._count = 0
        self._committed_term: int | None = None
        self._expire_at = 0.0

    def add(self, proposal: Proposal, future: "Future[int]", deadline: float) -> None:
        """Answer future with the first index when the proposal is committed."""
        self._count += 1
        heappush(self._waiting, (proposal.last_index, self._count, _Proposed(proposal, future, deadline)))

    def settle(self, node: RaftNode, now: float) -> None:
        """Answer those whose fate is known, or whose time is up."""
        while self._waiting and self._waiting[0][0] <= node.committed_index:
            _tell_outcome(node, heappop(self._waiting)[2])
        if node.committed_term != self._committed_term:
            self._committed_term = node.committed_term
            self._tell_lost(node)
        if now >= self._expire_at:
            self._expire_at = now + _EXPIRE_EVERY_S
            self._waiting = [each for each in self._waiting if not _is_expired(each[2], now)]
            heapify(self._waiting)

    def _tell_lost(self, node: RaftNode) -> None:
        """Another term has begun to commit: what an earlier one has not committed may be lost by that."""
        for _, _, proposed in self._waiting:
            if node.outcome(proposed.proposal) in (Outcome.LOST, Outcome.PARTLY):
                _tell_outcome(node, proposed)
        self._waiting = [each for each in self._waiting if not each[2].future.done()]
        heapify(self._waiting)

    def abandon(self) -> None:
        """Nobody will know."""
        for _, _, proposed in self._waiting:
            fail(proposed.future, OutcomeUnknown("this node's part in the cluster has ended"))
        self._waiting.clear()


def _tell_outcome(node: RaftNode, proposed: _Proposed) -> None:
    outcome = node.outcome(proposed.proposal)
    if outcome is Outcome.COMMITTED:
        answer(proposed.future, proposed.proposal.first_index)
    elif outcome is Outcome.LOST:
        fail(proposed.future, NotLeader("another node leads now; nothing was stored"))
    elif outcome is Outcome.PARTLY:
        fail(proposed.future, OutcomeUnknown("another node leads now; only the first entries were stored"))
    else:
        fail(proposed.future, OutcomeUnknown("the log that could tell has been compacted"))


def _is_expired(proposed: _Proposed, now: float) -> bool:
    if now >= proposed.deadline:
        fail(proposed.future, OutcomeUnknown("no majority of the cluster has answered in time"))
    return proposed.future.done()


class PendingRefusals:
    """Proposals that expected another index than the next, of which nothing was stored.

    Their callers may see committed entries only; so each waits until the entry that stood last in the log is
    committed. Told earlier, they would find nothing new, and try again at once.
    """

    def __init__(self) -> None:
        self._waiting: list[_Proposed] = []  # what stood last in the log, in place of the proposal

    def add(self, last_entry: Proposal, future: "Future[int]", deadline: float) -> None:
        """Answer future with 0 when last_entry, of a leader's log, is committed."""
        self._waiting.append(_Proposed(last_entry, future, deadline))

    def settle(self, node: RaftNode, now: float) -> None:
        """Answer those whose entry is committed, and those for whom this peer leads no longer."""
        self._waiting = [each for each in self._waiting if not self._is_over(each, node, now)]

    def _is_over(self, refused: _Proposed, node: RaftNode, now: float) -> bool:
        if refused.proposal.raft_term != node.leads_term:  # a leader's last entry is of its own term
            fail(refused.future, NotLeader("this node leads no longer; nothing was stored"))
        elif refused.proposal.last_index <= node.committed_index:
            answer(refused.future, 0)
        elif now >= refused.deadline:
            reason = "no majority of the cluster has answered in time; nothing was stored"
            fail(refused.future, NotLeader(reason))
        return refused.future.done()

    def abandon(self) -> None:
        """Nobody will answer."""
        for refused in self._waiting:
            fail(refused.future, LogUnavailable("this node's part in the cluster has ended"))
        self._waiting.clear()


@dataclass(frozen=True, slots=True)
class _Read:
    future: "Future[int]"
    deadline: float


@dataclass(frozen=True, slots=True)
class _Question:
    """Reads that share a ticket."""

    reads: list[_Read]
    asked_at: float


class PendingReads:
    """Linearizable reads. Those that come between two turns share a question to the leader."""

    def __init__(self, first_ticket: int) -> None:
        """No other process of this peer, earlier ones included, may use the tickets from there on."""
        self._ticket = first_ticket
        self._new: list[_Read] = []
        self._asked: dict[int, _Question] = {}
        self._applying: list[tuple[int, _Read]] = []  # wait until that index is applied

    def add(self, future: "Future[int]", deadline: float) -> None:
        """Answer future with an index that is applied here, such that reading it is linearizable."""
        self._new.append(_Read(future, deadline))

    def ask(self, node: RaftNode, now: float) -> None:
        """Ask the leader for those that are new or have waited for long; without a leader later again."""
        for ticket, question in [*self._asked.items()]:
            if now >= question.asked_at + _ASK_AGAIN_S:
                self._new += self._asked.pop(ticket).reads
        reads = [read for read in self._new if not self._is_over(read, now)]
        self._new = []
        if reads:
            self._ticket += 1
            self._asked[self._ticket] = _Question(reads, now)
            with suppress(NotLeader):  # the question is asked again until its time is up
                node.read_index(self._ticket)

    def settle(self, outcomes: Iterable[ReadOutcome], applied_index: int) -> None:
        """Take the leader's answers; answer the reads that may be made now."""
        for outcome in outcomes:
            question = self._asked.pop(outcome.ticket, None)
            if question is None:
                continue
            if outcome.read_index is None:
                self._new += question.reads
            else:
                self._applying += ((outcome.read_index, read) for read in question.reads)
        waiting = []
        for read_index, read in self._applying:
            if read_index <= applied_index:
                answer(read.future, read_index)
            else:
                waiting.append((read_index, read))
        self._applying = waiting

    def expire(self, now: float) -> None:
        """Answer those whose time is up while they wait for the state machine."""
        self._applying = [each for each in self._applying if not self._is_over(each[1], now)]

    def _is_over(self, read: _Read, now: float) -> bool:
        if now >= read.deadline:
            fail(read.future, NotLeader("no leader of the cluster has answered in time"))
        return read.future.done()

    def abandon(self) -> None:
        """Nobody will answer."""
        reads = [*self._new, *(read for _, read in self._applying)]
        reads += (read for question in self._asked.values() for read in question.reads)
        for read in reads:
            fail(read.future, UnavailableError("this node's part in the cluster has ended"))
        self._new, self._asked, self._applying = [], {}, []
