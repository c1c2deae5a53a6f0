"""`LocalProcesses`: hosts of column shards in this process, with threads of their own, in place of actors."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from actors.columns.column_shard import ColumnShard, ShardSettings
from actors.columns.shard_calls import Result, ShardLost, ShardProcess

__all__ = ["LocalProcess", "LocalProcesses"]

_THREADS = 8


class LocalProcesses:
    """See `ShardProcesses`. started has all that were, by the number of their first shards."""

    def __init__(self, count: int, machines: Sequence[str] | None = None) -> None:
        """machines: of each shard; each has one of its own where that is not said."""
        self.count = count
        self.machines: Sequence[str] | None = machines or [str(number) for number in range(count)]
        self.started: dict[int, list[LocalProcess]] = {number: [] for number in range(count)}

    def places(self) -> Sequence[str] | None:
        return self.machines

    def start(self, number: int, settings: ShardSettings) -> ShardProcess:
        self.started[number].append(process := LocalProcess(settings))
        return process

    def waiting(self) -> str:
        return "nothing"

    def last(self, number: int) -> "LocalProcess":
        """The one that a shard has now."""
        return self.started[number][-1]


class LocalProcess:
    """See `ShardProcess`."""

    def __init__(self, settings: ShardSettings) -> None:
        self.shard = ColumnShard(settings)
        self.is_dead = False
        self.calls: list[str] = []
        self._threads = ThreadPoolExecutor(_THREADS)

    def call(self, method: str, *arguments: Any, results: int = 1) -> list[Result]:
        self.calls.append(method)
        if self.is_dead:
            return [_Result(self, Future(), 0)] * results
        whole = self._threads.submit(self._called, method, *arguments)
        return [_Result(self, whole, place if results > 1 else None) for place in range(results)]

    def _called(self, method: str, *arguments: Any) -> Any:
        values = [each.value(60) if isinstance(each, _Result) else each for each in arguments]
        return getattr(self.shard, method)(*values)

    def kill(self) -> None:
        if not self.is_dead:
            self.is_dead = True
            self.shard.close()
            self._threads.shutdown(wait=False)


class _Result:
    def __init__(self, process: LocalProcess, whole: "Future[Any]", place: int | None) -> None:
        self._process, self._whole, self._place = process, whole, place

    def value(self, timeout_s: float) -> Any:
        if self._process.is_dead:
            raise ShardLost("it was killed")
        found = self._whole.result(timeout_s)
        return found if self._place is None else found[self._place]
