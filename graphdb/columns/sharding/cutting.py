"""A query cut into SQL for every shard and SQL over what comes of it: `cut`.

Each pattern is placed (`placing`): where its parts are, or where what is moved meets.

The plan is a generator: it yields one `Move` after the other and is told how many rows came of it, so it
decides with the numbers of rows that there are.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

from graphdb.columns.aggregates import counted_from_statistics, grouped_in_parts
from graphdb.columns.blocks import Block, Moved, Names
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compiled_in, graphs_of
from graphdb.columns.expressions import Expressions, conjuncts
from graphdb.columns.groups import Groups
from graphdb.columns.sharding.division import Division
from graphdb.columns.sharding.moves import Gather, Move, Run
from graphdb.columns.sharding.placing import (
    CutLimits,
    Home,
    Mover,
    Placed,
    Placing,
    compared,
    moved_as,
    quad_tables,
    table_sql,
)
from graphdb.columns.sharding.stars import (
    certain_in,
    is_plain,
    key_of,
    names_in,
    one_key,
    stars_of,
    unfolded,
)
from graphdb.columns.triples import Graphs, GraphScope
from graphdb.columns.values import SQL_LENGTH_MAX, Elsewhere, NotExact
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

_WHOLE: Final = "moved_whole"
_STATISTICS: Final = re.compile(r"\bpredicates\b")
_FIRST: Final[Any] = Moved("first_shard", ())
"""One solution that binds nothing, on one shard only."""


def cut(
    query: AbstractQuery,
    dataset: Dataset,
    catalog: Catalog,
    division: Division,
    limits: CutLimits,
    *,
    has_quads: bool = False,
) -> Generator[Move, int, CompiledQuery]:
    """The query's plan over divided quads: in the end what the coordinator has to run. Raises NotExact.

    The catalog is that of the whole view, and dataset the protocol's, which overrides the query's own.
    has_quads: the coordinator is itself a whole view, so it need not gather quads.
    """
    names = Names(catalog)
    graphs = graphs_of(names, dataset or own_dataset(query))
    if len(division.hosts) == 1 and (whole := _of_one(names, query, graphs)) is not None:
        return (yield from _asked_of_one(whole, limits))
    compiled_in(names, query, graphs)  # what one view would leave to a reader, shards leave as well
    query = replace(query, pattern=unfolded(query.pattern))
    cutter = _Cutter(names, GraphScope(graphs), query, division, limits, has_quads=has_quads)
    placed = yield from cutter.root()
    final = names.apart(has_all_terms=True)
    compiled = compiled_in(final, replace(query, pattern=placed.node), graphs)
    yield from cutter.fetched(compiled.sql)
    return compiled


def _of_one(names: Names, query: AbstractQuery, graphs: Graphs) -> CompiledQuery | None:
    """A whole query where one database has all quads; None where it needs something else. Raises NotExact."""
    try:
        compiled = compiled_in(names.apart(has_all_terms=False), query, graphs)
    except Elsewhere:
        return None
    is_of_quads = bool(quad_tables(compiled.sql)) and _STATISTICS.search(compiled.sql) is None
    return compiled if is_of_quads and len(compiled.sql) <= SQL_LENGTH_MAX else None


def _asked_of_one(compiled: CompiledQuery, limits: CutLimits) -> Generator[Move, int, CompiledQuery]:
    """A query that one database answers alone: its rows come in their order."""
    columns = ", ".join(f"v{place}" for place in range(max(1, len(compiled.variables))))
    sql = f"SELECT * FROM ({compiled.sql}) q({columns})"
    rows = yield Gather(sql, _WHOLE, limits.gathered_rows_max)
    if rows > limits.gathered_rows_max:
        raise NotExact(f"{rows} rows of shards that would have to come together in one place")
    return replace(compiled, sql=f"FROM {_WHOLE}")


class _Cutter(Mover):
    """Places the patterns of one query."""

    _graph: Iri | None = None  # of GRAPH around what is placed

    def root(self) -> Placing:
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

    # Patterns

    def _place(self, node: Any, conditions: Sequence[Any] = ()) -> Placing:
        """A pattern, and conditions that its solutions are to fulfil."""
        match node:
            case Filter(expression=expression, pattern=pattern):
                return (yield from self._place(pattern, (*conjuncts(expression), *conditions)))
            case Bgp() | Path() | Join():
                return (yield from self._conjunction(node, conditions))
            case LeftJoin(condition=condition) if _has_exists(condition):
                placed = self._raw(node)
            case LeftJoin(left=left, right=right, condition=condition):
                mine, later = yield from self._place_with(left, *_pushed(conditions, left))
                theirs = yield from self._place(right)
                met = yield from self._meet(mine, theirs, lambda a, b: LeftJoin(a, b, condition), node)
                return (yield from self._filtered(met, later))
            case Minus(left=left, right=right):
                mine, later = yield from self._place_with(left, *_pushed(conditions, left))
                if names_in(left).isdisjoint(names_in(right)):
                    return (yield from self._filtered(mine, later))
                theirs = yield from self._place(right)
                if mine.home is not Home.EACH or mine.key is None or mine.key != theirs.key:
                    theirs = compared(theirs, mine)
                met = yield from self._meet(mine, theirs, Minus, node)
                return (yield from self._filtered(met, later))
            case Extend(pattern=pattern, variable=variable, expression=expression):
                first, later = _pushed(conditions, pattern, variable.name)
                placed, later = yield from self._place_with(pattern, first, later)
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

    def _place_with(
        self, node: Any, first: Sequence[Any], later: Sequence[Any]
    ) -> Generator[Move, int, tuple[Placed, Sequence[Any]]]:
        """A pattern with the conditions that come first, and those left to what it is joined with: all where
        the first do not compile, as fewer kinds of values may come to them there.
        """
        if first:
            try:
                return (yield from self._place(node, first)), later
            except NotExact:
                later = [*first, *later]
        return (yield from self._place(node)), later

    def _raw(self, node: Any) -> Placed:
        """A pattern as it stands, over quads that are gathered."""
        if self._graph is not None:
            node = Graph(self._graph, node)
        return Placed(node, node, Home.HERE, self._estimated(node))

    def _conjunction(self, node: Any, conditions: Sequence[Any]) -> Placing:
        operands = list(_joined(node))
        together: list[Any] = [each for each in operands if isinstance(each, Bgp | Path)]
        stars = stars_of(together)
        left: Sequence[Any] = conditions
        parts: list[Placed] = []
        if stars is None:  # a path starts at what the triple patterns beside it bind
            parts.append(self._raw(reduce(Join, together)))
        for star in stars or ():
            mine, left = _pushed(left, star)
            pattern = star if self._graph is None else Graph(self._graph, star)
            placed = self._at(Home.EACH, pattern, star, key_of(star), self._host_of(star))
            try:
                placed = yield from self._filtered(placed, mine)
            except NotExact:  # with what it is joined with, fewer kinds of values may be left
                left = [*left, *mine]
            parts.append(placed)
        for operand in operands:
            if not isinstance(operand, Bgp | Path):
                part, left = yield from self._place_with(operand, *_pushed(left, operand))
                parts.append(part)
        if not parts:
            parts.append(self._at(Home.ALL, EMPTY, EMPTY, None))
        placed = yield from self._met_all(parts)
        return (yield from self._filtered(placed, left))

    def _union(self, branches: Sequence[Any], node: Any) -> Placing:
        placed = []
        for branch in branches:
            placed.append((yield from self._place(branch)))
        homes, hosts = {each.home for each in placed}, {each.host for each in placed}
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
        return self._at(Home.EACH, Union(nodes), node, key, hosts.pop() if len(hosts) == 1 else None)

    def _graph_of(self, node: Graph) -> Placing:
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

    def _extended(self, placed: Placed, variable: Variable, expression: Any, node: Any) -> Placing:
        placed, [expression] = yield from self._with_exists(placed, [expression])
        return (yield from self._wrapped(placed, lambda each: Extend(each, variable, expression), node))

    def _filtered(self, placed: Placed, conditions: Sequence[Any]) -> Placing:
        if not conditions:
            return placed
        origin = _where(conditions, placed.origin)
        placed, conditions = yield from self._with_exists(placed, conditions)
        return (yield from self._wrapped(placed, lambda each: _where(conditions, each), origin))

    def _with_exists(
        self, placed: Placed, expressions: Sequence[Any]
    ) -> Generator[Move, int, tuple[Placed, list[Any]]]:
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

    def _shown(self, pattern: Any, outer: Placed) -> Generator[Move, int, Any]:
        """The solutions of a pattern, as far as they can be compared with those of another, everywhere."""
        inner = yield from self._place(pattern)
        inner = yield from self._everywhere(compared(inner, outer))
        return inner.node

    # Groups and modifiers

    def _grouped(self, node: Group) -> Placing:
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

    def _of_parts(self, node: Group, placed: Placed) -> Placing:
        """A group whose aggregates are computed on each shard, and then of what comes. Raises Elsewhere."""
        table = self._table()
        block = self._block(placed.node)
        whole = Block(self._names.apart(has_all_terms=True), [f"{table} parts"])
        groups = Groups(block.names, self._scope)
        parts = grouped_in_parts(Expressions(block, groups.exists, {}), node, whole, placed.key)
        sql = f"SELECT * FROM ({block.names.with_clause()}{parts.sql})"
        self._check_gathered((yield Gather(sql, table, self._limits.gathered_rows_max, placed.host)))
        made = self._table()
        rows = yield Run(made, table_sql(parts.whole, parts.whole.columns))
        return Placed(moved_as(made, parts.whole.columns), node, Home.HERE, rows)

    def _select(self, node: Any, *, is_whole: bool = False) -> Placing:
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

    def _leading(self, placed: Placed, chain: Sequence[Any]) -> Placed:
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
            return self._at(Home.EACH, _chained(kept, placed.node), placed.origin, None, placed.host)
        except Elsewhere:
            return placed


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
