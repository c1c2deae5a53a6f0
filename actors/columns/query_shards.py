"""`QueryShards`: the shards of a column view as one query has them, all in one state of the log."""

import os
import time
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection

from actors.columns.shard_calls import Result, ShardLost, ShardProcess
from graphdb.columns.sharding.division import Division, named_shards
from graphdb.columns.sharding.moves import Compute, Exchange, Gather, Move, Run, Send, Share
from graphdb.columns.sharding.shard import joined, made_table, read_piece, take_piece
from graphdb.errors import QueryTimeout

__all__ = ["QueryShards", "ShardsAway", "StatePassed"]

_LOOK_S = 0.2  # between two looks whether the query is interrupted
_GRACE_S = 1.0  # for a shard to end a step of an interrupted query; then it is killed, and made anew
_ROWS_AT_ONCE = 1 << 19  # of each shard that are on their way in an exchange: some 4 MB a column
_numbers = count()


class ShardsAway(Exception):
    """The query has to be answered in another way; the text says why."""


class StatePassed(ShardsAway):
    """The shards are in a later state of the log than the query."""


class QueryShards:
    """Of one query, which calls end() at last. For its thread; interrupt() is for any."""

    def __init__(
        self, processes: Sequence[ShardProcess], division: Division, cursor: DuckDBPyConnection
    ) -> None:
        """processes are those of the hosts; cursor is the coordinator's, in a transaction."""
        self._processes, self._division, self._cursor = processes, division, cursor
        self._name = f"{os.getpid()}-{next(_numbers)}"
        self._rows: dict[str, list[int]] = {}  # of the tables that were computed, by shard
        self._ends_by: float | None = None  # once it is interrupted
        self._answers_by: float | None = (
            None  # while it begins: a step of a query may take as long as it does
        )
        self.moves = 0
        self.moved_rows = 0  # from one process to another, copies counted

    @property
    def division(self) -> Division:
        """What a query is cut for."""
        return self._division

    def begin(self, log_index: int, wait_s: float) -> None:
        """Have all shards in that state. Raises ShardsAway, also where one does not answer: Ray may need half
        a minute to find its node gone. Raises ShardLost.
        """
        self._answers_by = time.monotonic() + wait_s + _GRACE_S
        found = self._values(self._all("begin", log_index, wait_s))
        self._answers_by = None
        for place, index in enumerate(found):
            if index is None:
                raise ShardsAway(f"{self._host(place)} is being filled")
            if index > log_index:
                raise StatePassed(f"{self._host(place)} is at {index}, and the query at {log_index}")
            if index < log_index:
                raise ShardsAway(f"{self._host(place)} is at {index}, not yet at {log_index}")

    def end(self) -> None:
        """The query is over, whatever the shards do."""
        self._all("end")

    def interrupt(self) -> None:
        """End what runs: whoever waits for it gets QueryTimeout. May be called again and again."""
        if self._ends_by is None:
            self._ends_by = time.monotonic() + _GRACE_S
        self._all("interrupt")

    def perform(self, move: Move) -> int:
        """See `Shards`. Raises ShardLost and QueryTimeout besides."""
        self.moves += 1
        match move:
            case Compute(table=table, sql=sql, host=host):
                self._rows[table] = self._values(self._all("compute", table, sql, host=host), host)
                return sum(self._rows[table])
            case Run(table=table, sql=sql):
                return made_table(self._cursor, table, sql)
            case Gather(sql=sql, table=table, rows_max=rows_max, host=host):
                read = self._all("read", f"{sql} LIMIT {rows_max + 1}", host=host)
                return self._gathered(table, read, host)
            case Share(source=source, table=table, host=host):
                read = self._all("read", f"FROM {source}", host=host)
                puts = self._all("put", table, False, *read)
                rows = self._gathered(table, read, host)
                self.moved_rows += sum(self._values(puts))
                return rows
            case Send(table=table):
                piece = read_piece(self._cursor, f"FROM {table}")
                self.moved_rows += sum(self._values(self._all("put", table, False, piece)))
                return piece.rows
            case Exchange():
                return self._exchanged(move)

    def _gathered(self, table: str, read: Iterable[Result], host: int | None) -> int:
        piece = joined(self._values(read, host))
        self.moved_rows += piece.rows
        return take_piece(self._cursor, table, piece)

    def _exchanged(self, move: Exchange) -> int:
        """Some of the rows at a time, so that no shard, and no store of objects, holds all of them."""
        wanted = None
        if move.keys is not None:
            wanted = np.bitwise_or.reduce(self._values(self._all("bits", move.keys)))
        hosts, rows = len(self._processes), 0
        for start in range(0, max(1, *self._rows[move.source]), _ROWS_AT_ONCE):
            # in the order of a table, which DuckDB keeps; rowid is not at hand, for it is not from 0 before
            # the table's transaction has ended
            some = f"(FROM {move.source} LIMIT {_ROWS_AT_ONCE} OFFSET {start})"
            split = [
                process.call("split", self._name, some, move.column, self._division, wanted, results=hosts)
                for process in self._asked(move.host)
            ]
            puts = []
            for place, process in enumerate(self._processes):
                mine = [pieces[place] for pieces in split]
                puts += process.call("put", self._name, move.table, start > 0, *mine)
            rows += sum(self._values(puts))
        self.moved_rows += rows
        return rows

    def _host(self, place: int) -> str:
        return f"the process of {named_shards(self._division.hosts[place])}"

    def _asked(self, host: int | None) -> Sequence[ShardProcess]:
        return self._processes if host is None else [self._processes[host]]

    def _all(self, method: str, *arguments: Any, host: int | None = None) -> list[Result]:
        """Of every host, or of one."""
        return [process.call(method, self._name, *arguments)[0] for process in self._asked(host)]

    def _values(self, results: Iterable[Result], host: int | None = None) -> list[Any]:
        """host: the only one that was asked."""
        return [self._value(place, result) for place, result in enumerate(results, start=host or 0)]

    def _value(self, place: int, result: Result) -> Any:
        """Of a shard, or of what it has taken from others."""
        while True:
            try:
                return result.value(_LOOK_S)
            except TimeoutError:
                if self._ends_by is not None and time.monotonic() > self._ends_by:
                    self._processes[place].kill()
                    raise QueryTimeout("the query was interrupted") from None
                if self._answers_by is not None and time.monotonic() > self._answers_by:
                    raise ShardsAway(f"{self._host(place)} does not answer") from None
            except ShardLost:
                raise
            except Exception:
                if self._ends_by is not None:
                    raise QueryTimeout("the query was interrupted") from None
                raise
