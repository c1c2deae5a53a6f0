"""`RayCluster`: one Ray cluster of several nodes on this machine, by Ray's own multi-node test cluster.

`python -m tests.support.ray_cluster DIRECTORY` is the process that has the nodes, since Ray reads its
environment while it is imported. A line `add NAME` or `remove NAME` on its standard input is answered with a
line, the cluster's address; the nodes end when the input does.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from tests.support.timing import HANG_S

__all__ = ["INDEX_RESOURCE", "SHARD_RESOURCE", "RayCluster"]

SHARD_RESOURCE = "column_shards"  # of `actors.cluster`, which imports Ray
INDEX_RESOURCE = "index_shards"
_OBJECT_STORE_BYTES = 80 << 20
_STOP_S = 20


class RayCluster:
    """Ray nodes by names, the first of them the head. close() it at last, whatever has happened."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="ray-"))  # short: Ray's sockets lie in it
        self._environment = {
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # the loopback is this machine's address
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",  # at Ray's own 15, a busy machine lets a service start in minutes
        }
        self._address = ""
        (self._directory / "ray").mkdir()  # where Ray writes the cluster's address; else it is the machine's
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.ray_cluster", self._directory],
            cwd=Path(__file__).resolve().parents[2],
            env={**_inherited(), **self._environment, "RAY_TMPDIR": str(self._directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def add(self, name: str) -> None:
        """Start a node, or start one again that was removed; it is up when this returns."""
        self._address = self._ask(f"add {name}")

    def remove(self, name: str) -> None:
        """Kill a node with everything that runs on it."""
        self._ask(f"remove {name}")

    def environment(self, name: str) -> dict[str, str]:
        """What makes `graphdb serve` join this node."""
        place = {"RAY_ADDRESS": self._address, "RAY_TMPDIR": str(self._directory / name)}
        return self._environment | place

    def workers(self, name: str) -> dict[str, int]:
        """The processes that a node runs for Ray's users, as Ray titles them, with their ids."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for raylet in psutil.Process(self._process.pid).children():
                if f"--temp_dir={_temp_dir(self._directory, name)}" in raylet.cmdline():
                    return dict(_titles(raylet))
        return {}

    def kill_worker(self, name: str, title: str) -> int:
        """kill -9 the one process of a node whose title begins so; its id."""
        (killed,) = [pid for found, pid in self.workers(name).items() if found.startswith(title)]
        os.kill(killed, signal.SIGKILL)
        return killed

    def close(self) -> None:
        """End every node; what does not end is killed."""
        everything = psutil.Process(self._process.pid).children(recursive=True)
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            self._process.communicate(timeout=_STOP_S)
        for process in [*everything, self._process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait(HANG_S)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _ask(self, request: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(request, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer, f"the Ray cluster ended at: {request}"
        return answer


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


def _temp_dir(directory: Path, name: str) -> str:
    """Where a node would put its files if RAY_TMPDIR were directory / name."""
    return str(directory / name / "ray")


def _titles(raylet: Any) -> Iterator[tuple[str, int]]:
    for worker in raylet.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            yield " ".join(worker.cmdline()).strip(), worker.pid


def _run(directory: Path) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    nodes: dict[str, Any] = {}
    known: dict[str, str] = {}
    for line in sys.stdin:
        request, name = line.split()
        if request == "add":
            known.setdefault(name, f"127.0.0.{len(known) + 1}")
            nodes[name] = cluster.add_node(
                temp_dir=_temp_dir(directory, name),
                node_ip_address=known[name],  # an address of its own, as a machine has
                num_cpus=2,
                resources={SHARD_RESOURCE: 2, INDEX_RESOURCE: 1},
                object_store_memory=_OBJECT_STORE_BYTES,
                include_dashboard=False,
                include_log_monitor=False,
                dashboard_agent_listen_port=0,
                no_monitor=True,
            )
        else:
            cluster.remove_node(nodes.pop(name), allow_graceful=False)
        print(cluster.address, flush=True)
    cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    _run(Path(sys.argv[1]))
