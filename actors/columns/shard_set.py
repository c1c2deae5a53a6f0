"""`ShardSet`: the shards of a column view, filled from it and brought on.

Those that have their places on one machine are in one process, their host, for which there is a thread here.
At first all are of one host without a place; when their places are known, they are divided. So are those of a
host that is lost, while the others go on.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from actors.columns.column_shard import ShardPlace, ShardSettings
from actors.columns.query_shards import QueryShards, ShardsAway
from actors.columns.shard_calls import Result, ShardLost, ShardProcess, ShardProcesses
from graphdb.columns.sharding.division import Division, named_shards
from graphdb.columns.sharding.following import ChangeNotes, ShardChange
from graphdb.columns.sharding.shard import shard_pieces

__all__ = ["Asked", "ShardSet"]

logger = logging.getLogger(__name__)
_QUADS_MAX = 500_000  # that change at once and are handed on; more, and shards are filled anew
_PENDING_MAX = 200  # changes that wait while a shard is filled
_LOOK_S = 2.0  # between two looks at a shard that has nothing to do
_STEP_S = 0.25  # between two looks whether the view goes away
_PLACE_S, _PLACE_S_MAX = 0.05, 2.0  # between two looks whether there are places
_OUTCOMES_MAX = 256
_AGAIN_S, _AGAIN_S_MAX = 0.2, 10.0  # between two attempts
_TELL_S = 30.0  # without an answer, until it is said
_CLOSING_S = 1.0
_LOG_INDEX = "SELECT value::BIGINT FROM meta WHERE key = 'log_index'"


class _Left(Exception):
    """The view goes away, or a shard is to be filled anew."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What shards have done for a query: the steps, and the rows that went from one process to another."""

    moves: int
    moved_rows: int


class ShardSet:
    """For queries on any threads, and the one who writes the view. close() it at last."""

    def __init__(self, processes: ShardProcesses, settings: Callable[[Sequence[int]], ShardSettings]) -> None:
        """settings are those of a host that has the shards of these numbers."""
        self._processes, self._settings = processes, settings
        self._changed = Condition()
        self._view: DuckDBPyConnection | None = None
        self._is_closed = False
        self._outcomes: dict[Hashable, Asked | str] = {}
        self._followers: list[_Follower] = []
        self._host([tuple(range(processes.count))])

    @property
    def count(self) -> int:
        return self._processes.count

    @property
    def hosts(self) -> int:
        """How many processes have them."""
        return len(self._followers)

    def _host(self, divided: Sequence[tuple[int, ...]]) -> None:
        """Have hosts for shards that have none."""
        made = [_Follower(self, numbers) for numbers in divided]
        self._followers += made
        for follower in made:
            follower.start()

    def _division(self) -> Division:
        """Holding the lock."""
        return Division(tuple(follower.numbers for follower in self._followers))

    # For who writes the view

    def follow(self, view: DuckDBPyConnection) -> None:
        """Fill the shards from a view, which stays open until leave()."""
        with self._changed:
            self._view = view
            self._changed.notify_all()

    def leave(self) -> None:
        """Return when the view is read no more; shards answer no queries until the next one."""
        with self._changed:
            self._view = None
            self._changed.notify_all()
            while any(follower.reads() for follower in self._followers):
                self._changed.wait(_STEP_S)

    def notes(self) -> ChangeNotes:
        """For one transaction of the view."""
        with self._changed:
            return ChangeNotes(self._division(), _QUADS_MAX)

    def change(self, notes: ChangeNotes, before_index: int, log_index: int) -> None:
        """Hand on what a transaction has changed that has ended."""
        changes: dict[tuple[int, ...], ShardChange] = {}
        if notes.is_whole:
            hosts = notes.division.hosts
            changes = dict(zip(hosts, notes.changes(before_index, log_index), strict=True))
        with self._changed:
            for follower in self._followers:  # one that has come meanwhile was not noted for
                follower.note(changes.get(follower.numbers))
            self._changed.notify_all()

    def close(self) -> None:
        """End all shards."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self.leave()
        for follower in self._followers:  # no more come, as this is closed
            follower.close()

    # For queries

    def asked(self, cursor: DuckDBPyConnection, wait_s: float, check: Callable[[], None]) -> QueryShards:
        """The shards for one query, if they are there within so many seconds; it is to begin and to end it.

        check raises where the query is interrupted. Raises ShardsAway, and what check does.
        """
        deadline = time.monotonic() + wait_s
        with self._changed:
            while (reason := self.away()) is not None:
                check()
                if (left := deadline - time.monotonic()) <= 0:
                    raise ShardsAway(reason)
                self._changed.wait(min(left, _STEP_S))
            processes = [follower.ready() for follower in self._followers]
            return QueryShards(processes, self._division(), cursor)

    def look(self) -> None:
        """A query has found a shard lost: see to it now."""
        with self._changed:
            self._changed.notify_all()

    def away(self) -> str | None:
        """Why no query can be asked of the shards now."""
        if self._view is None:
            return "the view that column shards are made of is being opened"
        states = {number: follower.state for follower in list(self._followers) for number in follower.numbers}
        if set(states.values()) == {"following"}:
            return None
        return f"of {self.count} column shards, these are not there yet: " + ", ".join(
            f"{number + 1} ({state})" for number, state in sorted(states.items()) if state != "following"
        )

    def note(self, query: Hashable, outcome: Asked | str) -> None:
        """What shards did for a query, or why it was answered in another way."""
        self._outcomes[query] = outcome
        while len(self._outcomes) > _OUTCOMES_MAX:
            with suppress(KeyError):
                del self._outcomes[next(iter(self._outcomes))]

    def outcome(self, query: Hashable) -> Asked | str | None:
        """When the query was asked last."""
        return self._outcomes.get(query)


class _Follower:
    """One host: has it started, filled and brought on."""

    def __init__(self, shards: ShardSet, numbers: tuple[int, ...]) -> None:
        self.state = "waiting"
        self.numbers = numbers  # of its shards; changed while it waits, and holding the lock
        self.place: ShardPlace | None = None
        self._set = shards
        self._process: ShardProcess | None = None
        self._pending: deque[ShardChange] | None = None  # from when its filling begins
        self._is_behind = False  # what it needs was not handed on
        self._cursor: DuckDBPyConnection | None = None  # while it is filled
        self._threads = self._fillings = 0
        self._thread = Thread(target=self._run, name=f"column-shard-{numbers[0]}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def _name(self) -> str:
        return f"the process of {named_shards(self.numbers)} of {self._set.count}"

    def ready(self) -> ShardProcess:
        """Raises ShardsAway."""
        process = self._process
        if self.state != "following" or process is None:
            raise ShardsAway(f"{self._name} is {self.state}")
        return process

    def note(self, change: ShardChange | None) -> None:
        """What it is to take in; None: too much. Holding the lock."""
        if self._pending is None:
            return
        if change is None or len(self._pending) >= _PENDING_MAX:
            self._is_behind, self.state = True, "waiting"
            self._pending.clear()
        elif not self._is_behind:
            self._pending.append(change)

    def reads(self) -> bool:
        """Whether the view is read; then that is interrupted. Holding the lock."""
        if self._cursor is not None:
            self._cursor.interrupt()
        return self._cursor is not None

    def close(self) -> None:
        self._thread.join(_CLOSING_S)
        if self._process is not None:
            with suppress(ShardLost, TimeoutError):
                self._call("close").value(_CLOSING_S)  # it deletes its database
            self._process.kill()

    def _run(self) -> None:
        failures = 0
        while (view := self._wanted_view()) is not None:
            try:
                self._keep(view)
            except _Left:
                failures = 0
            except Exception as error:  # noqa: BLE001 whatever is wrong with it, it is made anew
                if self._set._is_closed:
                    return
                logger.warning("%s is made anew: %s: %s", self._name, type(error).__name__, error)
                failures = 0 if self.state == "following" else failures + 1
                self._give_up()
                self._pause(min(_AGAIN_S * 2**failures, _AGAIN_S_MAX))
            finally:
                self.state = "waiting"
                with self._set._changed:
                    self._pending = None

    def _wanted_view(self) -> DuckDBPyConnection | None:
        """Once there is one; None at the end."""
        shards = self._set
        with shards._changed:
            shards._changed.wait_for(lambda: shards._is_closed or shards._view is not None)
            return None if shards._is_closed else shards._view

    def _keep(self, view: DuckDBPyConnection) -> None:
        """Fill it and bring it on. Raises _Left, ShardLost, and what its methods raise."""
        if self._process is None:
            self._divide(view)
            settings = self._set._settings(self.numbers)
            self._process = self._set._processes.start(self.numbers[0], settings)
            self.place = self._value(view, self._call("place"), tells=True)
            if self.place.version != duckdb.__version__:
                raise ShardLost(
                    f"it has DuckDB {self.place.version}, and the database node {duckdb.__version__}"
                )
            if len(self._groups(view)) > 1:
                raise ShardLost("the places of its shards are not on one machine any more")
        self.state = "filling"
        began = time.monotonic()
        index = self._fill(view)
        logger.info("%s was filled in %.1f s, at %d", self._name, time.monotonic() - began, index)
        with self._set._changed:
            self._check(view)
            self.state = "following"
            self._set._changed.notify_all()
        while True:
            change = self._next(view)
            if change is None:
                self._look(view)
            elif change.log_index > index:
                self._value(view, self._call("apply", change))

    def _divide(self, view: DuckDBPyConnection) -> None:
        """Leave those shards to others that are not to be where the first one is."""
        mine, *others = self._groups(view)
        with self._set._changed:
            self._check(view)
            self.numbers = mine
            self._set._host(others)

    def _groups(self, view: DuckDBPyConnection) -> list[tuple[int, ...]]:
        """Its shards by their machines, once all shards have places."""
        shards, began, pause_s, is_told = self._set, time.monotonic(), _PLACE_S, False
        while (places := shards._processes.places()) is None:
            if time.monotonic() - began > _TELL_S and not is_told:
                logger.warning("%s waits for %s", self._name, shards._processes.waiting())
                is_told = True
            with shards._changed:
                shards._changed.wait(pause_s)
                self._check(view)
            pause_s = min(2 * pause_s, _PLACE_S_MAX)
        found: dict[str, tuple[int, ...]] = {}
        for number in self.numbers:
            found[places[number]] = (*found.get(places[number], ()), number)
        return list(found.values())

    def _fill(self, view: DuckDBPyConnection) -> int:
        """Of which log index it is then."""
        self._threads = self._fair_threads()
        self._fillings += 1
        self._value(view, self._call("clear", self._fillings, self._threads))
        with self._set._changed:
            self._check(view)
            self._pending, self._is_behind = deque(), False
            self._cursor = cursor = view.cursor()
        try:
            cursor.execute("BEGIN")
            ((index,),) = cursor.execute(_LOG_INDEX).fetchall()
            sent: Result | None = None
            for table, piece in shard_pieces(cursor, self.numbers, self._set.count):
                if sent is not None:
                    self._value(view, sent)  # in their order; the next one is read meanwhile
                sent = self._call("take", self._fillings, table, piece)
            assert sent is not None
            self._value(view, sent)
        except duckdb.InterruptException:
            raise _Left from None
        finally:
            with suppress(duckdb.Error):
                cursor.execute("ROLLBACK")
            with self._set._changed:
                cursor.close()
                self._cursor = None
                self._set._changed.notify_all()
        self._value(view, self._call("filled", self._fillings, index))
        return int(index)

    def _next(self, view: DuckDBPyConnection) -> ShardChange | None:
        """What it is to take in next; None where nothing has come for a while. Raises _Left."""
        with self._set._changed:
            self._check(view)
            if not self._pending:
                self._set._changed.wait(_LOOK_S)
                self._check(view)
            return self._pending.popleft() if self._pending else None

    def _look(self, view: DuckDBPyConnection) -> None:
        """Whether it is there; it may use more or fewer processors than before."""
        if (threads := self._fair_threads()) != self._threads:
            self._value(view, self._call("use_threads", threads))
            self._threads = threads
        self._value(view, self._call("place"))

    def _fair_threads(self) -> int:
        """The processors of its machine, divided among the hosts that are there."""
        assert self.place is not None
        there = [each.place for each in list(self._set._followers) if each.place is not None]
        beside = sum(place.machine == self.place.machine for place in there)
        return max(1, self.place.processors // beside)

    def _check(self, view: DuckDBPyConnection) -> None:
        """Raises _Left."""
        if self._set._is_closed or self._set._view is not view or self._is_behind:
            self._is_behind = False
            raise _Left

    def _call(self, method: str, *arguments: Any) -> Result:
        assert self._process is not None
        return self._process.call(method, *arguments)[0]

    def _value(self, view: DuckDBPyConnection, result: Result, *, tells: bool = False) -> Any:
        """tells: if it takes long, say what it may wait for."""
        began = time.monotonic()
        while True:
            with suppress(TimeoutError):
                return result.value(_STEP_S)
            if self._set._is_closed or self._set._view is not view:
                raise _Left
            if tells and time.monotonic() - began > _TELL_S:
                logger.warning("%s waits for %s", self._name, self._set._processes.waiting())
                tells = False

    def _give_up(self) -> None:
        self.state = "waiting"
        process, self._process, self.place = self._process, None, None
        if process is not None:
            process.kill()

    def _pause(self, seconds: float) -> None:
        shards = self._set
        with shards._changed:
            shards._changed.wait_for(lambda: shards._is_closed, seconds)
