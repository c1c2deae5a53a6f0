"""A query cut into SQL for every shard and SQL over what comes of it: `cut`.

A pattern has a home (`Home`) when its solutions can be found by one SQL there. A star, the triple patterns
around one subject, has its home on each shard, because all quads of a subject are on one. Where two patterns
that are joined have no common home, the solutions of one are moved, as a table, or those of both.

The plan is a generator: it yields one `Move` after the other and is told how many rows came of it, so it
decides with the numbers of rows that there are.
"""

import re
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import reduce
from itertools import combinations, count
from typing import Any, Final, TypeAlias

from graphdb.columns.aggregates import counted_from_statistics, grouped_in_parts
from graphdb.columns.blocks import Block, Moved, Names
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compiled_in, graphs_of
from graphdb.columns.estimate import solutions
from graphdb.columns.expressions import Expressions, conjuncts
from graphdb.columns.groups import Groups
from graphdb.columns.schema import REST
from graphdb.columns.sharding.moves import Compute, Exchange, Gather, Move, Run, Send, Share
from graphdb.columns.sharding.stars import (
    certain_in,
    is_plain,
    key_of,
    mentions,
    names_in,
    one_key,
    stars_of,
    unfolded,
)
from graphdb.columns.triples import GraphScope
from graphdb.columns.values import SQL_LENGTH_MAX, Elsewhere, NotExact, Rep, Value
from graphdb.sparql.algebra import (
    EMPTY,
    SELECT_NODES,
    AbstractQuery,
    Bgp,
    Distinct,
    Exists,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    Path,
    Project,
    Reduced,
    Slice,
    Union,
    Values,
    conjunction,
)
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.terms import BlankNodeLabel, Iri, Variable
from graphdb.sparql.tree_walk import all_below, expression_nodes, nodes_below, rewritten_expression

__all__ = ["CutLimits", "cut"]

_FIRST: Final[Any] = Moved("first_shard", ())
"""One solution that binds nothing, on one shard only."""
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_QUADS = re.compile(rf"\b(?:p_\d+|{REST})\b")


@dataclass(frozen=True, slots=True)
class CutLimits:
    """shared_rows_max: rows of one side of a join that go to every shard, whatever else is possible.
    gathered_rows_max: rows that may come together in one place. filtered_rows_min: rows of which those that
    can find no match are left out before they are exchanged.
    """

    shared_rows_max: int = 5_000
    gathered_rows_max: int = 5_000_000
    filtered_rows_min: int = 200_000


class Home(Enum):
    """Where the solutions of a pattern can be found."""

    EACH = "each"  # on every shard some of them, none on two
    ALL = "all"  # on every shard all of them, and on the coordinator
    HERE = "here"  # on the coordinator, perhaps from quads that have to be gathered


@dataclass(frozen=True, slots=True)
class _Placed:
    """node finds the solutions of origin, a part of the query, at home. Where that is each shard, solutions
    are where the quads are that have the value of the variable key for their subject; None where that is not
    so. columns are what is known of the variables, but for those of HERE. rows is how many there may be.
    """

    node: Any
    origin: Any
    home: Home
    rows: float
    key: str | None = None
    columns: Mapping[str, Value] = field(default_factory=dict)

    @property
    def certain(self) -> AbstractSet[str]:
        """The variables that all solutions bind, to numbers of terms."""
        return {name for name, value in self.columns.items() if value.rep is Rep.ID and not value.nullable}


_Placing: TypeAlias = Generator[Move, int, _Placed]


def cut(
    query: AbstractQuery,
    dataset: Dataset,
    catalog: Catalog,
    shards: int,
    limits: CutLimits,
    *,
    has_quads: bool = False,
) -> Generator[Move, int, CompiledQuery]:
    """The query's plan over so many shards: in the end what the coordinator has to run. Raises NotExact.

    The catalog is that of the whole view, and dataset the protocol's, which overrides the query's own.
    has_quads: the coordinator is itself a whole view, so it need not gather quads.
    """
    names = Names(catalog, query.pattern)
    graphs = graphs_of(names, dataset or own_dataset(query))
    compiled_in(names, query, graphs)  # what one view would leave to a reader, shards leave as well
    query = replace(query, pattern=unfolded(query.pattern))
    cutter = _Cutter(names, GraphScope(graphs), query, shards, limits, has_quads=has_quads)
    placed = yield from cutter.root()
    final = names.apart(has_all_terms=True)
    compiled = compiled_in(final, replace(query, pattern=placed.node), graphs)
    yield from cutter.fetched(compiled.sql)
    return compiled


class _Cutter:
    """Places the patterns of one query."""

    def __init__(
        self,
        names: Names,
        scope: GraphScope,
        query: AbstractQuery,
        shards: int,
        limits: CutLimits,
        *,
        has_quads: bool,
    ) -> None:
        self._names, self._scope, self._query = names, scope, query
        self._shards, self._limits, self._has_quads = shards, limits, has_quads
        self._mentions = Counter(mentions(query.pattern, *query.template))
        # COUNT(DISTINCT *) asks for what no text names
        self._needs_all = any(
            getattr(node, "distinct", False) and getattr(node, "expression", True) is None
            for node in nodes_below(query.pattern)
        )
        self._numbers = count()
        self._gathered = 0
        self._fetched: set[str] = set()
        self._graph: Iri | None = None  # of GRAPH around what is placed

    def root(self) -> _Placing:
        """The whole pattern, at the coordinator."""
        query, pattern = self._query, self._query.pattern
        if query.form == "SELECT" or isinstance(pattern, Slice | OrderBy):
            return (yield from self._select(pattern, is_whole=True))
        placed = yield from self._place(pattern)
        if placed.home is Home.EACH and query.form == "ASK":
            placed = replace(placed, node=Slice(placed.node, None, 1))
        elif placed.home is Home.EACH and not any(
            isinstance(node, BlankNodeLabel) for node in all_below(*query.template)
        ):
            named = names_in(*query.template)
            wanted = tuple(Variable(name) for name in placed.columns if name in named)
            if wanted:
                placed = replace(placed, node=Distinct(Project(placed.node, wanted)))
        return (yield from self._here(placed))

    def fetched(self, sql: str) -> Generator[Move, int, None]:
        """Have the coordinator have the quads that its SQL reads. Raises NotExact."""
        if self._has_quads:
            return
        tables = sorted(set(_QUADS.findall(_QUOTED.sub("", sql))) - self._fetched)
        quads = sum(entry.quads for entry in self._names.catalog.predicates.values() if entry.table in tables)
        self._check_gathered(quads)
        for table in tables:
            yield Gather(f"SELECT * FROM {table}", table, self._limits.gathered_rows_max)
        self._fetched.update(tables)

    # Patterns

    def _place(self, node: Any, conditions: Sequence[Any] = ()) -> _Placing:
        """A pattern, and conditions that its solutions are to fulfil."""
        match node:
            case Filter(expression=expression, pattern=pattern):
                return (yield from self._place(pattern, (*conjuncts(expression), *conditions)))
            case Bgp() | Path() | Join():
                return (yield from self._conjunction(node, conditions))
            case LeftJoin(condition=condition) if _has_exists(condition):
                placed = self._raw(node)
            case LeftJoin(left=left, right=right, condition=condition):
                first, later = _pushed(conditions, left)
                mine = yield from self._place(left, first)
                theirs = yield from self._place(right)
                met = yield from self._meet(mine, theirs, lambda a, b: LeftJoin(a, b, condition), node)
                return (yield from self._filtered(met, later))
            case Minus(left=left, right=right):
                first, later = _pushed(conditions, left)
                mine = yield from self._place(left, first)
                if names_in(left).isdisjoint(names_in(right)):
                    return (yield from self._filtered(mine, later))
                theirs = yield from self._place(right)
                if mine.home is not Home.EACH or mine.key is None or mine.key != theirs.key:
                    theirs = _compared(theirs, mine)
                met = yield from self._meet(mine, theirs, Minus, node)
                return (yield from self._filtered(met, later))
            case Extend(pattern=pattern, variable=variable, expression=expression):
                first, later = _pushed(conditions, pattern, variable.name)
                placed = yield from self._place(pattern, first)
                placed = yield from self._extended(placed, variable, expression, node)
                return (yield from self._filtered(placed, later))
            case Union(branches=branches):
                placed = yield from self._union(branches, node)
            case Values():
                placed = self._at(Home.ALL, node, node, None)
            case Graph():
                placed = yield from self._graph_of(node)
            case Group():
                placed = yield from self._grouped(node)
            case _ if isinstance(node, SELECT_NODES):
                placed = yield from self._select(node)
            case _:
                raise NotExact("SERVICE")
        return (yield from self._filtered(placed, conditions))

    def _at(self, home: Home, node: Any, origin: Any, key: str | None) -> _Placed:
        """Raises Elsewhere, NotExact."""
        if home is Home.HERE:
            return _Placed(node, origin, home, self._estimated(origin))
        return _Placed(node, origin, home, self._estimated(origin), key, self._block(node).columns)

    def _raw(self, node: Any) -> _Placed:
        """A pattern as it stands, over quads that are gathered."""
        if self._graph is not None:
            node = Graph(self._graph, node)
        return _Placed(node, node, Home.HERE, self._estimated(node))

    def _conjunction(self, node: Any, conditions: Sequence[Any]) -> _Placing:
        operands = list(_joined(node))
        together: list[Any] = [each for each in operands if isinstance(each, Bgp | Path)]
        stars, left = stars_of(together), list(conditions)
        parts: list[_Placed] = []
        if stars is None:  # a path starts at what the triple patterns beside it bind
            parts.append(self._raw(reduce(Join, together)))
        for star in stars or ():
            mine, left = _pushed(left, star)
            pattern = star if self._graph is None else Graph(self._graph, star)
            placed = self._at(Home.EACH, pattern, star, key_of(star))
            parts.append((yield from self._filtered(placed, mine)))
        for operand in operands:
            if not isinstance(operand, Bgp | Path):
                mine, left = _pushed(left, operand)
                parts.append((yield from self._place(operand, mine)))
        if not parts:
            parts.append(self._at(Home.ALL, EMPTY, EMPTY, None))
        placed = yield from self._met_all(parts)
        return (yield from self._filtered(placed, left))

    def _met_all(self, parts: list[_Placed]) -> _Placing:
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
            met = yield from self._meet_either(one, other)
            parts = [met, *(each for each in parts if each is not one and each is not other)]
        return parts[0]

    def _met_rows(self, pair: tuple[_Placed, _Placed]) -> float:
        """How many solutions two patterns may have together, and what moves for it."""
        one, other = pair
        moved = 0.0
        if one.key is None or one.key != other.key:
            moved = min(self._moved_cost(one, other), self._moved_cost(other, one))
        return self._estimated(Join(one.origin, other.origin)) + moved

    def _union(self, branches: Sequence[Any], node: Any) -> _Placing:
        placed = []
        for branch in branches:
            placed.append((yield from self._place(branch)))
        homes = {each.home for each in placed}
        if homes == {Home.ALL}:
            return self._at(Home.ALL, Union(tuple(each.node for each in placed)), node, None)
        if Home.HERE in homes:
            brought = []
            for each in placed:
                brought.append((yield from self._here(each)))
            return self._at(Home.HERE, Union(tuple(each.node for each in brought)), node, None)
        keys = {each.key for each in placed}
        nodes = tuple(Join(each.node, _FIRST) if each.home is Home.ALL else each.node for each in placed)
        key = keys.pop() if len(keys) == 1 else None
        return self._at(Home.EACH, Union(nodes), node, key)

    def _graph_of(self, node: Graph) -> _Placing:
        apart = (Exists, Graph, Path, *SELECT_NODES)
        if self._graph is not None or any(isinstance(each, apart) for each in nodes_below(node.pattern)):
            return self._raw(node)
        if isinstance(node.name, Iri):
            self._block(node)  # refuses what is no graph
            self._graph = node.name
            try:
                return (yield from self._place(node.pattern))
            finally:
                self._graph = None
        is_alike, key = one_key(node.pattern)
        return self._at(Home.EACH, node, node, key) if is_alike else self._raw(node)

    def _extended(self, placed: _Placed, variable: Variable, expression: Any, node: Any) -> _Placing:
        placed, [expression] = yield from self._with_exists(placed, [expression])
        return (yield from self._wrapped(placed, lambda each: Extend(each, variable, expression), node))

    def _filtered(self, placed: _Placed, conditions: Sequence[Any]) -> _Placing:
        if not conditions:
            return placed
        origin = _where(conditions, placed.origin)
        placed, conditions = yield from self._with_exists(placed, conditions)
        return (yield from self._wrapped(placed, lambda each: _where(conditions, each), origin))

    def _wrapped(self, placed: _Placed, wrap: Any, origin: Any) -> _Placing:
        """The pattern within another node, at the coordinator where shards do not have the texts for it."""
        if placed.home is not Home.HERE:
            try:
                return self._at(placed.home, wrap(placed.node), origin, placed.key)
            except Elsewhere:
                placed = yield from self._here(placed)
        return self._at(Home.HERE, wrap(placed.node), origin, None)

    def _with_exists(
        self, placed: _Placed, expressions: Sequence[Any]
    ) -> Generator[Move, int, tuple[_Placed, list[Any]]]:
        """The expressions with EXISTS of what is where the pattern is, which may be brought there."""
        made: dict[int, Exists] = {}
        for each in expressions:
            for exists in expression_nodes(each):
                if not isinstance(exists, Exists):
                    continue
                is_alike, key = one_key(exists.pattern)
                if placed.home is Home.EACH and is_alike and key is not None and key == placed.key:
                    found = exists.pattern
                elif is_plain(exists.pattern) and placed.home is not Home.HERE:
                    found = yield from self._shown(exists.pattern, placed)
                else:
                    placed = yield from self._here(placed)
                    continue
                made[id(exists)] = replace(exists, pattern=found)

        def change(node: Any) -> Any:
            return made.get(id(node), node)

        return placed, [rewritten_expression(each, change) for each in expressions]

    def _shown(self, pattern: Any, outer: _Placed) -> Generator[Move, int, Any]:
        """The solutions of a pattern, as far as they can be compared with those of another, everywhere."""
        inner = yield from self._place(pattern)
        inner = yield from self._everywhere(_compared(inner, outer))
        return inner.node

    # Groups and modifiers

    def _grouped(self, node: Group) -> _Placing:
        if not (node.keys or node.aggregates):
            return (yield from self._place(node.pattern))  # HAVING alone filters, and groups nothing
        if counted_from_statistics(self._names.apart(has_all_terms=True), self._scope, node) is not None:
            return self._at(Home.HERE, node, node, None)
        placed = yield from self._place(node.pattern)
        if _has_exists(*(aggregate.expression for _, aggregate in node.aggregates)):
            placed = yield from self._here(placed)
        if placed.home is not Home.EACH:
            return self._at(Home.HERE, replace(node, pattern=placed.node), node, None)
        keys = {key.name for key in node.keys}
        try:
            if placed.key in keys:
                return self._at(Home.EACH, replace(node, pattern=placed.node), node, placed.key)
            return (yield from self._of_parts(node, placed))
        except Elsewhere:
            placed = yield from self._here(placed)
            return self._at(Home.HERE, replace(node, pattern=placed.node), node, None)

    def _of_parts(self, node: Group, placed: _Placed) -> _Placing:
        """A group whose aggregates are computed on each shard, and then of what comes. Raises Elsewhere."""
        table = self._table()
        block = self._block(placed.node)
        whole = Block(self._names.apart(has_all_terms=True), [f"{table} parts"])
        groups = Groups(block.names, self._scope)
        parts = grouped_in_parts(Expressions(block, groups.exists, {}), node, whole, placed.key)
        sql = f"SELECT * FROM ({block.names.with_clause()}{parts.sql})"
        self._check_gathered((yield Gather(sql, table, self._limits.gathered_rows_max)))
        made = self._table()
        rows = yield Run(made, _select(parts.whole, parts.whole.columns))
        return _Placed(_moved(made, parts.whole.columns), node, Home.HERE, rows)

    def _select(self, node: Any, *, is_whole: bool = False) -> _Placing:
        """A query or sub-select. Of a whole one the order is kept."""
        chain, inner = _modifiers(node)
        placed = yield from self._place(inner)
        kinds = {type(each): each for each in chain}
        is_cut, is_distinct = Slice in kinds, Distinct in kinds or Reduced in kinds
        if placed.home is Home.EACH:
            shown = {placed.key} if Project not in kinds else {each.name for each in kinds[Project].variables}
            key = placed.key if placed.key in shown else None
            if not (is_cut or is_whole or (is_distinct and key is None)):
                placed = replace(placed, key=key)
                return (yield from self._wrapped(placed, lambda it: _chained(chain, it), node))
            placed = yield from self._here(self._leading(placed, chain))
        elif placed.home is Home.ALL and not (is_cut or is_whole):
            return self._at(Home.ALL, _chained(chain, placed.node), node, None)
        return self._at(Home.HERE, _chained(chain, placed.node), node, None)

    def _leading(self, placed: _Placed, chain: Sequence[Any]) -> _Placed:
        """Of the solutions of each shard those that modifiers may leave; all where a shard cannot tell."""
        kinds = {type(each): each for each in chain}
        slice_, order, shown = kinds.get(Slice), kinds.get(OrderBy), kinds.get(Project)
        distinct = kinds.get(Distinct, kinds.get(Reduced))
        asked = () if order is None else order.conditions
        kept: list[Any] = []
        if slice_ is not None and slice_.length is not None:
            kept.append(replace(slice_, start=None, length=slice_.length + (slice_.start or 0)))
        if distinct is not None:
            if shown is None or not names_in(*asked) <= {variable.name for variable in shown.variables}:
                return placed
            kept += [distinct, shown]
        if order is not None and slice_ is not None and slice_.length is not None:
            kept.append(order)
        if _has_exists(*asked):
            return placed
        try:
            return self._at(Home.EACH, _chained(kept, placed.node), placed.origin, None)
        except Elsewhere:
            return placed

    # Meeting

    def _meet_either(self, one: _Placed, other: _Placed) -> _Placing:
        """The join of two patterns."""
        origin = Join(one.origin, other.origin)
        if one.home is other.home is Home.EACH:
            is_cheaper = self._moved_cost(one, other) < self._moved_cost(other, one)
            one, other = (other, one) if is_cheaper else (one, other)
        elif other.home is Home.EACH:
            one, other = other, one
        # of two equal columns the first is taken, whose terms' texts may be on the shard
        return (yield from self._meet(one, other, Join, origin))

    def _moved_cost(self, moved: _Placed, other: _Placed) -> float:
        """About how many rows have to move where this pattern is the one that is moved."""
        if moved.home is not Home.EACH or other.home is not Home.EACH:
            return 0.0
        to_all = moved.rows * (self._shards - 1)
        if moved.rows <= self._limits.shared_rows_max:
            return to_all
        if other.key in moved.certain:
            return moved.rows
        return moved.rows + other.rows if moved.certain & other.certain else to_all

    def _meet(self, left: _Placed, right: _Placed, make: Any, origin: Any) -> _Placing:
        """A join, OPTIONAL or MINUS. The left side goes nowhere but to where the right one is."""
        if left.home is not Home.EACH:
            if right.home is Home.EACH:
                right = yield from self._everywhere(right)
            home = Home.HERE if Home.HERE in (left.home, right.home) else Home.ALL
            left = replace(left, home=home, key=None)
            return (yield from self._wrapped(left, lambda it: make(it, right.node), origin))
        if right.home is not Home.EACH:
            right = yield from self._everywhere(right)
        elif left.key is None or left.key != right.key:
            left, right = yield from self._brought(left, right)
        return (yield from self._local(left, right, make, origin, left.key))

    def _local(self, left: _Placed, right: _Placed, make: Any, origin: Any, key: str | None) -> _Placing:
        """What is joined where it is; on the coordinator where a shard does not have the texts for it."""
        try:
            return self._at(Home.EACH, make(left.node, right.node), origin, key)
        except Elsewhere:
            left, right = (yield from self._here(left)), (yield from self._here(right))
            return self._at(Home.HERE, make(left.node, right.node), origin, None)

    def _brought(self, left: _Placed, right: _Placed) -> Generator[Move, int, tuple[_Placed, _Placed]]:
        """Two patterns of each shard, with what the right one has for a solution of the left beside it."""
        limit = self._limits.shared_rows_max
        if right.key in left.certain and right.rows > limit and left.rows < right.rows:
            return (yield from self._exchanged(left, right.key, right)), right
        table, columns, rows = yield from self._computed(right)
        shared = sorted(name for name in left.certain & right.certain if name in columns)
        moved = replace(right, node=_moved(table, columns), columns=_foreign(columns), rows=rows)
        to_each = left.rows if right.key in shared else rows + left.rows
        to_each = rows if left.key in shared else to_each
        if rows <= limit or not shared or rows * self._shards < to_each:
            self._check_gathered(rows * (self._shards - 1))
            return left, (yield from self._shared(moved, table))
        by = left.key if left.key in shared else right.key if right.key in shared else shared[0]
        assert by is not None
        if left.key != by:
            left = yield from self._exchanged(left, by)
        if right.key == by:
            return left, right
        return left, (yield from self._passed(moved, table, by, left))

    def _exchanged(self, placed: _Placed, by: str | None, near: _Placed | None = None) -> _Placing:
        """Solutions where the quads of the value of a variable are."""
        assert by is not None
        table, columns, rows = yield from self._computed(placed, by)
        moved = replace(placed, node=_moved(table, columns), columns=_foreign(columns), rows=rows)
        return (yield from self._passed(moved, table, by, near))

    def _passed(self, moved: _Placed, table: str, by: str, near: _Placed | None) -> _Placing:
        """near is what they meet."""
        keys, target = None, self._table()
        if near is not None and moved.rows >= self._limits.filtered_rows_min and by in near.columns:
            block = self._block(near.node)
            keys = f"{block.names.with_clause()}SELECT {block.columns[by].sql} AS c0{block.rest()}"
        place = list(moved.columns).index(by)
        yield Exchange(table, target, f"c{place}", keys)
        return replace(moved, node=replace(moved.node, table=target), home=Home.EACH, key=by)

    def _everywhere(self, placed: _Placed) -> _Placing:
        if placed.home is Home.ALL:
            return placed
        if placed.home is Home.HERE and isinstance(placed.node, Moved):
            yield Send(placed.node.table)
            columns = {variable.name: value for variable, value in placed.node.columns}
            return replace(placed, home=Home.ALL, columns=columns)
        if placed.home is Home.HERE:
            block = self._block(placed.node, has_all_terms=True)
            columns = self._wanted(placed.origin, block)
            sql, table = _select(block, columns), self._table()
            yield from self.fetched(sql)
            rows = yield Run(table, sql)
            self._check_gathered(rows)
            yield Send(table)
            moved = replace(placed, node=_moved(table, columns), home=Home.ALL, rows=rows)
            return replace(moved, columns=_foreign(columns))
        table, columns, rows = yield from self._computed(placed)
        self._check_gathered(rows)
        moved = replace(placed, node=_moved(table, columns), columns=_foreign(columns), rows=rows)
        return (yield from self._shared(moved, table))

    def _shared(self, moved: _Placed, source: str) -> _Placing:
        table = self._table()
        yield Share(source, table)
        return replace(moved, node=replace(moved.node, table=table), home=Home.ALL, key=None)

    def _here(self, placed: _Placed) -> _Placing:
        if placed.home is not Home.EACH:
            return replace(placed, home=Home.HERE)
        block, table = self._block(placed.node), self._table()
        columns = self._wanted(placed.origin, block)
        sql = f"SELECT * FROM ({_select(block, columns)})"
        rows = yield Gather(sql, table, self._limits.gathered_rows_max)
        self._check_gathered(rows)
        return _Placed(_moved(table, columns), placed.origin, Home.HERE, rows)

    def _computed(
        self, placed: _Placed, by: str | None = None
    ) -> Generator[Move, int, tuple[str, dict[str, Value], int]]:
        """The table on each shard that has the solutions, its columns, and how many rows all have."""
        block = self._block(placed.node)
        columns = self._wanted(placed.origin, block, by)
        table = self._table()
        rows = yield Compute(table, _select(block, columns))
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


def _compared(inner: _Placed, outer: _Placed) -> _Placed:
    """Of what each shard has only what can be compared with another pattern's solutions, once."""
    if inner.home is not Home.EACH or outer.home is Home.HERE:
        return inner
    shared = tuple(Variable(name) for name in inner.columns if name in outer.columns and name[:2] != "_:")
    shown = Distinct(Project(inner.node, shared)) if shared else Slice(inner.node, None, 1)
    key = inner.key if inner.key in outer.columns else None
    columns = {each.name: inner.columns[each.name] for each in shared}
    return replace(inner, node=shown, key=key, columns=columns)


def _select(block: Block, columns: Mapping[str, Value]) -> str:
    """A table of columns c0, c1, ..."""
    items = [f"{value.sql} AS c{place}" for place, value in enumerate(columns.values())]
    if any(value.lang is not None for value in columns.values()):
        raise NotExact("a column of computed strings with a language")
    sql = f"{block.names.with_clause()}SELECT {', '.join(items) or '1 AS c0'}{block.rest()}"
    if len(sql) > SQL_LENGTH_MAX:
        raise NotExact("a query that is too long in SQL")
    return sql


def _moved(table: str, columns: Mapping[str, Value]) -> Moved:
    return Moved(table, tuple((Variable(name), value) for name, value in _foreign(columns).items()))


def _foreign(columns: Mapping[str, Value]) -> dict[str, Value]:
    return {name: replace(value, is_local=False, constant=None) for name, value in columns.items()}


def _joined(node: Any) -> Iterable[Any]:
    if isinstance(node, Join):
        yield from _joined(node.left)
        yield from _joined(node.right)
    elif node != EMPTY:
        yield node


def _where(conditions: Sequence[Any], node: Any) -> Any:
    expression = conjunction(list(conditions))
    return node if expression is None else Filter(expression, node)


def _has_exists(*expressions: Any) -> bool:
    return any(isinstance(node, Exists) for each in expressions if each for node in expression_nodes(each))


def _pushed(conditions: Sequence[Any], node: Any, hidden: str | None = None) -> tuple[list[Any], list[Any]]:
    """Those conditions that may as well be asked of a part of the pattern, and the others. hidden is a
    variable that the part does not bind.
    """
    first, later = list[Any](), list[Any]()
    certain = certain_in(node) - {hidden}
    for condition in conditions:
        used = names_in(condition)
        (first if used and used <= certain and not _has_exists(condition) else later).append(condition)
    return first, later


def _modifiers(node: Any) -> tuple[list[Any], Any]:
    """The nodes of a SELECT around its pattern, from the outside, and the pattern."""
    chain = []
    for kinds in (Slice, (Distinct, Reduced), Project, OrderBy):
        if isinstance(node, kinds):
            chain.append(node)
            node = node.pattern
    return chain, node


def _chained(chain: Sequence[Any], node: Any) -> Any:
    return reduce(lambda made, each: replace(each, pattern=made), reversed(chain), node)
