"""How a leader lets a new peer in: one that an operator has added, or a member whose disk was wiped.

The peer says hello with its life; the leader asks it, at that life, to say it again with a nonce, for a
hello may be an old one of a life that is gone. Then the member's life is changed and its vote taken, in one
entry: to the voters that is the removal of one. It gets its vote back (`Leader`) when it has caught up.
"""

from collections.abc import Callable

from graphdb.raft.membership import Member, Members, PeerId
from graphdb.raft.messages import Envelope, Hello, Welcome
from graphdb.raft.replica import Replica

__all__ = ["Admission"]


class Admission:
    """Owned by a `Leader`."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._nonces: dict[PeerId, int] = {}

    def answer(self, envelope: Envelope, change: Callable[[Members], bool]) -> None:
        """Meet a Hello; change appends a configuration, or says that it cannot be now."""
        hello, peer = envelope.body, envelope.source
        assert isinstance(hello, Hello)
        members = self._replica.journal.members
        member = members.find(peer.node_id)
        if member is None or member.peer == peer:
            return
        if hello.echo == 0 or self._nonces.get(peer) != hello.echo:
            nonce = self._nonces.setdefault(peer, 1 + int(self._replica.dice() * (1 << 53)))
            self._replica.send(peer, Welcome(nonce))
            return
        admitted = members.with_member(Member(peer, hello.address, voting=False))
        if admitted.voters and change(admitted):
            del self._nonces[peer]
