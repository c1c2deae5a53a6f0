"""`PeerTransport`: a node's end of port 7002, for whoever owns its `RaftNode`."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future

import grpc.aio

from actors.loop_thread import LoopThread
from actors.raft.credentials import ClusterCredentials
from actors.raft.failures import decode_failure
from actors.raft.incoming_links import IncomingLinks, Serve
from actors.raft.outgoing_link import OutgoingLink
from actors.raft.raft_pb2 import Request
from actors.raft.raft_service import make_server
from actors.raft.rare_log import RareLog
from graphdb.errors import ConfigError, LogUnavailable
from graphdb.raft.message_codec import MESSAGE_BYTES_MAX, encode_envelope
from graphdb.raft.messages import Envelope

__all__ = ["PeerTransport"]

logger = logging.getLogger(__name__)

_STOP_GRACE_S = 0.2


class PeerTransport:
    """Sends messages to peers, hands received ones on, forwards requests. Methods may be called on any thread
    but the loop's, `send` on that too.

    Messages may be lost, when a peer is away or slow; they are neither doubled nor reordered on one
    connection. The loop must be the only one in the process that gRPC uses, and live
    as long as that: gRPC's callbacks know no other.
    """

    def __init__(
        self,
        loop_thread: LoopThread,
        node_id: int,
        address: str,
        credentials: ClusterCredentials,
        receive: Callable[[Envelope], None],
        serve: Serve,
    ) -> None:
        """address is where to listen, host:port. receive is called on the loop's thread and must not
        block; serve is a coroutine on the loop, see `IncomingLinks`.

        Raises ConfigError where an address beyond loopback has no credentials.
        """
        credentials.check_address(address)
        self._thread = loop_thread
        self._node_id = node_id
        self._address = address
        self._credentials = credentials
        self._log = RareLog(logger)
        self._incoming = IncomingLinks(node_id, credentials, receive, serve, self._log)
        self._links: dict[int, OutgoingLink] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._server: grpc.aio.Server | None = None

    def start(self) -> None:
        """Listen. Raises ConfigError where the address cannot be had."""
        self._thread.run(self._start())

    def close(self) -> None:
        """Stop listening and sending."""
        self._thread.run(self._stop())

    def update_peers(self, peers: Mapping[int, str]) -> None:
        """Send to these peers soon: their addresses by node id. This node's own does not count."""
        wanted = {node_id: address for node_id, address in peers.items() if node_id != self._node_id}
        self._thread.loop.call_soon_threadsafe(self._change_links, wanted)

    def send(self, envelopes: Iterable[Envelope]) -> None:
        """Send messages to the nodes that they are for; never waits. To nodes that are no peers: nothing."""
        outgoing: dict[int, list[bytes]] = {}
        for envelope in envelopes:
            self._incoming.cluster_id = envelope.cluster_id
            link = self._links.get(envelope.target.node_id)
            if link is not None and link.is_open:
                outgoing.setdefault(envelope.target.node_id, []).append(encode_envelope(envelope))
        for node_id, messages in outgoing.items():
            if (link := self._links.get(node_id)) is not None:
                link.send(messages)

    def reachable(self) -> frozenset[int]:
        """The node ids of the peers that messages go to."""
        return frozenset(node_id for node_id, link in self._links.items() if link.is_open)

    def dropped(self) -> int:
        """How many messages were dropped because peers were slow, for the links that there are."""
        return sum(link.dropped_count for link in self._links.values())

    def forward(
        self, node_id: int, operation: str, body: bytes, *, idempotency_key: str = "", timeout_s: float
    ) -> "Future[bytes]":
        """Have another node perform a request, at most once: the answer, or the error that it raised.

        LogUnavailable: it was not given to that node. OutcomeUnknown: it may have been; a client that retries
        needs its idempotency key.
        """
        request = Request(operation=operation, idempotency_key=idempotency_key, body=body)
        return asyncio.run_coroutine_threadsafe(self._forward(node_id, request, timeout_s), self._thread.loop)

    async def _forward(self, node_id: int, request: Request, timeout_s: float) -> bytes:
        link = self._links.get(node_id)
        if link is None:
            raise LogUnavailable(f"node {node_id} is no peer")
        if request.ByteSize() > MESSAGE_BYTES_MAX:
            raise LogUnavailable(f"a request of {request.ByteSize()} bytes cannot be forwarded")
        answer = await link.forward(request, timeout_s)
        if answer.HasField("failure"):
            raise decode_failure(answer.failure)
        return answer.body

    async def _start(self) -> None:
        exchange, forward = self._incoming.exchange, self._incoming.forward
        try:
            self._server = make_server(self._address, self._credentials, exchange, forward)
        except RuntimeError as error:
            raise ConfigError(f"cluster.address: cannot listen on {self._address}") from error
        await self._server.start()

    async def _stop(self) -> None:
        self._change_links({})
        await asyncio.gather(*self._ending)
        if self._server is not None:
            await self._incoming.close()
            await self._server.stop(_STOP_GRACE_S)

    def _change_links(self, wanted: Mapping[int, str]) -> None:
        links = dict(self._links)
        for node_id, link in self._links.items():
            if wanted.get(node_id) != link.address:
                del links[node_id]
                ending = self._thread.loop.create_task(link.close())
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)
        for node_id in wanted.keys() - links.keys():
            link = self._make_link(node_id, wanted[node_id])
            link.start()
            links[node_id] = link
        self._links = links  # replaced as a whole: `send` reads it on other threads

    def _make_link(self, node_id: int, address: str) -> OutgoingLink:
        loop = self._thread.loop
        return OutgoingLink(loop, self._node_id, node_id, address, self._credentials, self._log)
