"""A cluster whose nodes run on the nodes of one Ray cluster: who runs where, and a Ray node that dies."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cluster_description import PROJECT, described_cluster, filled_by_ray
from tests.support.ray_cluster import RayCluster
from tests.support.service import Service, free_port
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.long]

NAMES = ("one", "two", "three")  # of Ray nodes, and of what runs on each; the first is Ray's head


@pytest.fixture
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster()
    try:
        for name in NAMES:
            cluster.add(name)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def services(ray_cluster: RayCluster, tmp_path: Path) -> Iterator[dict[str, Service]]:
    """Three nodes of one cluster, all started at once, each on its Ray node."""
    addresses = {name: f"127.0.0.1:{free_port()}" for name in NAMES}
    started: dict[str, Service] = {}
    try:
        for name in NAMES:
            environment = ray_cluster.environment(name) | _membership(name, addresses)
            started[name] = Service(tmp_path / name, environment=environment).start(wait=False)
        for service in started.values():
            _await_start(service)
        yield started
    finally:
        for service in started.values():
            service.close()


def _membership(name: str, addresses: dict[str, str]) -> dict[str, str]:
    """The settings that make a service one member of the cluster."""
    peers = [f"{NAMES.index(other) + 1}@{addresses[other]}" for other in NAMES if other != name]
    return {
        "GRAPHDB_CLUSTER__ENABLED": "true",
        "GRAPHDB_CLUSTER__NODE_ID": str(NAMES.index(name) + 1),
        "GRAPHDB_CLUSTER__ADDRESS": addresses[name],
        "GRAPHDB_CLUSTER__PEERS": json.dumps(peers),
        "GRAPHDB_READERS__COUNT": "1",
    }


def _await_start(service: Service) -> None:
    service.wait_until(lambda: "graphdb serves" in service.output, 120)


def _hosted(cluster: RayCluster, name: str) -> list[str]:
    """Which of the database's processes a Ray node runs."""
    kinds = ("ray::RaftLog", "ray::GraphPort", "ray::QueryKeeper")
    return sorted(title for title in cluster.workers(name) if title.startswith(kinds))


def _await_hosted(service: Service, cluster: RayCluster, name: str) -> None:
    """Wait until a Ray node runs each of them once."""
    expected = ["GraphPort", "QueryKeeper", "RaftLog"]
    service.wait_until(
        lambda: [re.split(r"[:.]+", title)[1] for title in _hosted(cluster, name)] == expected, timeout_s=30
    )


def _await_values(service: Service, expected: set[str]) -> None:
    """Wait until the node itself has applied this and nothing else."""
    query = "SELECT ?o { <urn:s> <urn:p> ?o }"
    service.wait_until(lambda: {row["o"] for row in service.select(query)} == expected, HANG_S)


def test_one_database_node_per_ray_node(ray_cluster: RayCluster, services: dict[str, Service]) -> None:
    for name, service in services.items():
        namespace = json.loads((service.data_dir / "service.json").read_text())["namespace"]
        address = f"127.0.0.{NAMES.index(name) + 1}"
        assert namespace.endswith(f"-{address}"), "the same path on two machines makes two names"
        _await_hosted(service, ray_cluster, name)
        service.update(f"INSERT DATA {{ <urn:s> <urn:p> '{name}' }}")
    for service in services.values():
        _await_values(service, set(NAMES))

    ray_cluster.remove("two")
    assert services["two"].exit_code(timeout_s=HANG_S) == 1, "for a supervisor to start it again"
    services["one"].update("INSERT DATA { <urn:s> <urn:p> 'without two' }")
    _await_values(services["three"], {*NAMES, "without two"})
    _replace_port(ray_cluster, services["three"])  # Ray has an actor that it cannot place; it goes on

    ray_cluster.add("two")
    _await_start(services["two"].start(wait=False))
    _await_values(services["two"], {*NAMES, "without two"})
    services["two"].update("INSERT DATA { <urn:s> <urn:p> 'two again' }")
    _await_values(services["one"], {*NAMES, "without two", "two again"})
    _await_hosted(services["two"], ray_cluster, "two")


def _replace_port(cluster: RayCluster, service: Service) -> None:
    """Kill the port of node three and wait until Ray has made it again."""
    killed = cluster.kill_worker("three", "ray::GraphPort")
    service.wait_until(lambda: killed not in cluster.workers("three").values(), HANG_S)
    service.wait_until(lambda: service.health()["status"] == "degraded", 30)  # as one of three is missing


def _bare_machines() -> dict[str, Any]:
    """cluster.yaml with what docs/ray.md puts in place of its machines."""
    (fragment,) = re.findall(r"```yaml\n(.*?)```", (PROJECT / "docs" / "ray.md").read_text(), re.DOTALL)
    of_a_cloud = ("provider", "max_workers", "idle_timeout_minutes", "head_node_type", "available_node_types")
    kept = {name: value for name, value in described_cluster().items() if name not in of_a_cloud}
    config: dict[str, Any] = kept | yaml.safe_load(fragment)
    return config


@pytest.mark.parametrize(
    "config", [described_cluster(), _bare_machines()], ids=["cluster.yaml", "bare machines"]
)
def test_the_cluster_launcher_takes_our_description(config: dict[str, Any]) -> None:
    filled = filled_by_ray(config)
    node_types = filled["available_node_types"].values()
    # the autoscaler takes a node for idle on which only actors without cores run
    databases = [one for one in node_types if "graphdb_shard" not in one["resources"]]
    assert sum(node_type["min_workers"] for node_type in databases) == 2, "and the head"
    assert sum(node_type["max_workers"] for node_type in node_types) == filled["max_workers"]
    for commands in (filled["head_start_ray_commands"], filled["worker_start_ray_commands"]):
        read_by_bash = subprocess.run(["bash", "-n"], input="\n".join(commands), text=True, check=False)
        assert read_by_bash.returncode == 0
        starts = [line for line in commands if "ray start" in line or "graphdb serve" in line]
        assert len(starts) == 2
        assert all("RAY_AUTH_MODE=token" in line for line in starts)


@pytest.mark.parametrize(("node_type", "starts"), [("node-2", True), ("shards", False)])
def test_machines_for_shards_have_no_database_node(node_type: str, starts: bool, tmp_path: Path) -> None:
    """The last command of a worker, with a sudo that only says what it is to run."""
    (tmp_path / "sudo").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "sudo").chmod(0o755)
    config = described_cluster()
    resources = json.dumps(config["available_node_types"][node_type]["resources"])
    done = subprocess.run(
        ["bash", "-c", config["worker_start_ray_commands"][-1]],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "HOME": "/home",
            "RAY_OVERRIDE_RESOURCES": resources,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("graphdb serve" in done.stdout) is starts
