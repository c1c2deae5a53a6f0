"""`RayShards`: the processes of column shards as Ray actors, on any nodes of the Ray cluster."""

from typing import Any

import ray

from actors.cluster import SHARD_RESOURCE, shard_nodes, spread_places, start_spread
from actors.columns.column_shard import ColumnShard, ShardSettings
from actors.columns.shard_calls import Result, ShardLost, ShardProcess

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

    def start(self, number: int, settings: ShardSettings) -> ShardProcess:
        """See `ShardProcesses`."""
        return _RayShard(start_spread(ColumnShard, self._group, number, self._calls, settings))

    def waiting(self) -> str:
        """See `ShardProcesses`."""
        there = sum(shard_nodes().values())
        return (
            f"Ray nodes with the resource {SHARD_RESOURCE}: {self.count} are needed, there are {there:g} "
            f"(`ray start --resources='{{\"{SHARD_RESOURCE}\": 1}}'`)"
        )


class _RayShard:
    """See `ShardProcess`."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def call(self, method: str, *arguments: Any, results: int = 1) -> list[Result]:
        made = [each.reference if isinstance(each, _RayResult) else each for each in arguments]
        references = getattr(self._actor, method).options(num_returns=results).remote(*made)
        return [_RayResult(each) for each in (references if results > 1 else [references])]

    def kill(self) -> None:
        ray.kill(self._actor)


class _RayResult:
    """See `Result`."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def value(self, timeout_s: float) -> Any:
        try:
            return ray.get(self.reference, timeout=timeout_s)
        except ray.exceptions.GetTimeoutError as error:
            raise TimeoutError from error
        except ray.exceptions.RayTaskError as error:
            cause: Any = error.cause
            while isinstance(cause, ray.exceptions.RayTaskError):  # of what was among the arguments
                cause = cause.cause
            if isinstance(cause, ray.exceptions.RayError):
                raise ShardLost(_in_a_line(cause)) from None
            raise cause from None
        except ray.exceptions.RayError as error:
            raise ShardLost(_in_a_line(error)) from None


def _in_a_line(error: Exception) -> str:
    """The last words of what Ray says."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip() if "Error" in lines[-1] else lines[0].strip()
