"""The role of a peer that belongs to no cluster: it says hello until a leader feeds it, or founds a cluster.

A cluster is founded once, by the node with the lowest number, when every founder has said hello to this very
life of it: so all are new, and a founder whose disk was wiped later does not found a second cluster beside
the first, but is admitted to that by its leader (`admission.py`).
"""

from collections.abc import Mapping

from graphdb.model import EntryKind, LogEntry
from graphdb.raft.membership import ANY_LIFE, Member, Members, PeerId, encode_members
from graphdb.raft.messages import Envelope, Hello, Welcome
from graphdb.raft.replica import Next, Replica

__all__ = ["Newcomer"]

NO_REQUEST = bytes(16)


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
            for node_id in self._others:
                replica.send(PeerId(node_id, ANY_LIFE), Hello(replica.address, 0))
        return Next.STAY

    def receive(self, envelope: Envelope) -> Next:
        """Meet a Hello or a Welcome; anything else has made the peer a follower already."""
        body, source = envelope.body, envelope.source
        if isinstance(body, Welcome):
            # also by way of the others: the leader may be a node that this one has not been told of
            for node_id in sorted({*self._others, source.node_id}):
                self._replica.send(PeerId(node_id, ANY_LIFE), Hello(self._replica.address, body.nonce))
        elif isinstance(body, Hello) and self._is_founder() and source.node_id in self._founders:
            if body.echo == self._replica.peer.life:
                self._present[source.node_id] = Member(source, body.address, True)
            else:
                self._replica.send(source, Welcome(self._replica.peer.life))
        return Next.STAY

    def flush(self) -> None:
        """Nothing is waiting."""

    def synced(self) -> Next:
        """Nothing was waiting for the disk."""
        return Next.STAY

    def leave(self) -> None:
        """Nothing is left behind."""

    def _is_founder(self) -> bool:
        return self._replica.peer.node_id == min(self._founders)

    def _may_found(self) -> bool:
        return self._is_founder() and all(node_id in self._present for node_id in self._others)

    def _found(self) -> None:
        """Write the first entry, in a term in which nobody else writes any."""
        replica, journal = self._replica, self._replica.journal
        own = Member(replica.peer, replica.address, True)
        members = Members(tuple(sorted((own, *self._present.values()), key=lambda each: each.peer)))
        journal.join_cluster(replica.peer.life)
        replica.enter_term(1, replica.peer)
        journal.append([LogEntry(1, 1, EntryKind.MEMBERS, NO_REQUEST, 0, encode_members(members))])
