"""What other nodes ask of the one that leads: a real shard performs it, over a real queue and socket."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.forwarded_work import APPLIED_INDEX, ForwardedWork
from actors.clustering.forwarded_writes import (
    BATCH,
    ForwardedWrite,
    GraphDeletion,
    GraphWrite,
    SparqlUpdate,
    WrittenBy,
    decode_confirmation,
    encode_confirmation,
    encode_outcomes,
)
from actors.raft.incoming_links import Forwarded
from actors.raft.log_requests import ForwardedRequest, encode_requests
from actors.wire.messages import encode_error
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import NotLeader, OutcomeUnknown, QuerySyntaxError, UnknownGraph
from graphdb.model import Confirmation
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.dataset import Dataset
from tests.support.clustered_shards import forwarded_work
from tests.support.scripted_log import ScriptedLog, following, scripted_log
from tests.support.shards import Shard, stand_alone
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

G = NamedNode("urn:g")
EVERYTHING = WrittenBy(FULL_VISIBILITY)


class Leader:
    """Node 1, and the other nodes' way to it."""

    def __init__(
        self, log: ScriptedLog, follower: ClusterFollower, shard: Shard, work: ForwardedWork
    ) -> None:
        self.log = log
        self.follower = follower
        self.shard = shard
        self.work = work

    async def until_seen(self) -> None:
        """Return when the port knows what the log shows."""
        async with asyncio.timeout(HANG_S):
            while self.follower.view != self.log.view:
                await self.follower.change(5)

    async def ask(self, operation: str, body: bytes, request_id: str = "") -> bytes:
        forwarded = Forwarded(2, operation, request_id, body)
        return await asyncio.wait_for(self.log.queue.serve(forwarded), HANG_S)

    async def write(self, write: ForwardedWrite, number: int) -> Confirmation:
        return decode_confirmation(await self.ask(write.operation, write.encode(), id_of(number)))


def id_of(number: int) -> str:
    return f"{number:032x}"


def insertion(value: int | str, since: int = 0) -> SparqlUpdate:
    return SparqlUpdate(f"INSERT DATA {{ <urn:s> <urn:p> {value} }}", None, Dataset(), since, EVERYTHING)


@pytest.fixture
async def leader(tmp_path: Path) -> AsyncIterator[Leader]:
    async with (
        stand_alone(tmp_path / "data") as shard,
        scripted_log(tmp_path) as log,
        following(log) as (client, follower),
    ):
        work = forwarded_work(client, follower, shard)
        work.start()
        leader = Leader(log, follower, shard, work)
        log.let_lead(1)
        await leader.until_seen()
        yield leader
        await work.close()


async def test_an_update_takes_effect_once_however_often_it_comes(leader: Leader) -> None:
    assert await leader.write(insertion(1), 1) == Confirmation(1, 1, "update applied")
    assert await leader.write(insertion(2), 2) == Confirmation(2, 1, "update applied")
    assert await leader.write(insertion(1), 1) == Confirmation(1, 1, "applied before")
    assert [quad.object.value for quad in leader.shard.graph_quads(None)] == ["1", "2"]


async def test_a_long_text_is_read_on_a_thread_and_performed_the_same(leader: Leader) -> None:
    values = " , ".join(map(str, range(2000)))
    assert (await leader.write(insertion(values), 1)).affected_triples == 2000
    with pytest.raises(QuerySyntaxError):
        await leader.write(insertion(values + " , "), 2)


async def test_a_document_is_stored_and_its_graph_deleted(leader: Leader) -> None:
    document = b"<a> <urn:p> <b> , <c> ."
    write = GraphWrite(document, RdfSyntax.TURTLE, G, False, False, "http://base.example/", 0, EVERYTHING)
    assert await leader.write(write, 1) == Confirmation(1, 2)
    assert sorted(str(quad.object) for quad in leader.shard.graph_quads(G)) == [
        "<http://base.example/b>",
        "<http://base.example/c>",
    ]
    replacing = GraphWrite(
        b"<a> <urn:p> <d> .", RdfSyntax.TURTLE, G, False, True, "http://base.example/", 1, EVERYTHING
    )
    assert await leader.write(replacing, 2) == Confirmation(2, 3)
    assert await leader.write(GraphDeletion(G, 2, EVERYTHING), 3) == Confirmation(3, 1)
    with pytest.raises(UnknownGraph) as raised:
        await leader.write(GraphDeletion(G, 3, EVERYTHING), 4)
    assert raised.value.graph == "urn:g"
    assert not leader.shard.graph_exists(G)


async def test_of_a_batch_each_is_answered_for_itself(leader: Leader) -> None:
    wrong = SparqlUpdate("INSERT DATA {", None, Dataset(), 0, EVERYTHING)
    writes: list[ForwardedWrite] = [
        insertion(1),
        wrong,
        GraphDeletion(G, 0, EVERYTHING),
        insertion(1),
        insertion(2),
    ]
    requests = [
        ForwardedRequest(number, write.operation, id_of(number), write.encode())
        for number, write in enumerate(writes)
    ]
    outcomes = await leader.ask(BATCH, encode_requests(requests))
    syntax_error = await self_error(leader, wrong)
    assert outcomes == encode_outcomes(
        [
            (True, encode_confirmation(Confirmation(1, 1))),
            (False, encode_error(syntax_error)),
            (False, encode_error(UnknownGraph("urn:g"))),
            (True, encode_confirmation(Confirmation(1, 0))),  # there already: it saw what the first one did
            (True, encode_confirmation(Confirmation(2, 1))),
        ]
    )


async def self_error(leader: Leader, write: SparqlUpdate) -> QuerySyntaxError:
    """What that write meets by itself."""
    with pytest.raises(QuerySyntaxError) as raised:
        await leader.write(write, 99)
    return raised.value


async def test_an_empty_batch_has_an_empty_answer(leader: Leader) -> None:
    assert await leader.ask(BATCH, b"") == b""


async def test_how_far_the_store_is(leader: Leader) -> None:
    assert await leader.ask(APPLIED_INDEX, b"") == b"0"
    await leader.write(insertion(1), 1)
    assert await leader.ask(APPLIED_INDEX, b"") == b"1"


@pytest.mark.parametrize("operation", ["update", BATCH, APPLIED_INDEX])
async def test_a_node_that_does_not_lead_refuses_and_names_the_leader(leader: Leader, operation: str) -> None:
    leader.log.let_lead(3)
    await leader.until_seen()
    with pytest.raises(NotLeader) as raised:
        await leader.ask(operation, insertion(1).encode(), id_of(1))
    assert raised.value.leader_hint == 3
    assert leader.shard.snapshot_index() == 0


@pytest.mark.parametrize(
    ("operation", "body", "request_id"),
    [
        ("nothing", b"", id_of(1)),
        ("update", b"", id_of(1)),
        ("update", b"\2\0\0\0{}", id_of(1)),
        ("write_graph", b"garbage", id_of(1)),
        ("update", insertion(1).encode(), "no hexadecimal"),
        (BATCH, b"garbage", ""),
    ],
)
async def test_what_cannot_be_understood_is_answered(
    leader: Leader, operation: str, body: bytes, request_id: str
) -> None:
    with pytest.raises(OutcomeUnknown):
        await leader.ask(operation, body, request_id)
    assert await leader.write(insertion(1), 2) == Confirmation(1, 1)


async def test_what_was_taken_is_finished_before_the_end(leader: Leader) -> None:
    release = asyncio.Event()

    loop = asyncio.get_running_loop()
    holding = asyncio.create_task(leader.shard.opened().writer.in_turn(lambda index: wait(loop, release)))
    writing = asyncio.create_task(leader.write(insertion(1), 1))
    await asyncio.sleep(0.05)
    closing = asyncio.create_task(leader.work.close())
    late = asyncio.create_task(leader.ask(APPLIED_INDEX, b""))
    await asyncio.sleep(0.05)
    assert not closing.done()
    release.set()
    await asyncio.wait_for(asyncio.gather(holding, closing), HANG_S)
    assert await writing == Confirmation(1, 1)
    with pytest.raises(NotLeader, match="stopping"):  # for no port might come next
        await late
    with pytest.raises(NotLeader, match="stopping"):
        await leader.ask(APPLIED_INDEX, b"")


def wait(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    """On a thread, for an event of a loop."""
    asyncio.run_coroutine_threadsafe(event.wait(), loop).result(HANG_S)


async def test_requests_are_taken_again_when_the_log_is_back(leader: Leader) -> None:
    await leader.log.server.close()
    while leader.follower.view is not None:
        await leader.follower.change(5)
    await leader.log.server.start()
    leader.log.let_lead(1)
    await leader.until_seen()
    assert await leader.write(insertion(1), 1) == Confirmation(1, 1)
