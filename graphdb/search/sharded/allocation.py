"""Which places have the copies of shards: each copy of a shard on another node, as evenly as that allows.

A place takes copies of shards, and is on a node; nodes are what fails as a whole. So a shard and its replica
are never on one node, however many places that has.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

__all__ = ["Move", "allocate", "next_move"]

Shard = TypeVar("Shard", bound=Hashable)


class Move(NamedTuple):
    """A copy of a shard that is better elsewhere."""

    shard: Hashable
    source: str
    target: str


def allocate(
    wanted: Mapping[Shard, int], placed: Mapping[Shard, Sequence[str]], nodes: Mapping[str, str]
) -> dict[Shard, list[str]]:
    """The places of each shard's copies, the primary first; fewer than wanted where nodes are too few.

    wanted: copies of each shard, the primary counted. placed: where they are; those stay whose place is still
    there. nodes: the node of each place.
    """
    found = {
        shard: [place for place in placed.get(shard, ()) if place in nodes][:count]
        for shard, count in wanted.items()
    }
    loads = _loads(found, nodes)
    for copy in range(max(wanted.values(), default=0)):  # all primaries, before any replica
        for shard, count in wanted.items():
            if len(found[shard]) == copy < count:
                free = _free(found[shard], nodes)
                if free:
                    best = min(free, key=lambda place: (loads[place], place))
                    found[shard].append(best)
                    loads[best] += 1
    return found


def next_move(placed: Mapping[Shard, Sequence[str]], nodes: Mapping[str, str]) -> Move | None:
    """The copy to move next, so that places have as many as others; None where it is even."""
    loads = _loads(placed, nodes)
    for source in sorted(loads, key=lambda place: (-loads[place], place)):
        for target in sorted(loads, key=lambda place: (loads[place], place)):
            if loads[source] - loads[target] < 2:
                break
            for shard, places in placed.items():
                others = [place for place in places if place != source]
                if source in places and target in _free(others, nodes):
                    return Move(shard, source, target)
    return None


def _loads(placed: Mapping[Shard, Sequence[str]], nodes: Mapping[str, str]) -> Counter[str]:
    loads = Counter(dict.fromkeys(nodes, 0))
    loads.update(place for places in placed.values() for place in places if place in nodes)
    return loads


def _free(taken: Sequence[str], nodes: Mapping[str, str]) -> list[str]:
    """The places on nodes that have no copy of the shard."""
    used = {nodes[place] for place in taken if place in nodes}
    return [place for place, node in nodes.items() if node not in used]
