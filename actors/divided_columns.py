"""`python -m actors.divided_columns FD MEMORY_LIMIT_MB`: the engine of a column view that is divided among
shards, which are Ray actors. All else is in `actors.columns.engine`.

A process of its own kind because it is connected to Ray, which takes memory and a second of its start.
"""

import logging
from collections.abc import Sequence

from actors.columns.column_shard import ShardSettings
from actors.columns.engine import run_engine
from actors.columns.protocol import EngineSetup
from actors.columns.shard_set import ShardSet
from actors.ray_at_rest import look_less_often
from actors.ray_private import calm_connections

__all__: list[str] = []

logger = logging.getLogger(__name__)
_RAY_ADDRESS_SPACE_MB = 2048  # most of it is never filled: stacks of threads
_CALLS_BESIDE = 4  # queries: following, a look, an interrupt and an end


def _divide(setup: EngineSetup) -> ShardSet | None:
    """The shards of the view; None where there is only one, or no Ray: then the view answers by itself."""
    # not at the top: the view opens and answers while Ray is imported and connected
    from actors.cluster import connect
    from actors.shard_actors import RayShards

    assert setup.ray_at is not None
    at = setup.ray_at
    try:
        with calm_connections():
            connect(at.address, at.namespace, at.temp_dir)
        columns = setup.columns
        processes = RayShards(columns.shards, columns.queries_max + _CALLS_BESIDE)
    except Exception as error:  # noqa: BLE001 whatever is wrong with Ray, there is another way
        logger.error("the column view is not divided, for Ray cannot be reached: %s", error)
        return None
    look_less_often(also_main=False)
    if processes.count == 1:
        logger.warning("the column view is not divided, for there is one shard: %s", processes.waiting())
        return None

    def settings(numbers: Sequence[int]) -> ShardSettings:
        return ShardSettings(
            f"{at.namespace}-{numbers[0]}",
            columns.shard_memory_mb * len(numbers),
            columns.shard_query_memory_mb * len(numbers),
            columns.spill_dir,
            columns.spill_limit_mb * len(numbers),
        )

    return ShardSet(processes, settings)


if __name__ == "__main__":
    run_engine(_divide, _RAY_ADDRESS_SPACE_MB)
