"""`RayHosts`: the processes of index shards as Ray actors, on any nodes of the Ray cluster."""

from collections.abc import Mapping

from actors.cluster import index_shard_places, start_at
from actors.columns.shard_calls import ShardProcess
from actors.ray_calls import RayProcess
from actors.search.shard_cluster import HostNode
from actors.search.shard_host import ShardHost

__all__ = ["RayHosts"]

_HOST_CALLS = 64  # at a time: searches, and what follows


class RayHosts:
    """See `HostProcesses`: as many on each Ray node as it has of the resource; they end with the process that
    makes this.
    """

    def __init__(self, search_limit_s: float) -> None:
        """search_limit_s: what a search may take."""
        self._search_limit_s = search_limit_s

    def places(self) -> Mapping[str, HostNode]:
        """See `HostProcesses`."""
        return {
            f"{node_id}/{number}": HostNode(node_id, host)
            for node_id, (host, there) in index_shard_places().items()
            for number in range(there)
        }

    def start(self, place: str) -> ShardProcess:
        """See `HostProcesses`."""
        node_id = place.partition("/")[0]
        return RayProcess(start_at(ShardHost, node_id, _HOST_CALLS, self._search_limit_s))
