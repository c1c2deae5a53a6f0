"""`RayHosts`: the processes of index shards as Ray actors, on any nodes of the Ray cluster."""

import logging
from collections.abc import Mapping, Sequence

from actors.cluster import index_shard_places, namespaces_of_nodes, start_at
from actors.columns.shard_calls import ShardProcess
from actors.ray_calls import RayProcess
from actors.search.host_follower import HostNode
from actors.search.shard_host_process import ShardHostProcess

__all__ = ["RayHosts", "divided"]

logger = logging.getLogger(__name__)

_HOST_CALLS = 64  # at a time: searches, and what follows


class RayHosts:
    """See `HostProcesses`: as many on each Ray node as it has of the resource; they end with the process that
    makes this. Where several database nodes are on one Ray cluster, they share these.
    """

    def __init__(self, search_limit_s: float, namespace: str) -> None:
        """search_limit_s: what a search may take. namespace: of this database node's actors."""
        self._search_limit_s, self._namespace = search_limit_s, namespace
        self._is_told = False

    def places(self) -> Mapping[str, HostNode]:
        """See `HostProcesses`."""
        there, nodes = index_shard_places(), namespaces_of_nodes()
        counts = divided({node_id: count for node_id, (_, count) in there.items()}, nodes, self._namespace)
        if there and not counts and not self._is_told:
            self._is_told = True
            logger.warning(
                "the Ray nodes have fewer index_shards than there are database nodes, and none is left for "
                "this one, which searches its indexes itself: give each Ray node %d",
                len(nodes),
            )
        return {
            f"{node_id}/{number}": HostNode(node_id, there[node_id][0])
            for node_id, count in counts.items()
            for number in range(count)
        }

    def start(self, place: str) -> ShardProcess:
        """See `HostProcesses`."""
        node_id = place.partition("/")[0]
        return RayProcess(start_at(ShardHostProcess, node_id, _HOST_CALLS, self._search_limit_s))


def divided(counts: Mapping[str, int], sharing: Sequence[str], own: str) -> dict[str, int]:
    """How many processes on each Ray node are one database node's, of those that share them.

    counts: on each Ray node. What cannot be divided evenly goes to another one on each Ray node in turn, so
    that no database node is left out while there are as many processes as nodes.
    """
    every = sorted({*sharing, own})  # its own log may be starting again
    number, found = every.index(own), {}
    for turn, (node_id, count) in enumerate(sorted(counts.items())):
        rank = (number - turn) % len(every)
        mine = len(range(rank, count, len(every)))
        if mine:
            found[node_id] = mine
    return found
