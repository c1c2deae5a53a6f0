"""Who is let in on port 7002, and what others may try on it."""

import asyncio
import re
import socket
import time
from collections import Counter
from pathlib import Path

import grpc.aio
import pytest

from actors.raft import incoming_links, outgoing_link
from actors.raft.credentials import ClusterCredentials, TlsFiles
from actors.raft.incoming_links import Forwarded
from actors.raft.peer_protocol import FRAME_BYTES_MAX, PROTOCOL_VERSION, Handshake, frames_of
from actors.raft.raft_pb2 import Frame, Greeting, Opening, Piece, Proof, Request
from actors.raft.raft_service import FrameCall, make_channel, open_call
from graphdb.raft.membership import PeerId
from graphdb.raft.messages import Envelope, Hello, encode_envelope
from tests.support.certificate import certificate_and_key, needs_openssl
from tests.support.peer_ends import OPEN, SECRET, End, Network, connected, envelope
from tests.support.raft_cluster import eventually, raft_cluster
from tests.support.timing import HANG_S

OTHER_SECRET = ClusterCredentials.of("a secret of strangers")


def tls(directory: Path) -> ClusterCredentials:
    directory.mkdir()
    certificate, key = (path.read_bytes() for path in certificate_and_key(directory))
    return ClusterCredentials.of(None, TlsFiles(certificate, key, certificate))


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
    assert one.forward(2, b"request").result(HANG_S) == b"request"


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
    refusal = re.compile(r"node [12] at 127\.0\.0\.1:\d+: UNAVAILABLE: ")
    eventually(lambda: refusal.search(caplog.text) is not None, "a line in the log")
    time.sleep(1)
    assert one.transport.reachable() == two.transport.reachable() == frozenset()


@needs_openssl
def test_a_cluster_with_tls_and_a_secret(tmp_path: Path) -> None:
    files = tls(tmp_path / "ours").tls
    with raft_cluster(tmp_path, ClusterCredentials.of("a secret of the cluster", files)) as cluster:
        cluster.leader().propose("a").result(HANG_S)
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
            async with asyncio.timeout(HANG_S):
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
        with socket.create_connection((host, int(port)), timeout=HANG_S) as connection:
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
