"""What whoever asks column shards needs of their processes, wherever these are: `ShardProcesses`.

`actors.cluster` has those that are Ray actors.
"""

from collections.abc import Sequence
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
    """That of one `ColumnShard`, the host of one or several shards."""

    def call(self, method: str, *arguments: Any, results: int = 1) -> list[Result]:
        """Have a method called. Results among the arguments stand for their values, which go from shard to
        shard.
        """
        ...

    def kill(self) -> None:
        """End it, whatever it does."""
        ...


class ShardProcesses(Protocol):
    """Starts the processes of a number of shards, on several machines or one."""

    @property
    def count(self) -> int: ...

    def places(self) -> Sequence[str] | None:
        """Of each shard the machine that has room for it; None while there is no room for all."""
        ...

    def start(self, number: int, settings: "ShardSettings") -> ShardProcess:
        """One where this shard has its place."""
        ...

    def waiting(self) -> str:
        """What shards may wait for that have no place, or whose process does not answer its first call."""
        ...
