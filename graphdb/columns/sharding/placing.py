"""`Mover`: where the solutions of patterns are, and how they get to where they meet others.

A pattern has a home (`Home`) when its solutions can be found by one SQL there. A star, the triple patterns
around one subject, has its home on each shard, because all quads of a subject are on one. Where two patterns
that are joined have no common home, the solutions of one are moved, as a table, or those of both.
"""

import re
from collections import Counter
from collections.abc import Generator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations, count
from typing import Any, TypeAlias

import numpy as np
from pyoxigraph import NamedNode

from graphdb.columns.blocks import Block, Moved, Names
from graphdb.columns.estimate import scanned_quads, solutions
from graphdb.columns.groups import Groups
from graphdb.columns.schema import REST
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.moves import Compute, Exchange, Gather, Move, Run, Send, Share
from graphdb.columns.sharding.stars import constant_subject, mentions, names_in
from graphdb.columns.triples import GraphScope
from graphdb.columns.values import SQL_LENGTH_MAX, Elsewhere, NotExact, Rep, Value
from graphdb.sparql.algebra import AbstractQuery, Distinct, Join, Project, Slice
from graphdb.sparql.terms import Variable
from graphdb.sparql.tree_walk import nodes_below

__all__ = [
    "CutLimits",
    "Home",
    "Mover",
    "Placed",
    "Placing",
    "compared",
    "moved_as",
    "quad_tables",
    "table_sql",
]

_QUOTED = re.compile(r"'(?:[^']|'')*'")
_QUADS = re.compile(rf"\b(?:p_\d+|{REST})\b")


def quad_tables(sql: str) -> set[str]:
    """The tables of quads that SQL reads."""
    return set(_QUADS.findall(_QUOTED.sub("", sql)))


@dataclass(frozen=True, slots=True)
class CutLimits:
    """shared_rows_max: rows of one side of a join that go to every shard, whatever else is possible.
    gathered_rows_max: rows that may come together in one place. filtered_rows_min: rows of which those that
    can find no match are left out before they are exchanged. alone_quads_max: of the predicates of a part of
    a query that a coordinator with quads matches by itself: one SQL, in place of one on every shard and of
    bringing together what they find.
    """

    shared_rows_max: int = 5_000
    gathered_rows_max: int = 5_000_000
    filtered_rows_min: int = 200_000
    alone_quads_max: int = 100_000


class Home(Enum):
    """Where the solutions of a pattern can be found."""

    EACH = "each"  # on every shard some of them, none on two
    ALL = "all"  # on every shard all of them, and on the coordinator
    HERE = "here"  # on the coordinator, perhaps from quads that have to be gathered


@dataclass(frozen=True, slots=True)
class Placed:
    """node finds the solutions of origin, a part of the query, at home. Where that is each shard, solutions
    are where the quads are that have the value of the variable key for their subject; None where that is not
    so. columns are what is known of the variables, but for those of HERE. rows is how many there may be. host
    is the one place that has any, where that is known: their subject is a constant.
    """

    node: Any
    origin: Any
    home: Home
    rows: float
    key: str | None = None
    columns: Mapping[str, Value] = field(default_factory=dict)
    host: int | None = None

    @property
    def certain(self) -> AbstractSet[str]:
        """The variables that all solutions bind, to numbers of terms."""
        return {name for name, value in self.columns.items() if value.rep is Rep.ID and not value.nullable}


Placing: TypeAlias = Generator[Move, int, Placed]


class Mover:
    """Brings the solutions of a query's patterns to where they meet."""

    def __init__(
        self,
        names: Names,
        scope: GraphScope,
        query: AbstractQuery,
        division: Division,
        limits: CutLimits,
        *,
        has_quads: bool,
    ) -> None:
        self._names, self._scope, self._query = names, scope, query
        self._division, self._limits, self._has_quads = division, limits, has_quads
        self._hosts = len(division.hosts)
        self._mentions = Counter(mentions(query.pattern, *query.template))
        # COUNT(DISTINCT *) asks for what no text names
        self._needs_all = any(
            getattr(node, "distinct", False) and getattr(node, "expression", True) is None
            for node in nodes_below(query.pattern)
        )
        self._numbers = count()
        self._gathered = 0
        self._fetched: set[str] = set()

    def fetched(self, sql: str) -> Generator[Move, int, None]:
        """Have the coordinator have the quads that its SQL reads. Raises NotExact."""
        if self._has_quads:
            return
        tables = sorted(quad_tables(sql) - self._fetched)
        quads = sum(entry.quads for entry in self._names.catalog.predicates.values() if entry.table in tables)
        self._check_gathered(quads)
        for table in tables:
            yield Gather(f"SELECT * FROM {table}", table, self._limits.gathered_rows_max)
        self._fetched.update(tables)

    def _at(self, home: Home, node: Any, origin: Any, key: str | None, host: int | None = None) -> Placed:
        """Raises Elsewhere, NotExact."""
        if home is Home.HERE:
            return Placed(node, origin, home, self._estimated(origin))
        return Placed(node, origin, home, self._estimated(origin), key, self._block(node).columns, host)

    def _wrapped(self, placed: Placed, wrap: Any, origin: Any) -> Placing:
        """The pattern within another node, at the coordinator where shards do not have the texts for it."""
        if placed.home is not Home.HERE:
            try:
                return self._at(placed.home, wrap(placed.node), origin, placed.key, placed.host)
            except Elsewhere:
                placed = yield from self._here(placed)
        return self._at(Home.HERE, wrap(placed.node), origin, None)

    # Meeting

    def _met_all(self, parts: list[Placed]) -> Placing:
        """The join of all: each time of the two that may have the fewest solutions together, of those with a
        variable in common, where some have one.
        """
        while len(parts) > 1:
            pairs = list(combinations(parts, 2))
            joint = [
                (one, other)
                for one, other in pairs
                if not names_in(one.origin).isdisjoint(names_in(other.origin))
            ]
            one, other = min(joint or pairs, key=self._met_rows)
            origin = Join(one.origin, other.origin)
            left = [each for each in parts if each is not one and each is not other]
            if one.key != other.key and self._meets_large(left) and self._is_small(one, other, origin=origin):
                met = self._at(Home.HERE, Join(one.node, other.node), origin, None)
            else:
                met = yield from self._meet_either(one, other, origin)
            parts = [met, *left]
        return parts[0]

    def _meets_large(self, parts: list[Placed]) -> bool:
        """Whether some of these stay on the shards, so that what the coordinator has found goes there. Else
        all that it is to meet would have to come to it.
        """
        return any(each.home is Home.EACH and not self._is_small(each, origin=each.origin) for each in parts)

    def _met_rows(self, pair: tuple[Placed, Placed]) -> float:
        """How many solutions two patterns may have together, and what moves for it."""
        one, other = pair
        moved = 0.0
        if one.key is None or one.key != other.key:
            moved = min(self._moved_cost(one, other), self._moved_cost(other, one))
        return self._estimated(Join(one.origin, other.origin)) + moved

    def _meet_either(self, one: Placed, other: Placed, origin: Any) -> Placing:
        """The join of two patterns, which is that of the origin."""
        if one.home is other.home is Home.EACH:
            is_cheaper = self._moved_cost(one, other) < self._moved_cost(other, one)
            one, other = (other, one) if is_cheaper else (one, other)
        elif other.home is Home.EACH:
            one, other = other, one
        # of two equal columns the first is taken, whose terms' texts may be on the shard
        return (yield from self._meet(one, other, Join, origin))

    def _is_small(self, *parts: Placed, origin: Any) -> bool:
        """Whether the coordinator had better match these, together the origin, by itself: it has all quads
        that they are made of, and they are few.
        """
        if not self._has_quads or any(part.home is Home.ALL for part in parts):
            return False
        if any(isinstance(node, Moved) for part in parts for node in nodes_below(part.node)):
            return False
        if self._estimated(origin) > self._limits.shared_rows_max:
            return False
        return scanned_quads(origin, self._names.catalog) <= self._limits.alone_quads_max

    def _moved_cost(self, moved: Placed, other: Placed) -> float:
        """About how many rows have to move where this pattern is the one that is moved."""
        if moved.home is not Home.EACH or other.home is not Home.EACH:
            return 0.0
        to_all = moved.rows * (self._hosts - 1)
        if moved.rows <= self._limits.shared_rows_max:
            return to_all
        if other.key in moved.certain:
            return moved.rows
        return moved.rows + other.rows if moved.certain & other.certain else to_all

    def _meet(self, left: Placed, right: Placed, make: Any, origin: Any) -> Placing:
        """A join, OPTIONAL or MINUS. The left side goes nowhere but to where the right one is."""
        if left.home is not Home.EACH:
            if right.home is Home.EACH:
                right = yield from self._everywhere(right)
            home = Home.HERE if Home.HERE in (left.home, right.home) else Home.ALL
            left = replace(left, home=home, key=None, host=None)
            return (yield from self._wrapped(left, lambda it: make(it, right.node), origin))
        if right.home is not Home.EACH:
            right = yield from self._everywhere(right)
        elif left.key is None or left.key != right.key:
            left, right = yield from self._brought(left, right)
        return (yield from self._local(left, right, make, origin))

    def _local(self, left: Placed, right: Placed, make: Any, origin: Any) -> Placing:
        """What is joined where it is; on the coordinator where a shard does not have the texts for it."""
        try:
            return self._at(Home.EACH, make(left.node, right.node), origin, left.key, left.host)
        except Elsewhere:
            left, right = (yield from self._here(left)), (yield from self._here(right))
            return self._at(Home.HERE, make(left.node, right.node), origin, None)

    def _brought(self, left: Placed, right: Placed) -> Generator[Move, int, tuple[Placed, Placed]]:
        """Two patterns of each shard, with what the right one has for a solution of the left beside it."""
        limit = self._limits.shared_rows_max
        if right.key in left.certain and right.rows > limit and left.rows < right.rows:
            return (yield from self._exchanged(left, right.key, right)), right
        if self._is_small(right, origin=right.origin):
            return left, (yield from self._everywhere(right))
        table, columns, rows = yield from self._computed(right)
        shared = sorted(name for name in left.certain & right.certain if name in columns)
        moved = replace(right, node=moved_as(table, columns), columns=_foreign(columns), rows=rows)
        to_each = left.rows if right.key in shared else rows + left.rows
        to_each = rows if left.key in shared else to_each
        if rows <= limit or not shared or rows * self._hosts < to_each:
            self._check_gathered(rows * (self._hosts - 1))
            return left, (yield from self._shared(moved, table))
        by = left.key if left.key in shared else right.key if right.key in shared else shared[0]
        assert by is not None
        if left.key != by:
            left = yield from self._exchanged(left, by)
        if right.key == by:
            return left, right
        return left, (yield from self._passed(moved, table, by, left))

    def _exchanged(self, placed: Placed, by: str | None, near: Placed | None = None) -> Placing:
        """Solutions where the quads of the value of a variable are."""
        assert by is not None
        table, columns, rows = yield from self._computed(placed, by)
        moved = replace(placed, node=moved_as(table, columns), columns=_foreign(columns), rows=rows)
        return (yield from self._passed(moved, table, by, near))

    def _passed(self, moved: Placed, table: str, by: str, near: Placed | None) -> Placing:
        """near is what they meet."""
        keys, target = None, self._table()
        if near is not None and moved.rows >= self._limits.filtered_rows_min and by in near.columns:
            block = self._block(near.node)
            keys = f"{block.names.with_clause()}SELECT {block.columns[by].sql} AS c0{block.rest()}"
        place = list(moved.columns).index(by)
        yield Exchange(table, target, f"c{place}", keys, moved.host)
        return replace(moved, node=replace(moved.node, table=target), home=Home.EACH, key=by, host=None)

    def _host_of(self, star: Any) -> int | None:
        """Where all quads of a star's subject are, where that is a constant."""
        subject = constant_subject(star)
        number = None if subject is None else self._names.constant(NamedNode(subject.value)).constant
        if number is None:
            return None
        hashed = self._names.catalog.connection.execute("SELECT hash(?::BIGINT) AS h", [number]).fetchnumpy()
        return int(self._division.host_of(np.asarray(hashed["h"], np.uint64))[0])

    # Moving

    def _everywhere(self, placed: Placed) -> Placing:
        if placed.home is Home.ALL:
            return placed
        if placed.home is Home.EACH and self._is_small(placed, origin=placed.origin):
            placed = replace(placed, home=Home.HERE, key=None, host=None)
        if placed.home is Home.HERE and isinstance(placed.node, Moved):
            yield Send(placed.node.table)
            columns = {variable.name: value for variable, value in placed.node.columns}
            return replace(placed, home=Home.ALL, columns=columns)
        if placed.home is Home.HERE:
            block = self._block(placed.node, has_all_terms=True)
            columns = self._wanted(placed.origin, block)
            sql, table = table_sql(block, columns), self._table()
            yield from self.fetched(sql)
            rows = yield Run(table, sql)
            self._check_gathered(rows)
            yield Send(table)
            moved = replace(placed, node=moved_as(table, columns), home=Home.ALL, rows=rows)
            return replace(moved, columns=_foreign(columns))
        table, columns, rows = yield from self._computed(placed)
        self._check_gathered(rows)
        moved = replace(placed, node=moved_as(table, columns), columns=_foreign(columns), rows=rows)
        return (yield from self._shared(moved, table))

    def _shared(self, moved: Placed, source: str) -> Placing:
        table = self._table()
        yield Share(source, table, moved.host)
        return replace(moved, node=replace(moved.node, table=table), home=Home.ALL, key=None, host=None)

    def _here(self, placed: Placed) -> Placing:
        if placed.home is not Home.EACH:
            return replace(placed, home=Home.HERE, host=None)
        block, table = self._block(placed.node), self._table()
        columns = self._wanted(placed.origin, block)
        sql = f"SELECT * FROM ({table_sql(block, columns)})"
        rows = yield Gather(sql, table, self._limits.gathered_rows_max, placed.host)
        self._check_gathered(rows)
        return Placed(moved_as(table, columns), placed.origin, Home.HERE, rows)

    def _computed(
        self, placed: Placed, by: str | None = None
    ) -> Generator[Move, int, tuple[str, dict[str, Value], int]]:
        """The table on each shard that has the solutions, its columns, and how many rows all have."""
        block = self._block(placed.node)
        columns = self._wanted(placed.origin, block, by)
        table = self._table()
        rows = yield Compute(table, table_sql(block, columns), placed.host)
        return table, columns, rows

    def _wanted(self, origin: Any, block: Block, by: str | None = None) -> dict[str, Value]:
        """Those columns that the query names beside a part of it."""
        outside = self._mentions - Counter(mentions(origin))
        if self._needs_all or not outside:  # the whole query has its own columns
            return dict(block.columns)
        return {name: value for name, value in block.columns.items() if name in outside or name == by}

    # SQL

    def _block(self, node: Any, *, has_all_terms: bool = False) -> Block:
        names = self._names.apart(has_all_terms=has_all_terms)
        return Groups(names, self._scope).group(node)

    def _table(self) -> str:
        return f"moved_{next(self._numbers)}"

    def _estimated(self, origin: Any) -> float:
        return solutions(origin, self._names.catalog)

    def _check_gathered(self, rows: int) -> None:
        self._gathered += rows
        if self._gathered > self._limits.gathered_rows_max:
            raise NotExact(f"{self._gathered} rows of shards that would have to come together in one place")


def compared(inner: Placed, outer: Placed) -> Placed:
    """Of what each shard has only what can be compared with another pattern's solutions, once."""
    if inner.home is not Home.EACH or outer.home is Home.HERE:
        return inner
    shared = tuple(Variable(name) for name in inner.columns if name in outer.columns and name[:2] != "_:")
    shown = Distinct(Project(inner.node, shared)) if shared else Slice(inner.node, None, 1)
    key = inner.key if inner.key in outer.columns else None
    columns = {each.name: inner.columns[each.name] for each in shared}
    return replace(inner, node=shown, key=key, columns=columns)


def table_sql(block: Block, columns: Mapping[str, Value]) -> str:
    """A table of columns c0, c1, ..."""
    items = [f"{value.sql} AS c{place}" for place, value in enumerate(columns.values())]
    if any(value.lang is not None for value in columns.values()):
        raise NotExact("a column of computed strings with a language")
    sql = f"{block.names.with_clause()}SELECT {', '.join(items) or '1 AS c0'}{block.rest()}"
    if len(sql) > SQL_LENGTH_MAX:
        raise NotExact("a query that is too long in SQL")
    return sql


def moved_as(table: str, columns: Mapping[str, Value]) -> Moved:
    return Moved(table, tuple((Variable(name), value) for name, value in _foreign(columns).items()))


def _foreign(columns: Mapping[str, Value]) -> dict[str, Value]:
    return {name: replace(value, is_local=False, constant=None) for name, value in columns.items()}
