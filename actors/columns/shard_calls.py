"""What whoever asks column shards needs of their processes, wherever these are: `ShardProcesses`.

`actors.cluster` has those that are Ray actors.
"""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # index shards are called so too, and need no DuckDB
    from actors.columns.column_shard import ShardSettings

__all__ = ["Result", "ShardLost", "ShardProcess", "ShardProcesses"]


class ShardLost(Exception):
    """The process of a shard is gone, or cannot be started; the text says why."""


class Result(Protocol):
    """What a call comes to. It stays where it was made until somebody asks for it."""

    def value(self, timeout_s: float) -> Any:
        """Raises TimeoutError, ShardLost, and what the method raised."""
        ...


class ShardProcess(Protocol):
    """That of one `ColumnShard`."""

    def call(self, method: str, *arguments: Any, results: int = 1) -> list[Result]:
        """Have a method called. Results among the arguments stand for their values, which go from shard to
        shard.
        """
        ...

    def kill(self) -> None:
        """End it, whatever it does."""
        ...


class ShardProcesses(Protocol):
    """Starts the processes of a number of shards."""

    @property
    def count(self) -> int: ...

    def start(self, number: int, settings: "ShardSettings") -> ShardProcess:
        """That of one shard, in place of the one that is lost. Its first call waits until it has a place."""
        ...

    def waiting(self) -> str:
        """What one that does not answer its first call may wait for."""
        ...
