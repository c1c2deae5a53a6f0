"""Who is in the cluster: members, voters, majorities, and their bytes.

count (2), then for each member: node_id (4), incarnation (8), voting (1), address (text)
"""

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from graphdb.raft.wire import Malformed, WireReader, pack_bytes

__all__ = [
    "ADDRESS_BYTES_MAX",
    "ANY_INCARNATION",
    "Member",
    "Members",
    "PeerId",
    "decode_members",
    "encode_members",
    "take_members",
]

MEMBERS_MAX = 64
ADDRESS_BYTES_MAX = 300
ANY_INCARNATION = 0
_COUNT = struct.Struct("<H")
_MEMBER = struct.Struct("<IQB")


class PeerId(NamedTuple):
    """One data directory of one node: what votes, acknowledges and is counted.

    node_id is the operator's number. incarnation is drawn when the directory is made, never 0: a node whose
    disk was wiped comes back as another peer, so what it promised and forgot is not counted. ANY_INCARNATION
    (0) addresses the node with that number.
    """

    node_id: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Member:
    """A peer as the cluster knows it.

    Without a vote it is given all entries, but commits do not wait for it: so a member begins, until it has
    caught up. Its incarnation is ANY_INCARNATION while it has not reported.
    """

    peer: PeerId
    address: str  # host:port of 7002
    voting: bool


@dataclass(frozen=True, slots=True)
class Members:
    """A configuration of the cluster. Node ids are unique in it."""

    members: tuple[Member, ...] = ()
    voters: frozenset[PeerId] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        voters = frozenset(member.peer for member in self.members if member.voting)
        object.__setattr__(self, "voters", voters)

    def is_majority(self, peers: Collection[PeerId]) -> bool:
        """Whether the voters among these distinct peers are more than half of all voters."""
        return 2 * len(self.voters.intersection(peers)) > len(self.voters)

    def reached_by_majority(self, values: Iterable[tuple[PeerId, int]]) -> int:
        """The largest value that a majority of the voters has reached; who is not named is at 0."""
        reached = sorted((value for peer, value in values if peer in self.voters), reverse=True)
        majority = len(self.voters) // 2 + 1
        return reached[majority - 1] if len(reached) >= majority else 0

    def find(self, node_id: int) -> Member | None:
        """The member with that number."""
        return next((member for member in self.members if member.peer.node_id == node_id), None)

    def with_member(self, member: Member) -> "Members":
        """The same with this member, in place of any with its number."""
        others = self.without(member.peer.node_id).members
        return Members(tuple(sorted((*others, member), key=lambda each: each.peer)))

    def without(self, node_id: int) -> "Members":
        """The same without the member of that number."""
        return Members(tuple(member for member in self.members if member.peer.node_id != node_id))


def encode_members(members: Members) -> bytes:
    """The payload of a MEMBERS entry."""
    parts = [_COUNT.pack(len(members.members))]
    for member in members.members:
        parts.append(_MEMBER.pack(*member.peer, member.voting))
        parts.append(pack_bytes(member.address.encode()))
    return b"".join(parts)


def decode_members(payload: bytes) -> Members:
    """The configuration in a payload. Raises Malformed."""
    reader = WireReader(payload)
    members = take_members(reader)
    reader.finish()
    return members


def take_members(reader: WireReader) -> Members:
    """A configuration off the front of a buffer. Raises Malformed."""
    (count,) = reader.unpack(_COUNT)
    if count > MEMBERS_MAX:
        raise Malformed(f"{count} members")
    members = tuple(_take_member(reader) for _ in range(count))
    if len({member.peer.node_id for member in members}) != count:
        raise Malformed("a node is named twice")
    return Members(members)


def _take_member(reader: WireReader) -> Member:
    node_id, incarnation, voting = reader.unpack(_MEMBER)
    return Member(PeerId(node_id, incarnation), reader.take_text(ADDRESS_BYTES_MAX), reader.take_flag(voting))
