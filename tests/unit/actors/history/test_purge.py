"""Purges of real nodes: what was purged is in no answer and in no file, whatever becomes of the node."""

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.history import history_keeper
from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.node import purge_runner
from actors.node.store_lifecycle import StoreConfig
from actors.readers.write_evaluation import WriteChecks
from actors.shard.store_directory import StoreDirectory
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.config.limits import GateLimits
from graphdb.errors import ChangesForgotten, CorruptionError, GraphDBError, LogUnavailable, ShapesViolated
from graphdb.history.asked import EVERYTHING
from graphdb.history.moments import read_moment
from graphdb.history.pages import PageRequest
from graphdb.history.places import HISTORY
from graphdb.history.purging import PurgeScope, purge_file
from graphdb.live.live_queries import read_live_query
from graphdb.live.notifications import Notification
from graphdb.log.request_ids import keyed
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.property.test_purging import without
from tests.property.twin import Twin, twin_of
from tests.support.clustered_shards import Nodes, nodes
from tests.support.file_texts import files_with
from tests.support.readers import answering
from tests.support.shards import SMALL_LOG, Shard, no_readers
from tests.support.timing import HANG_S
from tests.unit.actors.clustering.test_enforced_shapes import validate_here

pytestmark = pytest.mark.anyio

PERSON = "https://example.org/person/4711"
FRIEND = "https://example.org/person/4712"
SECRET = "born-in-Ulm"
SCOPE = PurgeScope("resource", PERSON)
UPDATES = (
    f'INSERT DATA {{ <{PERSON}> <urn:name> "{SECRET}" . <{FRIEND}> <urn:knows> <{PERSON}> , <urn:b> }}',
    f"INSERT DATA {{ GRAPH <urn:g> {{ <urn:r> <urn:reifies> <<( <{PERSON}> <urn:p> <urn:o> )>> }} }}",
    f"INSERT DATA {{ GRAPH <{PERSON}> {{ <urn:a> <urn:b> <urn:c> }} GRAPH <urn:h> {{ <urn:a> <urn:b> 1 }} }}",
    f"DELETE WHERE {{ <{FRIEND}> <urn:knows> <{PERSON}> }}",
    f'INSERT DATA {{ <{FRIEND}> <urn:name> "kept" . <urn:x> <{PERSON}> <urn:y> }}',
)


@asynccontextmanager
async def node(directory: Path, **sections: Any) -> AsyncIterator[Shard]:
    """A node without readers that has a history."""
    config = replace(SMALL_LOG, history=str(directory / HISTORY))
    log = UpdateLog(str(directory / "log"), config, keep_bytes=1 << 30)
    settings = Settings.model_validate({"server": {"data_dir": directory}, **sections})
    client = LogClient(answering(log.endpoint()))
    shard = Shard.standalone(settings, client, no_readers(), StoreConfig(look_s=0.05))
    try:
        await shard.start()
        yield shard
    finally:
        await shard.close()
        log.close()


async def update(shard: Shard, text: str) -> int:
    writes = shard.writes(FULL_VISIBILITY)
    return (await writes.update(parse_update(text), Dataset())).snapshot_index


async def fill(shard: Shard) -> dict[int, Twin]:
    """The state after each update, by its index."""
    states = {}
    for text in UPDATES:
        index = await update(shard, text)
        states[index] = twin_of(shard.opened().quads)
    return states


async def purge(shard: Shard, scope: PurgeScope = SCOPE) -> int:
    async with asyncio.timeout(HANG_S):
        record = await shard.node.purges.purge(scope, "basic:ann", None, HANG_S)
    assert record.is_done
    return record.log_index


async def state_at(shard: Shard, index: int) -> Twin:
    store = await shard.opened().past.visible_store(read_moment(str(index)), FULL_VISIBILITY, HANG_S)
    return twin_of(store.quads)


async def test_no_state_has_it_any_more_and_every_state_has_all_else(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        states = await fill(shard)
        assert files_with(tmp_path, PERSON)
        index = await purge(shard)
        assert shard.node.purges.last_index() == index
        for at, state in states.items():
            assert await state_at(shard, at) == without(state, SCOPE), at
        assert twin_of(shard.opened().quads) == without([*states.values()][-1], SCOPE)
        page = await shard.node.history.page(PageRequest(EVERYTHING, 100), FULL_VISIBILITY)
        assert page.oldest_index == 0
        assert PERSON not in repr(page)
        await shard.node.admin.backup(tmp_path / "backup")
        assert files_with(tmp_path, PERSON, SECRET) == []
        last = await update(shard, "INSERT DATA { <urn:later> <urn:b> 1 }")
        state = twin_of(shard.opened().quads)
    assert files_with(tmp_path, PERSON, SECRET) == []
    async with node(tmp_path) as shard:
        assert twin_of(shard.opened().quads) == state
        assert await state_at(shard, last - 1) != state
        assert shard.node.purges.last_index() == index
    assert files_with(tmp_path, PERSON, SECRET) == []


async def test_a_graph_goes_with_its_name(tmp_path: Path) -> None:
    scope = PurgeScope("graph", "urn:h")
    async with node(tmp_path) as shard:
        states = await fill(shard)
        await purge(shard, scope)
        for at, state in states.items():
            assert await state_at(shard, at) == without(state, scope), at
    assert files_with(tmp_path, "urn:h") == []
    assert files_with(tmp_path, "urn:g")


async def test_what_comes_again_later_stays(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        await fill(shard)
        await purge(shard)
        again = await update(shard, UPDATES[0])
        state = twin_of(shard.opened().quads)
        await update(shard, f"DELETE WHERE {{ <{PERSON}> ?p ?o }}")
        other = PurgeScope("resource", "urn:r")
        await purge(shard, other)
        assert await state_at(shard, again) == without(state, other)


class Copies:
    """Copies of a data directory at moments of a purge: what a kill -9 would leave."""

    def __init__(self, data_dir: Path, target: Path) -> None:
        self._data_dir, self._target = data_dir, target
        self.made: dict[str, Path] = {}

    def take(self, moment: str) -> None:
        if moment not in self.made:
            self.made[moment] = self._target / str(len(self.made))
            shutil.copytree(self._data_dir, self.made[moment], ignore=shutil.ignore_patterns("*.sock"))

    def around(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        """Before and after each call."""
        function = getattr(owner, name)

        def wrapped(*arguments: Any) -> Any:
            self.take(f"before {name}")
            result = function(*arguments)
            self.take(f"after {name}")
            return result

        monkeypatch.setattr(owner, name, wrapped)


async def test_a_purge_that_was_cut_short_is_finished_after_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = tmp_path / "data"
    copies = Copies(data_dir, tmp_path)
    async with node(data_dir) as shard:
        states = await fill(shard)
        with monkeypatch.context() as patched:
            copies.around(patched, history_keeper, "purge_file")
            copies.around(patched, StoreDirectory, "adopt_snapshot")
            index = await purge(shard)
    assert len(copies.made) == 4
    for moment, copy in copies.made.items():
        async with node(copy) as shard:
            await shard.node.parts.purging.wait_done(index, HANG_S)
            assert shard.node.purges.list()[-1].is_done, moment
            at = min(states)
            assert await state_at(shard, at) == without(states[at], SCOPE), moment
            assert twin_of(shard.opened().quads) == without([*states.values()][-1], SCOPE)
        assert files_with(copy, PERSON, SECRET) == [], moment
        shutil.rmtree(copy)


async def test_a_node_that_was_down_purges_when_it_is_back(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as made:
        await made.start(1, 2, 3)
        states = await fill(made.shards[1])
        index = max(states)
        for shard in made.shards.values():
            await shard.node.progress.wait_for_index(index, HANG_S)
        await made.stop(3)
        record = await made.shards[1].node.purges.purge(SCOPE, "basic:ann", None, HANG_S)
        assert 3 in record.waiting
        assert files_with(made.logs.data_dir(3), SECRET)
        await made.start(3)
        for number in made.shards:
            await until_purged(made, number)
        last = without([*states.values()][-1], SCOPE)
        for shard in made.shards.values():
            assert twin_of(shard.opened().quads) == last
            assert shard.node.purges.last_index() == record.log_index


async def until_purged(made: Nodes, number: int) -> None:
    for _ in range(int(HANG_S / 0.05)):
        purges = made.shards[number].node.purges.list()
        if purges and purges[-1].is_done and not files_with(made.logs.data_dir(number), PERSON, SECRET):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"node {number} has {files_with(made.logs.data_dir(number), PERSON, SECRET)}")


class Ended:
    """A sink that remembers why it has ended."""

    def __init__(self) -> None:
        self.errors: list[GraphDBError] = []

    def opened(self, subscription: str, index: int) -> None: ...
    def notify(self, subscriptions: Sequence[str], notification: Notification) -> None: ...

    def ended(self, subscriptions: Sequence[str], error: GraphDBError) -> None:
        self.errors.append(error)


async def test_live_queries_end_and_nobody_resumes_from_before(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        states = await fill(shard)
        sink, query = Ended(), read_live_query("LIVE SELECT * FROM Person", GateLimits())
        await shard.subscribe(query, None, sink)
        stream = await shard.live(FULL_VISIBILITY).follow_changes(min(states), HANG_S)
        assert files_with(tmp_path / "live", SECRET)
        index = await purge(shard)
        assert [type(error) for error in sink.errors] == [ChangesForgotten]
        assert files_with(tmp_path, PERSON, SECRET) == []
        with pytest.raises(ChangesForgotten):
            await stream.read(HANG_S)
        with pytest.raises(ChangesForgotten):
            await shard.live(FULL_VISIBILITY).follow_changes(index - 1, HANG_S)
        await shard.subscribe(query, None, sink)


async def test_a_purge_that_is_sent_again_is_the_same_one(tmp_path: Path) -> None:
    async with node(tmp_path) as shard:
        await fill(shard)
        key = keyed("again", "POST", b"/history/purge", ())
        first = await shard.node.purges.purge(SCOPE, "basic:ann", key, HANG_S)
        await update(shard, UPDATES[0])
        state = twin_of(shard.opened().quads)
        again = await shard.node.purges.purge(SCOPE, "basic:ann", key, HANG_S)
        assert again == first
        assert twin_of(shard.opened().quads) == state


async def test_backups_wait_until_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with node(tmp_path) as shard:
        await fill(shard)
        allowed = threading.Event()
        exchange = purge_runner._exchange

        def waiting(tree: Path) -> None:
            allowed.wait(HANG_S)
            exchange(tree)

        monkeypatch.setattr(purge_runner, "_exchange", waiting)
        record = await shard.node.purges.purge(SCOPE, "basic:ann", None, 0.1)
        assert not record.is_done
        with pytest.raises(LogUnavailable, match="a purge is under way"):
            await shard.node.admin.backup(tmp_path / "backup")
        allowed.set()
        await shard.node.parts.purging.wait_done(record.log_index, HANG_S)
        await shard.node.admin.backup(tmp_path / "backup")
        assert files_with(tmp_path, PERSON, SECRET) == []


async def test_no_state_of_before_leads_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with node(tmp_path) as shard:
        states = await fill(shard)
        first = min(states)
        assert await state_at(shard, first) == states[first]
        allowed, begun = threading.Event(), asyncio.Event()
        exchange, loop = purge_runner._exchange, asyncio.get_running_loop()

        def waiting(tree: Path) -> None:  # the history is purged by then, the store is not
            loop.call_soon_threadsafe(begun.set)
            allowed.wait(HANG_S)
            exchange(tree)

        monkeypatch.setattr(purge_runner, "_exchange", waiting)
        record = await shard.node.purges.purge(SCOPE, "basic:ann", None, 0.1)
        try:
            async with asyncio.timeout(HANG_S):
                await begun.wait()
            for at, state in states.items():
                assert await state_at(shard, at) == without(state, SCOPE), at
        finally:
            allowed.set()
        await shard.node.parts.purging.wait_done(record.log_index, HANG_S)


async def test_states_do_not_mix_where_the_history_is_written_anew_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries of before the purge stand in two files: the first is without it, the second cannot be read."""
    async with node(tmp_path) as shard:
        states = await fill(shard)
        await shard.opened().checkpointer.checkpoint()
        await shard.node.parts.log.drop_before(max(states) + 1)
        again = await update(shard, UPDATES[0])
        states[again] = twin_of(shard.opened().quads)
        calls, failed, loop = 0, asyncio.Event(), asyncio.get_running_loop()

        def failing(*arguments: Any) -> bool:
            nonlocal calls
            calls += 1
            if calls == 2:
                loop.call_soon_threadsafe(failed.set)
                raise CorruptionError("a sector is lost", "history")
            return purge_file(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(history_keeper, "purge_file", failing)
            record = await shard.node.purges.purge(SCOPE, "basic:ann", None, 0.1)
            async with asyncio.timeout(HANG_S):
                await failed.wait()
            assert files_with(tmp_path / HISTORY, PERSON)
            for at, state in states.items():
                assert await state_at(shard, at) == without(state, SCOPE), at
            whole = PageRequest(EVERYTHING, 100)
            assert PERSON not in repr(await shard.node.history.page(whole, FULL_VISIBILITY))
            back = read_moment(str(record.log_index)), read_moment(str(again))
            found = await shard.node.history.difference(EVERYTHING, *back, FULL_VISIBILITY)
            assert not found.change  # so that going back does not bring it back


async def test_what_shapes_refuse_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WriteChecks, "validate", validate_here)
    shape = (
        "<urn:S> sh:targetNode <urn:order> ; sh:property <urn:P> . <urn:P> sh:path <urn:by> ; sh:minCount 1"
    )
    async with node(tmp_path, shacl={"enforce_graph": "urn:shapes"}) as shard:
        states = await fill(shard)
        await update(shard, f"INSERT DATA {{ <urn:order> <urn:by> <{PERSON}> }}")
        await update(
            shard,
            "PREFIX sh: <http://www.w3.org/ns/shacl#> "
            f"INSERT DATA {{ GRAPH <urn:shapes> {{ {shape} . <{PERSON}> a <urn:Person> }} }}",
        )
        state = twin_of(shard.opened().quads)
        for scope in (SCOPE, PurgeScope("resource", "http://www.w3.org/ns/shacl#path")):
            with pytest.raises(ShapesViolated, match=r"nothing was purged: .*\. Then send the purge again"):
                await purge(shard, scope)
        assert twin_of(shard.opened().quads) == state
        assert not shard.node.purges.list()
        await update(
            shard,
            f"DELETE DATA {{ <urn:order> <urn:by> <{PERSON}> }} ; INSERT DATA {{ <urn:order> <urn:by> 'X' }}",
        )
        await purge(shard)
        assert await state_at(shard, max(states)) == without([*states.values()][-1], SCOPE)
