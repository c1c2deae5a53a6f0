"""Shards that are filled from a view and follow it, in this process: their states, and what is lost."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer

import duckdb
import pytest
from pyoxigraph import Store

from actors.columns import query_shards, shard_set
from actors.columns.column_shard import ShardSettings
from actors.columns.query_shards import QueryShards, ShardsAway, StatePassed
from actors.columns.shard_calls import ShardLost, ShardProcess
from actors.columns.shard_set import ShardSet
from graphdb.columns import schema
from graphdb.columns.applying import apply_changes
from graphdb.columns.entry_lines import EntryLines
from graphdb.columns.loading import load_store, settle
from graphdb.columns.sharding.moves import Compute, Exchange, Gather, Share
from graphdb.errors import QueryTimeout
from graphdb.log.payloads import encode_changes
from graphdb.model import ChangeSet, EntryKind, LogEntry
from tests.support.shard_processes import LocalProcesses
from tests.support.timing import HANG_S

SHARDS, QUADS = 3, 1_500
COUNT = Gather("SELECT count(*) AS c0, min(hash(s) % 3) AS c1, max(hash(s) % 3) AS c2 FROM {}", "found", 10)


class Divided:
    """A view of numbered quads, and its shards."""

    def __init__(self, directory: Path, machines: Sequence[str] | None = None) -> None:
        self.directory, self.index = directory, 1
        self.view = duckdb.connect()
        store = Store()
        store.update(f"INSERT DATA {{ {' '.join(f'<urn:s{n}> <urn:p> {n % 9} .' for n in range(QUADS))} }}")
        schema.create(self.view)
        load_store(self.view, store, directory)
        settle(self.view, self.index)
        self.entries = EntryLines(self.index)
        self.processes = LocalProcesses(SHARDS, machines)
        self.shards = ShardSet(self.processes, self._settings)
        self.shards.follow(self.view)

    def _settings(self, numbers: Sequence[int]) -> ShardSettings:
        return ShardSettings(f"test-{numbers[0]}", 64, 32, str(self.directory), 64)

    def add(self, count: int) -> None:
        """So many quads, in one change of the log."""
        store, before = Store(), self.index
        store.update(
            f"INSERT DATA {{ {' '.join(f'<urn:n{before}-{n}> <urn:p> 1 .' for n in range(count))} }}"
        )
        self.index += 1
        payload = encode_changes(ChangeSet((), tuple(store)))
        self.entries.feed(LogEntry(self.index, 0, EntryKind.CHANGES, bytes(16), 0, payload))
        apply_changes(self.view, self.entries, self.directory, notes := self.shards.notes())
        self.entries.taken()
        self.shards.change(notes, before, self.index)

    def begun(self, index: int | None = None) -> QueryShards:
        """A query in a state, by default the present one."""
        cursor = self.view.cursor()
        cursor.execute("BEGIN")
        query = self.shards.asked(cursor, HANG_S, lambda: None)
        query.begin(self.index if index is None else index, HANG_S)
        return query

    def lose(self, number: int) -> None:
        """The process that has this shard as its first; return when there is another."""
        started = self.processes.started
        before = sum(map(len, started.values()))
        self.processes.last(number).kill()
        with suppress(
            ShardLost, ShardsAway
        ):  # unless it was noticed before, and there is another one already
            self.begun().end()
        self.shards.look()
        self.add(10)
        deadline = time.monotonic() + HANG_S
        while sum(map(len, started.values())) == before and time.monotonic() < deadline:
            time.sleep(0.01)

    def counts(self) -> list[tuple[int, int, int]]:
        """The quads of each shard, and whose they are, in the present state."""
        query = self.begun()
        try:
            ((table,),) = self.view.execute("SELECT tbl FROM predicates").fetchall()
            query.perform(Gather(COUNT.sql.format(table), "found", 10))
            return query._cursor.execute("FROM found").fetchall()
        finally:
            query.end()


@pytest.fixture
def divided(tmp_path: Path) -> Iterator[Divided]:
    made = Divided(tmp_path)
    try:
        yield made
    finally:
        made.shards.close()
        made.view.close()


def check(divided: Divided, quads: int, hosts: Sequence[Sequence[int]] = ((0,), (1,), (2,))) -> None:
    """Each host has the quads of its shards' subjects, and all have so many."""
    counts = divided.counts()
    assert sum(count for count, _, _ in counts) == quads
    assert sorted((low, high) for _, low, high in counts) == [(min(mine), max(mine)) for mine in hosts]


def test_shards_are_filled_and_follow(divided: Divided) -> None:
    check(divided, QUADS)
    for number in range(1, 6):
        divided.add(10)
        check(divided, QUADS + 10 * number)
    assert all(len(started) == 1 for started in divided.processes.started.values())


def test_after_a_large_change_shards_are_filled_anew(
    divided: Divided, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(divided, QUADS)
    monkeypatch.setattr(shard_set, "_QUADS_MAX", 50)
    divided.add(60)
    check(divided, QUADS + 60)
    assert divided.processes.last(0).calls.count("clear") == 2
    assert len(divided.processes.started[0]) == 1, "in the same process"


def test_a_lost_shard_is_made_again_alone(divided: Divided) -> None:
    check(divided, QUADS)
    divided.lose(1)
    check(divided, QUADS + 10)
    assert [len(divided.processes.started[number]) for number in range(SHARDS)] == [1, 2, 1]


@pytest.fixture
def together(tmp_path: Path) -> Iterator[Divided]:
    """Two of three shards are on one machine."""
    made = Divided(tmp_path, ["a", "b", "a"])
    try:
        yield made
    finally:
        made.shards.close()
        made.view.close()


def test_shards_of_one_machine_are_in_one_process(together: Divided) -> None:
    hosts = ((0, 2), (1,))
    check(together, QUADS, hosts)
    for number in range(1, 4):
        together.add(10)
        check(together, QUADS + 10 * number, hosts)
    query = together.begun()
    assert set(query.division.hosts) == set(hosts)
    assert together.shards.hosts == 2
    ((table,),) = together.view.execute("SELECT tbl FROM predicates").fetchall()
    query.perform(Compute("t", f"SELECT o AS c0 FROM {table}"))
    assert query.perform(Exchange("t", "u", "c0")) == QUADS + 30
    query.perform(Gather("SELECT DISTINCT hash(c0) % 3 AS c0 FROM u", "found", 10))
    assert query._cursor.execute("SELECT count(*), count(DISTINCT c0) FROM found").fetchall() == [(3, 3)]
    query.end()
    together.lose(0)
    check(together, QUADS + 40, hosts)
    assert [len(together.processes.started[number]) for number in range(SHARDS)] == [2, 1, 0]


def test_one_host_alone_is_asked(together: Divided) -> None:
    check(together, QUADS, ((0, 2), (1,)))
    ((table,),) = together.view.execute("SELECT tbl FROM predicates").fetchall()
    query = together.begun()
    place = query.division.hosts.index((1,))
    other = together.processes.last(0)
    asked = len(other.calls)
    ((mine,),) = together.view.execute(f"SELECT count(*) FROM {table} WHERE hash(s) % 3 = 1").fetchall()
    assert query.perform(Gather(f"FROM {table}", "g", QUADS, place)) == mine
    assert query.perform(Compute("t", f"SELECT s AS c0 FROM {table}", place)) == mine
    assert len(other.calls) == asked
    assert query.perform(Share("t", "u", place)) == mine
    assert query.perform(Gather("FROM u", "v", QUADS)) == 2 * mine
    assert query.perform(Exchange("t", "w", "c0", host=place)) == mine
    assert query.perform(Gather("FROM w", "x", QUADS, place)) == mine
    query.end()


def test_shards_of_a_machine_that_is_gone_are_divided_again(together: Divided) -> None:
    check(together, QUADS, ((0, 2), (1,)))
    together.processes.machines = ["c", "b", "b"]
    together.lose(0)
    check(together, QUADS + 10)
    assert together.shards.hosts == 3
    assert [len(together.processes.started[number]) for number in range(SHARDS)] == [2, 1, 1]
    together.add(10)
    check(together, QUADS + 20)


def test_places_that_change_while_a_process_starts(together: Divided) -> None:
    """It waited for a machine that was gone; its shards come to several."""
    check(together, QUADS, ((0, 2), (1,)))
    start = together.processes.start

    def start_late(number: int, settings: ShardSettings) -> ShardProcess:
        together.processes.machines = ["c", "b", "d"]
        return start(number, settings)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(together.processes, "start", start_late)
        together.lose(0)
        check(together, QUADS + 10)


def test_shards_wait_for_their_places(together: Divided) -> None:
    check(together, QUADS, ((0, 2), (1,)))
    together.processes.machines = None
    together.processes.last(0).kill()
    together.add(10)  # so the loss is seen
    deadline = time.monotonic() + HANG_S
    while (reason := together.shards.away()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reason == "of 3 column shards, these are not there yet: 1 (waiting), 3 (waiting)"
    together.processes.machines = ["a", "b", "a"]
    check(together, QUADS + 10, ((0, 2), (1,)))


def test_a_shard_that_does_not_answer_is_not_waited_for(divided: Divided) -> None:
    check(divided, QUADS)
    hung = divided.processes.last(2)
    with hung.shard._changed:  # as a process on a machine that is cut off
        query = divided.shards.asked(divided.view.cursor(), HANG_S, lambda: None)
        with pytest.raises(ShardsAway, match="does not answer"):
            query.begin(divided.index, 0.1)
    query.end()
    check(divided, QUADS)


def test_a_query_has_one_state(divided: Divided) -> None:
    check(divided, QUADS)
    before = divided.begun()
    divided.add(10)
    check(divided, QUADS + 10)
    ((table,),) = divided.view.execute("SELECT tbl FROM predicates").fetchall()
    assert before.perform(Compute("t", f"SELECT s AS c0 FROM {table}")) == QUADS, "that of its beginning"
    before.end()
    with pytest.raises(StatePassed):
        divided.begun(divided.index - 1)


def test_an_exchange_comes_in_pieces(divided: Divided, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_shards, "_ROWS_AT_ONCE", 100)
    query = divided.begun()
    ((table,),) = divided.view.execute("SELECT tbl FROM predicates").fetchall()
    assert query.perform(Compute("t", f"SELECT o AS c0, s AS c1 FROM {table}")) == QUADS
    assert query.perform(Exchange("t", "u", "c0")) == QUADS
    query.perform(Gather("SELECT count(*) AS c0, count(DISTINCT hash(c0) % 3) AS c1 FROM u", "found", 10))
    rows = query._cursor.execute("FROM found").fetchall()
    assert sum(count for count, _ in rows) == QUADS
    assert {places for _, places in rows} <= {0, 1}
    query.end()


def test_an_interrupted_query_ends(divided: Divided) -> None:
    query = divided.begun()
    query.interrupt()
    with pytest.raises(QueryTimeout):
        query.perform(Compute("t", "SELECT count(*) AS c0 FROM range(1000000000000) a"))
    query.end()
    check(divided, QUADS)


def test_a_query_that_waits_for_a_state_is_interrupted(divided: Divided) -> None:
    check(divided, QUADS)
    query = divided.shards.asked(divided.view.cursor(), HANG_S, lambda: None)
    began = time.monotonic()
    timer = Timer(0.2, query.interrupt)
    timer.start()
    with pytest.raises(ShardsAway):
        query.begin(divided.index + 1, HANG_S)
    assert time.monotonic() - began < HANG_S
    query.end()
    assert all(len(started) == 1 for started in divided.processes.started.values()), "none is killed for it"


def test_shards_of_a_view_that_goes_away_answer_nothing(divided: Divided) -> None:
    check(divided, QUADS)
    divided.shards.leave()
    assert divided.shards.away() is not None
    divided.shards.follow(divided.view)
    check(divided, QUADS)
