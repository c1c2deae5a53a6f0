"""Candidates and newcomers: nodes that are not followers of a leader yet."""

from collections.abc import Mapping

from graphdb.errors import ConfigError
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.journal import Journal
from graphdb.raft.membership import Member, Members, PeerId, encode_members
from graphdb.raft.messages import Envelope, Hello, SnapshotMark, VoteAnswer, VoteRequest, Welcome
from graphdb.raft.replica import Next, Replica

__all__ = ["Candidate", "Newcomer", "answer_vote_request", "check_beginning"]

# The role of a peer that stands for election, and how any peer answers those who do.
#
# Pre-vote (dissertation 9.6): a peer first asks whether it would be elected, without entering a new term.
# So one that was cut off, or removed, does not unseat a leader that is well.


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


# The role of a peer that belongs to no cluster: it says hello until a leader feeds it, or founds a cluster.
#
# A cluster is founded once, by the node with the lowest number, when every founder has said hello to this
# very incarnation of it: so all are new, and a founder whose disk was wiped later does not found a second
# cluster beside the first, but is admitted to that by its leader (`admission.py`).
#
# The founding node may have data already, of a time when it stood alone: its journal then begins after
# them. No other newcomer may: what it takes for committed no other node has.

NO_REQUEST = bytes(16)


def check_beginning(journal: Journal, applied: SnapshotMark | None, founders: Mapping[int, str]) -> None:
    """Raises ConfigError where a peer that is in no cluster has data and is not the one that founds it."""
    node_id, founding = journal.peer.node_id, min(founders)
    has_data = journal.base.log_index > 0 or (applied is not None and applied.log_index > 0)
    if journal.cluster_id == 0 and has_data and node_id != founding:
        raise ConfigError(
            f"cluster: node {node_id} has data of its own, but node {founding} has the lowest number and"
            " founds the cluster; every other node begins with an empty data directory"
        )


class Newcomer:
    """A peer that has neither voted nor been given anything yet."""

    name = "newcomer"

    def __init__(self, replica: Replica, founders: Mapping[int, str]) -> None:
        """founders: the address of each node, this one too, by number."""
        self._replica = replica
        self._founders = founders
        self._others = [node_id for node_id in founders if node_id != replica.peer.node_id]
        self._present: dict[int, Member] = {}
        self._hello_at = replica.clock()

    def tick(self) -> Next:
        """Say hello, and found the cluster where all are there."""
        replica = self._replica
        if self._may_found():
            self._found()
            return Next.CAMPAIGN
        if replica.clock() >= self._hello_at:
            self._hello_at = replica.clock() + replica.config.heartbeat_s
            replica.say_hello()
        return Next.STAY

    def receive(self, envelope: Envelope) -> Next:
        """Meet a Hello or a Welcome; anything else has made the peer a follower already.

        Raises ConfigError where a cluster would have it, and it has data.
        """
        body, source = envelope.body, envelope.source
        if isinstance(body, Welcome):
            if self._replica.journal.base.log_index:
                raise ConfigError(
                    f"cluster: this node has data of its own, and node {source.node_id} would take it into a "
                    "cluster that has others; a node that is let in begins with an empty data directory"
                )
            self._replica.say_hello(source, body.nonce)
        elif isinstance(body, Hello) and envelope.cluster_id == 0 and self._is_founder_of(source.node_id):
            if body.echo == self._replica.peer.incarnation:
                self._present[source.node_id] = Member(source, body.address, True)
            else:
                self._replica.send(source, Welcome(self._replica.peer.incarnation))
        return Next.STAY

    def flush(self) -> None:
        """Nothing is waiting."""

    def synced(self) -> Next:
        """Nothing was waiting for the disk."""
        return Next.STAY

    def leave(self) -> None:
        """Nothing is left behind."""

    def _is_founder_of(self, node_id: int) -> bool:
        return self._is_founder() and node_id in self._founders

    def _is_founder(self) -> bool:
        return self._replica.peer.node_id == min(self._founders)

    def _may_found(self) -> bool:
        return self._is_founder() and all(node_id in self._present for node_id in self._others)

    def _found(self) -> None:
        """Write the cluster's first entry, in a term in which no other node writes any."""
        replica, journal = self._replica, self._replica.journal
        own = Member(replica.peer, replica.address, True)
        members = Members(tuple(sorted((own, *self._present.values()), key=lambda each: each.peer)))
        journal.join_cluster(replica.peer.incarnation)
        index, term = journal.last_index + 1, journal.last_term + 1
        replica.enter_term(term, replica.peer)
        journal.append([LogEntry(index, term, EntryKind.MEMBERS, NO_REQUEST, 0, encode_members(members))])
