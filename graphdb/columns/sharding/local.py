"""Shards in one process: `LocalShards`, in several DuckDBs, and what the compiler asks of them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from duckdb import DuckDBPyConnection

from graphdb.columns.catalog import Catalog
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.moves import Compute, Exchange, Gather, Move, Run, Send, Share
from graphdb.columns.sharding.shard import (
    Piece,
    coordinator_pieces,
    joined,
    made_table,
    read_piece,
    shard_pieces,
    split_piece,
    subject_bits,
    take_piece,
)
from graphdb.columns.term_ids import PAYLOAD_BITS, Tag
from graphdb.columns.values import Tags

__all__ = ["LocalShards"]

Ask: TypeAlias = Callable[[str], list[tuple[Any, ...]]]


class ShardedCatalog(Catalog):
    """The catalog of a view whose quads are on shards, and all else on the connection."""

    def __init__(self, connection: DuckDBPyConnection, ask: Ask) -> None:
        """ask gives the rows that all shards have for a SELECT."""
        super().__init__(connection)
        self._ask = ask

    def tags(self, predicate: int | None, column: str) -> Tags:
        """See `Catalog.tags`."""
        entry = None if predicate is None else self.predicates.get(predicate)
        if predicate is None or entry is None:
            return super().tags(predicate, column)
        key = (entry.table, predicate, column)
        if key not in self._found.tags:
            rows = self._ask(f"SELECT DISTINCT {column} >> {PAYLOAD_BITS} {self.source(predicate)}")
            self._found.tags[key] = frozenset(Tag(row[0]) for row in rows)
        return self._found.tags[key]

    def count(self, predicate: int, conditions: str) -> int:
        """See `Catalog.count`."""
        return sum(row[0] for row in self._ask(self.counting(predicate, conditions)))

    def holds(self, sql: str) -> bool:
        """Whether a SELECT over what every shard has has a row."""
        return bool(self._ask(f"{sql} LIMIT 1"))


class LocalShards:
    """Owns no connection: whoever makes it closes them. Tables of queries stay until then."""

    def __init__(
        self,
        coordinator: DuckDBPyConnection,
        shards: Sequence[DuckDBPyConnection],
        *,
        has_quads: bool = False,
        division: Division | None = None,
    ) -> None:
        """has_quads: the coordinator is the whole view. division: where not each database has one shard."""
        self.coordinator, self.shards, self.has_quads = coordinator, shards, has_quads
        self.division = division or Division.apart(len(shards))
        self.moved_rows = self.moved_bytes = 0  # from one place to another, copies counted
        self.gathered_bytes = 0  # of those, what came to the coordinator

    def fill(self, view: DuckDBPyConnection) -> None:
        """Have the shards have the quads of a view, and the coordinator, where it is not that view, its terms
        and statistics.
        """
        for mine, shard in zip(self.division.hosts, self.shards, strict=True):
            begun = set[str]()
            for table, piece in shard_pieces(view, mine, self.division.shards):
                take_piece(shard, table, piece, is_temporary=False, appends=table in begun)
                begun.add(table)
        for table, piece in () if self.has_quads else coordinator_pieces(view):
            take_piece(self.coordinator, table, piece, is_temporary=False)

    def catalog(self) -> Catalog:
        """Of the whole view, for queries until it is filled again."""
        return Catalog(self.coordinator) if self.has_quads else ShardedCatalog(self.coordinator, self.ask)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that all shards have for a SELECT."""
        return [row for shard in self.shards for row in shard.execute(sql).fetchall()]

    def perform(self, move: Move) -> int:
        """See `Shards`."""
        match move:
            case Compute(table=table, sql=sql, host=host):
                return sum(made_table(shard, table, sql) for shard in self._asked(host))
            case Run(table=table, sql=sql):
                return made_table(self.coordinator, table, sql)
            case Gather(sql=sql, table=table, rows_max=rows_max, host=host):
                return self._brought(f"{sql} LIMIT {rows_max + 1}", table, [self.coordinator], host)
            case Share(source=source, table=table, host=host):
                return self._brought(f"FROM {source}", table, [self.coordinator, *self.shards], host)
            case Send(table=table):
                piece = read_piece(self.coordinator, f"FROM {table}")
                return self._taken(table, piece, self.shards)
            case Exchange():
                return self._exchanged(move)

    def _asked(self, host: int | None) -> Sequence[DuckDBPyConnection]:
        return self.shards if host is None else [self.shards[host]]

    def _brought(self, sql: str, table: str, places: Sequence[DuckDBPyConnection], host: int | None) -> int:
        piece = joined([read_piece(shard, sql) for shard in self._asked(host)])
        self.gathered_bytes += piece.nbytes
        return self._taken(table, piece, places)

    def _taken(self, table: str, piece: Piece, places: Sequence[DuckDBPyConnection]) -> int:
        for place in places:
            take_piece(place, table, piece)
        self.moved_rows += len(places) * piece.rows
        self.moved_bytes += len(places) * piece.nbytes
        return piece.rows

    def _exchanged(self, move: Exchange) -> int:
        wanted = None
        if move.keys is not None:
            wanted = np.bitwise_or.reduce([subject_bits(shard, move.keys) for shard in self.shards])
        split = [
            split_piece(shard, move.source, move.column, self.division, wanted)
            for shard in self._asked(move.host)
        ]
        rows = 0
        for place, shard in enumerate(self.shards):
            piece = joined([pieces[place] for pieces in split])
            rows += take_piece(shard, move.table, piece)
            self.moved_bytes += piece.nbytes
        self.moved_rows += rows
        return rows
