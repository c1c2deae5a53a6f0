"""The table of named graphs: which there are, with or without quads."""

from collections.abc import Sequence
from pathlib import Path

from duckdb import DuckDBPyConnection

from graphdb.columns.encoding import NAMED, encode_names

__all__ = ["add_graphs", "drop_graphs"]


def add_graphs(connection: DuckDBPyConnection, graphs: Sequence[str], scratch: Path) -> None:
    """Have these graphs, N-Triples terms, exist; those that do already stay as they are."""
    if not graphs:
        return
    encode_names(connection, graphs, scratch)
    connection.execute(f"INSERT INTO graphs SELECT id, 0 FROM {NAMED} WHERE id NOT IN (SELECT g FROM graphs)")
    connection.execute(f"DROP TABLE {NAMED}")


def drop_graphs(connection: DuckDBPyConnection, graphs: Sequence[str]) -> None:
    """Have these graphs not exist any more."""
    for graph in graphs:
        connection.execute("DELETE FROM graphs WHERE g IN (SELECT id FROM terms WHERE text = ?)", [graph])
