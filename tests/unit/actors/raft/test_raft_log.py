"""Nodes' logs as their ports see them, over real sockets: one alone, then three."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from actors.log.protocol import LogStatus
from actors.raft import raft_log
from actors.raft.log_requests import ForwardedRequest, MemberChange, RequestQueue
from actors.raft.raft_log_client import RaftLogClient
from actors.raft.search_requests import SEARCH_COPY, SEARCH_REQUEST, SEARCH_STATE, encode_needed
from graphdb.errors import (
    LogCompacted,
    LogUnavailable,
    NotLeader,
    OutcomeUnknown,
    UnavailableError,
    UnknownGraph,
)
from graphdb.log.views import QUADS
from graphdb.model import EntryKind
from tests.support.raft_cluster import data_entry
from tests.support.raft_logs import RaftLogs, raft_logs
from tests.support.timing import HANG_S, quick_enough

pytestmark = pytest.mark.anyio


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[RaftLogs]:
    """Node 1, a cluster by itself."""
    async with raft_logs(tmp_path, 1) as logs:
        await logs.leader()
        yield logs


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[RaftLogs]:
    async with raft_logs(tmp_path, 1, 2, 3) as logs:
        await logs.leader()
        yield logs


async def append(client: RaftLogClient, *payloads: bytes, expected_index: int = 0) -> int:
    return await client.append([data_entry(payload) for payload in payloads], expected_index)


async def payloads(client: RaftLogClient) -> list[bytes]:
    """Of all changes, among the entries of the cluster's own."""
    found: list[bytes] = []
    index = 1
    while entries := await client.read(index):
        found += [entry.payload for entry in entries if entry.kind is EntryKind.CHANGES]
        index += len(entries)
    return found


async def until_read(client: RaftLogClient, expected: list[bytes]) -> None:
    async with asyncio.timeout(HANG_S):
        while await payloads(client) != expected:  # noqa: ASYNC110 no event
            await asyncio.sleep(0.02)


async def test_one_alone_takes_entries_and_gives_them_back(alone: RaftLogs) -> None:
    client = alone.client(1)
    first = await append(client, b"a", b"b")
    assert await append(client, b"c", expected_index=first + 2) == first + 2
    assert await append(client, b"d", expected_index=first + 2) == 0
    assert await payloads(client) == [b"a", b"b", b"c"]
    assert await client.read(first + 3) == []
    assert await client.status() == LogStatus(1, first + 2)
    assert await client.last_effect_index() == first + 2
    assert await client.read_index(3) == first + 2
    assert await client.confirm(first + 2)
    assert not await client.confirm(first + 1)


async def test_one_alone_says_what_it_is(alone: RaftLogs) -> None:
    view = await alone.client(1).watch(0, 0)
    assert (view.role, view.leader_id, view.failure, view.received) == ("leader", 1, None, None)
    assert [(each.node_id, each.address, each.voting, each.reachable) for each in view.members] == [
        (1, alone.addresses[1], True, True)
    ]


async def test_a_watch_ends_when_more_is_committed(alone: RaftLogs) -> None:
    client = alone.client(1)
    for took in quick_enough(0.4):
        view = await client.watch(0, 0)
        watching = asyncio.create_task(client.watch(view.version, view.committed_index))
        index = await append(client, b"a")
        with took:
            assert (await watching).committed_index == index


async def test_a_restart_keeps_everything_and_effects_are_told_from_the_clusters_own(
    alone: RaftLogs,
) -> None:
    index = await append(alone.client(1), b"a")
    for _ in range(2):
        await alone.stop(1)
        await alone.start(1)
        await alone.leader()
    client = alone.client(1)
    assert await payloads(client) == [b"a"]
    assert await client.last_effect_index() == index
    assert (await client.status()).last_index > index  # each leader begins its term with an entry


async def test_truncation_keeps_what_a_peer_that_lags_a_little_needs(alone: RaftLogs) -> None:
    client = alone.client(1)
    index = await append(client, b"a")
    await client.truncate_before(index + 1, QUADS)
    assert (await client.status()).first_index == 1


async def test_entry_0_is_in_no_log(alone: RaftLogs) -> None:
    with pytest.raises(LogCompacted):
        await alone.client(1).read(0)


async def test_the_only_one_cannot_hand_over(alone: RaftLogs) -> None:
    client = alone.client(1)
    with pytest.raises(UnavailableError, match="no other member can lead"):
        await client.change(MemberChange("hand over"))


async def test_nobody_forwards_to_a_node_that_is_not_known(alone: RaftLogs) -> None:
    with pytest.raises(LogUnavailable, match="node 9 is no peer"):
        await alone.client(1).forward(9, ForwardedRequest(0, "update", "", b""), 1)


async def test_what_one_takes_all_have(three: RaftLogs) -> None:
    leader_id = await three.leader()
    await append(three.client(leader_id), b"a", b"b")
    for node_id in (1, 2, 3):
        await until_read(three.client(node_id), [b"a", b"b"])
    for node_id in {1, 2, 3} - {leader_id}:
        with pytest.raises(NotLeader) as raised:
            await append(three.client(node_id), b"c")
        assert raised.value.leader_hint == leader_id


async def test_reads_that_ask_are_as_new_as_what_was_acknowledged(three: RaftLogs) -> None:
    leader_id = await three.leader()
    for number in range(5):
        index = await append(three.client(leader_id), b"%d" % number)
        for node_id in (1, 2, 3):
            client = three.client(node_id)
            assert await client.read_index(3) >= index
            assert (await payloads(client))[-1] == b"%d" % number


async def test_another_leads_when_the_leader_is_gone_and_it_comes_back(three: RaftLogs) -> None:
    leader_id = await three.leader()
    await append(three.client(leader_id), b"a")
    await three.stop(leader_id)
    remaining = {1, 2, 3} - {leader_id}
    async with asyncio.timeout(HANG_S):
        while (next_id := await three.leader(remaining)) == leader_id:  # noqa: ASYNC110 no event
            await asyncio.sleep(0.02)
    await append(three.client(next_id), b"b")
    await three.start(leader_id)
    await until_read(three.client(leader_id), [b"a", b"b"])


async def test_a_leader_without_a_majority_cannot_say_what_becomes_of_an_append(
    three: RaftLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raft_log, "_APPEND_S", 0.5)
    leader_id = await three.leader()
    client = three.client(leader_id)
    for node_id in {1, 2, 3} - {leader_id}:
        await three.stop(node_id)
    with pytest.raises((OutcomeUnknown, NotLeader)):
        await append(client, b"lost")
    with pytest.raises(NotLeader):
        await client.read_index(0.3)
    with pytest.raises(NotLeader):
        await client.confirm(1)
    assert await payloads(client) == []


async def serve(client: RaftLogClient) -> list[ForwardedRequest]:
    """Take what there is and answer it: with its body twice, or with an error."""
    requests = await client.take()
    for request in requests:
        if request.operation == "fail":
            error = b'{"kind": "UnknownGraph", "arguments": ["urn:g"]}'
            await client.finish(request.number, False, error)
        else:
            await client.finish(request.number, True, request.body * 2)
    return requests


async def test_requests_go_to_the_port_of_the_node_that_is_asked(three: RaftLogs) -> None:
    asking, asked = three.client(1), three.client(2)
    serving = asyncio.create_task(serve(asked))
    request = ForwardedRequest(0, "update", "00ff", b"body")
    assert await asking.forward(2, request, 5) == b"bodybody"
    (taken,) = await serving
    assert (taken.operation, taken.request_id, taken.body) == ("update", "00ff", b"body")
    serving = asyncio.create_task(serve(asked))
    with pytest.raises(UnknownGraph, match="urn:g"):
        await asking.forward(2, ForwardedRequest(0, "fail", "", b""), 5)
    await serving


async def test_each_port_of_a_node_takes_what_is_for_it(three: RaftLogs) -> None:
    asking, graph, search = three.client(1), three.client(2), three.client(2)
    for operation, queue in (
        ("update", RequestQueue.GRAPH),
        (SEARCH_REQUEST, RequestQueue.SEARCH),
        (SEARCH_STATE, RequestQueue.GRAPH),
        (SEARCH_COPY, RequestQueue.GRAPH),
    ):
        takers = {
            RequestQueue.GRAPH: asyncio.create_task(graph.take(RequestQueue.GRAPH)),
            RequestQueue.SEARCH: asyncio.create_task(search.take(RequestQueue.SEARCH)),
        }
        request = ForwardedRequest(0, operation, "", b"body")
        forwarding = asyncio.create_task(asking.forward(2, request, HANG_S))
        (taken,) = await asyncio.wait_for(takers.pop(queue), HANG_S)
        assert (taken.operation, taken.body) == (operation, b"body")
        await (graph if queue is RequestQueue.GRAPH else search).finish(taken.number, True, b"done", queue)
        assert await forwarding == b"done"
        ((other_queue, other),) = takers.items()
        assert not other.done()
        await (search if other_queue is RequestQueue.SEARCH else graph).leave(other_queue)
        assert await other == []
        graph, search = three.client(2), three.client(2)  # a port that has left does not come back


async def test_whose_indexes_others_need_is_told(three: RaftLogs) -> None:
    asking, asked = three.client(1), three.client(2)
    assert (await asked.watch(0, 0)).search_flush_index == 0
    serving = asyncio.create_task(serve(asked))
    await asking.forward(2, ForwardedRequest(0, SEARCH_STATE, "", encode_needed(7)), 5)
    await serving
    async with asyncio.timeout(HANG_S):
        while (await asked.watch(0, 0)).search_flush_index != 7:  # noqa: ASYNC110 no event
            await asyncio.sleep(0.02)


async def test_a_request_that_nobody_takes_in_time_has_an_unknown_outcome(three: RaftLogs) -> None:
    for took in quick_enough(3):
        with took, pytest.raises(OutcomeUnknown):
            await three.client(1).forward(2, ForwardedRequest(0, "update", "", b""), 0.3)


async def test_a_port_that_is_replaced_leaves_what_it_took_unknown(three: RaftLogs) -> None:
    asking = three.client(1)
    forwarding = asyncio.create_task(asking.forward(2, ForwardedRequest(0, "update", "", b"a"), 10))
    await asyncio.wait_for(three.client(2).take(), HANG_S)
    serving = asyncio.create_task(serve(three.client(2)))
    with pytest.raises(OutcomeUnknown, match="restarted"):
        await asyncio.wait_for(forwarding, HANG_S)
    assert await asking.forward(2, ForwardedRequest(0, "update", "", b"b"), 5) == b"bb"
    await serving


async def test_a_node_that_is_away_was_not_given_the_request(three: RaftLogs) -> None:
    await three.stop(3)
    with pytest.raises(LogUnavailable):
        await three.client(1).forward(3, ForwardedRequest(0, "update", "", b""), 1)
