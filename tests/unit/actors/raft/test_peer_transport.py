"""Messages between two nodes' ends of port 7002: in order, whole, and to where a peer is."""

import time
from dataclasses import replace

import pytest

from actors.raft import peer_transport
from actors.raft.credentials import ClusterCredentials
from actors.raft.peer_transport import PeerTransport, RelocatedPeers
from graphdb.errors import ConfigError
from graphdb.model import EntryKind, LogEntry
from graphdb.raft.membership import PeerId
from graphdb.raft.messages import Append, Envelope, Hello
from tests.support.peer_ends import CLUSTER_ID, OPEN, SECRET, Network, connected, echo, envelope
from tests.support.raft_cluster import eventually
from tests.support.timing import HANG_S

# between peers


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


# who is elsewhere than known


def test_a_peer_at_another_address_is_answered_there(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_transport, "RELOCATED_S", 0.3)
    monkeypatch.setattr(peer_transport, "RELOCATED_S", 0.3)
    one, before, after = network.end(1), network.end(2), network.end(2)
    one.connect(before)
    after.connect(one)
    eventually(lambda: one.transport.reachable() == {2} and after.transport.reachable() == {1}, "connected")

    def is_answered() -> bool:
        after.send(1, 5)
        one.send(2, 6)
        return bool(after.tickets())

    eventually(is_answered, "it is answered where it is")
    other_incarnation = replace(envelope(1, 2, 7), target=PeerId(2, 10))
    one.transport.send([other_incarnation])
    eventually(lambda: 7 in before.tickets(), "another incarnation of it is where it was")
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
    assert one.forward(2, b"request").result(HANG_S) == b"request"


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
    met = RelocatedPeers(OPEN, lambda: 0.0)
    assert not met.meet(PeerId(2, 9), address, "127.0.0.1:7002")
    assert met.addresses == {}


def test_so_many_relocated_peers_and_no_more() -> None:
    met = RelocatedPeers(SECRET, lambda: 0.0)
    changed = [met.meet(PeerId(2, incarnation), "10.0.0.1:7002", None) for incarnation in range(1, 30)]
    assert changed == [True] * 16 + [False] * 13
