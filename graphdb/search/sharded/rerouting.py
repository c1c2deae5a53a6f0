"""Where a copy of a shard goes that somebody moves by hand: `rerouted`, or why it may not go there.

The rule is that of `allocation`: no two copies of a shard on one node. Copies are spread again afterwards, so
a move that leaves places too uneven is followed by another one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["CopyAt", "NotAllowed", "Reroute", "Rerouted", "rerouted"]


@dataclass(frozen=True, slots=True)
class Reroute:
    """A command as in Elasticsearch; kind: move, cancel, allocate_replica. node: the one that has the copy,
    or is to have it; target: where it is to go.
    """

    kind: str
    index: str
    shard: int
    node: str
    target: str = ""
    allow_primary: bool = False

    @property
    def name(self) -> str:
        """Of the shard, for people."""
        return f"[{self.index}][{self.shard}]"


class CopyAt(NamedTuple):
    """is_started: whether it has its documents. is_coming: it is to take the place of another copy."""

    place: str
    is_started: bool
    is_coming: bool = False


class Rerouted(NamedTuple):
    """What becomes of the copies of a shard: the one at source is given up or, with a target too, moved."""

    source: str | None
    target: str | None


class NotAllowed(Exception):
    """The text says why."""


def rerouted(
    command: Reroute,
    copies: Sequence[CopyAt],
    wanted: int,
    nodes: Mapping[str, str],
    loads: Mapping[str, int],
) -> Rerouted:
    """copies: of the shard, the primary first. wanted: how many there are to be. nodes: the node of each
    place that can take copies; loads: how many copies each has. Raises NotAllowed.
    """
    here = next((copy for copy in copies if nodes.get(copy.place) == command.node), None)
    if command.kind == "allocate_replica":
        settled = [copy for copy in copies if not copy.is_coming]
        if not settled:
            raise NotAllowed("its primary has no node yet")
        if len(settled) >= wanted:
            raise NotAllowed("all copies are already assigned; use the command move")
        return Rerouted(None, _place_on(command.node, copies, nodes, loads))
    if here is None:
        raise NotAllowed(f"there is no copy of {command.name} on the node [{command.node}]")
    if command.kind == "cancel":
        if here is copies[0] and not command.allow_primary:
            raise NotAllowed("it is the primary; [allow_primary] is not given")
        return Rerouted(here.place, None)
    if not here.is_started or here.is_coming:
        raise NotAllowed("the copy is not started")
    if any(copy.is_coming for copy in copies):
        raise NotAllowed("another copy of the shard is being moved")
    return Rerouted(here.place, _place_on(command.target, copies, nodes, loads))


def _place_on(node: str, copies: Sequence[CopyAt], nodes: Mapping[str, str], loads: Mapping[str, int]) -> str:
    """The one with the fewest copies."""
    if any(nodes.get(copy.place) == node for copy in copies):
        raise NotAllowed(f"a copy of this shard is already allocated to the node [{node}]")
    free = [place for place, its_node in nodes.items() if its_node == node]
    if not free:
        raise NotAllowed(f"the node [{node}] has no running process for shards")
    return min(free, key=lambda place: (loads.get(place, 0), place))
