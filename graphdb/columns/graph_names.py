"""The table of named graphs: which there are, with or without quads."""

from collections.abc import Sequence
from pathlib import Path

from duckdb import DuckDBPyConnection

from graphdb.columns.encoding import DELTA, encode

__all__ = ["add_graphs", "drop_graphs"]

# A graph's name becomes a number like any term: as the subject of a quad that goes nowhere.
_NOWHERE = (
    "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2000/01/rdf-schema#Resource> ."
)


def add_graphs(connection: DuckDBPyConnection, graphs: Sequence[str], scratch: Path) -> None:
    """Have these graphs, N-Triples terms, exist; those that do already stay as they are."""
    if not graphs:
        return
    lines = scratch / "graphs.nq"
    lines.write_text("".join(f"{graph} {_NOWHERE}\n" for graph in graphs))
    encode(connection, lines)
    lines.unlink()
    connection.execute(
        f"INSERT INTO graphs SELECT DISTINCT s, 0 FROM {DELTA} WHERE s NOT IN (SELECT g FROM graphs)"
    )


def drop_graphs(connection: DuckDBPyConnection, graphs: Sequence[str]) -> None:
    """Have these graphs not exist any more."""
    for graph in graphs:
        connection.execute("DELETE FROM graphs WHERE g IN (SELECT id FROM terms WHERE text = ?)", [graph])
