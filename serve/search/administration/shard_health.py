"""How the copies of indexes are: what the healths of indexes and of the cluster are made of.

An index is whole on every node, in one piece. It is shown with as many primaries and replicas as its settings
ask for; a replica has its place where there are nodes enough.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from graphdb.node import NodeStatus
from graphdb.search.catalog.index import Index
from graphdb.search.catalog.settings import number_setting

__all__ = ["STATUSES", "ShardCounts", "count_all", "count_shards", "nodes_reached", "shards_json"]

STATUSES = ("green", "yellow", "red")  # from good to bad


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Of one index, or of many."""

    primaries: int = 0
    replicas: int = 0  # that have a place
    unassigned: int = 0  # replicas without one

    @property
    def active(self) -> int:
        return self.primaries + self.replicas

    @property
    def status(self) -> str:
        return "yellow" if self.unassigned else "green"


def count_shards(index: Index, nodes: int) -> ShardCounts:
    """nodes: that can be reached, this one too."""
    primaries = number_setting(index.settings, "number_of_shards")
    replicas = number_setting(index.settings, "number_of_replicas")
    placed = min(replicas, nodes - 1)
    return ShardCounts(primaries, primaries * placed, primaries * (replicas - placed))


def count_all(indexes: Iterable[Index], nodes: int) -> ShardCounts:
    """Added up."""
    counts = [count_shards(index, nodes) for index in indexes]
    return ShardCounts(
        sum(one.primaries for one in counts),
        sum(one.replicas for one in counts),
        sum(one.unassigned for one in counts),
    )


def nodes_reached(status: NodeStatus) -> int:
    """This node, and the others that it reaches."""
    others = (member for member in status.cluster_members if member.node_id != status.node_id)
    return 1 + sum(member.reachable for member in others)


def shards_json(indexes: Iterable[Index], nodes: int) -> dict[str, int]:
    """The `_shards` of an answer that all copies of indexes have had a part in."""
    counts = count_all(indexes, nodes)
    return {"total": counts.active + counts.unassigned, "successful": counts.active, "failed": 0}
