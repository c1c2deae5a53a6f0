"""Requests that one node forwards to another over port 7002, and what becomes of them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from actors.raft import peer_transport
from actors.raft.incoming_links import Forwarded
from graphdb.errors import BodyTooLarge, LogUnavailable, NotLeader, OutcomeUnknown
from tests.support.peer_ends import OPEN, SECRET, Network, connected
from tests.support.raft_cluster import eventually
from tests.support.timing import HANG_S


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
    assert one.forward(2, body).result(HANG_S) == body + b"!"
    assert seen == [Forwarded(1, "update", "k", body)]


def test_many_requests_at_once(network: Network) -> None:
    one, _ = connected(network, SECRET)
    futures = [one.forward(2, str(number).encode()) for number in range(200)]
    assert [future.result(HANG_S) for future in futures] == [str(number).encode() for number in range(200)]


def test_the_answer_of_a_leader_says_how_far_its_log_is_committed(network: Network) -> None:
    one, two = connected(network, SECRET)
    assert one.forward(2).result(HANG_S) == b"body"
    assert one.heard == []  # it does not lead
    two.committed = (3, 1 << 40)
    assert one.forward(2).result(HANG_S) == b"body"
    assert one.heard == [(3, 1 << 40)]


def raising(error: Exception) -> Callable[[Forwarded], Awaitable[bytes]]:
    async def serve(request: Forwarded) -> bytes:
        raise error

    return serve


def test_an_error_of_the_other_node_comes_back_as_itself(network: Network) -> None:
    one, two = network.end(1), network.end(2, OPEN, raising(NotLeader("no", 3, 7)))
    one.connect(two)
    eventually(lambda: one.transport.reachable() == {2}, "connected")
    with pytest.raises(NotLeader) as caught:
        one.forward(2).result(HANG_S)
    assert caught.value.args == ("no", 3, 7)


def test_a_fault_of_the_other_node_leaves_the_outcome_unknown(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = network.end(1), network.end(2, OPEN, raising(ZeroDivisionError("its own business")))
    one.connect(two)
    eventually(lambda: one.transport.reachable() == {2}, "connected")
    with pytest.raises(OutcomeUnknown, match=r"^the node that was asked has failed: "):
        one.forward(2).result(HANG_S)
    assert "its own business" in caplog.text


def test_a_request_that_is_too_large_is_refused_at_once(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_transport, "MESSAGE_BYTES_MAX", 1000)
    one, _ = connected(network)
    with pytest.raises(BodyTooLarge) as caught:
        one.forward(2, bytes(1000)).result(HANG_S)
    assert caught.value.limit_bytes == 1000
    assert one.forward(2, bytes(900)).result(HANG_S) == bytes(900)


def test_a_request_to_nobody_is_not_sent(network: Network) -> None:
    one, two = connected(network)
    network.stop(two)
    eventually(lambda: one.transport.reachable() == frozenset(), "it is noticed")
    for node_id in [2, 3]:
        with pytest.raises(LogUnavailable):
            one.forward(node_id).result(HANG_S)


def test_a_node_that_is_a_peer_no_more_still_answers(network: Network) -> None:
    """As a leader that was asked to remove itself: who has asked hears of the removal before the answer."""
    taken, removed = threading.Event(), threading.Event()

    async def serve(request: Forwarded) -> bytes:
        taken.set()
        assert await asyncio.to_thread(removed.wait, HANG_S)
        return request.body

    one, two = network.end(1), network.end(2, OPEN, serve)
    one.connect(two)
    eventually(lambda: one.transport.reachable() == {2}, "connected")
    future = one.forward(2, b"remove yourself")
    assert taken.wait(HANG_S)
    one.transport.update_peers({})
    eventually(lambda: one.transport.reachable() == frozenset(), "no peer")
    removed.set()
    assert future.result(HANG_S) == b"remove yourself"


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
        future.result(HANG_S)
    assert len(taken) == 1
