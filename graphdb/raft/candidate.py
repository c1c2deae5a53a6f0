"""The role of a peer that stands for election, and how any peer answers those who do.

Pre-vote (dissertation 9.6): a peer first asks whether it would be elected, without entering a new term. So
one that was cut off, or removed, does not unseat a leader that is well.
"""

from graphdb.raft.membership import PeerId
from graphdb.raft.messages import Envelope, VoteAnswer, VoteRequest
from graphdb.raft.replica import Next, Replica

__all__ = ["Candidate", "answer_vote_request"]


class Candidate:
    """A peer that asks for votes, or (pre) for promises of them. Each voter counts once."""

    name = "candidate"

    def __init__(self, replica: Replica, *, pre: bool, transfer: bool = False) -> None:
        self._replica = replica
        self._pre = pre
        self._votes: set[PeerId] = set()
        if not pre:
            replica.enter_term(replica.journal.term + 1, replica.peer)
        replica.leader = None
        replica.reset_deadline()
        journal = replica.journal
        request = VoteRequest(journal.last_index, journal.last_term, pre, transfer)
        for peer in sorted(journal.members.voters - {replica.peer}):
            replica.send(peer, request)
        self._next = self.count(replica.peer)

    def tick(self) -> Next:
        """Begin again where the time is up."""
        if self._next is not Next.STAY:
            return self._next
        return Next.CAMPAIGN if self._replica.clock() >= self._replica.deadline else Next.STAY

    def receive(self, envelope: Envelope) -> Next:
        """A message of this term."""
        body = envelope.body
        if isinstance(body, VoteAnswer) and body.granted and body.pre == self._pre:
            return self.count(envelope.source)
        return Next.STAY

    def count(self, voter: PeerId) -> Next:
        """A vote has come."""
        self._votes.add(voter)
        if not self._replica.journal.members.is_majority(self._votes):
            return Next.STAY
        return Next.STAND if self._pre else Next.LEAD

    def flush(self) -> None:
        """The requests went out when the role began."""

    def synced(self) -> Next:
        """The vote for itself is on disk: where that is enough, go on."""
        return self._next

    def leave(self) -> None:
        """Votes that come later are of a role that is gone."""


def answer_vote_request(replica: Replica, candidate: PeerId, request: VoteRequest) -> None:
    """Grant or refuse a vote, or the promise of one, in the current term.

    The candidate's log must be at least as up to date as the own (Raft paper, 5.4.1), and there is one vote a
    term.
    """
    journal = replica.journal
    up_to_date = (request.last_term, request.last_index) >= (journal.last_term, journal.last_index)
    granted = up_to_date and (request.pre or journal.vote in (None, candidate))
    if granted and not request.pre:
        journal.set_term(journal.term, candidate)
        replica.reset_deadline()
    replica.send(candidate, VoteAnswer(granted, request.pre))
