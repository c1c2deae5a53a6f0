"""`PeerTransport`: a node's end of port 7002, for whoever owns its `RaftNode`. `RelocatedPeers`: peers that
say they listen elsewhere than where this node knows them, and are answered there.

Such are a node that came back at another address, wiped or not; one that was added at one and runs at
another; and to a newcomer a leader that it was never told of. What a peer says of itself counts as long as it
speaks.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from ipaddress import ip_address

import grpc.aio

from actors.loop_thread import LoopThread
from actors.raft.credentials import ClusterCredentials
from actors.raft.incoming_links import IncomingLinks, Serve
from actors.raft.outgoing_link import OutgoingLink
from actors.raft.peer_protocol import decode_failure
from actors.raft.raft_pb2 import Request
from actors.raft.raft_service import make_server
from actors.raft.rate_limited_log import RateLimitedLog
from graphdb.config.service import split_address
from graphdb.errors import BodyTooLarge, ConfigError, LogUnavailable
from graphdb.raft.membership import ANY_INCARNATION, PeerId
from graphdb.raft.messages import MESSAGE_BYTES_MAX, Envelope, encode_envelopes

__all__ = ["RELOCATED_S", "PeerTransport", "RelocatedPeers"]

RELOCATED_S = 10.0
_RELOCATED_MAX = 16


class RelocatedPeers:
    """Used on one thread."""

    def __init__(self, credentials: ClusterCredentials, clock: Callable[[], float]) -> None:
        """clock gives seconds that never go back."""
        self._credentials = credentials
        self._clock = clock
        self._met: dict[PeerId, tuple[str, float]] = {}  # where, and when it was last heard

    @property
    def addresses(self) -> Mapping[PeerId, str]:
        """Where each of them is to be answered."""
        return {peer: address for peer, (address, _) in self._met.items()}

    def meet(self, peer: PeerId, address: str, known_address: str | None) -> bool:
        """A peer has spoken that says it listens at address; whether that has changed `addresses`."""
        if address == known_address or not self._may_be_called(address):
            return self._met.pop(peer, None) is not None
        if peer not in self._met and len(self._met) >= _RELOCATED_MAX:
            return False
        before, _ = self._met.get(peer, ("", 0.0))
        self._met[peer] = (address, self._clock())
        return before != address

    def expire(self) -> bool:
        """Forget those that are silent; whether there were any."""
        silent = [peer for peer, (_, heard_at) in self._met.items() if self._clock() > heard_at + RELOCATED_S]
        for peer in silent:
            del self._met[peer]
        return bool(silent)

    def _may_be_called(self, address: str) -> bool:
        try:
            host, _ = split_address(address)
            self._credentials.check_address(address)
        except (ValueError, ConfigError):
            return False
        try:
            return not ip_address(
                host.strip("[]")
            ).is_unspecified  # 0.0.0.0 is where it listens, not where it is
        except ValueError:
            return True  # a name


logger = logging.getLogger(__name__)

_LAST_ANSWER_S = 5.0  # of a node that is no peer any more, as one that was asked to remove itself
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
        committed: Callable[[], tuple[int, int]] = lambda: (0, 0),
        hear_commit: Callable[[int, int], None] = lambda term, index: None,
    ) -> None:
        """address is where to listen and where others reach this node, host:port. receive is called on the
        loop's thread and must not block; serve is a coroutine on the loop, see `IncomingLinks`.
        committed says what answers to others carry (`RaftDriver.committed`), hear_commit is told what
        answers of others carry.

        Raises ConfigError where an address beyond loopback has no credentials.
        """
        credentials.check_address(address)
        self._thread = loop_thread
        self._node_id = node_id
        self._address = address
        self._credentials = credentials
        self._log = RateLimitedLog(logger)
        self._incoming = IncomingLinks(node_id, credentials, receive, self._meet, serve, committed, self._log)
        self._hear_commit = hear_commit
        self._peers: Mapping[int, str] = {}
        self._relocated = RelocatedPeers(credentials, self._thread.loop.time)
        self._expiry: asyncio.TimerHandle | None = None
        self._links: dict[PeerId, OutgoingLink] = {}  # of any incarnation, and those of relocated_peers
        self._ending: set[asyncio.Task[None]] = set()
        self._server: grpc.aio.Server | None = None

    def start(self) -> None:
        """Listen. Raises ConfigError where the address cannot be had."""
        self._thread.run(self._start())

    def close(self) -> None:
        """Stop listening and sending."""
        self._thread.run(self._stop())

    def update_peers(self, peers: Mapping[int, str]) -> None:
        """Send to these peers soon: their addresses by node id. This node's own does not count.

        One that itself says it listens elsewhere is written to there, as long as it speaks.
        """
        self._thread.loop.call_soon_threadsafe(self._change_peers, dict(peers))

    def send(self, envelopes: Iterable[Envelope]) -> None:
        """Send messages to the nodes that they are for; never waits. To nodes that are no peers and have not
        spoken lately: nothing.
        """
        outgoing: dict[OutgoingLink, list[bytes]] = {}
        linked: list[tuple[OutgoingLink, Envelope]] = []
        for envelope in envelopes:
            self._incoming.cluster_id = envelope.cluster_id
            link = self._link_to(envelope.target)
            if link is not None:
                linked.append((link, envelope))
        encoded = encode_envelopes(envelope for _, envelope in linked)
        for (link, _), message in zip(linked, encoded, strict=True):
            outgoing.setdefault(link, []).append(message)
        for link, messages in outgoing.items():
            link.send(messages)

    def _link_to(self, target: PeerId) -> OutgoingLink | None:
        """The open link to this very incarnation of a node, else that to where the node is known to be."""
        links = self._links
        for peer in (target, PeerId(target.node_id, ANY_INCARNATION)):
            link = links.get(peer)
            if link is not None and link.is_open:
                return link
        return None

    def reachable(self) -> frozenset[int]:
        """The node ids of the peers that messages go to."""
        return frozenset(peer.node_id for peer, link in self._links.items() if link.is_open)

    def dropped(self) -> int:
        """How many messages were dropped because peers were slow, for the links that there are."""
        return sum(link.dropped_count for link in self._links.values())

    def forward(
        self, node_id: int, operation: str, body: bytes, *, idempotency_key: str = "", timeout_s: float
    ) -> "Future[bytes]":
        """Have another node perform a request, at most once: the answer, or the error that it raised.

        LogUnavailable, BodyTooLarge: it was not given to that node. OutcomeUnknown: it may have been; a
        client that retries needs its idempotency key.
        """
        request = Request(operation=operation, idempotency_key=idempotency_key, body=body)
        return asyncio.run_coroutine_threadsafe(self._forward(node_id, request, timeout_s), self._thread.loop)

    async def _forward(self, node_id: int, request: Request, timeout_s: float) -> bytes:
        links = [link for peer, link in self._links.items() if peer.node_id == node_id]
        if not links:
            raise LogUnavailable(f"node {node_id} is no peer")
        link = next((link for link in links if link.is_open), links[0])
        if request.ByteSize() > MESSAGE_BYTES_MAX:
            raise BodyTooLarge(MESSAGE_BYTES_MAX)
        answer = await link.forward(request, timeout_s)
        if answer.term:
            self._hear_commit(answer.term, answer.committed_index)
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
        await self._incoming.close()  # nobody is met any more
        if self._expiry is not None:
            self._expiry.cancel()
        if self._server is not None:
            await self._server.stop(_STOP_GRACE_S)
        self._change_links({}, None)
        await asyncio.gather(*self._ending)

    # on the loop

    def _change_peers(self, peers: Mapping[int, str]) -> None:
        self._peers = peers
        self._update_links()

    def _meet(self, peer: PeerId, address: str) -> None:
        if self._relocated.meet(peer, address, self._peers.get(peer.node_id)):
            self._update_links()
            self._expire_later()

    def _expire_later(self) -> None:
        if self._expiry is None and self._relocated.addresses:
            self._expiry = self._thread.loop.call_later(RELOCATED_S, self._expire_relocated)

    def _expire_relocated(self) -> None:
        self._expiry = None
        if self._relocated.expire():
            self._update_links()
        self._expire_later()

    def _update_links(self) -> None:
        known = {PeerId(node_id, ANY_INCARNATION): address for node_id, address in self._peers.items()}
        wanted = {**known, **self._relocated.addresses}
        self._change_links({peer: wanted[peer] for peer in wanted if peer.node_id != self._node_id})

    def _change_links(self, wanted: Mapping[PeerId, str], grace_s: float | None = _LAST_ANSWER_S) -> None:
        links = dict(self._links)
        for peer, link in self._links.items():
            if wanted.get(peer) != link.address:
                del links[peer]
                ending = self._thread.loop.create_task(link.close(grace_s))
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)
        for peer in wanted.keys() - links.keys():
            link = self._make_link(peer.node_id, wanted[peer])
            link.start()
            links[peer] = link
        self._links = links  # replaced as a whole: `send` reads it on other threads

    def _make_link(self, node_id: int, address: str) -> OutgoingLink:
        loop = self._thread.loop
        own_address = self._address
        return OutgoingLink(loop, self._node_id, node_id, address, own_address, self._credentials, self._log)
