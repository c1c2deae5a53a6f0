"""`Network`: nodes' ends of port 7002 over real gRPC on the loopback, all on one loop."""

from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from actors.loop_thread import LoopThread
from actors.raft.credentials import ClusterCredentials
from actors.raft.incoming_links import Forwarded
from actors.raft.peer_transport import PeerTransport
from benchmarks.service import free_port
from graphdb.raft.membership import PeerId
from graphdb.raft.messages import Envelope, ReadRequest
from tests.support.raft_cluster import eventually, network_loop

__all__ = ["CLUSTER_ID", "OPEN", "SECRET", "End", "Network", "connected", "echo", "envelope"]

SECRET = ClusterCredentials.of("a secret of the cluster")
OPEN = ClusterCredentials()
CLUSTER_ID = 77


async def echo(request: Forwarded) -> bytes:
    return request.body


class End:
    """A node's transport and what it has received."""

    def __init__(
        self,
        loop_thread: LoopThread,
        node_id: int,
        credentials: ClusterCredentials,
        serve: Callable[[Forwarded], Awaitable[bytes]] = echo,
        port: int = 0,
    ) -> None:
        self.node_id = node_id
        self.address = f"127.0.0.1:{port or free_port()}"
        self.received: list[Envelope] = []
        self.committed = (0, 0)  # what answers carry: a term that this node leads, and an index
        self.heard: list[tuple[int, int]] = []
        self.transport = PeerTransport(
            loop_thread,
            node_id,
            self.address,
            credentials,
            self.received.append,
            serve,
            lambda: self.committed,
            lambda term, index: self.heard.append((term, index)),
        )
        self.transport.start()

    def connect(self, *others: "End") -> None:
        self.transport.update_peers({other.node_id: other.address for other in others})

    def send(self, target: int, ticket: int, cluster_id: int = CLUSTER_ID) -> None:
        self.transport.send([envelope(self.node_id, target, ticket, cluster_id)])

    def tickets(self) -> list[int]:
        return [each.body.ticket for each in self.received if isinstance(each.body, ReadRequest)]

    def forward(self, target: int, body: bytes = b"body", timeout_s: float = 5) -> "Future[bytes]":
        return self.transport.forward(target, "update", body, idempotency_key="k", timeout_s=timeout_s)


def envelope(source: int, target: int, ticket: int, cluster_id: int = CLUSTER_ID) -> Envelope:
    return Envelope(cluster_id, 3, PeerId(source, 9), PeerId(target, 9), ReadRequest(ticket))


class Network:
    """Ends on one loop."""

    def __init__(self) -> None:
        self.loop_thread = network_loop()
        self._ends: list[End] = []

    def end(
        self,
        node_id: int,
        credentials: ClusterCredentials = OPEN,
        serve: Callable[[Forwarded], Awaitable[bytes]] = echo,
        port: int = 0,
    ) -> End:
        end = End(self.loop_thread, node_id, credentials, serve, port)
        self._ends.append(end)
        return end

    def stop(self, end: End) -> None:
        self._ends.remove(end)
        end.transport.close()

    def close(self) -> None:
        for end in self._ends:
            end.transport.close()


def connected(network: Network, credentials: ClusterCredentials = OPEN) -> tuple[End, End]:
    one, two = network.end(1, credentials), network.end(2, credentials)
    one.connect(two)
    two.connect(one)
    eventually(lambda: one.transport.reachable() == {2} and two.transport.reachable() == {1}, "connected")
    return one, two
