"""`RayShards`: the processes of column shards as Ray actors, on any nodes of the Ray cluster."""

from collections.abc import Sequence

from actors.cluster import SHARD_RESOURCE, found_places, shard_nodes, spread_places, start_spread
from actors.columns.column_shard import ColumnShard, ShardSettings
from actors.columns.shard_calls import ShardProcess
from actors.ray_calls import RayProcess

__all__ = ["RayShards"]


class RayShards:
    """See `ShardProcesses`. They are on the Ray nodes that have the resource, spread over them, and end with
    the process that makes this.
    """

    def __init__(self, shards: int, calls: int) -> None:
        """shards: how many, or 0 for one on each Ray node that has the resource now. calls: at a time."""
        self._count = shards or max(1, len(shard_nodes()))
        self._calls = calls
        self._group = spread_places(self._count)

    @property
    def count(self) -> int:
        return self._count

    def places(self) -> Sequence[str] | None:
        """See `ShardProcesses`. Ray finds other places for shards whose node is gone."""
        return found_places(self._group)

    def start(self, number: int, settings: ShardSettings) -> ShardProcess:
        """See `ShardProcesses`."""
        return RayProcess(start_spread(ColumnShard, self._group, number, self._calls, settings))

    def waiting(self) -> str:
        """See `ShardProcesses`."""
        there = sum(shard_nodes().values())
        return (
            f"Ray nodes with the resource {SHARD_RESOURCE}: {self.count} are needed, there are {there:g} "
            f"(`ray start --resources='{{\"{SHARD_RESOURCE}\": 1}}'`)"
        )
