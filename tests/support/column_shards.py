"""A column view divided into shards in this process, and what a query answers over them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import duckdb
from duckdb import DuckDBPyConnection

from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.schema import configure
from graphdb.columns.sharding.cutting import CutLimits, cut
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.local import LocalShards
from graphdb.columns.sharding.moves import Move, carried_out
from graphdb.columns.values import NotExact
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import Answer
from graphdb.sparql.syntax import Query
from graphdb.sparql.translation import abstract_query
from tests.support.column_answers import Refused, as_refused

__all__ = ["ALONE", "EXCHANGING", "LIMITS", "WatchedShards", "divided", "opened", "sharded_read"]

T = TypeVar("T")
LIMITS = CutLimits()
EXCHANGING = CutLimits(shared_rows_max=0, filtered_rows_min=0)
"""Every row goes to one shard only, where there is a way, and one that meets nothing to none."""
ALONE = CutLimits(alone_quads_max=4)
"""Parts that read that many quads the coordinator matches, if it has quads."""


class WatchedShards(LocalShards):
    """Notes the moves of the last query."""

    def __init__(
        self,
        coordinator: DuckDBPyConnection,
        shards: list[DuckDBPyConnection],
        division: Division,
        *,
        has_quads: bool = False,
    ) -> None:
        super().__init__(coordinator, shards, has_quads=has_quads, division=division)
        self.moves: list[Move] = []

    def perform(self, move: Move) -> int:
        self.moves.append(move)
        return super().perform(move)


@contextmanager
def opened(division: Division) -> Iterator[WatchedShards]:
    """Empty shards."""
    made = [duckdb.connect(":memory:", config={"threads": 1}) for _ in range(len(division.hosts) + 1)]
    try:
        for each in made:
            configure(each)
        yield WatchedShards(made[-1], made[:-1], division)
    finally:
        for each in made:
            each.close()


@contextmanager
def divided(
    view: DuckDBPyConnection, shards: int, *, hosts: int = 0, has_quads: bool = False
) -> Iterator[WatchedShards]:
    """A view on so many shards, on so many hosts or each on its own; has_quads: it is the coordinator."""
    with opened(Division.among(hosts or shards, shards)) as made:
        if has_quads:
            made = WatchedShards(view, list(made.shards), made.division, has_quads=True)
        made.fill(view)
        yield made


def sharded_read(
    shards: WatchedShards, query: Query, read: Callable[[Answer], T], limits: CutLimits = LIMITS
) -> T | Refused:
    """What is read of the answer over shards, if there is one."""
    shards.moves.clear()
    plan = cut(
        abstract_query(query),
        Dataset(),
        shards.catalog(),
        shards.division,
        limits,
        has_quads=shards.has_quads,
    )
    try:
        compiled = carried_out(plan, shards)
        cursor = shards.coordinator.execute(compiled.sql)
        found = read(answer_of(compiled, cursor.fetchmany, TermTexts(shards.coordinator)))
        cursor.fetchall()  # an answer of ASK leaves rows, and the next query uses the connection
        return found
    except NotExact as reason:
        return Refused(str(reason))
    except duckdb.Error as error:
        return as_refused(error)
