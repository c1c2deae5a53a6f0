"""Whether a view is whole: its form, and what it holds against what it says of itself."""

from duckdb import DuckDBPyConnection
from duckdb import Error as DuckDBError

from graphdb.columns.schema import REST, written_format
from graphdb.errors import CorruptionError

__all__ = ["HASH_BITS", "check", "quads_and_checksum"]

HASH_BITS = 64  # of a quad; the checksum is the sum of the hashes, modulo 2 ** HASH_BITS


def check(connection: DuckDBPyConnection) -> tuple[int, int]:
    """The log index of a view that is whole, and that behind which to go on reading the log.

    Raises CorruptionError: the view is to be made anew.
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
