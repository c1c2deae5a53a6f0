"""A large graph that is emptied: gone for readers at once, while others write and its quads go."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import LogUnavailable, QueryTimeout
from graphdb.model import Confirmation, EntryKind, GraphName
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from graphdb.store import apply, clearing, hidden_graphs
from serve.backend import QueriedState
from tests.support.shards import Shard, open_shard, stand_alone
from tests.support.timing import HANG_S, wait_until

pytestmark = pytest.mark.anyio

G, H = NamedNode("urn:g"), NamedNode("urn:h")
QUADS = 30


class Gate:
    """Before each block that is removed: so many may go, then one waits, or fails."""

    def __init__(self) -> None:
        self.free = threading.Semaphore(0)
        self.fails = False

    def open(self) -> None:
        self.free.release(1_000_000)

    def close(self) -> None:
        """Again."""
        while self.free.acquire(blocking=False):
            pass

    def removing(self, remove_some: Callable[[hidden_graphs.HiddenGraphs], None]) -> Callable[..., None]:
        def gated(hidden: hidden_graphs.HiddenGraphs) -> None:
            if self.fails:
                raise LogUnavailable("no more today")
            assert self.free.acquire(timeout=HANG_S)
            remove_some(hidden)

        return gated


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    monkeypatch.setattr(clearing, "CLEARED_QUADS_MIN", QUADS)
    monkeypatch.setattr(hidden_graphs, "_QUADS_MIN", QUADS)
    monkeypatch.setattr(hidden_graphs, "_BLOCK_BYTES", 1)
    monkeypatch.setattr(apply, "_PUT_BACK_MAX", -1)
    gate = Gate()
    gated = gate.removing(hidden_graphs.HiddenGraphs.remove_some)
    monkeypatch.setattr(hidden_graphs.HiddenGraphs, "remove_some", gated)
    yield gate
    gate.open()


async def update(shard: Shard, text: str) -> Confirmation:
    return await shard.writes(FULL_VISIBILITY).update(parse_update(text, None), Dataset())


async def fill(shard: Shard) -> None:
    triples = " ".join(f"<urn:s{number}> <urn:p> {number} ." for number in range(QUADS - 1))
    for graph in (G, H):
        await update(shard, f"INSERT DATA {{ GRAPH {graph} {{ {triples} _:b <urn:p> 'x' }} }}")


def graphs(shard: Shard) -> dict[GraphName, int]:
    counts: dict[GraphName, int] = dict.fromkeys(shard.opened().quads.named_graphs(), 0)
    for quad in shard.dataset_quads():
        counts[quad.graph_name] = counts.get(quad.graph_name, 0) + 1
    return counts


def is_removing(shard: Shard) -> bool:
    return shard.opened().quads.is_removing


def left_in_the_engine(shard: Shard) -> int:
    return len([*shard.opened().quads._store.quads_for_pattern(None, None, None, G)])


async def removed(shard: Shard) -> None:
    """Whatever wants the engine as it is waits for that."""
    await shard.opened().writer.in_turn(lambda index: None)


EMPTYING = [
    ("DROP GRAPH <urn:g>", {}),
    ("CLEAR GRAPH <urn:g>", {G: 0}),
    ("DELETE WHERE { GRAPH <urn:g> { ?s ?p ?o } }", {G: 0}),
]


@pytest.mark.parametrize(("text", "left"), EMPTYING, ids=[text for text, _ in EMPTYING])
async def test_others_write_meanwhile(
    tmp_path: Path, gate: Gate, text: str, left: dict[GraphName, int]
) -> None:
    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        assert (await update(shard, text)).affected_triples == QUADS
        assert is_removing(shard)
        assert graphs(shard) == {H: QUADS, **left}
        await update(shard, "INSERT DATA { GRAPH <urn:h> { <urn:new> <urn:p> 1 } }")
        copied = "INSERT { GRAPH <urn:h> { ?s <urn:q> 1 } } WHERE { GRAPH ?g { ?s <urn:p> 3 } }"
        assert (await update(shard, copied)).affected_triples == 1, "nothing is found in the graph"
        assert is_removing(shard)
        assert graphs(shard) == {H: QUADS + 2, **left}
        gate.open()
        await removed(shard)
        assert not is_removing(shard)
        assert graphs(shard) == {H: QUADS + 2, **left}
    async with stand_alone(tmp_path) as shard:
        assert graphs(shard) == {H: QUADS + 2, **left}


async def test_what_concerns_the_graph_waits_and_holds_up_nobody(tmp_path: Path, gate: Gate) -> None:
    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        await update(shard, "DROP GRAPH <urn:g>")
        back = asyncio.create_task(update(shard, "INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 1 } }"))
        more = asyncio.create_task(update(shard, "DROP GRAPH <urn:h>"))
        turn = asyncio.create_task(shard.opened().writer.in_turn(lambda index: index))
        for number in range(5):
            confirmed = await update(shard, f"INSERT DATA {{ <urn:new> <urn:p> {number} }}")
        assert [task.done() for task in (back, more, turn)] == [False] * 3
        gate.open()
        assert (await back).snapshot_index > confirmed.snapshot_index
        assert (await more).affected_triples == QUADS
        assert await turn >= confirmed.snapshot_index
        await removed(shard)
        assert [*shard.opened().quads.named_graphs()] == [G]
        assert len([*shard.graph_quads(G)]) == 1
        assert len([*shard.dataset_quads()]) == 6


@pytest.mark.parametrize("gone", [0, 1, QUADS // 2, QUADS])
async def test_an_end_in_the_middle(tmp_path: Path, gate: Gate, gone: int) -> None:
    """With a checkpoint of that moment: the log keeps what the next start needs."""
    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        await update(shard, "DROP GRAPH <urn:g>")
        await update(shard, "INSERT DATA { GRAPH <urn:h> { <urn:new> <urn:p> 1 } }")
        for _ in range(gone):
            gate.free.release()
        await asyncio.to_thread(wait_until, lambda: left_in_the_engine(shard) == QUADS - gone)
        kinds = [entry.kind for entry in await shard.node.parts.log.read(3)]
        assert kinds == [EntryKind.PART, EntryKind.CLOSE_CLEARED, EntryKind.CHANGES]
        await shard.opened().checkpointer.checkpoint()
        assert shard.opened().replayer.resume_index == 2
        assert shard.opened().writer.applied_index == 5
        gate.fails = True
        gate.free.release()  # the one that waits
    gate.fails = False
    gate.open()
    async with stand_alone(tmp_path) as shard:
        assert not is_removing(shard)
        assert graphs(shard) == {H: QUADS + 1}
        assert shard.opened().replayer.resume_index == 5


async def test_a_removal_that_fails_goes_on(tmp_path: Path, gate: Gate) -> None:
    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        gate.fails = True
        await update(shard, "DROP GRAPH <urn:g>")
        assert is_removing(shard)
        gate.fails = False
        gate.open()
        await update(shard, "INSERT DATA { GRAPH <urn:h> { <urn:a> <urn:p> 1 } }")
        await removed(shard)
        assert graphs(shard) == {H: QUADS + 1}


async def test_readers_see_nothing_of_it(tmp_path: Path, gate: Gate) -> None:
    """On a copy that is made meanwhile; what needs a whole copy waits for it."""
    async with open_shard(tmp_path) as shard:
        await fill(shard)
        await update(shard, "DROP GRAPH <urn:g>")
        gate.free.release(2)
        await update(shard, "INSERT DATA { GRAPH <urn:h> { <urn:a> <urn:p> 1 } }")
        for union in (shard.node.queries.whole, shard.node.queries.whole.uniting_graphs()):
            assert await count(union, "GRAPH ?g { ?s ?p ?o }") == QUADS + 1
            assert await count(union, "GRAPH <urn:g> { ?s ?p ?o }") == 0
        assert await count(shard.node.queries.whole, "?s ?p ?o") == 0
        assert await count(shard.node.queries.whole.uniting_graphs(), "?s ?p ?o") == QUADS + 1
        copies = shard.opened().checkpoints
        hiding = await copies.take_hiding()
        assert hiding.hidden_graphs == {G}
        copies.give_back(hiding)
        whole = asyncio.create_task(copies.take())
        gate.open()
        assert not (await whole).hidden_graphs
        assert not is_removing(shard)
        copies.give_back(await whole)


async def count(reads: QueriedState, pattern: str, timeout_s: float = HANG_S) -> int:
    query = parse_query(f"SELECT (COUNT(*) AS ?n) {{ {pattern} }}")
    stream = await reads.start_query(QueryRequest(query, Dataset(), ResultFormat.CSV, timeout_s))
    body = b""
    try:
        while (piece := await stream.read()) is not None:
            body += piece
    finally:
        stream.close()
    return int(body.split()[-1])


LISTING = ["GRAPH ?g {}", "GRAPH ?g { OPTIONAL { ?s ?p ?o } }", "FILTER EXISTS { GRAPH ?g {} }"]


@pytest.mark.parametrize("pattern", LISTING)
async def test_a_graph_that_is_emptied_and_not_dropped_is_found(
    tmp_path: Path, gate: Gate, pattern: str
) -> None:
    """Once its quads are gone, for which who asks for graphs without looking at quads has to wait."""
    async with open_shard(tmp_path) as shard:
        await fill(shard)
        await update(shard, "DROP GRAPH <urn:h>")
        gate.open()
        await removed(shard)
        gate.close()
        await update(shard, "CLEAR GRAPH <urn:g>")
        assert is_removing(shard)
        whole = shard.node.queries.whole
        with pytest.raises(QueryTimeout, match="removal of a large graph"):
            await count(whole, pattern, 0.1)
        asked = asyncio.create_task(count(whole, pattern))
        noted = asyncio.create_task(update(shard, f"INSERT {{ <urn:n> <urn:p> 1 }} WHERE {{ {pattern} }}"))
        assert await count(whole, "GRAPH ?g { ?s ?p ?o }") == 0  # this one does not
        await update(shard, "INSERT DATA { <urn:a> <urn:p> 1 }")
        assert not asked.done()
        assert not noted.done()
        gate.open()
        assert await asked == 1
        assert (await noted).affected_triples == 1
