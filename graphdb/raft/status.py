"""What a `RaftNode` reports of proposals, of itself and of the cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from graphdb.raft.follower import Follower
from graphdb.raft.journal import Journal
from graphdb.raft.leader import Leader
from graphdb.raft.membership import Member, PeerId
from graphdb.raft.replica import Replica, Role

__all__ = ["Outcome", "Proposal", "RaftStatus", "outcome_of", "status_of"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Where proposed entries stand in the leader's log; `RaftNode.outcome` says what became of them."""

    first_index: int
    last_index: int
    raft_term: int


class Outcome(Enum):
    """What became of a proposal."""

    COMMITTED = "committed"  # for ever
    LOST = "lost"  # never to be, not one entry of it
    PARTLY = "partly"  # its first entries are committed for ever, the others are never to be
    UNKNOWN = "unknown"  # it may still be either


@dataclass(frozen=True, slots=True)
class RaftStatus:
    """What a peer knows of itself and the cluster."""

    peer: PeerId  # itself
    is_voter: bool
    role: str  # leader, follower, candidate, newcomer
    term: int
    leader: PeerId | None
    commit_index: int
    last_index: int
    members: tuple[Member, ...]
    matched: Mapping[int, int]  # on the leader: by node_id of the others, how far their logs are known to go
    reachable: frozenset[int]  # node_ids heard lately: by the leader all, by others the leader
    elections: int  # leaders that were elected in the time of this process, itself included
    awaits_snapshot: bool = False  # see `Follower`


def outcome_of(proposal: Proposal, journal: Journal, commit_index: int) -> Outcome:
    """What became of a proposal, as a peer's journal shows it.

    It is lost when one of its places is taken, or as soon as a later term's entry is committed before it, for
    terms never fall along a log.
    """
    term = journal.term_at(min(proposal.last_index, commit_index))
    if term is None or (commit_index < proposal.last_index and term <= proposal.raft_term):
        return Outcome.UNKNOWN
    if term == proposal.raft_term:
        return Outcome.COMMITTED
    if proposal.first_index > commit_index:
        return Outcome.LOST
    first_term = journal.term_at(proposal.first_index)
    if first_term is None:
        return Outcome.UNKNOWN
    return Outcome.PARTLY if first_term == proposal.raft_term else Outcome.LOST


def status_of(replica: Replica, role: Role) -> RaftStatus:
    """What a peer knows of itself and the cluster."""
    journal = replica.journal
    matched: dict[int, int] = {}
    reachable = {replica.leader.node_id} if replica.leader and replica.hears_leader() else set()
    if isinstance(role, Leader):
        lately = replica.clock() - replica.config.election_timeout_s
        matched = {peer.node_id: each.match_index for peer, each in role.progress.items()}
        reachable = {peer.node_id for peer, each in role.progress.items() if each.heard_at > lately}
    return RaftStatus(
        replica.peer,
        replica.is_voter,
        role.name,
        journal.term,
        replica.leader,
        replica.commit_index,
        journal.last_index,
        journal.members.members,
        matched,
        frozenset(reachable),
        replica.elections,
        isinstance(role, Follower) and role.awaits_snapshot,
    )
