"""Filling an empty view with the whole of a store, from its dump in pieces."""

from collections.abc import Sequence
from pathlib import Path

from duckdb import DuckDBPyConnection

from graphdb.columns.checking import quads_and_checksum
from graphdb.columns.encoding import DELTA, encode
from graphdb.columns.graph_names import add_graphs
from graphdb.columns.schema import FREQUENT_QUADS, REST, TABLES_MAX, predicate_table

__all__ = ["load_graphs", "load_lines", "settle"]

_STAGED = "staged"


def load_lines(connection: DuckDBPyConnection, lines: Path) -> None:
    """Take in the next piece, a file of N-Quads. No line may come twice."""
    run = connection.execute
    run("BEGIN")
    encode(connection, lines)
    run(f"CREATE TABLE IF NOT EXISTS {_STAGED} (s BIGINT, p BIGINT, o BIGINT, g BIGINT)")
    run(f"INSERT INTO {_STAGED} SELECT s, p, o, g FROM {DELTA}")
    run(f"DROP TABLE {DELTA}")
    run("COMMIT")


def load_graphs(connection: DuckDBPyConnection, graphs: Sequence[str], scratch: Path) -> None:
    """Take in the names, as N-Triples terms, of all named graphs, of those without quads too."""
    connection.execute("BEGIN")
    add_graphs(connection, graphs, scratch)
    connection.execute("COMMIT")


def settle(connection: DuckDBPyConnection, log_index: int) -> None:
    """Make a view of log_index of what was taken in."""
    run = connection.execute
    run("BEGIN")
    run(f"CREATE TABLE IF NOT EXISTS {_STAGED} (s BIGINT, p BIGINT, o BIGINT, g BIGINT)")
    run(
        "INSERT INTO predicates SELECT p, '', count(*), count(DISTINCT s), count(DISTINCT o), false "
        f"FROM {_STAGED} GROUP BY p"
    )
    run("CREATE TEMP TABLE sizes AS SELECT g, count(*) AS quads FROM staged WHERE g <> 0 GROUP BY g")
    run("UPDATE graphs SET quads = sizes.quads FROM sizes WHERE sizes.g = graphs.g")
    run(f"CREATE TEMP TABLE ordered AS SELECT * FROM {_STAGED} ORDER BY p, s, o, g")
    frequent = run(
        "SELECT p FROM predicates WHERE quads >= ? ORDER BY quads DESC, p LIMIT ?",
        [FREQUENT_QUADS, TABLES_MAX],
    ).fetchall()
    for (predicate,) in frequent:
        table = predicate_table(predicate)
        run(f"CREATE TABLE {table} AS SELECT s, o, g FROM ordered WHERE p = {predicate}")
        run("UPDATE predicates SET tbl = ? WHERE p = ?", [table, predicate])
    run("UPDATE predicates SET tbl = ? WHERE tbl = ''", [REST])
    run(
        f"INSERT INTO {REST} SELECT o.* FROM ordered o JOIN predicates USING (p) "
        f"WHERE tbl = '{REST}' ORDER BY ALL"
    )
    for table in ("ordered", "sizes", _STAGED):
        run(f"DROP TABLE {table}")
    quads, checksum = quads_and_checksum(connection)
    for key, value in (
        ("quads", quads),
        ("checksum", checksum),
        ("log_index", log_index),
        ("resume_index", log_index),
    ):
        run("UPDATE meta SET value = ? WHERE key = ?", [str(value), key])
    run("COMMIT")
    run("CHECKPOINT")
