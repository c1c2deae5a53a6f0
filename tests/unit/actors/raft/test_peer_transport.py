"""Two nodes' ends of port 7002 over real gRPC on the loopback, and what others may try on it."""

import asyncio
import logging
import re
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest

from actors.loop_thread import LoopThread
from actors.raft import incoming_links, outgoing_link, peer_transport, visitors
from actors.raft.credentials import ClusterCredentials, TlsFiles
from actors.raft.incoming_links import Forwarded
from actors.raft.peer_transport import PeerTransport
from actors.raft.pieces import FRAME_BYTES_MAX, frames_of
from actors.raft.proofs import PROTOCOL_VERSION, Handshake
from actors.raft.raft_pb2 import Frame, Greeting, Opening, Piece, Proof, Request
from actors.raft.raft_service import FrameCall, make_channel, open_call
from actors.raft.visitors import Visitors
from benchmarks.service import free_port
from graphdb.errors import BodyTooLarge, ConfigError, LogUnavailable, NotLeader, OutcomeUnknown
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.membership import PeerId
from graphdb.raft.message_codec import encode_envelope
from graphdb.raft.messages import Append, Envelope, Hello, ReadRequest
from tests.support.certificate import certificate_and_key, needs_openssl
from tests.support.raft_cluster import eventually, network_loop, raft_cluster

SECRET = ClusterCredentials.of("a secret of the cluster")
OTHER_SECRET = ClusterCredentials.of("a secret of strangers")
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
        self.transport = PeerTransport(
            loop_thread, node_id, self.address, credentials, self.received.append, serve
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


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()


def connected(network: Network, credentials: ClusterCredentials = OPEN) -> tuple[End, End]:
    one, two = network.end(1, credentials), network.end(2, credentials)
    one.connect(two)
    two.connect(one)
    eventually(lambda: one.transport.reachable() == {2} and two.transport.reachable() == {1}, "connected")
    return one, two


def tls(directory: Path) -> ClusterCredentials:
    directory.mkdir()
    certificate, key = (path.read_bytes() for path in certificate_and_key(directory))
    return ClusterCredentials.of(None, TlsFiles(certificate, key, certificate))


# messages


@pytest.mark.parametrize("credentials", [OPEN, SECRET], ids=["open", "secret"])
def test_messages_arrive_in_order(network: Network, credentials: ClusterCredentials) -> None:
    one, two = connected(network, credentials)
    for ticket in range(2000):
        one.send(2, ticket)
    eventually(lambda: len(two.received) == 2000, "all arrive")
    assert two.tickets() == list(range(2000))
    assert two.received[5] == envelope(1, 2, 5)
    assert one.transport.dropped() == 0


@pytest.mark.parametrize("credentials", [OPEN, SECRET], ids=["open", "secret"])
def test_a_message_larger_than_a_piece_arrives_whole(
    network: Network, credentials: ClusterCredentials
) -> None:
    one, two = connected(network, credentials)
    entry = LogEntry(1, 1, EntryKind.CHANGES, bytes(16), 0, bytes(range(256)) * 20_000)
    large = Envelope(CLUSTER_ID, 3, PeerId(1, 9), PeerId(2, 9), Append(0, 0, 0, 0, (entry,)))
    one.transport.send([large])
    one.send(2, 8)
    eventually(lambda: len(two.received) == 2, "both arrive")
    assert two.received[0] == large


def test_a_peer_that_comes_back_is_reached_again(network: Network) -> None:
    one, two = connected(network)
    port = int(two.address.rpartition(":")[2])
    network.stop(two)
    eventually(lambda: one.transport.reachable() == frozenset(), "it is noticed")
    one.send(2, 1)  # nobody is there: lost
    two = network.end(2, port=port)
    eventually(lambda: one.transport.reachable() == {2}, "it is reached again", 10)
    one.send(2, 2)
    eventually(lambda: two.tickets() == [2], "it is sent to")


def test_peers_come_and_go(network: Network) -> None:
    one, two = connected(network)
    three = network.end(3)
    one.connect(three)
    eventually(lambda: one.transport.reachable() == {3}, "the new one only")
    one.transport.send([envelope(1, 2, 1), envelope(1, 3, 2)])
    eventually(lambda: three.tickets() == [2], "sent to the new one")
    assert two.tickets() == []


def test_a_port_that_is_taken_is_an_error_of_the_configuration(network: Network) -> None:
    one = network.end(1)
    with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1"):
        network.end(2, port=int(one.address.rpartition(":")[2]))


def test_beyond_loopback_there_must_be_credentials(network: Network) -> None:
    with pytest.raises(ConfigError, match="needs TLS files or a secret"):
        PeerTransport(network.loop_thread, 1, "10.0.0.1:7002", OPEN, print, echo)


def test_a_slow_network_does_not_keep_the_sender_waiting(network: Network) -> None:
    """While nothing moves, what does not fit is dropped, oldest first; then it goes on with the newest."""
    one, two = connected(network)
    network.loop_thread.loop.call_soon_threadsafe(time.sleep, 3)
    began_at = time.monotonic()
    for ticket in range(30_000):
        one.send(2, ticket)
    assert time.monotonic() < began_at + 2.5
    assert one.transport.dropped() > 10_000
    eventually(lambda: two.tickets()[-1:] == [29_999], "the newest arrive")
    assert two.tickets() == sorted(two.tickets())


# who is let in


@pytest.mark.parametrize(
    ("credentials", "reason"),
    [(OTHER_SECRET, "another secret"), (OPEN, "another secret")],
    ids=["another secret", "none"],
)
def test_another_secret_is_refused_on_both_sides(
    network: Network, credentials: ClusterCredentials, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = network.end(1, SECRET), network.end(2, credentials)
    one.connect(two)
    two.connect(one)
    eventually(lambda: reason in caplog.text, "a line in the log")
    time.sleep(0.5)
    assert one.transport.reachable() == two.transport.reachable() == frozenset()
    assert len(caplog.records) <= 4
    assert "a secret of" not in caplog.text


@needs_openssl
def test_tls(network: Network, tmp_path: Path) -> None:
    one, two = connected(network, tls(tmp_path / "ours"))
    one.send(2, 4)
    eventually(lambda: two.tickets() == [4], "it arrives")
    assert one.forward(2, b"request").result(5) == b"request"


@needs_openssl
@pytest.mark.parametrize("stranger", ["open", "other certificate"])
def test_tls_lets_no_stranger_in(
    network: Network,
    tmp_path: Path,
    stranger: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(outgoing_link, "_CONNECT_TIMEOUT_S", 0.5)
    one = network.end(1, tls(tmp_path / "ours"))
    two = network.end(2, OPEN if stranger == "open" else tls(tmp_path / "theirs"))
    one.connect(two)
    two.connect(one)
    time.sleep(2)
    assert re.search(r"node [12] at 127\.0\.0\.1:\d+: UNAVAILABLE: ", caplog.text)
    assert one.transport.reachable() == two.transport.reachable() == frozenset()


@needs_openssl
def test_a_cluster_with_tls_and_a_secret(tmp_path: Path) -> None:
    files = tls(tmp_path / "ours").tls
    with raft_cluster(tmp_path, ClusterCredentials.of("a secret of the cluster", files)) as cluster:
        cluster.leader().propose("a").result(5)
        for peer in cluster.peers.values():
            eventually(lambda: peer.machine.payloads == ["a"], "applied")  # noqa: B023


def test_messages_of_another_cluster_are_refused(network: Network, caplog: pytest.LogCaptureFixture) -> None:
    one, two = connected(network)
    two.send(1, 1)
    eventually(lambda: one.tickets() == [1], "two belongs to the cluster")
    one.send(2, 2, cluster_id=78)
    eventually(lambda: "a message of another cluster" in caplog.text, "it is refused")
    assert two.tickets() == []


def test_a_node_without_a_cluster_is_heard(network: Network) -> None:
    one, two = connected(network)
    two.send(1, 1)
    hello = Envelope(0, 0, PeerId(1, 9), PeerId(2, 0), Hello("127.0.0.1:1", 0))
    one.transport.send([hello])
    eventually(lambda: two.received == [hello], "it is heard")


# who is elsewhere than known


def test_a_peer_at_another_address_is_answered_there(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_transport, "VISIT_S", 0.3)
    monkeypatch.setattr(visitors, "VISIT_S", 0.3)
    one, before, after = network.end(1), network.end(2), network.end(2)
    one.connect(before)
    after.connect(one)
    eventually(lambda: one.transport.reachable() == {2} and after.transport.reachable() == {1}, "connected")

    def is_answered() -> bool:
        after.send(1, 5)
        one.send(2, 6)
        return bool(after.tickets())

    eventually(is_answered, "it is answered where it is")
    other_life = replace(envelope(1, 2, 7), target=PeerId(2, 10))
    one.transport.send([other_life])
    eventually(lambda: 7 in before.tickets(), "another life of it is where it was")
    network.stop(after)  # it says nothing more

    def is_known_again() -> bool:
        one.send(2, 8)
        return 8 in before.tickets()

    eventually(is_known_again, "it is looked for where it is known to be")


def test_a_node_without_an_address_of_ours_is_answered(network: Network) -> None:
    one, two = network.end(1), network.end(2)
    two.connect(one)
    eventually(lambda: two.transport.reachable() == {1}, "connected")

    def is_answered() -> bool:
        two.send(1, 5)
        one.send(2, 6)
        return bool(two.tickets())

    eventually(is_answered, "it is answered")
    assert one.forward(2, b"request").result(5) == b"request"


def test_a_hello_is_handed_on(network: Network) -> None:
    one, two, three = network.end(1), network.end(2), network.end(3)
    two.connect(one)
    eventually(lambda: two.transport.reachable() == {1}, "connected")
    hello = Envelope(0, 0, PeerId(3, 9), PeerId(1, 9), Hello(three.address, 0))
    two.transport.send([hello])
    eventually(lambda: one.received == [hello], "it is heard")

    def is_answered() -> bool:
        one.transport.send([envelope(1, 3, 4, cluster_id=0)])
        return bool(three.tickets())

    eventually(is_answered, "who has said it is answered")
    assert two.transport.reachable() == {1}


@pytest.mark.parametrize("address", ["", "nowhere", "0.0.0.0:7002", "[::]:7002", "10.0.0.1:7002", "a:0"])
def test_an_address_that_is_none_is_not_called(address: str) -> None:
    met = Visitors(OPEN, lambda: 0.0)
    assert not met.meet(PeerId(2, 9), address, "127.0.0.1:7002")
    assert met.addresses == {}


def test_so_many_visitors_and_no_more() -> None:
    met = Visitors(SECRET, lambda: 0.0)
    changed = [met.meet(PeerId(2, life), "10.0.0.1:7002", None) for life in range(1, 30)]
    assert changed == [True] * 16 + [False] * 13


# strangers with a connection


class Stranger:
    """Calls a node by hand."""

    def __init__(self, network: Network, target: End, credentials: ClusterCredentials = OPEN) -> None:
        self._network = network
        self._target = target
        self._key = credentials.key

    def exchange(self, frames: list[Frame], handshake: bool = True) -> str:
        """What it is refused with; after a good greeting or as the first frames."""
        return self._network.loop_thread.run(self.call("Exchange", frames, handshake))

    def forward(self, frames: list[Frame]) -> str:
        """What it is refused with."""
        return self._network.loop_thread.run(self.call("Forward", frames))

    async def call(self, method: str, frames: list[Frame], handshake: bool = False) -> str:
        """The same on the loop; empty where nothing is refused."""
        channel = make_channel(self._target.address, OPEN)
        try:
            call = open_call(channel, method)
            async with asyncio.timeout(15):
                if handshake:
                    await self.greet(call)
                for frame in frames:
                    await call.write(frame)
                await call.done_writing()
                while isinstance(await call.read(), Frame):
                    pass
                return await call.details() or ""
        except grpc.aio.AioRpcError as error:
            return error.details() or ""
        except asyncio.InvalidStateError:  # refused while it still writes
            return await call.details() or ""
        finally:
            await channel.close()

    async def greet(self, call: FrameCall) -> None:
        """A good greeting, up to the proof."""
        await call.write(greeting(target=self._target.node_id))
        challenge = await call.read()
        assert isinstance(challenge, Frame)
        nonce = challenge.challenge.nonce
        self.handshake = Handshake(self._key, 5, self._target.node_id, bytes(32), nonce)
        await call.write(Frame(proof=Proof(proof=self.handshake.caller_proof())))


def greeting(version: int = PROTOCOL_VERSION, source: int = 5, target: int = 1, nonce: int = 32) -> Frame:
    return Frame(
        greeting=Greeting(protocol_version=version, source=source, target=target, nonce=bytes(nonce))
    )


def message(data: bytes) -> list[Frame]:
    return [Frame(piece=Piece(data=data, last=True))]


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([Frame()], "no greeting"),
        (message(b"x"), "no greeting"),
        ([greeting(nonce=31)], "no greeting"),
        ([greeting(version=2)], "protocol version 2, this is 1"),
        ([greeting(target=2)], "from 5 to 2, this is node 1"),
        ([greeting(source=1)], "from 1 to 1, this is node 1"),
        ([greeting(), message(b"x")[0]], "another secret"),
        ([greeting(), Frame(proof=Proof(proof=bytes(32)))], "another secret"),
        ([greeting(), Frame(proof=Proof())], "another secret"),
    ],
)
def test_a_greeting_that_is_none_is_refused(network: Network, frames: list[Frame], reason: str) -> None:
    assert Stranger(network, network.end(1, SECRET)).exchange(frames, handshake=False) == reason


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        (message(b"garbage"), "cut short"),
        (message(b"G" * 200), "not a message of this version"),
        (message(encode_envelope(envelope(5, 1, 1))[:-1]), "cut short"),
        (message(encode_envelope(envelope(6, 1, 1))), "a message of another node"),
        (message(encode_envelope(envelope(5, 2, 1))), "a message for another node"),
        ([greeting()], "a frame that is not a piece of a message"),
        ([Frame(piece=Piece(data=b"", last=False))], "an empty piece"),
        ([Frame(piece=Piece(data=bytes(1 << 20)))] * 161, "a message of more than 167772160 bytes"),
    ],
    ids=["garbage", "magic", "cut", "source", "target", "kind", "empty", "oversized"],
)
def test_a_message_that_is_none_ends_the_connection(
    network: Network, frames: list[Frame], reason: str
) -> None:
    one = network.end(1)
    assert Stranger(network, one).exchange(frames) == reason
    assert one.received == []


def test_a_frame_larger_than_a_piece_is_not_even_read(network: Network) -> None:
    frame = Frame(piece=Piece(data=bytes(FRAME_BYTES_MAX)))
    refusal = Stranger(network, network.end(1, SECRET)).exchange([frame], handshake=False)
    assert "larger than max" in refusal


def test_pieces_without_their_marks_are_refused(network: Network) -> None:
    stranger = Stranger(network, network.end(1, SECRET), SECRET)
    assert stranger.exchange(message(encode_envelope(envelope(5, 1, 1)))) == "a piece whose MAC does not hold"


def test_frames_that_are_no_protobuf_are_refused(network: Network) -> None:
    one, two = connected(network)

    async def call() -> str:
        channel = make_channel(two.address, OPEN)
        try:
            method: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
            method = channel.stream_stream("/graphdb.raft.v1.Raft/Exchange")
            call = method()
            await call.write(b"\xff" * 50)
            await call.read()
            return await call.details() or ""
        except grpc.aio.AioRpcError as error:
            return error.details() or ""
        finally:
            await channel.close()

    assert network.loop_thread.run(call()) == "a frame that is none"
    one.send(2, 1)
    eventually(lambda: two.tickets() == [1], "it goes on")


def test_a_request_without_a_session_is_refused(network: Network) -> None:
    opening = Frame(opening=Opening(session=bytes(32), number=1))
    assert Stranger(network, network.end(1)).forward([opening]) == "a request without a session"


def test_bytes_that_are_not_grpc_do_no_harm(network: Network) -> None:
    one, two = connected(network)
    host, _, port = two.address.rpartition(":")
    for garbage in [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(100_000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"x" * 999,
    ]:
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(garbage)
    one.send(2, 1)
    eventually(lambda: two.tickets() == [1], "it goes on")


def test_greetings_are_limited_and_connected_peers_go_on(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming_links, "_GREETINGS_PER_S", 0.01)
    one, two = connected(network)
    stranger = Stranger(network, two)
    refusals = Counter(stranger.exchange([], handshake=False) for _ in range(101))
    assert refusals == {"the stream ends early": 99, "too many greetings": 2}
    one.send(2, 1)
    eventually(lambda: two.tickets() == [1], "it goes on")


# requests


@pytest.mark.parametrize("size", [0, 1, 5 << 20])
def test_a_request_is_performed_by_the_other_node(network: Network, size: int) -> None:
    seen: list[Forwarded] = []

    async def serve(request: Forwarded) -> bytes:
        seen.append(request)
        return request.body + b"!"

    one, two = network.end(1, SECRET), network.end(2, SECRET, serve)
    one.connect(two)
    eventually(lambda: one.transport.reachable() == {2}, "connected")
    body = b"x" * size
    assert one.forward(2, body).result(5) == body + b"!"
    assert seen == [Forwarded(1, "update", "k", body)]


def test_many_requests_at_once(network: Network) -> None:
    one, _ = connected(network, SECRET)
    futures = [one.forward(2, str(number).encode()) for number in range(200)]
    assert [future.result(10) for future in futures] == [str(number).encode() for number in range(200)]


def raising(error: Exception) -> Callable[[Forwarded], Awaitable[bytes]]:
    async def serve(request: Forwarded) -> bytes:
        raise error

    return serve


def test_an_error_of_the_other_node_comes_back_as_itself(network: Network) -> None:
    one, two = network.end(1), network.end(2, OPEN, raising(NotLeader("no", 3, 7)))
    one.connect(two)
    eventually(lambda: one.transport.reachable() == {2}, "connected")
    with pytest.raises(NotLeader) as caught:
        one.forward(2).result(5)
    assert caught.value.args == ("no", 3, 7)


def test_a_fault_of_the_other_node_leaves_the_outcome_unknown(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = network.end(1), network.end(2, OPEN, raising(ZeroDivisionError("its own business")))
    one.connect(two)
    eventually(lambda: one.transport.reachable() == {2}, "connected")
    with pytest.raises(OutcomeUnknown, match=r"^the node that was asked has failed: "):
        one.forward(2).result(5)
    assert "its own business" in caplog.text


def test_a_request_that_is_too_large_is_refused_at_once(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_transport, "MESSAGE_BYTES_MAX", 1000)
    one, _ = connected(network)
    with pytest.raises(BodyTooLarge) as caught:
        one.forward(2, bytes(1000)).result(5)
    assert caught.value.limit_bytes == 1000
    assert one.forward(2, bytes(900)).result(5) == bytes(900)


def test_a_request_to_nobody_is_not_sent(network: Network) -> None:
    one, two = connected(network)
    network.stop(two)
    eventually(lambda: one.transport.reachable() == frozenset(), "it is noticed")
    for node_id in [2, 3]:
        with pytest.raises(LogUnavailable):
            one.forward(node_id).result(5)


@pytest.mark.parametrize("end", ["time", "death", "removal"])
def test_a_request_without_an_answer_has_an_unknown_outcome(network: Network, end: str) -> None:
    taken: list[Forwarded] = []

    async def serve(request: Forwarded) -> bytes:
        taken.append(request)
        await asyncio.sleep(60)
        raise AssertionError

    one, two = network.end(1), network.end(2, OPEN, serve)
    one.connect(two)
    eventually(lambda: one.transport.reachable() == {2}, "connected")
    future = one.forward(2, timeout_s=0.5 if end == "time" else 30)
    eventually(lambda: len(taken) == 1, "taken")
    if end == "death":
        network.stop(two)
    if end == "removal":
        one.transport.update_peers({})
    with pytest.raises(OutcomeUnknown):
        future.result(5)
    assert len(taken) == 1


def test_a_request_that_is_repeated_by_somebody_is_refused(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever overhears a session without TLS can send its bytes again."""
    served: list[Forwarded] = []

    async def serve(request: Forwarded) -> bytes:
        served.append(request)
        return b""

    one = network.end(1, SECRET, serve)
    stranger = Stranger(network, one, SECRET)

    async def attempt() -> None:
        channel = make_channel(one.address, OPEN)
        exchange = open_call(channel, "Exchange")
        await stranger.greet(exchange)
        session = stranger.handshake
        opening = Frame(opening=Opening(session=session.called_nonce, number=1))
        request = Request(operation="update", body=b"x").SerializeToString()
        frames = [opening, *frames_of(request, session.request_marker(1))]
        await asyncio.sleep(0.5)  # the session begins when the proof has arrived
        assert await stranger.call("Forward", frames) == ""
        assert await stranger.call("Forward", frames) != ""
        exchange.cancel()
        await channel.close()

    network.loop_thread.run(attempt())
    assert len(served) == 1
    assert "a request whose number was used" in caplog.text


@pytest.fixture(autouse=True)
def warnings_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
