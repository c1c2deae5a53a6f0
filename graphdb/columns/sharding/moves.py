"""What a plan over shards asks to be done, one step after the other, and who does it: `Shards`.

A table of a step is temporary, and of one query. The place that asks is called the coordinator: it has all
terms and all statistics, and no quads. Where a step has a host, only that place of `Division.hosts` is asked,
because no other has anything for it.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

__all__ = ["Compute", "Exchange", "Gather", "Move", "Run", "Send", "Shards", "Share", "carried_out"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Compute:
    """Make a table of a SELECT on every shard. Its columns are c0, c1, ..."""

    table: str
    sql: str
    host: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Make a table of a SELECT on the coordinator."""

    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class Gather:
    """Bring the rows that a SELECT has on every shard to the coordinator, as a table. Where a shard has more
    than rows_max, it is enough to bring one more of it.
    """

    sql: str
    table: str
    rows_max: int
    host: int | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Bring the rows that all shards have in source to every shard and the coordinator, as a table."""

    source: str
    table: str
    host: int | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Bring a table of the coordinator to every shard, under the same name."""

    table: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """Bring each row of source to the shard that has the quads with this subject (a column), as a table.

    keys is a SELECT of one column, of those subjects that rows are wanted of: others may be left out.
    """

    source: str
    table: str
    column: str
    keys: str | None = None
    host: int | None = None


Move: TypeAlias = Compute | Run | Gather | Share | Send | Exchange


class Shards(Protocol):
    """Several databases that have the quads of a view, each those of some subjects, and the coordinator."""

    def perform(self, move: Move) -> int:
        """How many rows came of it, of all shards together. Raises the errors of DuckDB."""
        ...


def carried_out(plan: Generator[Move, int, T], shards: Shards) -> T:
    """What a plan comes to when all of its moves are made."""
    try:
        move = next(plan)
        while True:
            move = plan.send(shards.perform(move))
    except StopIteration as end:
        result: T = end.value
        return result
