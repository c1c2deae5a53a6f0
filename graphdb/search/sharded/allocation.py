"""Which places have the copies of shards: each copy of a shard on another node, as evenly as that allows.

A place takes copies of shards, and is on a node; nodes are what fails as a whole. So a shard and its replica
are never on one node, however many places that has.

What is even is what Elasticsearch calls so: a place weighs 0.45 for each of its copies and 0.55 for each of
the index in question, and a copy moves where two places differ in weight by more than a threshold, of which
1 is the default (`cluster.routing.allocation.balance.shard`, `.index` and `.threshold` of its reference).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Literal, NamedTuple, TypeAlias

__all__ = ["THRESHOLD", "Kinds", "Move", "ShardKey", "allocate", "next_move"]

THRESHOLD = 1.0
_BY_COPIES, _BY_INDEX = 0.45, 0.55
_ROUNDING = 0.001

ShardKey: TypeAlias = tuple[str, int]
"""The index, and the number of the shard."""
Kinds: TypeAlias = Literal["all", "primaries", "replicas"]


class Move(NamedTuple):
    """A copy of a shard that is better elsewhere."""

    shard: ShardKey
    source: str
    target: str


def allocate(
    wanted: Mapping[ShardKey, int], placed: Mapping[ShardKey, Sequence[str]], nodes: Mapping[str, str]
) -> dict[ShardKey, list[str]]:
    """The places of each shard's copies, the primary first; fewer than wanted where nodes are too few.

    wanted: copies of each shard, the primary counted. placed: where they are; those stay whose place is still
    there. nodes: the node of each place.
    """
    found = {
        shard: [place for place in placed.get(shard, ()) if place in nodes][:count]
        for shard, count in wanted.items()
    }
    loads = _Loads(found, nodes)
    for copy in range(max(wanted.values(), default=0)):  # all primaries, before any replica
        for shard, count in wanted.items():
            if len(found[shard]) == copy < count:
                free = _free(found[shard], nodes)
                if free:
                    best = min(free, key=lambda place: (loads.weight(place, shard[0]), place))
                    found[shard].append(best)
                    loads.add(best, shard[0])
    return found


def next_move(
    placed: Mapping[ShardKey, Sequence[str]],
    nodes: Mapping[str, str],
    threshold: float = THRESHOLD,
    kinds: Kinds = "all",
    stay: Set[tuple[ShardKey, str]] = frozenset(),
) -> Move | None:
    """The copy to move next, None where it is even. placed: the primary first. threshold: at least 1, or
    moving may never end. kinds: of the copies that may move. stay: (shard, place) of copies that others are
    moved before.
    """
    loads = _Loads(placed, nodes)
    by_index: dict[str, dict[ShardKey, Sequence[str]]] = defaultdict(dict)
    for shard, places in placed.items():
        by_index[shard[0]][shard] = places
    found = [
        move
        for index, shards in by_index.items()
        for move in _moves(index, shards, nodes, loads, threshold, kinds)
    ]
    return min(found, key=lambda move: (move.shard, move.source) in stay, default=None)


def _moves(
    index: str,
    shards: Mapping[ShardKey, Sequence[str]],
    nodes: Mapping[str, str],
    loads: "_Loads",
    threshold: float,
    kinds: Kinds,
) -> list[Move]:
    """Those between the two places that differ most, as far as the nodes of other copies allow it."""
    by_weight = sorted(nodes, key=lambda place: (loads.weight(place, index), place))
    for source in reversed(by_weight):
        for target in by_weight:
            if loads.weight(source, index) - loads.weight(target, index) <= threshold + _ROUNDING:
                break
            moves = [
                Move(shard, source, target)
                for shard, places in shards.items()
                if source in places
                and kinds in ("all", "primaries" if places[0] == source else "replicas")
                and target in _free([one for one in places if one != source], nodes)
            ]
            if moves:
                return moves
    return []


class _Loads:
    """How many copies each place has, of all indexes and of each."""

    def __init__(self, placed: Mapping[ShardKey, Sequence[str]], nodes: Mapping[str, str]) -> None:
        self._copies, self._of_index = Counter[str](), Counter[tuple[str, str]]()
        for (index, _), places in placed.items():
            for place in places:
                if place in nodes:
                    self.add(place, index)

    def add(self, place: str, index: str) -> None:
        self._copies[place] += 1
        self._of_index[place, index] += 1

    def weight(self, place: str, index: str) -> float:
        return _BY_COPIES * self._copies[place] + _BY_INDEX * self._of_index[place, index]


def _free(taken: Sequence[str], nodes: Mapping[str, str]) -> list[str]:
    """The places on nodes that have no copy of the shard."""
    used = {nodes[place] for place in taken if place in nodes}
    return [place for place, node in nodes.items() if node not in used]
