"""Views of a real store, behind a real log."""

import asyncio
import gc
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import Quad, QuerySolutions

from actors.node.open_store import OpenStore
from actors.views import view as view_module
from actors.views.view import Listener, View
from graphdb.access.annotations import VisibleQuads
from graphdb.access.visibility import FULL_VISIBILITY, NO_VISIBILITY, Visibility
from graphdb.access.writer_state import VisibleState
from graphdb.errors import Overloaded
from graphdb.live.changes import LoggedChange
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from graphdb.store.quad_store import QuadStore
from serve.backend import GraphReads
from tests.support.shards import Shard, open_shard, stand_alone

pytestmark = pytest.mark.anyio

EVERY_GRAPH = Visibility(default_graph=True, patterns=frozenset({"*"}))
ONE, TWO = (replace(EVERY_GRAPH, sids=frozenset({sid})) for sid in ("S-1", "S-2"))
GRAPH = replace(EVERY_GRAPH, default_graph=False, patterns=frozenset({"urn:g:*"}))
PREFIX = "PREFIX : <urn:x:> PREFIX acl: <urn:graphdb:acl#> "
ALL = parse_query("SELECT ?s { { ?s <urn:x:p> ?o } UNION { GRAPH ?g { ?s <urn:x:p> ?o } } }")


async def write(shard: Shard, text: str) -> int:
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(PREFIX + text), Dataset())).snapshot_index


async def insert(shard: Shard, turtle: str) -> int:
    return await write(shard, f"INSERT DATA {{ {turtle} }}")


def names(reads: GraphReads) -> list[str]:
    answer = reads.query(ALL, Dataset()).answer
    assert isinstance(answer, QuerySolutions)
    return sorted(str(row["s"].value).removeprefix("urn:x:") for row in answer)


async def seen_by(shard: Shard, visibility: Visibility) -> str:
    return "".join(names(await shard.reads(visibility)))


def opened(shard: Shard) -> OpenStore:
    assert shard.open is not None
    return shard.open


def contents(quads: QuadStore) -> tuple[set[Quad], set[object]]:
    return set(quads.dataset_quads()), set(quads.named_graphs())


def check(shard: Shard, view: View) -> None:
    """The view is what is seen of the store, which has not gone on meanwhile."""
    main = opened(shard).quads
    visible_quads = VisibleQuads(view.visibility, main)
    assert view.index == shard.snapshot_index()
    assert contents(view.quads) == (
        {quad for quad in main.dataset_quads() if visible_quads.sees(quad)},
        set(VisibleState(view.visibility, main).named_graphs()),
    )


async def view_of(shard: Shard, visibility: Visibility) -> View:
    view = await opened(shard).views.view(visibility)
    assert view is not None
    return view


async def test_who_sees_everything_needs_no_view(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 . GRAPH <urn:g:1> { :b :p 2 }")
        for visibility in (FULL_VISIBILITY, ONE):
            reads = await shard.reads(visibility)
            assert (names(reads), reads.view_key) == (["a", "b"], None)
            assert reads.exact_index() == shard.snapshot_index()
        assert not list((tmp_path / "views").iterdir())


@pytest.mark.parametrize("visibility", [FULL_VISIBILITY, EVERY_GRAPH, ONE, GRAPH])
async def test_each_request_knows_which_patterns_are_large(tmp_path: Path, visibility: Visibility) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |} . GRAPH <urn:g:1> { :b :p 2 }")
        views = opened(shard).views
        first, second = [await views.visible_store(visibility) for _ in range(2)]
        assert first.large is second.large


async def test_it_is_reported_how_each_view_follows_the_log(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |}")
        await seen_by(shard, ONE)
        index = await insert(shard, ":b :p 1")
        await seen_by(shard, ONE)
        statuses = {status.name: status for status in shard.view_statuses()}
        assert [*statuses] == ["quads", "principals", "changes"]
        assert {status.index for status in statuses.values()} == {index}
        assert {status.state for status in statuses.values()} == {"following"}
        assert {status.entries_behind for status in statuses.values()} == {0}
    assert shard.view_statuses() == []


async def test_each_sees_what_its_sids_and_graphs_show(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(
            shard, ":a :p 1 {| acl:allowedSid 'S-1' |} . :b :p 1 {| acl:allowedSid 'S-2' |} . :c :p 1 ."
        )
        await insert(shard, "GRAPH <urn:g:1> { :d :p 1 . :a :p 1 } GRAPH <urn:h:1> { :e :p 1 }")
        assert await seen_by(shard, FULL_VISIBILITY) == "aabcde"
        assert await seen_by(shard, ONE) == "aacde"
        assert await seen_by(shard, TWO) == "abcde"
        assert await seen_by(shard, EVERY_GRAPH) == "acde"
        assert await seen_by(shard, GRAPH) == "ad"
        assert await seen_by(shard, NO_VISIBILITY) == ""
        await write(shard, "DELETE { ?r acl:allowedSid 'S-2' } WHERE { ?r acl:allowedSid 'S-2' }")
        await insert(shard, ":a :q 1 . :f :p 1 . GRAPH <urn:g:2> { :g :p 1 {| acl:allowedSid 'S-1' |} }")
        assert await seen_by(shard, ONE) == "aabcdefg"
        assert await seen_by(shard, TWO) == "abcdef"
        assert await seen_by(shard, GRAPH) == "ad"


@pytest.mark.parametrize("is_made_before", [True, False])
async def test_a_graph_of_which_nothing_is_seen_is_not_there(tmp_path: Path, is_made_before: bool) -> None:
    hidden = "GRAPH <urn:g:1> { :a :p 1 {| acl:allowedSid 'S-1' |} }"

    async def graphs(visibility: Visibility) -> set[str]:
        return {str(graph) for graph in (await view_of(shard, visibility)).quads.named_graphs()}

    async with stand_alone(tmp_path) as shard:
        await insert(shard, f"{hidden} :x :p 1 {{| acl:allowedSid 'S-2' |}}")
        if is_made_before:
            assert await graphs(EVERY_GRAPH) == set()
        await insert(shard, "GRAPH <urn:g:1> { :b :p 1 }")
        assert await graphs(EVERY_GRAPH) == {"<urn:g:1>"}
        update = parse_update("DROP GRAPH <urn:g:1>")
        await shard.writes(EVERY_GRAPH).update(update, Dataset())
        assert await graphs(EVERY_GRAPH) == set()
        assert await graphs(ONE) == {"<urn:g:1>"}
        for visibility in (EVERY_GRAPH, ONE):
            check(shard, await view_of(shard, visibility))


async def test_those_who_see_the_same_share_a_view(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |}")
        keys = [
            (await shard.reads(replace(EVERY_GRAPH, sids=frozenset(sids)))).view_key
            for sids in (["S-8"], ["S-9", "S-7"], [], ["S-1"], ["S-1", "S-7"])
        ]
        assert keys[0] == keys[1] == keys[2] != keys[3] == keys[4]


async def test_a_view_follows_small_changes_and_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_module, "_TURN_QUADS_MAX", 60)
    rng = random.Random(7)
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |}")
        views = [await view_of(shard, visibility) for visibility in (ONE, EVERY_GRAPH, GRAPH)]
        for round_ in range(12):
            count = rng.choice([2, 100])
            for graph in ("DEFAULT", "GRAPH <urn:g:1>", "GRAPH <urn:h:1>"):
                block = "".join(
                    f":s{rng.randrange(50)} :p {rng.randrange(3)} {{| acl:allowedSid 'S-{sid}' |}} . "
                    for sid in rng.choices(range(3), k=count)
                )
                await insert(shard, block if graph == "DEFAULT" else f"{graph} {{ {block} }}")
            await write(shard, f"DELETE WHERE {{ ?s :p {round_ % 3} }}")
            await write(shard, "DELETE { ?r acl:allowedSid 'S-0' } WHERE { ?r acl:allowedSid 'S-0' }")
            if round_ % 4 == 3:
                await write(
                    shard,
                    "DROP GRAPH <urn:g:1>; CREATE SILENT GRAPH <urn:g:empty>; DROP SILENT GRAPH <urn:h:1>",
                )
            for view in views:
                await view.catch_up()
                check(shard, view)


async def test_a_view_is_brought_up_within_the_writers_turn(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |}")
        view = await view_of(shard, TWO)
        writes = [asyncio.create_task(insert(shard, f":b{number} :p 1")) for number in range(20)]

        async def in_turn(index: int) -> None:
            await view.follow(index)
            assert view.index == index
            check(shard, view)

        await asyncio.sleep(0)
        await opened(shard).writer.hold_turn(in_turn)
        await asyncio.gather(*writes)


async def test_who_listens_hears_each_entry_as_it_is_in_the_view(tmp_path: Path) -> None:
    told: list[LoggedChange] = []
    through: asyncio.Queue[int] = asyncio.Queue()

    def on_changes(changes: Sequence[LoggedChange], index: int) -> None:
        told.extend(changes)
        through.put_nowait(index)

    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |}")
        view = await view_of(shard, TWO)
        stop = await view.listen(Listener(on_changes, lambda: None))
        writes = [insert(shard, f":b{number} :p 1") for number in range(3)]
        indexes = await asyncio.gather(*writes)
        hidden = await insert(shard, ":c :p 1 {| acl:allowedSid 'S-1' |}")
        shown = await write(shard, "DELETE WHERE { ?r acl:allowedSid ?sid }")
        while await through.get() < shown:
            continue
        stop()
        assert [one.index for one in told] == [*sorted(indexes), shown]
        assert hidden not in [one.index for one in told]
        assert [subjects(one.change.added) for one in told[:3]] == [{"b0"}, {"b1"}, {"b2"}]
        assert {"a", "c"} <= subjects(told[-1].change.added)  # and what reifies them
        assert not told[-1].change.removed
        check(shard, view)


def subjects(quads: Sequence[Quad]) -> set[str]:
    return {str(quad.subject).strip("<>").removeprefix("urn:x:") for quad in quads}


async def test_reads_given_out_do_not_show_what_came_to_be_hidden(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        await insert(shard, ":a :p 1")
        reads = await shard.reads(ONE)
        assert names(reads) == ["a"]
        await insert(shard, ":b :p 1 {| acl:allowedSid 'S-2' |}")
        assert reads.exact_index() is None
        with pytest.raises(Overloaded):
            names(reads)
        request = QueryRequest(ALL, Dataset(), ResultFormat.CSV, 10)
        answer = await reads.start_query(request)
        pieces = [await answer.read(), await answer.read()]
        answer.close()
        assert pieces == [b"s\r\nurn:x:a\r\n", None]
        assert not answer.is_exact


async def test_a_sid_that_comes_into_use_shows_at_once_what_it_allows(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |} . :b :p 1")
        before = await shard.reads(TWO)
        assert names(before) == ["b"]
        await write(shard, "DELETE DATA { :b :p 1 } ; INSERT DATA { :c :p 1 {| acl:allowedSid 'S-2' |} }")
        await shard.reads(replace(EVERY_GRAPH, sids=frozenset({"S-3"})))  # takes the view on
        assert await seen_by(shard, TWO) == "c"
        with pytest.raises(Overloaded):
            names(before)


async def test_views_that_are_not_used_go(tmp_path: Path) -> None:
    async with open_shard(tmp_path, server={"views": 2}) as shard:
        await insert(shard, " . ".join(f":a{n} :p 1 {{| acl:allowedSid 'S-{n}' |}}" for n in range(4)))
        visibilities = [replace(EVERY_GRAPH, sids=frozenset({f"S-{n}"})) for n in range(4)]
        first = await shard.reads(visibilities[0])
        for number, visibility in enumerate(visibilities):
            assert await seen_by(shard, visibility) == f"a{number}"
        assert names(first) == ["a0"]  # for whoever still holds it
        request = QueryRequest(ALL, Dataset(), ResultFormat.CSV, 10)
        answer = await first.start_query(request)
        assert await answer.read() == b"s\r\nurn:x:a0\r\n"
        answer.close()
        del first, answer
        for _ in range(100):
            if len(list((tmp_path / "views").glob("view-*"))) <= 2:
                break
            gc.collect()
            await asyncio.sleep(0.05)
        assert len(list((tmp_path / "views").glob("view-*"))) <= 2


async def test_nothing_is_left_of_views_at_the_next_start(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        await insert(shard, ":a :p 1 {| acl:allowedSid 'S-1' |}")
        assert await seen_by(shard, TWO) == ""
    (tmp_path / "views").mkdir(exist_ok=True)
    (tmp_path / "views" / "left").write_text("over")
    async with stand_alone(tmp_path) as shard:
        assert not list((tmp_path / "views").iterdir())
        assert await seen_by(shard, TWO) == ""
