"""`DividedQuery`: a query on a column view that is divided among shards, which do what they can of it."""

from dataclasses import asdict
from typing import Any

import duckdb

from actors.columns.column_query import WHERE, ColumnQuery, first_line
from actors.columns.database import OpenView
from actors.columns.protocol import ColumnTask, ViewSettings
from actors.columns.query_shards import QueryShards, ShardsAway, StatePassed
from actors.columns.shard_calls import ShardLost
from actors.columns.shard_set import Asked, ShardSet
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery
from graphdb.columns.counting import Counted
from graphdb.columns.estimate import scanned_quads
from graphdb.columns.sharding.cutting import CutLimits, cut
from graphdb.columns.sharding.moves import carried_out
from graphdb.columns.values import NotExact
from graphdb.errors import CorruptionError, UnavailableError

__all__ = ["DividedQuery"]

_STATES, _ATTEMPTS = 3, 2  # in which shards are asked, and how often in each


class DividedQuery(ColumnQuery):
    """See `ColumnQuery`. Where the shards cannot, the view answers by itself."""

    def __init__(self, view: OpenView, task: ColumnTask, settings: ViewSettings, shards: ShardSet) -> None:
        super().__init__(view, task, settings)
        self._settings, self._shards = settings, shards
        self._on_shards: QueryShards | None = None  # while they work for it
        self._catalog: Catalog | None = None  # of the state that it sees, while it runs

    def _interrupt_work(self) -> None:
        super()._interrupt_work()
        if self._on_shards is not None:
            self._on_shards.interrupt()

    def _settled(self) -> CompiledQuery | Counted:
        """What is to be executed in the state that the query sees from now on."""
        for left in reversed(range(_STATES)):
            compiled = self._compiled()
            if isinstance(compiled, Counted):
                return compiled
            try:
                return self._divided(compiled, may_pass=left > 0)
            except StatePassed:  # the next state, in which this SQL is not right
                cursors, self._cursors = self._cursors, None
                if cursors is not None:
                    cursors.close()
        raise AssertionError

    def _begun(self) -> Catalog:
        self._catalog = super()._begun()
        return self._catalog

    def _divided(self, compiled: CompiledQuery, *, may_pass: bool) -> CompiledQuery:
        """The query over what its shards have done for it, or, where they do not, over the view itself.

        Raises StatePassed if may_pass, QueryTimeout.
        """
        reason = self._view_because()
        for _ in range(_ATTEMPTS if reason is None else 0):
            try:
                found = self._over_shards()
                self.where = f"{WHERE}, {self._shards.count} shards"
                return found
            except ShardLost as lost:
                self._shards.look()
                reason = f"a column shard is lost: {lost}"
            except StatePassed as passed:
                if may_pass:
                    raise
                reason = str(passed)
            except (ShardsAway, NotExact) as other:
                reason = str(other)
                break
            except (duckdb.Error, MemoryError, UnavailableError, CorruptionError) as error:
                self._check()
                reason = f"a column shard failed: {first_line(error)}"
                break
        assert reason is not None
        self._shards.note(self._asked_key, reason)
        return compiled

    def _view_because(self) -> str | None:
        """Why the view is to answer by itself, before any shard is asked."""
        assert self._catalog is not None
        quads, least = scanned_quads(self._query().pattern, self._catalog), self._settings.shards_min_quads
        if quads < least:
            return f"it reads predicates of {quads} quads, and columns.shards_min_quads is {least}"
        return self._shards.away()

    def _over_shards(self) -> CompiledQuery:
        """Raises ShardsAway, ShardLost, NotExact, QueryTimeout, and what the shards raise."""
        assert self._catalog is not None
        shards, wait_s = self._shards, self._settings.wait_seconds
        asked = shards.asked(self._cursor, wait_s, self._check)
        self._has_table = True  # its tables are deleted with the cursor
        with self._ending:
            self._on_shards = asked
        try:
            self._check()
            asked.begin(self.log_index, wait_s)
            plan = cut(
                self._query(), self._dataset, self._catalog, asked.division, CutLimits(), has_quads=True
            )
            compiled = carried_out(plan, asked)
            shards.note(self._asked_key, Asked(asked.moves, asked.moved_rows))
            return compiled
        finally:
            with self._ending:
                self._on_shards = None
            asked.end()

    def _shown_more(self, is_counted: bool) -> dict[str, Any]:
        """How many there are, in how many processes; why none would be asked; what they did the last time."""
        reason = "it is computed from arrays" if is_counted else self._view_because()
        last = self._shards.outcome(self._asked_key)
        if isinstance(last, str):
            reason, last = reason or last, None
        done = None if last is None else asdict(last)
        shards = self._shards
        return {"shards": {"count": shards.count, "processes": shards.hosts, "reason": reason, "last": done}}
