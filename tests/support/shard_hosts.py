"""`LocalHosts`: the processes of index shards in this one, in place of Ray's actors."""

import pickle
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from actors.columns.shard_calls import Result, ShardLost, ShardProcess
from actors.search.host_follower import HostNode
from actors.search.shard_host import ShardHost

__all__ = ["LocalHost", "LocalHosts"]

_THREADS = 16


class LocalHosts:
    """See `HostProcesses`. A node ends when it is taken out of `nodes`, and is killed with `kill_node`."""

    def __init__(self, nodes: Mapping[str, int]) -> None:
        """How many places each node has."""
        self.nodes = dict(nodes)
        self.running: dict[str, LocalHost] = {}
        self.may_start = True
        self._lock = Lock()

    def places(self) -> Mapping[str, HostNode]:
        return {
            f"{node}/{number}": HostNode(node, f"host-{node}")
            for node, count in self.nodes.items()
            for number in range(count)
        }

    def start(self, place: str) -> ShardProcess:
        if not self.may_start:
            raise ShardLost("no process is started now")
        with self._lock:
            host = self.running[place] = LocalHost()
        return host

    def kill_node(self, node: str) -> None:
        """With all of its processes; there is no place on it any more."""
        self.nodes.pop(node)
        for place, host in list(self.running.items()):
            if place.startswith(f"{node}/"):
                host.kill()


class LocalHost:
    """See `ShardProcess`. What passes is pickled, as between processes."""

    def __init__(self) -> None:
        self.host = ShardHost(60)
        self.is_dead = False
        self.calls: list[str] = []
        self._threads = ThreadPoolExecutor(_THREADS)

    @property
    def has_copies(self) -> bool:
        """Whether one has come."""
        return any(copy.states for copy in self.host._copies.values())

    def call(self, method: str, *arguments: Any, results: int = 1) -> list[Result]:
        self.calls.append(method)
        if self.is_dead:
            return [_Result(self, Future())]
        return [_Result(self, self._threads.submit(self._called, method, pickle.dumps(arguments)))]

    def _called(self, method: str, arguments: bytes) -> bytes:
        return pickle.dumps(getattr(self.host, method)(*pickle.loads(arguments)))

    def kill(self) -> None:
        self.is_dead = True
        self._threads.shutdown(wait=False)
        self.host.look({})


class _Result:
    def __init__(self, process: LocalHost, whole: "Future[bytes]") -> None:
        self._process, self._whole = process, whole

    def value(self, timeout_s: float) -> Any:
        if self._process.is_dead:
            raise ShardLost("it was killed")
        return pickle.loads(self._whole.result(timeout_s))
