"""`ShardHostProcess`: a `ShardHost` that has a process to itself."""

from actors.search.shard_host import ShardHost
from actors.search.warm_up import warm_up

__all__ = ["ShardHostProcess"]


class ShardHostProcess(ShardHost):
    """Compiles what searches need before it has a copy: else the first searches may wait for it longer than
    they have time.
    """

    def __init__(self, idle_s: float) -> None:
        warm_up()
        super().__init__(idle_s)
