"""Large graphs that are emptied as a whole: what is logged, what stays, and what a fault leaves."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from actors.shard import graph_clearing
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import OutcomeUnknown, StorageFull, UnknownGraph
from graphdb.log.payloads import decode_changes
from graphdb.model import Confirmation, EntryKind, LogEntry
from graphdb.rdf.quad_lines import LineChange
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.store import clearing, quad_store
from tests.support.shards import Shard, stand_alone

pytestmark = pytest.mark.anyio

G, H = NamedNode("urn:g"), NamedNode("urn:h")
MANY = 30


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clearing, "CLEARED_QUADS_MIN", MANY)


async def update(shard: Shard, text: str, visibility: Visibility = FULL_VISIBILITY) -> Confirmation:
    return await shard.writes(visibility).update(parse_update(text, None), Dataset())


async def fill(shard: Shard) -> None:
    """So many quads in three graphs, each with a blank node."""
    triples = " ".join(f"<urn:s{number}> <urn:p> {number} ." for number in range(MANY - 1))
    for graph in (None, G, H):
        block = f"{triples} _:b <urn:p> 'x' ."
        await update(shard, f"INSERT DATA {{ {block if graph is None else f'GRAPH {graph} {{ {block} }}'} }}")


async def entries(shard: Shard, after: int) -> list[LogEntry]:
    found: list[LogEntry] = []
    while more := await shard.node.parts.log.read(after + 1 + len(found)):
        found += more
    return found


def graphs(shard: Shard) -> dict[object, int]:
    """How many quads each graph has, also an empty one."""
    counts: dict[object, int] = dict.fromkeys(shard.opened().quads.named_graphs(), 0)
    for quad in shard.dataset_quads():
        counts[quad.graph_name] = counts.get(quad.graph_name, 0) + 1
    return counts


D = DefaultGraph()
LEFT = [
    ("CLEAR DEFAULT", {G: MANY, H: MANY}),
    ("CLEAR GRAPH <urn:g>", {D: MANY, G: 0, H: MANY}),
    ("DROP GRAPH <urn:g>", {D: MANY, H: MANY}),
    ("DELETE WHERE { GRAPH <urn:g> { ?s ?p ?o } }", {D: MANY, G: 0, H: MANY}),
    ("CLEAR NAMED", {D: MANY, G: 0, H: 0}),
    ("DROP NAMED", {D: MANY}),
    ("DROP ALL", {}),
]


@pytest.mark.parametrize(("text", "left"), LEFT, ids=[text for text, _ in LEFT])
async def test_what_is_left(tmp_path: Path, text: str, left: dict[object, int]) -> None:
    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        before = {*shard.dataset_quads()}
        done = await update(shard, text)
        assert graphs(shard) == left
        after = {*shard.dataset_quads()}
        assert done.affected_triples == len(before - after)
        logged = await entries(shard, 3)
        assert [entry.kind for entry in logged] == [EntryKind.PART, EntryKind.CLOSE_CLEARED]
        assert {*decode_changes(logged[0].payload).removed} == before - after
        assert not [
            each for each in shard.opened().directory.scratch.iterdir() if each.name.startswith("tmp")
        ]
    shutil.rmtree(tmp_path / "store")
    async with stand_alone(tmp_path) as shard:  # made anew from the log
        assert {*shard.dataset_quads()} == after
        assert graphs(shard) == left


async def test_a_graph_is_deleted_by_its_name(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        writes = shard.writes(FULL_VISIBILITY)
        for graph in (G, None):
            assert (await writes.delete_graph(graph)).affected_triples == MANY
        assert graphs(shard) == {H: MANY}
        assert [entry.kind for entry in await entries(shard, 3)][1::2] == [EntryKind.CLOSE_CLEARED] * 2
        with pytest.raises(UnknownGraph):
            await writes.delete_graph(G)


async def test_a_crash_between_the_mark_and_the_deletion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry counts."""

    def end(*_: object) -> None:
        raise StorageFull("the process ends here", 5)

    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        with monkeypatch.context() as dying:
            dying.setattr(quad_store, "clear_graphs", end)
            with pytest.raises(OutcomeUnknown):
                await update(shard, "DROP GRAPH <urn:g>")
            assert graphs(shard) == {D: MANY, G: MANY, H: MANY}
            await shard.close()
    async with stand_alone(tmp_path) as shard:
        assert graphs(shard) == {D: MANY, H: MANY}


@pytest.mark.parametrize("at", ["after the lines", "while they are written"])
async def test_a_full_disk_does_not_keep_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """It is emptied a quad at a time."""

    def full(*_: object) -> None:
        raise StorageFull("full", 5)

    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        if at == "after the lines":
            monkeypatch.setattr(shard.opened().checkpointer.room, "admits", lambda needed_bytes=0: False)
        else:
            monkeypatch.setattr(quad_store.QuadStore, "dump_graph", full)
        await update(shard, "DROP GRAPH <urn:g>")
        assert graphs(shard) == {D: MANY, H: MANY}
        assert [entry.kind for entry in await entries(shard, 3)] == [EntryKind.CHANGES]


async def test_whoever_does_not_see_everything_leaves_the_rest(tmp_path: Path) -> None:
    some = Visibility(default_graph=True, patterns=frozenset({"urn:*"}), sids=frozenset({"S-1"}))
    async with stand_alone(tmp_path) as shard:
        await fill(shard)
        hidden = "<urn:s0> <urn:p> 0 . << <urn:s0> <urn:p> 0 >> <urn:graphdb:acl#allowedSid> 'S-9'"
        await update(shard, f"INSERT DATA {{ GRAPH <urn:g> {{ {hidden} }} }}")
        await update(shard, "CLEAR GRAPH <urn:g>", some)
        left: Sequence[Quad] = [*shard.graph_quads(G)]
        assert Quad(NamedNode("urn:s0"), NamedNode("urn:p"), Literal(0), G) in left
        assert len(left) == 3


@pytest.mark.parametrize(("into", "written"), [("urn:g", 2), ("urn:h", 1)])
async def test_lines_that_were_written_before_the_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, into: str, written: int
) -> None:
    """They count only if the graph has stayed as it was."""
    calls = 0

    def counted(store: quad_store.QuadStore, emptied: clearing.Emptied, lines: Path) -> LineChange:
        nonlocal calls
        calls += 1
        return clearing.clear_lines(store, emptied, lines)

    prepared = graph_clearing.GraphClearing.prepared

    async with stand_alone(tmp_path) as shard:
        await fill(shard)

        async def meanwhile(
            one: graph_clearing.GraphClearing,
            emptied_by: Callable[[quad_store.QuadStore], clearing.Emptied | None],
        ) -> None:
            await prepared(one, emptied_by)
            await update(shard, f"INSERT DATA {{ GRAPH <{into}> {{ <urn:new> <urn:p> 1 }} }}")

        monkeypatch.setattr(graph_clearing, "clear_lines", counted)
        monkeypatch.setattr(graph_clearing.GraphClearing, "prepared", meanwhile)
        done = await update(shard, "DROP GRAPH <urn:g>")
        assert calls == written
        assert done.affected_triples == MANY + (into == "urn:g")
        assert graphs(shard) == {D: MANY, H: MANY + (into == "urn:h")}
