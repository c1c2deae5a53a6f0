"""What three copies cost: durable updates in a cluster of three on one machine against one node alone, and
for how long nobody can write when the leader is killed.
"""

import contextlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import httpx

from actors.processes import end_processes
from actors.raft.raft_log import ELECTION_TIMEOUT_S
from actors.service_files import ServiceFiles
from benchmarks.durable_update import CLIENTS, REQUEST, update_load
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, free_port, running_service, work_dir

__all__ = ["run"]

NODES = 3
FAILOVER_LIMIT_S = 30
WRITE_AGAIN_S = 0.01


def run(rounds: int, scale: float) -> list[Row]:
    """Latency of one client, throughput of many, alone and at the leader of three; the time to fail over."""
    with (
        work_dir() as directory,
        running_service(_made(directory / "alone")) as alone,
        _cluster(directory) as nodes,
    ):
        leader, follower = _leader_and_follower(nodes)
        rows = _measure(alone, leader, follower, rounds, scale)
        failover_s = _fail_over(leader, follower)
    election = Row(
        "writes stop when the leader is killed, for", "s", ELECTION_TIMEOUT_S, failover_s, "at most"
    )
    return [*rows, election]


def _measure(
    alone: RunningService, leader: RunningService, follower: RunningService, rounds: int, scale: float
) -> list[Row]:
    measure = update_load(scale)
    for service in (alone, leader, follower):
        measure(service, 1)  # warm
    one = [
        partial(lambda service: measure(service, 1).latency_s * 1000, service)
        for service in (alone, leader, follower)
    ]
    many = [
        partial(lambda service: measure(service, CLIENTS).requests_per_second, service)
        for service in (alone, leader, follower)
    ]
    alone_ms, leader_ms, follower_ms, alone_rate, leader_rate, follower_rate = interleave(rounds, *one, *many)
    return [
        Row("commit of three nodes, 1 client at the leader", "ms", alone_ms, leader_ms, "at most", 3),
        Row("the same, at a follower", "ms", alone_ms, follower_ms, "at most"),
        Row(f"commits of {CLIENTS} clients at the leader", "updates/s", alone_rate, leader_rate),
        Row("the same, at a follower", "updates/s", alone_rate, follower_rate),
    ]


@contextmanager
def _cluster(directory: Path) -> Iterator[list[RunningService]]:
    addresses = {number: f"127.0.0.1:{free_port()}" for number in range(1, NODES + 1)}
    with ExitStack() as stack, ThreadPoolExecutor(NODES) as pool:  # each is healthy only when the others are
        services = [
            running_service(_made(directory / f"node{number}"), environment=_settings(number, addresses))
            for number in addresses
        ]
        started = [pool.submit(service.__enter__) for service in services]
        for service in services:
            stack.push(service.__exit__)
        yield [future.result() for future in started]


def _settings(number: int, addresses: dict[int, str]) -> dict[str, str]:
    peers = [f"{other}@{address}" for other, address in addresses.items() if other != number]
    return {
        "GRAPHDB_CLUSTER__ENABLED": "true",
        "GRAPHDB_CLUSTER__NODE_ID": str(number),
        "GRAPHDB_CLUSTER__ADDRESS": addresses[number],
        "GRAPHDB_CLUSTER__PEERS": json.dumps(peers),
    }


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _leader_and_follower(nodes: list[RunningService]) -> tuple[RunningService, RunningService]:
    roles = [httpx.get(f"{node.url}/health", trust_env=False).json()["role"] for node in nodes]
    if "leader" not in roles:
        raise BenchmarkError(f"no node leads: {roles}")
    leader = roles.index("leader")
    return nodes[leader], nodes[leader - 1]


def _fail_over(leader: RunningService, follower: RunningService) -> float:
    """Seconds from kill -9 of the leader until a follower confirms a write."""
    began = time.perf_counter()
    end_processes(f"{ServiceFiles(leader.data_dir).name}-")
    body = REQUEST.body % -1
    headers = {"Content-Type": REQUEST.content_type}
    while time.perf_counter() < began + FAILOVER_LIMIT_S:
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.post(
                follower.url + REQUEST.path, content=body, headers=headers, timeout=5, trust_env=False
            )
            if answer.status_code == httpx.codes.OK:
                return time.perf_counter() - began
        time.sleep(WRITE_AGAIN_S)
    raise BenchmarkError("nobody has taken over")
