"""`ClusterService`: several real `graphdb serve`s that are one cluster, for tests that break them."""

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

from tests.support.network import Network
from tests.support.service import Service, free_port
from tests.support.timing import HANG_S

__all__ = ["ClusterService"]

SECRET = "a secret of this cluster"
START_S = 180  # three at once on two cores
_LOOK_S = 0.05


class ClusterService:
    """Nodes by number from 1, each with a data directory of its own below one. close() it at last.

    On a network each node is on a machine of its own, else all are on the loopback.
    """

    def __init__(
        self, directory: Path, size: int = 3, network: Network | None = None, search: bool = False
    ) -> None:
        """Nothing is started yet."""
        self.network = network
        self._search = search
        self.nodes: dict[int, Service] = {}
        self._directory = directory
        self._addresses: dict[int, str] = {}
        self._founders = range(1, size + 1)
        for number in self._founders:
            self._addresses[number] = self._fresh_address(number)
        for number in self._founders:
            self.nodes[number] = self._make(number)

    def start(self, *numbers: int) -> "ClusterService":
        """Start these nodes, or all, and wait until each serves.

        The next begins when the last has its port: Ray gives up where several start on few cores at once.
        """
        for number in numbers or self.nodes:
            node = self.nodes[number].start(wait=False)
            node.wait_until(lambda node=node: bool(node.health()), START_S)
        self.await_serving(*numbers)
        return self

    def await_serving(self, *numbers: int) -> None:
        """Wait until these nodes, or all, answer requests."""
        for number in numbers or self.nodes:
            node = self.nodes[number]
            node.wait_until(lambda node=node: is_serving(node), START_S)

    def await_healthy(self) -> None:
        """Wait until every node says that it is healthy, which takes all of them."""
        for node in self.nodes.values():
            node.wait_ready(START_S)

    def repair(self) -> None:
        """Undo what faults there still are, and wait until all is well."""
        if self.network is not None:
            self.network.heal()
        for number in [number for number in self.nodes if number not in self._founders]:
            self.forget_node(number)
            self.remove(number)
        for node in self.nodes.values():
            if node.is_running:
                node.resume()
        stopped = [number for number, node in self.nodes.items() if not node.is_running]
        if stopped:
            self.start(*stopped)
        self.await_healthy()

    def await_voting(self, number: int) -> None:
        """Wait until every node knows that this one is a member with a vote, and is healthy."""
        for node in self.nodes:
            self.nodes[node].wait_until(lambda node=node: number in self._voters(node), START_S)
        self.await_healthy()

    def _voters(self, number: int) -> set[int]:
        members = self.report(number)["members"]
        return {member["node_id"] for member in members if member["role"] != "learner"}

    def add_node(self, number: int) -> Service:
        """A further node, which knows the others; it is neither started nor told to them."""
        self._addresses[number] = self._fresh_address(number)
        self.nodes[number] = self._make(number)
        return self.nodes[number]

    def forget_node(self, number: int) -> None:
        """End a node for good, with all it has."""
        self.nodes[number].close()
        shutil.rmtree(self.nodes.pop(number).data_dir)
        del self._addresses[number]
        if self.network is not None:
            self.network.remove(number)

    def replace_node(self, number: int) -> None:
        """In place of a node one that has nothing and listens for its peers elsewhere; it is not started."""
        self.nodes[number].close()
        shutil.rmtree(self.nodes[number].data_dir)
        self._addresses[number] = f"{self._addresses[number].partition(':')[0]}:{free_port()}"
        self.nodes[number] = self._make(number)

    def wipe(self, number: int) -> None:
        """Delete the data directory of a node that does not run."""
        assert not self.nodes[number].pids(), "it runs"
        shutil.rmtree(self.nodes[number].data_dir)

    def peer_address(self, number: int) -> str:
        """Where a node listens for the others."""
        return self._addresses[number]

    def leader(self, *among: int) -> int:
        """The one node that leads, by what these nodes (or all) say of themselves; waits for it."""
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            leading = [number for number in among or tuple(self.nodes) if self._leads(number)]
            if len(leading) == 1:
                return leading[0]
            time.sleep(_LOOK_S)
        raise AssertionError("nobody leads, or more than one does")

    def followers(self) -> list[int]:
        """The nodes that do not lead."""
        leader = self.leader()
        return [number for number in self.nodes if number != leader]

    def lead(self, number: int) -> None:
        """Have a node lead."""
        url = f"{self.nodes[number].url}/cluster/leader"
        answer = httpx.post(url, json={"node_id": number}, timeout=HANG_S, trust_env=False)
        assert answer.status_code == 200, answer.text

    def remove(self, number: int) -> None:
        """Have a node be no member any more."""
        url = f"{self.nodes[self.leader()].url}/cluster/members/{number}"
        answer = httpx.delete(url, timeout=HANG_S, trust_env=False)
        assert answer.status_code == 200, answer.text

    def report(self, number: int) -> dict[str, Any]:
        """GET /cluster."""
        answer: dict[str, Any] = httpx.get(
            f"{self.nodes[number].url}/cluster", timeout=5, trust_env=False
        ).json()
        return answer

    def await_applied(self, *numbers: int) -> None:
        """Wait until these nodes, or all, have applied what is committed; they are healthy before."""
        index = self.report(self.leader())["commit_index"]
        for number in numbers or self.nodes:
            self.nodes[number].wait_until(
                lambda number=number: self.report(number)["applied_index"] >= index, START_S
            )

    def await_same_dumps(self) -> list[str]:
        """Wait until every node has applied what is committed; their quads, which must be the same."""
        self.await_applied()
        dumps = {number: self._dump(number) for number in self.nodes}
        first = next(iter(dumps.values()))
        for number, dump in dumps.items():
            assert dump == first, f"node {number} differs: {_difference(first, dump)}"
        return first

    def close(self) -> None:
        """End every node, however it is; all at once, for one alone would look for another to lead."""
        running = [node for node in self.nodes.values() if node.is_running]
        for node in running:
            node.resume()
            os.kill(node.command_pid, signal.SIGTERM)
        for node in self.nodes.values():
            node.close()

    def _fresh_address(self, number: int) -> str:
        if self.network is None:
            return f"127.0.0.1:{free_port()}"
        self.network.add(number)
        return f"{self.network.address(number)}:{free_port()}"

    def _make(self, number: int) -> Service:
        others = [f"{other}@{address}" for other, address in self._addresses.items() if other != number]
        environment = {
            "GRAPHDB_CLUSTER__ENABLED": "true",
            "GRAPHDB_CLUSTER__NODE_ID": str(number),
            "GRAPHDB_CLUSTER__ADDRESS": self._addresses[number],
            "GRAPHDB_CLUSTER__PEERS": json.dumps(others),
            "GRAPHDB_CLUSTER__SECRET": SECRET,
            "GRAPHDB_READERS__COUNT": "1",
            "GRAPHDB_SECURITY__WEBHOOK_ALLOW": json.dumps(["127.0.0.1", "198.18.0.0/15"]),
            "GRAPHDB_SEARCH__NODE_NAME": f"n{number}",
        }
        data_dir = self._directory / f"node{number}"
        port = self.nodes[number].port if number in self.nodes else None
        if self.network is None:
            return Service(data_dir, port=port, search=self._search, environment=environment)
        environment["GRAPHDB_SERVER__ALLOW_UNAUTHENTICATED_NETWORK_ACCESS"] = "true"
        host, within = self.network.address(number), self.network.within(number)
        return Service(
            data_dir, port=port, host=host, search=self._search, environment=environment, within=within
        )

    def _leads(self, number: int) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return bool(self.nodes[number].health()["role"] == "leader")
        return False

    def _dump(self, number: int) -> list[str]:
        """Every quad of a node, a line each, in order."""
        answer = httpx.get(
            f"{self.nodes[number].url}/data?dataset=all",
            headers={"Accept": "application/n-quads"},
            timeout=120,
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        return sorted(answer.text.splitlines())


def is_serving(node: Service) -> bool:
    """Whether /health answers 200."""
    return httpx.get(f"{node.url}/health", timeout=5, trust_env=False).status_code == 200


def _difference(one: Iterable[str], other: Iterable[str]) -> str:
    left, right = set(one), set(other)
    return f"without {sorted(left - right)[:3]}, with {sorted(right - left)[:3]}"
