"""How shards follow the view that they are made of: `ChangeNotes`, what one transaction of the view changes,
divided; `apply_change`, the same in the database of a shard.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from graphdb.columns.encoding import DELTA
from graphdb.columns.predicate_tables import TableChange, change_quads, give_table
from graphdb.columns.schema import REST
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.shard import Piece, chosen_rows, read_piece, take_piece, terms_piece

__all__ = ["ChangeNotes", "PartChange", "ShardChange", "apply_change"]

_WANTED = "wanted_ids"
_Ids: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartChange:
    """Of some changes of the log, what concerns one host: quads are s, p, o, g and added; terms are rows of
    `terms` that its new quads may need; tables are all that change in the view, by predicate; graphs are rows
    of `graphs` in place of those of touched.
    """

    quads: Piece | None
    terms: Piece
    tables: Mapping[int, TableChange]
    graphs: Piece
    touched: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShardChange:
    """What brings a host from the state of one log index to that of another."""

    before_index: int
    log_index: int
    parts: tuple[PartChange, ...]


class ChangeNotes:
    """Of one transaction of a view that is divided among shards. is_whole: nothing was left out because there
    were more than quads_max quads; otherwise shards have to be filled anew.
    """

    def __init__(self, division: Division, quads_max: int) -> None:
        self.is_whole = True
        self.division = division
        self._left = quads_max
        self._parts: list[list[PartChange]] = [[] for _ in division.hosts]

    def note(
        self, connection: DuckDBPyConnection, tables: Mapping[int, TableChange], graphs: Sequence[str]
    ) -> None:
        """Take what was changed: the tables of quads as `delta` has them, and graphs, N-Triples terms, that
        were made or dropped.
        """
        if not self.is_whole:
            return
        quads = None
        if tables:
            ((rows,),) = connection.execute(f"SELECT count(*) FROM {DELTA}").fetchall()
            self._left -= rows
            if self._left < 0:
                self.is_whole, self._parts = False, []
                return
            quads = read_piece(connection, f"SELECT s, p, o, g, added, hash(s) AS mixed FROM {DELTA}")
        self._divide(connection, quads, tables, graphs)

    def changes(self, before_index: int, log_index: int) -> list[ShardChange]:
        """For each host. is_whole holds."""
        return [ShardChange(before_index, log_index, tuple(parts)) for parts in self._parts]

    def _divide(
        self,
        connection: DuckDBPyConnection,
        quads: Piece | None,
        tables: Mapping[int, TableChange],
        graphs: Sequence[str],
    ) -> None:
        named = connection.execute(
            "SELECT id FROM terms WHERE text IN (SELECT unnest(?::VARCHAR[]))", [list(graphs)]
        ).fetchall()
        touched = {row[0] for row in named}
        if quads is not None:
            touched.update(np.unique(np.asarray(quads.arrays[3])).tolist())
        touched.discard(0)
        of_graphs = np.array(sorted(touched), np.int64)
        parts = self._of_hosts(quads)
        ids = [_ids(of_graphs, part) for part in parts]
        terms = _of_ids(connection, terms_piece, "terms", "id", np.unique(np.concatenate(ids)))
        rows = _of_ids(connection, read_piece, "graphs", "g", of_graphs)
        numbers = np.asarray(terms.arrays[0])
        for place, part in enumerate(parts):
            mine = chosen_rows(terms, np.isin(numbers, ids[place]))
            self._parts[place].append(PartChange(part, mine, tables, rows, tuple(sorted(touched))))

    def _of_hosts(self, quads: Piece | None) -> Sequence[Piece | None]:
        hosts = len(self.division.hosts)
        if quads is None:
            return [None] * hosts
        all_of_them = Piece(quads.names[:-1], quads.types[:-1], quads.arrays[:-1])
        host_of = self.division.host_of(np.asarray(quads.arrays[-1]))
        return [chosen_rows(all_of_them, host_of == place) for place in range(hosts)]


def _ids(graphs: _Ids, quads: Piece | None) -> _Ids:
    """The numbers of terms that a shard may not know yet."""
    if quads is None:
        return graphs
    *columns, added = (np.asarray(array) for array in quads.arrays)
    return np.unique(np.concatenate([graphs, *(column[added.astype(bool)] for column in columns)]))


def _of_ids(connection: DuckDBPyConnection, read: Any, table: str, column: str, ids: _Ids) -> Piece:
    connection.register(_WANTED, {"id": ids})
    try:
        sql = f"FROM {table} WHERE {column} IN (SELECT id FROM {_WANTED})"
        piece: Piece = read(connection, sql)
        return piece
    finally:
        connection.unregister(_WANTED)


def apply_change(connection: DuckDBPyConnection, parts: Iterable[PartChange]) -> None:
    """Bring a shard on, in a transaction of the caller's.

    Raises CorruptionError where the shard does not have what is removed, and the errors of DuckDB.
    """
    run = connection.execute
    for part in parts:
        take_piece(connection, "arrived", part.terms)
        run("INSERT INTO terms FROM arrived ANTI JOIN terms USING (id)")
        counts: dict[int, tuple[int, int]] = {}
        if part.quads is not None:
            take_piece(connection, DELTA, part.quads)
            counted = run(
                f"SELECT p, count(*) FILTER (added), count(*) FILTER (NOT added) FROM {DELTA} GROUP BY p"
            )
            counts = {predicate: (more, less) for predicate, more, less in counted.fetchall()}
        for predicate, change in part.tables.items():
            more, less = counts.get(predicate, (0, 0))
            change_quads(connection, predicate, change.before, more, less)
            if change.after is None and change.before != REST:
                run(f"DROP TABLE {change.before}")
            elif change.after is not None and change.after != change.before:
                give_table(connection, predicate, change.after)
        if part.touched:
            run("DELETE FROM graphs WHERE g IN (SELECT unnest(?::BIGINT[]))", [list(part.touched)])
            take_piece(connection, "arrived", part.graphs)
            run("INSERT INTO graphs FROM arrived")
        run("DROP TABLE IF EXISTS arrived")
        run(f"DROP TABLE IF EXISTS {DELTA}")
