"""The quads of a view whose subjects hash to some shards, in a DuckDB of their own, and tables that move.

A shard has the texts of the terms that its quads have. Tables move as `Piece`, arrays of numpy, which cost
0.015 µs of processor time for a value of 64 bits to read, and as much to take in.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from graphdb.columns.schema import REST
from graphdb.columns.sharding.division import Division, quads_of

__all__ = [
    "Piece",
    "chosen_rows",
    "coordinator_pieces",
    "joined",
    "joined_in_parts",
    "made_table",
    "read_piece",
    "shard_pieces",
    "split_piece",
    "subject_bits",
    "take_piece",
    "terms_piece",
]

_AS_THEY_ARE: Final = frozenset(("BIGINT", "UBIGINT", "INTEGER", "TINYINT", "BOOLEAN", "VARCHAR"))
"""Types whose values numpy has exactly; others move as text. (NaN in an array of doubles is read as NULL.)"""
_BITS: Final = 1 << 24  # of a Bloom filter: 2 MB; 2 million subjects leave 4 % of the others in
_ROWS_AT_ONCE: Final = 1 << 18  # of a table that is copied to a shard: some 50 MB of texts
_NAMED: Final = "named_ids"
_MIXED: Final = "mixed_hash"


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows on their way: the name, DuckDB's type and the values of each column. NULLs are masked."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    arrays: tuple[Any, ...]

    @property
    def rows(self) -> int:
        return len(self.arrays[0])

    @property
    def nbytes(self) -> int:
        """Of its values as they move: numbers as they are, texts by their length."""
        return sum(map(_nbytes, self.arrays))


def read_piece(connection: DuckDBPyConnection, sql: str) -> Piece:
    """The rows of a SELECT."""
    cursor = connection.execute(sql)
    names, types = zip(*((column[0], str(column[1])) for column in cursor.description or ()), strict=True)
    if _AS_THEY_ARE.issuperset(types):
        found = cursor.fetchnumpy()
        return Piece(names, types, tuple(found[name] for name in names))
    rows = cursor.fetchall()
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return Piece(names, types, tuple(map(_texts, columns)))


def split_piece(
    connection: DuckDBPyConnection,
    source: str,
    column: str,
    division: Division,
    wanted: NDArray[np.uint8] | None = None,
) -> list[Piece]:
    """The rows of a table by the host of the subject in a column: all, or, where wanted is given, those that
    `subject_bits` may have been made of.
    """
    found = read_piece(connection, f"SELECT *, hash({column}) AS {_MIXED} FROM {source}")
    mixed = np.asarray(found.arrays[-1])
    piece = Piece(found.names[:-1], found.types[:-1], found.arrays[:-1])
    kept = np.ones(len(mixed), bool) if wanted is None else _may_have(wanted, mixed)
    host_of = division.host_of(mixed)
    return [chosen_rows(piece, kept & (host_of == place)) for place in range(len(division.hosts))]


def subject_bits(connection: DuckDBPyConnection, keys: str) -> NDArray[np.uint8]:
    """A Bloom filter of the subjects that a SELECT of a column c0 gives: (2**21,) uint8."""
    found = connection.execute(f"SELECT DISTINCT hash(c0) AS h FROM ({keys})").fetchnumpy()
    bits = np.zeros(_BITS, bool)
    for places in _places(np.asarray(found["h"], np.uint64)):
        bits[places] = True
    return np.packbits(bits)


def joined(pieces: Sequence[Piece]) -> Piece:
    """The rows of pieces that all have the same columns, at least one."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    columns = zip(*(piece.arrays for piece in pieces), strict=True)
    concatenated: Any = np.ma.concatenate  # numpy does not type it
    return replace(first, arrays=tuple(map(concatenated, columns)))


def joined_in_parts(pieces: Sequence[Piece], rows_max: int) -> Iterator[Piece]:
    """The rows of pieces that all have the same columns, at least one, joined as long as they have at most
    rows_max rows: to take one in costs 0.4 ms of processor time, however small it is.
    """
    part: list[Piece] = []
    rows = 0
    for piece in pieces:
        if part and rows + piece.rows > rows_max:
            yield joined(part)
            part, rows = [], 0
        part.append(piece)
        rows += piece.rows
    yield joined(part)


def take_piece(
    connection: DuckDBPyConnection,
    table: str,
    piece: Piece,
    *,
    is_temporary: bool = True,
    appends: bool = False,
) -> int:
    """Make a table of a piece, or append it to one; how many rows the piece has."""
    columns = zip(piece.names, piece.types, strict=True)
    cells = ", ".join(f"{name}::{kind} AS {name}" for name, kind in columns)
    kind = "TEMP TABLE" if is_temporary else "TABLE"
    make = f"INSERT INTO {table}" if appends else f"CREATE OR REPLACE {kind} {table} AS"
    # DuckDB finds the variable by its name: to register it, and to forget it, costs as much as the table
    arriving = dict(zip(piece.names, piece.arrays, strict=True))  # noqa: F841
    connection.execute(f"{make} SELECT {cells} FROM arriving")
    return piece.rows


def made_table(connection: DuckDBPyConnection, table: str, sql: str) -> int:
    """Make a temporary table of a SELECT; how many rows it has."""
    rows: int = connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {sql}").fetchall()[0][0]
    return rows


def shard_pieces(
    connection: DuckDBPyConnection, mine: Collection[int], shards: int, rows_max: int = _ROWS_AT_ONCE
) -> Iterator[tuple[str, Piece]]:
    """The tables of some of the shards of a view, in one transaction of the caller's: all tables of quads,
    `graphs`, `terms`, and `first_shard`, which has a row where the first shard is.

    A table that is long comes in several pieces, of at most rows_max rows, one after the other.
    """
    run = connection.execute
    tables = [row[0] for row in run("SELECT DISTINCT tbl FROM predicates ORDER BY tbl").fetchall()]
    of_mine = quads_of(mine, shards)
    ends = []
    for table in dict.fromkeys((*tables, REST)):
        for piece in _ranges(connection, read_piece, table, lambda _: of_mine, rows_max):
            yield table, piece
        ends += [f"SELECT {column} FROM {table} WHERE {of_mine}" for column in ("s", "o", "g")]
    yield "graphs", read_piece(connection, "FROM graphs")
    named = " UNION ".join([*ends, "SELECT p FROM predicates", "SELECT g FROM graphs"])
    # in order, so that of each range of the terms only those ids are looked at that may be there: all of them
    # for each range would take the square of the quads
    run(f"CREATE OR REPLACE TEMP TABLE {_NAMED} AS SELECT id FROM ({named}) q(id) ORDER BY id")

    def named_in(rows: str) -> str:
        ((low, high),) = run(
            f"SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM terms WHERE {rows}"
        ).fetchall()
        return f"terms.id IN (SELECT id FROM {_NAMED} WHERE id BETWEEN {low} AND {high})"

    for piece in _ranges(connection, terms_piece, "terms", named_in, rows_max):
        yield "terms", piece
    run(f"DROP TABLE {_NAMED}")
    first = np.zeros(1 if 0 in mine else 0, np.int64)
    yield "first_shard", Piece(("c0",), ("BIGINT",), (first,))


def _ranges(
    connection: DuckDBPyConnection,
    read: Callable[[DuckDBPyConnection, str], Piece],
    table: str,
    condition: Callable[[str], str],
    rows_max: int,
) -> Iterator[Piece]:
    """The rows of a table that fulfil a condition, at least one piece; an empty one has the columns only.

    condition: SQL, of those rows that the SQL which it is given chooses.
    """
    ((end,),) = connection.execute(f"SELECT coalesce(max(rowid) + 1, 1) FROM {table}").fetchall()
    for start in range(0, end, rows_max):
        rows = f"{table}.rowid >= {start} AND {table}.rowid < {start + rows_max}"
        piece = read(connection, f"FROM {table} WHERE {rows} AND {condition(rows)}")
        if piece.rows or not start:
            yield piece


def coordinator_pieces(connection: DuckDBPyConnection) -> Iterator[tuple[str, Piece]]:
    """The tables of a view that are not divided, in one transaction of the caller's."""
    yield "terms", terms_piece(connection, "FROM terms")
    for table in ("triple_terms", "predicates", "graphs", "meta"):
        yield table, read_piece(connection, f"FROM {table}")


def terms_piece(connection: DuckDBPyConnection, sql: str) -> Piece:
    """Rows of `terms`, as `FROM terms ...` gives them; DuckDB makes its column of doubles text."""
    piece = read_piece(connection, f"SELECT * REPLACE (num::VARCHAR AS num) {sql}")
    types = dict(zip(piece.names, piece.types, strict=True)) | {"num": "DOUBLE"}
    return replace(piece, types=tuple(types.values()))


def _nbytes(array: Any) -> int:
    if array.dtype != object:
        return int(array.nbytes)
    return sum(len(value) for value in array.tolist() if value is not None)


def _texts(values: Sequence[Any]) -> Any:
    """Values as DuckDB reads them again exactly."""
    texts = np.array([None if value is None else str(value) for value in values], dtype=object)
    return np.ma.masked_array(texts, mask=[value is None for value in values])


def chosen_rows(piece: Piece, rows: NDArray[np.bool_]) -> Piece:
    """Those rows of a piece."""
    return replace(piece, arrays=tuple(array[rows] for array in piece.arrays))


def _may_have(packed: NDArray[np.uint8], mixed: NDArray[np.uint64]) -> NDArray[np.bool_]:
    bits = np.unpackbits(packed).view(bool)
    first, second = _places(mixed)
    found: NDArray[np.bool_] = bits[first] & bits[second]
    return found


def _places(mixed: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Where the bits of subjects are; the lowest byte of their hashes has to do with their shard."""
    last = np.uint64(_BITS - 1)
    return (mixed >> np.uint64(8)) & last, (mixed >> np.uint64(40)) & last
