"""Live queries and changes for those who do not see the whole graph, on a node with a real store and log."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import orjson
import pytest
from pyoxigraph import DefaultGraph, Quad

from actors.live import visible_live
from graphdb.access.annotations import VisibleQuads
from graphdb.access.visibility import FULL_VISIBILITY, NO_VISIBILITY, Visibility
from graphdb.config.limits import GateLimits
from graphdb.errors import ChangesForgotten, GraphDBError, LogUnavailable, Overloaded
from graphdb.live.changes import LoggedChange
from graphdb.live.live_queries import read_live_query
from graphdb.live.matcher import LiveQuery
from graphdb.live.notifications import Notification
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.shards import Shard, open_shard, stand_alone
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

EVERY_GRAPH = Visibility(default_graph=True, patterns=frozenset({"*"}))
ONE, TWO = (replace(EVERY_GRAPH, sids=frozenset({sid})) for sid in ("S-1", "S-2"))
DEFAULT = Visibility(default_graph=True)
PREFIX = "PREFIX : <urn:x:> PREFIX acl: <urn:graphdb:acl#> "
PREFIX += "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "


def query(text: str) -> LiveQuery:
    return read_live_query(text, GateLimits())


PERSONS = query("LIVE SELECT * FROM Person")
PAIRS = query("LIVE SELECT ?s ?n WHERE { ?s a <urn:x:Person> ; <urn:x:n> ?n }")
PATHS = query("LIVE SELECT ?s ?o WHERE { ?s <urn:x:knows>+ ?o }")  # is evaluated anew


class Heard:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.told: list[Notification] = []
        self.errors: list[GraphDBError] = []
        self.begun: dict[str, int] = {}

    def opened(self, subscription: str, index: int) -> None:
        self.begun[subscription] = index

    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None:
        self.told.append(notification)

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        self.errors.append(error)

    @property
    def steps(self) -> list[list[bytes]]:
        """What was told, entry by entry of the log."""
        return [
            sorted(orjson.dumps([one.action, one.result], option=orjson.OPT_SORT_KEYS) for one in told)
            for _, told in groupby(self.told, key=lambda one: one.index)
        ]

    def actions(self) -> list[str]:
        return [one.action for one in self.told]

    async def count(self, count: int) -> None:
        async with asyncio.timeout(HANG_S):
            while len(self.told) < count:  # noqa: ASYNC110 a sink is called, it does not wait
                await asyncio.sleep(0.005)

    async def error(self) -> GraphDBError:
        async with asyncio.timeout(HANG_S):
            while not self.errors:  # noqa: ASYNC110 likewise
                await asyncio.sleep(0.005)
        return self.errors[0]


async def write(shard: Shard, text: str) -> int:
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(PREFIX + text), Dataset())).snapshot_index


def annotation(number: int, triple: str, sid: str) -> str:
    return f':r{number} rdf:reifies <<( {triple} )>> ; acl:allowedSid "{sid}" .'


async def told(shard: Shard, sink: Heard, marker: int) -> None:
    """Wait until everything so far was told: by a person that all of these visibilities see."""
    await write(shard, f"INSERT DATA {{ :marker{marker} a :Person ; :n {marker} }}")
    async with asyncio.timeout(HANG_S):
        while not any(f"marker{marker}" in repr(one.result) for one in sink.told):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_what_appears_in_and_disappears_from_the_view_is_told(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        sink, other = Heard(), Heard()
        await write(shard, f"INSERT DATA {{ :a a :Person ; :n 1 . {annotation(0, ':z :n 1', 'S-2')} }}")
        await shard.live(ONE).subscribe(PAIRS, None, sink)
        await shard.live(TWO).subscribe(PAIRS, None, other)
        await write(shard, f"INSERT DATA {{ {annotation(1, ':a :n 1', 'S-2')} }}")
        await told(shard, sink, 1)
        assert sink.actions() == ["DELETE", "CREATE"]  # hidden now, and the marker
        # who does not see a triple hears nothing of its end, either
        await write(shard, "DELETE DATA { :a :n 1 }")
        await write(shard, "INSERT DATA { :a :n 1 }")
        await told(shard, sink, 2)
        assert sink.actions() == ["DELETE", "CREATE", "CREATE"]
        await write(shard, "DELETE WHERE { :r1 ?p ?o }")
        await told(shard, sink, 3)
        assert sink.actions() == ["DELETE", "CREATE", "CREATE", "CREATE", "CREATE"]
        await told(shard, other, 4)
        assert other.actions() == ["CREATE", "DELETE", "CREATE", "CREATE", "CREATE", "CREATE"]


async def test_a_graph_that_is_not_seen_tells_nothing(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        live = shard.live(DEFAULT)
        stream = await live.follow_changes(None, 5)
        nothing = await shard.live(NO_VISIBILITY).follow_changes(None, 5)
        await write(shard, "INSERT DATA { GRAPH :hidden { :a a :Person } }")
        index = await write(shard, "INSERT DATA { :b a :Person . GRAPH :hidden { :c a :Person } }")
        await write(shard, "DROP GRAPH :hidden")
        changes: list[LoggedChange] = []
        async with asyncio.timeout(HANG_S):
            while stream.through < index:
                changes += await stream.read(5) or ()
        changes += await stream.read(1) or ()
        assert [(one.index, [str(q.subject) for q in one.change.added]) for one in changes] == [
            (index, ["<urn:x:b>"])
        ]
        assert not any(one.change.created_graphs or one.change.dropped_graphs for one in changes)
        assert await nothing.read(1) == []
        stream.close()
        nothing.close()


async def test_who_sees_all_begins_anew_with_the_first_annotation(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        sink = Heard()
        since = await write(shard, "INSERT DATA { :a a :Person ; :n 1 }")
        subscription = await shard.live(ONE).subscribe(PERSONS, None, sink)
        stream = await shard.live(ONE).follow_changes(None, 5)
        assert not list((tmp_path / "views").iterdir())
        await write(shard, "DELETE DATA { :a :n 1 }; INSERT DATA { :a :n 2 }")
        await sink.count(1)
        assert len(await stream.read(5) or ()) == 1
        await write(shard, f"INSERT DATA {{ :s a :Person ; :n 7 . {annotation(1, ':s :n 7', 'S-2')} }}")
        assert isinstance(await sink.error(), ChangesForgotten)
        with pytest.raises(ChangesForgotten):
            await stream.read(5)
        assert sink.actions() == ["UPDATE"]
        assert not await shard.unsubscribe(subscription)
        again = Heard()
        subscription = await shard.live(ONE).subscribe(PERSONS, None, again)
        await write(shard, "DELETE DATA { :s :n 7 }; INSERT DATA { :s :n 8 }")
        await again.count(1)
        assert [one.result for one in again.told] == [
            {"id": "urn:x:s", "type": ["urn:x:Person"], "n": 8}
        ] or ("8" in repr(again.told[0].result) and "7" not in repr(again.told[0].result))
        # what was before, the view does not know
        for ask in (shard.live(ONE).follow_changes, lambda since, _: subscribe(shard, since)):
            with pytest.raises(ChangesForgotten):
                await ask(since, 5)
        # and when the last annotation is gone, what was before is not told from the log
        await write(shard, "DELETE WHERE { ?r acl:allowedSid ?s }")
        with pytest.raises(ChangesForgotten):
            await shard.live(TWO).follow_changes(since, 5)
        assert await shard.unsubscribe(subscription)
        assert not await shard.unsubscribe(subscription)


async def subscribe(shard: Shard, since: int) -> str:
    return await shard.live(ONE).subscribe(PERSONS, since, Heard())


async def test_who_comes_back_hears_what_the_view_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible_live, "_LOOK_S", 0.05)
    async with stand_alone(tmp_path) as shard:
        first, again = Heard(), Heard()
        await write(shard, f"INSERT DATA {{ {annotation(0, ':z :n 1', 'S-2')} }}")
        subscription = await shard.live(ONE).subscribe(PAIRS, None, first)
        since = await write(shard, "INSERT DATA { :a a :Person ; :n 1 }")
        await first.count(1)
        await shard.unsubscribe(subscription)
        await write(shard, "DELETE DATA { :a :n 1 }")
        await write(shard, f"INSERT DATA {{ :b a :Person ; :n 1 . {annotation(1, ':b :n 1', 'S-2')} }}")
        await write(shard, "INSERT DATA { :c a :Person ; :n 1 }")
        await shard.live(ONE).subscribe(PAIRS, since, again)
        await again.count(2)
        await told(shard, again, 1)
        assert again.actions() == ["DELETE", "CREATE", "CREATE"]
        assert "urn:x:b" not in repr([one.result for one in again.told])


async def test_views_that_nobody_follows_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_live, "_LOOK_S", 0.05)
    monkeypatch.setattr(visible_live, "_KEEP_S", 0.1)
    async with stand_alone(tmp_path) as shard:
        stream = await shard.live(DEFAULT).follow_changes(None, 5)
        await asyncio.sleep(0.4)
        assert len(shard._visible_live._places) == 1
        stream.close()
        async with asyncio.timeout(HANG_S):
            while shard._visible_live._places:  # noqa: ASYNC110 nothing tells
                await asyncio.sleep(0.05)
        stream = await shard.live(DEFAULT).follow_changes(None, 5)
        index = await write(shard, "INSERT DATA { :b a :Person }")
        assert [one.index for one in await stream.read(5) or ()] == [index]
        stream.close()


async def test_a_node_that_stops_says_so(tmp_path: Path) -> None:
    sink = Heard()
    async with stand_alone(tmp_path) as shard:
        await shard.live(DEFAULT).subscribe(PERSONS, None, sink)
        assert shard.embedded_store().active_listener_count == 1
    assert [type(error) for error in sink.errors] == [LogUnavailable]


async def test_subscriptions_of_all_visibilities_are_bounded_together(tmp_path: Path) -> None:
    async with open_shard(tmp_path, live={"max_subscriptions": 2}) as shard:
        await shard.live(DEFAULT).subscribe(PERSONS, None, Heard())
        await shard.subscribe(PERSONS, None, Heard())
        for live in (shard.live(ONE), shard.live(DEFAULT), shard):
            with pytest.raises(Overloaded, match=r"^2 subscriptions are .* \(live\.max_subscriptions\)"):
                await live.subscribe(PERSONS, None, Heard())


async def test_those_that_are_being_opened_count(tmp_path: Path) -> None:
    async with open_shard(tmp_path, live={"max_subscriptions": 3}) as shard:
        opening = [shard.subscribe(PERSONS, None, Heard()) for _ in range(10)]
        outcomes = await asyncio.gather(*opening, return_exceptions=True)
        opened = [one for one in outcomes if isinstance(one, str)]
        assert len(opened) == shard.embedded_store().active_listener_count == 3
        refused = {str(one) for one in outcomes if isinstance(one, Overloaded)}
        assert refused == {"3 subscriptions are open already (live.max_subscriptions)"}
        await shard.unsubscribe(opened[0])
        await shard.subscribe(PERSONS, None, Heard())


def seen(shard: Shard, visibility: Visibility) -> set[Quad]:
    assert shard.open is not None
    state = shard.open.quads
    visible_quads = VisibleQuads(visibility, state)
    return {quad for quad in state.dataset_quads() if visible_quads.sees(quad)}


def statement(quad: Quad) -> str:
    if isinstance(quad.graph_name, DefaultGraph):
        return f"{quad.triple} ."
    return f"GRAPH {quad.graph_name} {{ {quad.triple} }}"


def step(rng: random.Random) -> str:
    """Some change of people, of what they know, and of who may see that."""
    who, other, number = (rng.randrange(4) for _ in range(3))
    triples = [f":p{who} a :Person", f":p{who} :n {number}", f":p{who} :knows :p{other}"]
    texts = []
    for _ in range(rng.randint(1, 3)):
        triple = rng.choice(triples)
        graph = rng.choice(["", "", ":open", ":shut"])
        place = f"GRAPH {graph} {{ %s }}" if graph else "%s"
        key = triples.index(triple) * 10 + who
        note = annotation(key, triple, rng.choice(["S-1", "S-2"]))
        texts.append(
            rng.choice(
                [
                    f"INSERT DATA {{ {place % triple} }}",
                    f"INSERT DATA {{ {place % triple} }}",
                    f"DELETE DATA {{ {place % triple} }}",
                    f"INSERT DATA {{ {place % note} }}",
                    f"DELETE WHERE {{ {place % f':r{key} ?p ?o'} }}",
                ]
            )
        )
    return "; ".join(texts)


@pytest.mark.parametrize("seed", range(3))
async def test_events_are_those_of_a_store_that_has_only_what_is_seen(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    visibility = [ONE, DEFAULT, Visibility(False, True, frozenset({"urn:x:open"}), frozenset({"S-2"}))][seed]
    (tmp_path / "whole").mkdir()
    (tmp_path / "twin").mkdir()
    async with open_shard(tmp_path / "whole") as shard, open_shard(tmp_path / "twin") as twin:
        for text in (f"INSERT DATA {{ {annotation(99, ':x :n 1', 'S-9')} }}", *map(step, [rng] * 5)):
            await write(shard, text)
        known = seen(shard, visibility)
        await write(twin, f"INSERT DATA {{ {' '.join(map(statement, known))} }}")
        queries = (PERSONS, PAIRS, PATHS)
        heard, twins = [Heard() for _ in queries], [Heard() for _ in queries]
        for one, sink, other in zip(queries, heard, twins, strict=True):
            await shard.live(visibility).subscribe(one, None, sink)
            await twin.subscribe(one, None, other)
        for _ in range(40):
            await write(shard, step(rng))
            now = seen(shard, visibility)
            gone, come = known - now, now - known
            if gone or come:
                texts = [("DELETE", gone), ("INSERT", come)]
                await write(
                    twin,
                    "; ".join(
                        f"{verb} DATA {{ {' '.join(map(statement, of))} }}" for verb, of in texts if of
                    ),
                )
            known = now
        for text in ("INSERT DATA { :last a :Person ; :n 1 ; :knows :final }",):
            await write(shard, text)
            await write(twin, text)
        for sink, other in zip(heard, twins, strict=True):
            async with asyncio.timeout(HANG_S):
                while not all(any("last" in repr(n.result) for n in one.told) for one in (sink, other)):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert not sink.errors + other.errors
            assert sink.steps == other.steps
        assert sum(len(sink.told) for sink in heard) > 10
