"""The tables of the column view; `DESIGN.md` says what stands in them."""

from typing import Final

import duckdb
from duckdb import DuckDBPyConnection

from graphdb.columns.term_ids import PAYLOAD_MASK

__all__ = [
    "FORMAT",
    "FREQUENT_QUADS",
    "REST",
    "STALE",
    "TABLES_MAX",
    "configure",
    "create",
    "predicate_table",
    "written_format",
]

FORMAT: Final = "3"  # of what is on disk: another one is made anew
REST: Final = "rest"
FREQUENT_QUADS: Final = 1_000  # of a predicate that gets a table of its own
TABLES_MAX: Final = 2_000  # such tables
STALE: Final = ""  # a count in `meta` that is to be taken again
_CREATE: Final = (
    "CREATE TABLE terms (id BIGINT, text VARCHAR, kind TINYINT, lexical VARCHAR, datatype VARCHAR, "
    "lang VARCHAR, num DOUBLE)",
    "CREATE TABLE triple_terms (id BIGINT, s BIGINT, p BIGINT, o BIGINT)",
    "CREATE TABLE rest (s BIGINT, p BIGINT, o BIGINT, g BIGINT)",
    "CREATE TABLE predicates (p BIGINT, tbl VARCHAR, quads BIGINT, subjects BIGINT, objects BIGINT, "
    "is_stale BOOLEAN)",
    "CREATE TABLE graphs (g BIGINT, quads BIGINT)",
    "CREATE TABLE meta (key VARCHAR, value VARCHAR)",
)


def create(connection: DuckDBPyConnection) -> None:
    """Make an empty view, of log index 0, in an empty database."""
    for statement in _CREATE:
        connection.execute(statement)
    values = {
        "format": written_format(),
        "log_index": "0",
        "resume_index": "0",
        "checksum": "0",
        "next_term": "1",
        "collected": "0",
        "removed": "0",
        "quads": "0",
        "subjects": STALE,
        "objects": STALE,
    }
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(values.items()))


def configure(connection: DuckDBPyConnection) -> None:
    """Set what all connections of a database that is queried are to have."""
    # It makes a join of two COUNT(DISTINCT), whose size is estimated far too high.
    connection.execute("SET disabled_optimizers = 'distinct_aggregate_rewrite'")


def written_format() -> str:
    """What `meta` says of the form of a view: ours, and that of DuckDB, whose hashes may change."""
    return f"{FORMAT} {duckdb.__version__}"


def predicate_table(predicate: int) -> str:
    """The name of a frequent predicate's own table."""
    return f"p_{predicate & PAYLOAD_MASK}"
