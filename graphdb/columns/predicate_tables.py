"""The tables of the quads of predicates, changed by `delta`: in a view, and in each of its shards."""

from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from graphdb.columns.encoding import DELTA
from graphdb.columns.schema import REST
from graphdb.errors import CorruptionError

__all__ = ["TableChange", "change_quads", "give_table"]


@dataclass(frozen=True, slots=True)
class TableChange:
    """Where the quads of a predicate were, and where they are: `rest`, also where it had none, or its own
    table; None where it has none any more.
    """

    before: str
    after: str | None


def change_quads(connection: DuckDBPyConnection, predicate: int, table: str, more: int, less: int) -> None:
    """Add and remove those of a predicate that `delta` has, so many.

    Raises CorruptionError where some are not there that are removed.
    """
    run = connection.execute
    of_rest = f"p = {predicate} AND " if table == REST else ""
    if less:
        ((gone,),) = run(
            f"DELETE FROM {table} WHERE {of_rest}(s, o, g) IN "
            f"(SELECT (s, o, g) FROM {DELTA} WHERE p = {predicate} AND NOT added)"
        ).fetchall()
        if gone != less:
            raise CorruptionError(f"{less - gone} quads are not there that are removed", "column view")
    if more:
        columns = "s, p, o, g" if table == REST else "s, o, g"
        run(f"INSERT INTO {table} SELECT {columns} FROM {DELTA} WHERE p = {predicate} AND added ORDER BY ALL")


def give_table(connection: DuckDBPyConnection, predicate: int, table: str) -> None:
    """Move the quads of a predicate from `rest` into a table of its own."""
    run = connection.execute
    run(f"CREATE TABLE {table} AS SELECT s, o, g FROM {REST} WHERE p = {predicate} ORDER BY ALL")
    run(f"DELETE FROM {REST} WHERE p = {predicate}")
