"""`python -m tests.simulation.cluster_chaos --seconds 600 --seed 1`: real services under random faults.

The faults come in the order that the seed gives; what they meet is up to the machine, so a failure need not
show again. Every history is checked. The nodes' files are kept where anything was wrong.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.cluster_clients import ClusterClients
from tests.support.cluster_service import ClusterService
from tests.support.network import Network, why_unavailable

__all__ = ["Chaos", "main"]

_ROUND_S = 40.0  # clients work so long, then rest while everything is checked


class Chaos:
    """Faults for one cluster. Whatever is done to it, a majority of it may be had again."""

    def __init__(self, cluster: ClusterService, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self.done: Counter[str] = Counter()
        self._faults: list[Callable[[], None]] = [
            self.kill_one,
            self.kill_one,
            self.kill_all,
            self.pause_one,
            self.pause_most,
            self.stop_one,
            self.wipe_one,
            self.hand_over,
        ]
        if cluster.network is not None:
            self._faults += [self.isolate_one, self.isolate_one, self.cut_one_way, self.cut_all_ways]

    def strike(self) -> str:
        """One fault, and its end; what it was."""
        fault = self._rng.choice(self._faults)
        self.done[fault.__name__] += 1
        fault()
        return fault.__name__

    def kill_one(self) -> None:
        """kill -9 of a node, mostly the leader."""
        number = self._any()
        self._cluster.nodes[number].kill()
        self._linger()
        self._cluster.start(number)

    def kill_all(self) -> None:
        for node in self._cluster.nodes.values():
            node.kill()
        self._cluster.start()

    def stop_one(self) -> None:
        """As in a rolling restart."""
        number = self._any()
        self._cluster.nodes[number].stop()
        self._cluster.start(number)

    def wipe_one(self) -> None:
        """A disk is lost; only while all is well, as it takes the promises of this node with it."""
        self._cluster.await_healthy()
        number = self._any()
        self._cluster.nodes[number].kill()
        self._cluster.wipe(number)
        self._cluster.start(number)
        self._cluster.await_voting(number)

    def pause_one(self) -> None:
        self._pause([self._any()])

    def pause_most(self) -> None:
        self._pause(self._rng.sample(sorted(self._cluster.nodes), 2))

    def hand_over(self) -> None:
        self._cluster.lead(self._rng.choice(self._cluster.followers()))

    def isolate_one(self) -> None:
        self._network.isolate(self._any())
        self._linger()
        self._network.heal()

    def cut_one_way(self) -> None:
        """One node is not heard by another."""
        self._network.cut(*self._rng.sample(sorted(self._cluster.nodes), 2))
        self._linger()
        self._network.heal()

    def cut_all_ways(self) -> None:
        """Nobody hears anybody."""
        for number in self._cluster.nodes:
            self._network.isolate(number)
        self._linger()
        self._network.heal()

    def _pause(self, numbers: list[int]) -> None:
        for number in numbers:
            self._cluster.nodes[number].pause()
        self._linger()
        for number in numbers:
            self._cluster.nodes[number].resume()

    @property
    def _network(self) -> Network:
        assert self._cluster.network is not None
        return self._cluster.network

    def _any(self) -> int:
        if self._rng.random() < 0.6:
            return self._cluster.leader()
        return self._rng.choice(sorted(self._cluster.nodes))

    def _linger(self) -> None:
        time.sleep(self._rng.uniform(0.2, 5))


def run_round(cluster: ClusterService, chaos: Chaos, seed: int, until: float) -> str:
    """Clients and faults for a while, then every check. Raises AssertionError."""
    urls = {number: node.url for number, node in cluster.nodes.items()}
    struck = []
    with ClusterClients(urls, seed) as clients:
        ends = min(until, time.monotonic() + _ROUND_S)
        while time.monotonic() < ends:
            time.sleep(1)
            struck.append(chaos.strike())
        cluster.repair()
    clients.check()
    quads = len(cluster.await_same_dumps())
    return (
        f"{', '.join(struck)}: {len(clients.history)} operations, {len(clients.confirmed_at)} writes, "
        f"{clients.refused} refused, longest silence {clients.longest_silence_s():.1f} s; {quads} quads"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.cluster_chaos")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=3)
    options = parser.parse_args()
    if missing := why_unavailable():
        print(f"without cuts of the network: {missing}")
    directory = Path(tempfile.mkdtemp(prefix="cluster-chaos-"))
    network = None if missing else Network()
    cluster = ClusterService(directory, options.nodes, network)
    chaos = Chaos(cluster, random.Random(options.seed))
    try:
        _run(cluster, chaos, options.seed, options.seconds)
    except BaseException:
        print(f"the nodes' files are in {directory}; faults until then: {dict(chaos.done)}")
        raise
    finally:
        cluster.close()
        if network is not None:
            network.close()
    print(f"every history was linearizable; faults: {dict(chaos.done)}")
    shutil.rmtree(directory)
    return 0


def _run(cluster: ClusterService, chaos: Chaos, seed: int, seconds: float) -> None:
    cluster.start()
    cluster.await_healthy()
    began = time.monotonic()
    number = 0
    while time.monotonic() < began + seconds:
        told = run_round(cluster, chaos, seed * 1_000 + number, began + seconds)
        print(f"{time.monotonic() - began:.0f} s: {told}", flush=True)
        number += 1


if __name__ == "__main__":
    sys.exit(main())
