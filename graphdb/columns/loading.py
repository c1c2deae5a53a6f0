"""Filling an empty view with the whole of a store, from its rows in pieces."""

from collections.abc import Sequence
from pathlib import Path

from duckdb import DuckDBPyConnection
from pyoxigraph import Store

from graphdb.columns.applying import add_graphs
from graphdb.columns.encoding import encode_predicates, encode_rows, forget_predicates
from graphdb.columns.schema import FREQUENT_QUADS, REST, TABLES_MAX, predicate_table, quads_and_checksum
from graphdb.columns.store_rows import StoreRows

__all__ = ["load_names", "load_rows", "load_store", "settle"]

_STAGED = "staged"


def load_names(
    connection: DuckDBPyConnection, graphs: Sequence[str], predicates: Sequence[str], scratch: Path
) -> None:
    """Take in the names, as N-Triples terms, of all named graphs and predicates, as `StoreRows` has them."""
    run = connection.execute
    run("BEGIN")
    add_graphs(connection, graphs, scratch)
    encode_predicates(connection, predicates, scratch)
    run(f"CREATE OR REPLACE TEMP TABLE {_STAGED} (s BIGINT, p BIGINT, o BIGINT, g BIGINT)")
    run("COMMIT")


def load_rows(connection: DuckDBPyConnection, rows: Path) -> None:
    """Take in the next file of rows, after the names. No row may come twice."""
    run = connection.execute
    run("BEGIN")
    encode_rows(connection, rows, _STAGED)
    run("COMMIT")


def load_store(connection: DuckDBPyConnection, store: Store, scratch: Path) -> None:
    """Take in a whole store that is open in this process."""
    rows = StoreRows(store)
    load_names(connection, rows.graphs, rows.predicates, scratch)
    path = scratch / "rows.tsv"
    with path.open("wb") as file:
        for numbers in rows.batches():
            rows.write(numbers, file)
    load_rows(connection, path)
    path.unlink()


def settle(connection: DuckDBPyConnection, log_index: int) -> None:
    """Make a view of log_index of what was taken in."""
    run = connection.execute
    run("BEGIN")
    run(
        "INSERT INTO predicates SELECT p, '', count(*), count(DISTINCT s), count(DISTINCT o), false "
        f"FROM {_STAGED} GROUP BY p"
    )
    run(
        f"UPDATE graphs SET quads = sizes.quads FROM (SELECT g, count(*) AS quads FROM {_STAGED} "
        "WHERE g <> 0 GROUP BY g) sizes WHERE sizes.g = graphs.g"
    )
    frequent = run(
        "SELECT p FROM predicates WHERE quads >= ? ORDER BY quads DESC, p LIMIT ?",
        [FREQUENT_QUADS, TABLES_MAX],
    ).fetchall()
    # rows come predicate by predicate, so DuckDB reads little else for each
    for (predicate,) in frequent:
        table = predicate_table(predicate)
        run(f"CREATE TABLE {table} AS SELECT s, o, g FROM {_STAGED} WHERE p = {predicate} ORDER BY ALL")
        run("UPDATE predicates SET tbl = ? WHERE p = ?", [table, predicate])
    run("UPDATE predicates SET tbl = ? WHERE tbl = ''", [REST])
    run(
        f"INSERT INTO {REST} SELECT quad.* FROM {_STAGED} quad JOIN predicates USING (p) "
        f"WHERE tbl = '{REST}' ORDER BY ALL"
    )
    run(f"DROP TABLE {_STAGED}")
    forget_predicates(connection)
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
