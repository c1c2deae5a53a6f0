"""A node that begins with a snapshot gets the history before it, whatever happens on the way; and nothing of
what was purged meanwhile.
"""

import asyncio
import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from actors.clustering import history_fetch, history_files
from actors.clustering.history_fetch import FetchMeans, HistoryFetch
from actors.clustering.history_files import HistoryFiles
from actors.history import history_keeper
from actors.history.history_keeper import HistoryKeeper
from actors.raft.log_requests import ForwardedRequest
from graphdb.config.service import History
from graphdb.errors import CorruptionError, LogUnavailable
from graphdb.history.archive import ArchiveName, verify
from graphdb.history.past_log import PastLog, archived_names
from graphdb.history.places import HISTORY, LOG
from graphdb.history.purging import PurgedUpTo, PurgeScope
from graphdb.log.file_log import FileLog, FileLogConfig, begin_log
from graphdb.log.file_system import RealFileSystem
from graphdb.log.payloads import encode_changes
from graphdb.model import ChangeSet, EntryKind, LogEntry
from tests.property.test_purging import without
from tests.support.clustered_shards import Nodes, nodes
from tests.support.file_texts import files_with
from tests.support.timing import HANG_S
from tests.unit.actors.history.test_purge import SCOPE, fill, state_at, until_purged, update

pytestmark = pytest.mark.anyio

COUNT, SNAPSHOT = 240, 190  # entries of the node that has all; that of the other's snapshot
GONE = PurgeScope("resource", "urn:gone")
PURGE = 230  # its log index
KEPT = History(keep="forever")


def entry(number: int) -> LogEntry:
    name = NamedNode(GONE.iri if number % 7 == 0 else f"urn:s{number}")
    change = ChangeSet(added=(Quad(name, NamedNode("urn:p"), Literal(f"{number} " + "x" * 200)),))
    return LogEntry(number, 0, EntryKind.CHANGES, b"%16d" % number, 1_000 * number, encode_changes(change))


def keeper_of(directory: Path, config: History = KEPT) -> HistoryKeeper:
    return HistoryKeeper(directory, config, lambda: COUNT, lambda: None, lambda: True, lambda: 1_000 * COUNT)


def told(directory: Path, last_index: int = COUNT) -> list[tuple[int, bytes]]:
    """What is kept of the past, without what was purged where that is so."""
    with closing(PastLog(directory)) as past:
        first_index = past.first_index(last_index)
        found = past.changes_between(first_index, last_index)
        return [(change.log_index, encode_changes(change.change)) for change in found]


def log_of(directory: Path) -> FileLog:
    config = FileLogConfig(8_192, 8_192, str(directory / HISTORY))
    return FileLog(RealFileSystem(), str(directory / LOG), config)


class Two:
    """A node that has all, and one that begins after its snapshot; the network between them, from a seed."""

    def __init__(self, directory: Path, seed: int, faults: float, config: History = KEPT) -> None:
        self.random, self.faults = random.Random(seed), faults
        self.full, self.new = directory / "full", directory / "new"
        self.asked = 0
        self.purge_is_known = self.is_purged = False
        self.needed_from: int | None = None
        for place in (self.full, self.new):
            place.mkdir()
        self.full_log = log_of(self.full)
        for number in range(1, COUNT + 1):
            self.full_log.append([entry(number)])
        self.full_log.truncate_before(120)
        self.full_keeper = keeper_of(self.full)
        self.full_keeper.tend()
        begin_log(RealFileSystem(), str(self.new / LOG), SNAPSHOT + 1)
        self.new_log = log_of(self.new)
        for number in range(SNAPSHOT + 1, COUNT + 1):
            self.new_log.append([entry(number)])
        self.keeper = HistoryKeeper(
            self.new, config, lambda: COUNT, lambda: self.needed_from, lambda: True, lambda: 1_000 * COUNT
        )
        self.files = HistoryFiles(self.full, lambda: COUNT, lambda: PURGE if self.is_purged else 0)
        (self.new / "wanted").touch()

    async def ask(self, node_id: int, request: ForwardedRequest, timeout_s: float) -> bytes:
        self.asked += 1
        if self.random.random() < self.faults:
            raise LogUnavailable("not in reach")
        answer = bytearray(await self.files.answer(request.body))
        if self.random.random() < self.faults / 2:
            answer = answer[: self.random.randrange(len(answer))]
        if answer and self.random.random() < self.faults / 2:
            answer[self.random.randrange(len(answer))] ^= 1 << self.random.randrange(8)
        return bytes(answer)

    async def fetch(self) -> None:
        await self.fetching().fetch()

    def fetching(self) -> HistoryFetch:
        async def reach_end() -> None: ...

        means = FetchMeans(
            self.new,
            self.new / "wanted",
            self.keeper,
            self.ask,
            lambda: [1],
            lambda: COUNT,
            lambda: PURGE if self.purge_is_known else 0,
            reach_end,
            lambda: self.needed_from,
        )
        return HistoryFetch(means)

    async def purge(self) -> None:
        """As `PurgeRunner` does it on each node, in any order."""
        self.purge_is_known = True
        nodes = [(self.full_log, self.full_keeper), (self.new_log, self.keeper)]
        self.random.shuffle(nodes)
        for log, keeper in nodes:
            await asyncio.to_thread(_purge, log, keeper)
            self.is_purged = self.is_purged or keeper is self.full_keeper
            await asyncio.sleep(self.random.random() / 20)

    def close(self) -> None:
        self.files.close()
        self.full_log.close()
        self.new_log.close()


def _purge(log: FileLog, keeper: HistoryKeeper) -> None:
    log.truncate_before(log.end_segment(COUNT + 1))
    keeper.purge([PurgedUpTo(GONE, PURGE)])


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (history_fetch, "_PAUSE_S", 0.0),
        (history_fetch, "_AGAIN_S", 0.002),
        (history_fetch, "_AGAIN_S_MAX", 0.01),
        (history_files, "_PART_BYTES", 900),
        (history_keeper, "_PAUSE_S", 0.0),
    ):
        monkeypatch.setattr(module, name, value)


async def test_all_comes_the_newest_first(tmp_path: Path) -> None:
    two = Two(tmp_path, 0, 0.0)
    assert told(two.new)[0][0] == SNAPSHOT + 1
    async with asyncio.timeout(HANG_S):
        await two.fetch()
    assert told(two.new) == told(two.full)
    assert len(told(two.new)) == COUNT
    assert not (two.new / "wanted").exists()
    asked = two.asked
    await two.fetch()  # there is nothing left
    assert two.asked == asked
    two.close()


@pytest.mark.parametrize("seed", range(6))
async def test_faults_crashes_and_a_purge_meanwhile(tmp_path: Path, seed: int) -> None:
    two = Two(tmp_path, seed, 0.15)
    purge_after = two.random.randrange(60)
    purging: asyncio.Task[None] | None = None
    async with asyncio.timeout(HANG_S):
        while (two.new / "wanted").exists():
            fetching = asyncio.create_task(two.fetch())
            until = two.asked + two.random.randrange(1, 60)
            while not fetching.done() and two.asked < until:
                if purging is None and two.asked >= purge_after:
                    purging = asyncio.create_task(two.purge())
                await asyncio.sleep(0.001)
            fetching.cancel()  # as a node that stops
            await asyncio.gather(fetching, return_exceptions=True)
        await (purging or two.purge())
    two.close()
    found = told(two.new)
    assert [index for index, _ in found] == [*range(1, COUNT + 1)]
    assert found == told(two.full)
    history = two.new / HISTORY
    assert archived_names(history)
    assert files_with(history, GONE.iri) == []


async def test_what_would_be_deleted_again_is_not_fetched(tmp_path: Path) -> None:
    two = Two(tmp_path, 1, 0.0, History(keep="100"))
    async with asyncio.timeout(HANG_S):
        await two.fetch()
    two.keeper.tend()
    oldest = told(two.new)[0][0]
    assert 1 < oldest <= COUNT - 100 + 1
    assert two.asked < 60
    two.close()


async def test_what_a_named_state_needs_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention has deleted it here, while the state got its name at the other node."""
    monkeypatch.setattr(history_fetch, "_EVERY_S", 0.01)
    two = Two(tmp_path, 1, 0.1, History(keep="60"))
    (two.new / "wanted").unlink()
    running = asyncio.create_task(two.fetching().run(asyncio.Event()))
    async with asyncio.timeout(HANG_S):
        await asyncio.sleep(0.05)
        assert two.asked == 0
        two.needed_from = 50
        while told(two.new)[0][0] > 50:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        while (two.new / "wanted").exists():  # noqa: ASYNC110 a file has no event
            await asyncio.sleep(0.01)
        asked = two.asked
        await asyncio.sleep(0.05)
        assert two.asked == asked  # it is not looked for again
    two.keeper.tend()
    assert 1 < told(two.new)[0][0] <= 50
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    two.close()


def test_only_what_stands_before_a_gap_is_dropped(tmp_path: Path) -> None:
    two = Two(tmp_path, 0, 0.0)
    history = two.full / HISTORY
    names = archived_names(history)
    [newest] = sorted((two.full / LOG).glob("*.segment"))[-1:]
    given = history / str(ArchiveName(COUNT - 5, COUNT, ".segment"))  # as compaction does, before it is gone
    given.hardlink_to(newest)
    two.full_keeper.drop_unjoined(COUNT)
    assert archived_names(history)[:-1] == names
    (history / str(names[2])).unlink()
    two.full_keeper.drop_unjoined(COUNT)
    assert archived_names(history)[:-1] == names[3:]
    assert given.exists()
    two.close()


def test_a_damaged_file_is_not_whole(tmp_path: Path) -> None:
    two = Two(tmp_path, 0, 0.0)
    name = archived_names(two.full / HISTORY)[1]
    path = two.full / HISTORY / str(name)
    verify(path, name)
    for other in ((name.first_index - 1, name.last_index), (name.first_index, name.last_index + 1)):
        with pytest.raises(CorruptionError):
            verify(path, ArchiveName(*other, name.suffix))
    data = path.read_bytes()
    for place in range(8, len(data) - 1, 97):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with pytest.raises(CorruptionError):
            verify(path, name)
    two.close()


async def drop_log(made: Nodes, number: int, index: int) -> None:
    """Have a node's log begin after an index, and the rest in its history."""
    shard = made.shards[number]
    await shard.node.progress.wait_for_index(index, HANG_S)
    async with asyncio.timeout(HANG_S):
        while await shard.node.parts.log.drop_before(index + 1) <= index:
            await shard.opened().checkpointer.checkpoint()
            await asyncio.sleep(0.05)


async def until_fetched(directory: Path) -> None:
    async with asyncio.timeout(HANG_S):
        while (directory / "history-wanted").exists():  # noqa: ASYNC110 a file has no event
            await asyncio.sleep(0.05)


async def test_a_node_of_a_cluster_that_was_wiped(tmp_path: Path) -> None:
    """It tells the past as the others do, and nothing of what is purged later."""
    async with nodes(tmp_path, 1, 2, 3) as made:
        await made.start(1, 2, 3)
        await made.stop(3)
        shutil.rmtree(made.logs.data_dir(3))
        states = await fill(made.shards[1])
        index = await update(made.shards[1], "INSERT DATA { <urn:later> <urn:b> 1 }")
        for number in (1, 2):
            await drop_log(made, number, index)
        await made.start(3)
        new, directory = made.shards[3], made.logs.data_dir(3)
        await until_fetched(directory)
        assert archived_names(directory / HISTORY)
        for at, state in states.items():
            assert await state_at(new, at) == state, at
        await made.shards[1].node.purges.purge(SCOPE, "basic:ann", None, HANG_S)
        for number in made.shards:
            await until_purged(made, number)
        for at, state in states.items():
            assert await state_at(new, at) == without(state, SCOPE), at


async def test_a_node_that_gets_a_snapshot_while_it_runs(tmp_path: Path) -> None:
    """One that was down for long follows its own log first, which then begins anew under it."""
    async with nodes(tmp_path, 1, 2, 3) as made:
        await made.start(1, 2, 3)
        states = await fill(made.shards[1])
        await made.stop(3)
        index = await update(made.shards[1], "INSERT DATA { <urn:later> <urn:b> 1 }")
        for number in (1, 2):
            await drop_log(made, number, index)
        await made.start(3)
        await made.shards[3].node.progress.wait_for_index(index, HANG_S)
        directory = made.logs.data_dir(3)
        await until_fetched(directory)
        for at, state in states.items():
            assert await state_at(made.shards[3], at) == state, at
        # the same while it runs: another snapshot than that of its start
        wanted = directory / "history-wanted"
        wanted.touch()
        made.shards[3].node.company.adopted.set()  # type: ignore[union-attr]
        await until_fetched(directory)
