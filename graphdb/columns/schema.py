"""The tables of the column view, which `DESIGN.md` describes, and whether a view is consistent."""

from typing import Final

import duckdb
from duckdb import DuckDBPyConnection
from duckdb import Error as DuckDBError

from graphdb.columns.term_ids import PAYLOAD_MASK
from graphdb.errors import CorruptionError

__all__ = [
    "FORMAT",
    "FREQUENT_QUADS",
    "GRAPH_SPANS",
    "HASH_BITS",
    "PAST_TURNS",
    "REST",
    "STALE",
    "TABLES_MAX",
    "check",
    "configure",
    "create",
    "predicate_table",
    "quads_and_checksum",
    "written_format",
]

FORMAT: Final = "5"  # of a view on disk; a view of another format is rebuilt
REST: Final = "rest"
PAST_TURNS: Final = "past_turns"  # what has come and gone since the past is kept, in the order of the log
GRAPH_SPANS: Final = "graph_spans"  # since and until when named graphs were there
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
    f"CREATE TABLE {PAST_TURNS} (s BIGINT, p BIGINT, o BIGINT, g BIGINT, log_index BIGINT, added BOOLEAN)",
    f"CREATE TABLE {GRAPH_SPANS} (g BIGINT, since BIGINT, until BIGINT)",
)
HASH_BITS = 64  # of a quad; the checksum is the sum of the hashes, modulo 2 ** HASH_BITS


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
        "past_from": "",
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


def check(connection: DuckDBPyConnection) -> tuple[int, int]:
    """The log index of a consistent view, and the index after which reading the log continues.

    Raises CorruptionError: the view has to be rebuilt.
    """
    try:
        return _checked(connection)
    except (DuckDBError, ValueError, KeyError) as error:
        raise CorruptionError(f"it cannot be read: {error}", "column view") from error


def _checked(connection: DuckDBPyConnection) -> tuple[int, int]:
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    if meta["format"] != written_format():
        raise CorruptionError(f"its format is {meta['format']}, not {written_format()}", "column view")
    if (meta["quads"], meta["checksum"]) != tuple(map(str, quads_and_checksum(connection))):
        raise CorruptionError("its quads are not those of its checksum", "column view")
    # every block of the terms is read, and with it DuckDB's own checksum of the block
    ((terms, _),) = connection.execute(
        "SELECT count(*), bit_xor(hash(id, text, lexical)) FROM terms"
    ).fetchall()
    expected = int(meta["next_term"]) - 1 - int(meta["collected"])
    if terms != expected:
        raise CorruptionError(f"it has {terms} terms, not {expected}", "column view")
    return int(meta["log_index"]), int(meta["resume_index"])


def quads_and_checksum(connection: DuckDBPyConnection) -> tuple[int, int]:
    """How many quads the tables hold, and their checksum. Reads all of them."""
    rows = connection.execute(f"SELECT p, tbl FROM predicates WHERE tbl <> '{REST}'").fetchall()
    parts = [f"SELECT hash(s, p, o, g) AS h FROM {REST}"]
    parts += (f"SELECT hash(s, {predicate}::BIGINT, o, g) AS h FROM {table}" for predicate, table in rows)
    quads = checksum = 0
    for part in parts:
        ((count, total),) = connection.execute(
            f"SELECT count(*), coalesce(sum(h), 0) FROM ({part})"
        ).fetchall()
        quads, checksum = quads + count, checksum + int(total)
    return quads, checksum % (1 << HASH_BITS)
