"""Queries of the past on the column view of a node, beside those on a store that is led back."""

import asyncio
import os
import random
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from actors.columns.client import ColumnRunner, LeftToReader
from actors.columns.database import ViewFiles
from actors.columns.protocol import ViewSettings
from actors.columns.view_keeper import _TRIM_EVERY, _ColumnState
from actors.disk_room import DiskRoom
from actors.node.queries import Queries
from actors.node.unmade_past import UnmadePast
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.columns.past_rows import past_from
from graphdb.config.service import Columns
from graphdb.errors import RequestError
from graphdb.history.moments import read_moment
from graphdb.log.payloads import encode_changes
from graphdb.model import ChangeSet, EntryKind, LogEntry
from graphdb.sparql.dataset import Dataset
from tests.support.columns import ColumnNode, open_columns
from tests.support.timing import HANG_S

PREFIX = "PREFIX : <http://example.org/> "
QUERIES = (
    "SELECT ?kind (COUNT(*) AS ?n) { ?s :kind ?kind } GROUP BY ?kind ORDER BY ?kind",
    "SELECT (SUM(?v) AS ?sum) { ?s :value ?v ; :kind :k1 }",
    "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
    "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ORDER BY ?g",
)


def update_text(number: int, chosen: random.Random) -> str:
    """Of every kind, among few quads."""
    some = [chosen.randrange(20) for _ in range(4)]
    first, graph = some[0], f":g{chosen.randrange(2)}"
    return chosen.choice(
        [
            f"INSERT DATA {{ {' '.join(f':s{s} :kind :k{s % 3} ; :value {number}.' for s in some)} }}",
            f"DELETE {{ ?s :value ?v }} INSERT {{ ?s :value {number} }} WHERE {{ ?s :value ?v }}",
            f"DELETE WHERE {{ :s{first} ?p ?o }}",
            f"INSERT DATA {{ GRAPH {graph} {{ :s{first} :kind :k1 . _:b :value {number} }} }}",
            f"CLEAR SILENT GRAPH {graph}",
            f"DROP SILENT GRAPH {graph}",
            f"CREATE SILENT GRAPH {graph}",
            f"COPY SILENT GRAPH {graph} TO :g2",
            "CLEAR DEFAULT",
        ]
    )


async def check(node: ColumnNode, indexes: list[int]) -> int:
    """How many answers came from the columns; all are those of the store as it was."""
    from_columns = 0
    for index in indexes:
        for text in QUERIES:
            where, answer = await node.query(PREFIX + text, as_of=index)
            await node.query(PREFIX + text)  # what is known of the present is not of the past
            again = (await node.query(PREFIX + text, as_of=index))[1]
            assert sorted(again.split()) == sorted(answer.split()), (index, text)
            store = node.shard.opened().past.visible_store
            past = await store(read_moment(str(index)), FULL_VISIBILITY, HANG_S)
            expected = past.quads.query_text(PREFIX + text, Dataset(), base_iri=None)
            assert sorted(answer.decode().split()) == sorted(_csv(expected).split()), (index, text)
            from_columns += where == "columns"
    return from_columns


def _csv(answer: Any) -> str:
    names = [variable.value for variable in answer.variables]
    rows = [",".join("" if row[name] is None else row[name].value for name in names) for row in answer]
    return "\n".join([",".join(names), *rows])


def test_the_columns_answer_of_the_past_what_the_store_had(tmp_path: Path) -> None:
    chosen = random.Random(7)

    async def run() -> None:
        async with open_columns(tmp_path, columns={"past": True}, history={"as_of_states": 30}) as node:
            await node.update(f"{PREFIX} INSERT DATA {{ :before :value 1 }}")
            await node.following()
            first = await node.update(f"{PREFIX} INSERT DATA {{ :s1 :kind :k1 ; :value 1 }}")
            indexes = [first]
            for number in range(40):
                with suppress(RequestError):
                    indexes.append(await node.update(PREFIX + update_text(number, chosen)))
            asked = chosen.sample(range(first, indexes[-1] + 1), 8)
            assert await check(node, asked) >= len(asked) * 3
            # the view's process is lost; what it kept is on the disk
            os.kill((await node.following()).pid, signal.SIGKILL)
            await asyncio.sleep(0.5)
            await node.following()
            assert await check(node, asked[:3]) >= 3 * 3

    asyncio.run(run())


def test_counts_of_states_that_are_asked_for_in_turn_are_their_own(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path, columns={"past": True}) as node:
            await node.update(f"{PREFIX} INSERT DATA {{ :before :kind :k0 }}")
            await node.following()
            indexes = [
                await node.update(f"{PREFIX} INSERT DATA {{ :s{number} :kind :k{number % 2} }}")
                for number in range(3)
            ]
            for text in (
                "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
                "SELECT (COUNT(*) AS ?n) { ?s :kind ?kind }",
            ):
                for place, index in [*enumerate(indexes)] * 3:  # from the second time on all is known
                    assert await node.query(PREFIX + text) == ("columns", b"n\r\n4\r\n")
                    where, answer = await node.query(PREFIX + text, as_of=index)
                    assert (where, answer) == ("columns", b"n\r\n%d\r\n" % (place + 2)), (text, index)

    asyncio.run(run())


def test_a_store_is_made_only_for_what_the_columns_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with open_columns(tmp_path, columns={"past": True, "chosen_by_cost": True}) as node:
            await node.update(f"{PREFIX} INSERT DATA {{ :before :kind :k0 }}")
            await node.following()
            indexes = [
                await node.update(f"{PREFIX} INSERT DATA {{ :s{number} :kind :k{number} }}")
                for number in range(4)
            ]
            states = node.shard.opened().past
            text = f"{PREFIX} SELECT ?s {{ ?s :kind ?kind }} ORDER BY ?s"
            for number, index in enumerate(indexes):
                state = await unmade(node, index)
                assert state is not None
                assert state.snapshot_index() == index
                expected = ["before", *(f"s{each}" for each in range(number + 1))]
                for asked in (state, state.uniting_graphs()):
                    stream = await asked.start_query(node.request(text))
                    assert stream.where.startswith("columns")
                    answer = (await stream.read() or b"").decode()
                    stream.close()
                    assert [line.rpartition("/")[2] for line in answer.split()[1:]] == expected
            assert not any(states.is_made(index) for index in indexes)
            # the columns do not unite graphs, so a reader has to answer, for whom the state is made
            named = await node.update(f"{PREFIX} INSERT DATA {{ GRAPH :g {{ :s9 :kind :k9 }} }}")
            last = await node.update(f"{PREFIX} INSERT DATA {{ :s10 :kind :k0 }}")
            state = await unmade(node, named)
            assert state is not None
            stream = await state.uniting_graphs().start_query(node.request(text))
            assert stream.where.startswith("reader")
            assert stream.snapshot_index == named < last
            assert (await stream.read() or b"").count(b"\r\n") == 7
            stream.close()
            assert states.is_made(named)
            monkeypatch.setattr("actors.node.queries._SOON_S", HANG_S)
            assert await unmade(node, indexes[1], is_look_up=True) is None
            assert states.is_made(indexes[1])
            assert await unmade(node, indexes[1]) is None
            # that it cannot be made is no fault as long as the columns can answer
            monkeypatch.setattr("actors.history.past_states._MAKING_MAX", 0)
            state = await unmade(node, indexes[2], is_look_up=True)
            assert state is not None
            stream = await state.start_query(node.request(text))
            assert stream.where.startswith("columns")
            stream.close()

    asyncio.run(run())


async def unmade(node: ColumnNode, index: int, *, is_look_up: bool = False) -> UnmadePast | None:
    queries: Queries = node.shard.node.queries
    return await queries.unmade(FULL_VISIBILITY, read_moment(str(index)), HANG_S, is_look_up=is_look_up)


def test_a_view_that_is_busy_for_a_moment_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.node.unmade_past._AGAIN_S", 0.01)
    told = list[bool]()
    start = ColumnRunner.start

    async def first_busy(self: ColumnRunner, *arguments: Any, **options: Any) -> Any:
        told.append(True)
        if len(told) < 4:
            return LeftToReader(None, is_for_now=True)
        return await start(self, *arguments, **options)

    async def run() -> None:
        async with open_columns(tmp_path, columns={"past": True}) as node:
            await node.update(f"{PREFIX} INSERT DATA {{ :before :kind :k0 }}")
            await node.following()
            index = await node.update(f"{PREFIX} INSERT DATA {{ :s1 :kind :k1 }}")
            await node.update(f"{PREFIX} INSERT DATA {{ :s2 :kind :k2 }}")
            states = node.shard.opened().past
            state = await unmade(node, index)
            assert state is not None
            never = asyncio.Event()

            async def makes_for_ever(*_: Any) -> None:
                await never.wait()

            monkeypatch.setattr(states, "_make", makes_for_ever)
            monkeypatch.setattr(ColumnRunner, "start", first_busy)
            stream = await state.start_query(node.request(PREFIX + QUERIES[0]))
            assert stream.where.startswith("columns")
            assert (await read_all(stream)).split()[1:] == [
                b"http://example.org/k0,1",
                b"http://example.org/k1,1",
            ]
            assert len(told) == 4

    asyncio.run(run())


class Outcome:
    """See `serve.backend.QueryOutcome`: the answer, whichever way it comes."""

    def __init__(self) -> None:
        self.body: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def answered(self, origin: Any, body: bytes) -> None:
        self.body.set_result(body)

    def goes_on(self, start: Any) -> None:
        async def read() -> None:
            self.body.set_result(await read_all(await start()))

        self._reading = asyncio.get_running_loop().create_task(read())


async def read_all(stream: Any) -> bytes:
    try:
        pieces = []
        while (piece := await stream.read()) is not None:
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        stream.close()


def test_a_state_that_is_known_is_asked_without_a_task(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path, columns={"past": True}) as node:
            await node.update(f"{PREFIX} INSERT DATA {{ :before :kind :k0 }}")
            await node.following()
            index = await node.update(f"{PREFIX} INSERT DATA {{ :s1 :kind :k1 }}")
            await node.update(f"{PREFIX} INSERT DATA {{ :s2 :kind :k2 }}")
            queries: Queries = node.shard.node.queries
            moment, states = read_moment(str(index)), node.shard.opened().past
            assert queries.unmade_at_once(moment) is None  # whether it is kept is to be looked up
            state = await unmade(node, index)
            assert state is not None
            text = PREFIX + QUERIES[0]
            await read_all(await state.start_query(node.request(text)))  # which leaves a connection
            known = queries.unmade_at_once(moment)
            assert known is not None
            await begun(node, known, text)
            assert not states.is_made(index)
            assert queries.made_at_once(moment) is None
            await states.visible_store(moment, FULL_VISIBILITY, HANG_S)
            made = queries.made_at_once(moment)
            assert made is not None
            assert made.snapshot_index() == index
            await begun(node, made, text)
            # answers of before a purge have to say so, and are not made there
            states._present = replace(states._present, purged_index=lambda: index + 1)
            assert queries.made_at_once(moment) is None
            assert queries.unmade_at_once(moment) is None

    asyncio.run(run())


async def begun(node: ColumnNode, state: Any, text: str) -> None:
    """Each time the same, whether it comes at once or not."""
    for number in range(3):
        outcome = Outcome()
        end = state.begin_query(node.request(f"{text} # {number}"), outcome)
        assert end is not None
        async with asyncio.timeout(HANG_S):
            body = await outcome.body
        assert body.split() == [b"kind,n", b"http://example.org/k0,1", b"http://example.org/k1,1"]


def test_what_was_purged_is_not_answered_from_a_view_of_before(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_columns(tmp_path, columns={"past": True, "wait_seconds": 0.01}) as node:
            await node.update(f"{PREFIX} INSERT DATA {{ :before :kind :k0 }}")
            await node.following()
            index = await node.update(f"{PREFIX} INSERT DATA {{ :s1 :kind :k0 }}")
            last = await node.update(f"{PREFIX} INSERT DATA {{ :s2 :kind :k0 }}")
            states = node.shard.opened().past
            key, known_from = states.known_by(index)
            assert known_from == index
            # as if something had been purged that the view has not come to
            states._present = replace(states._present, purged_index=lambda: last + 1)
            assert states.known_by(index)[1] == last + 1
            assert states.known_by(index)[0] != key  # so is what answers are kept by
            text = f"{PREFIX} SELECT (COUNT(*) AS ?n) {{ ?s :kind ?kind }}"
            assert await node.query(text, as_of=index) == ("reader", b"n\r\n2\r\n")
            state = await unmade(node, index)
            assert state is None
            state = await unmade(node, index - 1)
            assert state is not None
            stream = await state.start_query(node.request(text))
            assert stream.where.startswith("reader")
            stream.close()

    asyncio.run(run())


@pytest.mark.parametrize("is_on", [True, False])
def test_it_says_why_a_reader_answers(tmp_path: Path, *, is_on: bool) -> None:
    async def run() -> None:
        async with open_columns(tmp_path, columns={"past": is_on}) as node:
            early = await node.update(f"{PREFIX} INSERT DATA {{ :a :kind :k0 }}")
            await node.following()
            late = await node.update(f"{PREFIX} INSERT DATA {{ :b :kind :k0 }}")
            await node.update(f"{PREFIX} INSERT DATA {{ :c :kind :k0 }}")
            assert (await node.query(PREFIX + QUERIES[0]))[0] == "columns"
            where, answer = await node.query(PREFIX + QUERIES[0], as_of=late)
            assert answer.endswith(b"k0,2\r\n")
            assert where == ("columns" if is_on else "reader")
            told = await explained(node, late, FULL_VISIBILITY)
            assert told["path"] == where
            if not is_on:
                assert told["reason"] == "the column view keeps no past"
            # of the view's build there is nothing before
            told = await explained(node, early - 1, FULL_VISIBILITY)
            assert told["path"] == "reader"
            assert "keeps" in told["reason"]
            assert (await node.query(PREFIX + QUERIES[0], as_of=early - 1))[1] == b"kind,n\r\n"

    asyncio.run(run())


async def explained(node: ColumnNode, index: int, visibility: Visibility) -> dict[str, Any]:
    reads = await node.shard.reads(visibility, read_moment(str(index)), HANG_S)
    document: dict[str, Any] = await reads.explain_columns(node.request(PREFIX + QUERIES[0]))
    return document


def test_it_forgets_what_the_history_has_forgotten(tmp_path: Path) -> None:
    settings = ViewSettings.of(Columns(past=True))
    files = ViewFiles(tmp_path / "columns", settings)
    told = list[int]()

    def oldest(log_index: int) -> int:
        told.append(log_index)
        return log_index - 10

    Store(str(tmp_path / "store")).flush()
    state = _ColumnState(files, DiskRoom(tmp_path, 0), lambda: None, oldest)
    state.adopt_snapshot(0, tmp_path / "store")
    quad = Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal("o"))
    for index in range(1, _TRIM_EVERY + 1):
        change = ChangeSet((), (quad,)) if index % 2 else ChangeSet((quad,), ())
        state.apply([LogEntry(index, 0, EntryKind.CHANGES, bytes(16), 0, encode_changes(change))])
    assert told == [_TRIM_EVERY]
    view = state.opened
    assert view is not None
    assert past_from(view.connection) == _TRIM_EVERY - 10
    turns = view.connection.execute("SELECT log_index, added FROM past_turns ORDER BY log_index").fetchall()
    assert turns == [(index, index % 2 == 1) for index in range(_TRIM_EVERY - 9, _TRIM_EVERY + 1)]
    state.let_go(view)
