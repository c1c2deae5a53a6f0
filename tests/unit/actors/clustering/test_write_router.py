"""A write on its way to whichever node leads: where it goes, under which id, and what its client is told."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from threading import current_thread, main_thread
from typing import Self

import pytest
from pyoxigraph import NamedNode

from actors.clustering import cluster_follower, routed_writes
from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.forwarded_writes import (
    BATCH,
    GraphDeletion,
    SparqlUpdate,
    WrittenBy,
    decode_write,
    encode_confirmation,
    encode_outcomes,
)
from actors.clustering.routed_writes import RoutedWriting, WriteRouter
from actors.node.open_store import CurrentStore
from actors.raft.log_requests import ForwardedRequest, decode_requests
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import (
    BodyTooLarge,
    GraphDBError,
    IndexNotReached,
    KeyReused,
    LogUnavailable,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    StorageFull,
    UnavailableError,
    UnknownGraph,
)
from graphdb.log.request_ids import is_keyed
from graphdb.model import Author, Confirmation, Outcome
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.sparql.syntax import Update
from tests.support.scripted_log import Forwarding, ScriptedLog, following, scripted_log
from tests.support.timing import HANG_S, quick_enough

pytestmark = pytest.mark.anyio

ID = bytes(range(16))
GRAPH = NamedNode("urn:g")
EVERYTHING = WrittenBy(FULL_VISIBILITY)
DONE = Confirmation(12, 3)
PLAIN = "INSERT DATA { <urn:a> <urn:b> <urn:c> }"


class Node:
    """Node 1's router, and what it does to the node's store."""

    def __init__(self, log: ScriptedLog, follower: ClusterFollower) -> None:
        self.log = log
        self.follower = follower
        self.committed_index = 7
        self.performed: list[tuple[bytes, int]] = []
        self.fates: list[GraphDBError] = []  # of what is performed here, then it succeeds
        self.waited_for: list[tuple[int, float]] = []
        self.wait_error: UnavailableError | None = None
        self.described_here: bool | None = None  # on the event loop's thread; None: not yet
        self.router: WriteRouter

    async def let_lead(self, node_id: int | None) -> None:
        """Have a node lead; return when this one knows."""
        self.log.let_lead(node_id)
        async with asyncio.timeout(HANG_S):
            while self.follower.view != self.log.view:
                await self.follower.change(5)

    async def perform(self, request_id: bytes, since: int) -> Confirmation:
        self.performed.append((request_id, since))
        if self.fates:
            raise self.fates.pop(0)
        return DONE

    async def wait_for_index(self, index: int, timeout_s: float) -> None:
        self.waited_for.append((index, timeout_s))
        if self.wait_error is not None:
            raise self.wait_error

    def write(self, request_id: bytes | None = ID, *, quick: bool = False) -> "asyncio.Task[Confirmation]":
        def describe(since: int) -> GraphDeletion:
            self.described_here = current_thread() is main_thread()
            return GraphDeletion(GRAPH, since, EVERYTHING)

        routing = self.router.route(request_id, self.perform, describe, quick=quick)
        return asyncio.create_task(routing)

    async def forwarded(self) -> Forwarding:
        return await asyncio.wait_for(self.log.forwardings.get(), HANG_S)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with scripted_log(tmp_path) as log, following(log) as (client, follower):
        node = Node(log, follower)
        node.router = WriteRouter(
            1, client, follower, lambda: node.committed_index, node.wait_for_index, write_timeout_s=20.5
        )
        yield node


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routed_writes, "_RETRY_S", 0.2)


async def test_the_leader_performs_it_itself(node: Node) -> None:
    await node.let_lead(1)
    assert await asyncio.wait_for(node.write(), HANG_S) == DONE
    assert node.performed == [(ID, 7)]
    assert node.waited_for == []
    assert node.log.forwardings.empty()


async def test_others_forward_it_whole_and_wait_to_see_it(node: Node) -> None:
    await node.let_lead(2)
    writing = node.write()
    forwarding = await node.forwarded()
    assert (forwarding.node_id, forwarding.timeout_s) == (2, 20.5)
    assert (forwarding.request.operation, forwarding.request.request_id) == ("delete_graph", ID.hex())
    assert decode_write("delete_graph", forwarding.request.body) == GraphDeletion(GRAPH, 7, EVERYTHING)
    forwarding.succeed(encode_confirmation(DONE))
    assert await writing == DONE
    assert node.waited_for == [(12, 2.0)]
    assert node.performed == []


@pytest.mark.parametrize("quick", [False, True])
async def test_only_what_is_short_is_encoded_on_the_event_loop(node: Node, quick: bool) -> None:
    await node.let_lead(2)
    writing = node.write(quick=quick)
    forwarding = await node.forwarded()
    assert node.described_here is quick
    outcome = encode_confirmation(DONE)
    forwarding.succeed(encode_outcomes([(True, outcome)]) if quick else outcome)
    assert await writing == DONE


async def test_a_write_without_an_id_is_given_one_and_keeps_it(node: Node) -> None:
    await node.let_lead(2)
    writing = node.write(None)
    first = await node.forwarded()
    first.fail(NotLeader("not I"))
    second = await node.forwarded()
    second.succeed(encode_confirmation(DONE))
    await writing
    own_id = bytes.fromhex(first.request.request_id)
    assert second.request == first.request
    assert len(own_id) == 16
    assert not is_keyed(own_id)
    await node.let_lead(1)
    await node.write(None)
    assert node.performed[0][0] != own_id


async def test_leaders_change_and_the_write_takes_effect_once(node: Node) -> None:
    """NotLeader, an unknown outcome, NotLeader again, then success: under one id, from one place on."""
    await node.let_lead(2)
    writing = node.write()
    (await node.forwarded()).fail(NotLeader("not any more", 1, 3))
    await node.let_lead(3)
    lost = await node.forwarded()
    assert (lost.node_id, lost.request.request_id) == (3, ID.hex())
    node.committed_index = 11  # whatever this node sees meanwhile: the lost try may be behind 7
    lost.fail(OutcomeUnknown("cut off"))
    node.fates = [NotLeader("deposed"), OutcomeUnknown("no majority")]
    await node.let_lead(1)
    assert await asyncio.wait_for(writing, HANG_S) == DONE
    assert node.performed == [(ID, 7)] * 3


async def test_after_an_election_the_next_leader_is_asked_at_once(node: Node) -> None:
    for took in quick_enough(1):
        await node.let_lead(2)
        writing = node.write()
        (await node.forwarded()).fail(NotLeader("deposed"))
        await node.let_lead(None)
        await asyncio.sleep(0.1)
        assert node.log.forwardings.empty()
        await node.let_lead(3)
        with took:
            forwarding = await node.forwarded()
        assert forwarding.node_id == 3
        forwarding.succeed(encode_confirmation(DONE))
        assert await writing == DONE


@pytest.mark.parametrize(
    "error",
    [UnknownGraph("urn:g"), KeyReused(), StorageFull("full", 5), Overloaded("too much", 2), BodyTooLarge(9)],
)
async def test_what_the_leader_refuses_is_refused_at_once(node: Node, error: GraphDBError) -> None:
    await node.let_lead(2)
    writing = node.write()
    (await node.forwarded()).fail(error)
    with pytest.raises(type(error)) as raised:
        await asyncio.wait_for(writing, HANG_S)
    assert raised.value.args == error.args
    assert node.log.forwardings.empty()
    await node.let_lead(1)
    node.fates = [error]
    with pytest.raises(type(error)):
        await asyncio.wait_for(node.write(), HANG_S)
    assert len(node.performed) == 1


@pytest.mark.parametrize("error", [StorageFull("full", 5), Overloaded("too much", 2), BodyTooLarge(9)])
async def test_a_refusal_does_not_make_an_unknown_outcome_known(node: Node, error: GraphDBError) -> None:
    """The refusal says that nothing was stored by this try; the one before it may have been taken."""
    await node.let_lead(2)
    writing = node.write()
    (await node.forwarded()).fail(OutcomeUnknown("cut off"))
    (await node.forwarded()).fail(error)
    with pytest.raises(OutcomeUnknown, match="cut off"):
        await asyncio.wait_for(writing, HANG_S)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", [NotLeader("never"), LogUnavailable("no link", 4)])
async def test_where_nobody_takes_it_the_client_learns_that_nothing_was_stored(
    node: Node, error: UnavailableError
) -> None:
    await node.let_lead(1)
    node.fates = [type(error)(*error.args) for _ in range(100)]
    with pytest.raises(type(error)) as raised:
        await asyncio.wait_for(node.write(), HANG_S)
    assert raised.value.args == error.args
    assert 2 <= len(node.performed) <= 10  # about every 50 ms


@pytest.mark.usefixtures("impatient")
async def test_one_unknown_try_among_refused_ones_keeps_the_outcome_unknown(node: Node) -> None:
    await node.let_lead(1)
    node.fates = [NotLeader("a"), OutcomeUnknown("the second"), *(NotLeader("b") for _ in range(100))]
    with pytest.raises(OutcomeUnknown, match="the second"):
        await asyncio.wait_for(node.write(), HANG_S)


async def test_without_a_leader_it_is_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_follower, "_LEADERLESS_S", 0.1)
    with pytest.raises(NotLeader, match="no leader"):
        await asyncio.wait_for(node.write(), HANG_S)
    assert node.performed == []


async def test_without_a_leader_after_an_unknown_outcome_it_stays_unknown(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_follower, "_LEADERLESS_S", 0.1)
    await node.let_lead(2)
    writing = node.write()
    lost = await node.forwarded()
    await node.let_lead(None)
    lost.fail(OutcomeUnknown("cut off"))
    with pytest.raises(OutcomeUnknown, match="cut off"):
        await asyncio.wait_for(writing, HANG_S)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", [IndexNotReached("slow"), LogUnavailable("the store is being replaced")])
async def test_what_is_confirmed_stays_so_where_this_node_cannot_show_it_yet(
    node: Node, error: UnavailableError
) -> None:
    node.wait_error = error
    await node.let_lead(2)
    writing = node.write()
    (await node.forwarded()).succeed(encode_confirmation(DONE))
    assert await asyncio.wait_for(writing, HANG_S) == DONE
    assert len(node.waited_for) == 1


async def test_quick_writes_share_a_call_to_the_node_that_leads_now(node: Node) -> None:
    await node.let_lead(2)
    writes = [node.write(bytes([number]) * 16, quick=True) for number in range(3)]
    first = await node.forwarded()
    assert (first.node_id, first.request.operation) == (2, BATCH)
    assert [each.request_id for each in decode_requests(first.request.body)] == [
        "00" * 16,
        "01" * 16,
        "02" * 16,
    ]
    first.fail(NotLeader("deposed"))
    await node.let_lead(3)
    again: list[ForwardedRequest] = []
    while len(again) < len(writes):  # together, unless a busy machine wakes one of them later
        call = await node.forwarded()
        assert (call.node_id, call.request.operation) == (3, BATCH)
        requests = decode_requests(call.request.body)
        confirmations = [Confirmation(4 + int(each.request_id[:2]), 1) for each in requests]
        call.succeed(encode_outcomes((True, encode_confirmation(each)) for each in confirmations))
        again += requests
    assert sorted(again, key=lambda each: each.request_id) == decode_requests(first.request.body)
    assert await asyncio.gather(*writes) == [Confirmation(number, 1) for number in (4, 5, 6)]


async def test_a_client_that_leaves_ends_the_tries(node: Node) -> None:
    await node.let_lead(2)
    writing = node.write()
    await node.forwarded()
    writing.cancel()
    await asyncio.wait([writing])
    await node.let_lead(1)
    await asyncio.sleep(0.1)
    assert node.performed == []


# Updates that are begun without a task (`Writing.begin_update`).


class Own:
    """The writing of node 1 alone. ends: how its first tries end; the others end as the node's do."""

    def __init__(self, node: Node, *ends: GraphDBError | None) -> None:
        self._node, self._ends = node, list(ends)
        self.first_tries: list[tuple[bytes | None, int | None]] = []

    def writes(self, _visibility: Visibility, _author: Author) -> Self:
        return self

    async def update(self, _update: Update, _using: Dataset, request_id: bytes, since: int) -> Confirmation:
        return await self._node.perform(request_id, since)

    def begin_update(
        self,
        _update: Update,
        outcome: Outcome,
        _author: Author,
        request_id: bytes | None,
        since: int | None,
    ) -> bool:
        self.first_tries.append((request_id, since))
        end = self._ends.pop(0)
        loop = asyncio.get_running_loop()
        if end is None:
            loop.call_soon(outcome.set_result, DONE)
        else:
            loop.call_soon(outcome.set_exception, end)
        return True


def begun(node: Node, own: Own, text: str = PLAIN) -> "asyncio.Future[Confirmation]":
    outcome: asyncio.Future[Confirmation] = asyncio.get_running_loop().create_future()
    writing = RoutedWriting(own, node.router, CurrentStore())  # type: ignore[arg-type] # a twin of it
    if not writing.begin_update(parse_update(text, None), outcome):
        outcome.cancel()
    return outcome


async def test_the_leader_begins_an_update(node: Node) -> None:
    await node.let_lead(1)
    own = Own(node, None)
    assert await asyncio.wait_for(begun(node, own), HANG_S) == DONE
    [(request_id, since)] = own.first_tries
    assert request_id is not None
    assert since == 7
    assert node.performed == []


async def test_another_update_goes_the_usual_way(node: Node) -> None:
    await node.let_lead(1)
    own = Own(node)
    assert begun(node, own, "DELETE WHERE { ?s ?p ?o }").cancelled()
    assert own.first_tries == []


@pytest.mark.parametrize("end", [NotLeader("deposed"), LogUnavailable("away"), OutcomeUnknown("lost")])
async def test_a_begun_update_goes_to_the_next_leader(node: Node, end: GraphDBError) -> None:
    """Under the same id, and behind the same index."""
    await node.let_lead(1)
    own = Own(node, end)
    outcome = begun(node, own)
    assert await asyncio.wait_for(outcome, HANG_S) == DONE
    assert node.performed == own.first_tries


async def test_a_begun_update_whose_outcome_is_unknown(node: Node, impatient: None) -> None:
    """What a later try meets says nothing of the first one."""
    await node.let_lead(1)
    node.fates = [StorageFull.for_inserts()]
    with pytest.raises(OutcomeUnknown, match="lost"):
        await asyncio.wait_for(begun(node, Own(node, OutcomeUnknown("lost"))), HANG_S)


async def test_a_begun_update_that_is_refused(node: Node) -> None:
    await node.let_lead(1)
    with pytest.raises(StorageFull):
        await asyncio.wait_for(begun(node, Own(node, StorageFull.for_inserts())), HANG_S)
    assert node.performed == []


async def test_a_follower_hands_a_begun_update_on(node: Node) -> None:
    await node.let_lead(2)
    own = Own(node)
    outcome = begun(node, own)
    forwarding = await node.forwarded()
    assert (forwarding.node_id, forwarding.request.operation) == (2, BATCH)
    [request] = decode_requests(forwarding.request.body)
    write = decode_write(request.operation, request.body)
    assert isinstance(write, SparqlUpdate)
    assert (write.text, write.since) == (PLAIN, 7)
    forwarding.succeed(encode_outcomes([(True, encode_confirmation(DONE))]))
    assert await asyncio.wait_for(outcome, HANG_S) == DONE
    assert own.first_tries == []


@pytest.mark.parametrize("is_garbled", [False, True])
async def test_an_update_that_was_handed_on_in_vain_goes_to_the_next_leader(
    node: Node, is_garbled: bool
) -> None:
    """Under the same id, and behind the same index."""
    await node.let_lead(2)
    outcome = begun(node, Own(node))
    forwarding = await node.forwarded()
    [request] = decode_requests(forwarding.request.body)
    await node.let_lead(1)
    if is_garbled:
        forwarding.succeed(encode_outcomes([(True, b"what is this?")]))
    else:
        forwarding.fail(NotLeader("deposed"))
    assert await asyncio.wait_for(outcome, HANG_S) == DONE
    assert node.performed == [(bytes.fromhex(request.request_id), 7)]
