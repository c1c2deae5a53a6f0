"""Patterns of the algebra as blocks (SPARQL 1.2, section 18): groups, EXISTS, VALUES, and sub-selects."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from pyoxigraph import Literal, NamedNode, Triple

from graphdb.columns.aggregates import counted_from_statistics, grouped
from graphdb.columns.blocks import Block, Moved, Names, compatible, either, joined, left_joined, minus, united
from graphdb.columns.comparisons import sort_keys, tie_keys
from graphdb.columns.expressions import Expressions, conjuncts, literal_of, narrow
from graphdb.columns.term_ids import Tag
from graphdb.columns.triples import GraphScope, match_triples, quads
from graphdb.columns.values import DICTIONARY, NotExact, Rep, Value
from graphdb.sparql.algebra import (
    SELECT_NODES,
    Algebra,
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
    Step,
    Union,
    Values,
    spine_of,
)
from graphdb.sparql.patterns import OrderCondition, TriplePattern
from graphdb.sparql.terms import Iri, RdfLiteral, TripleTerm, Variable
from graphdb.sparql.tree_walk import all_below, nodes_below

__all__ = ["Groups", "Solutions"]

_SOLUTIONS_A_VALUE = 4  # at least, for values to be found first
_LOOKED_UP = DICTIONARY - {Tag.BLANK_NODE, Tag.TRIPLE}


@dataclass(frozen=True, slots=True)
class Solutions:
    """The solutions of a query or sub-select, the keys of ORDER BY over them, and LIMIT and OFFSET.

    columns are those that are projected, in their order.
    """

    columns: tuple[str, ...]
    block: Block
    keys: list[str]
    suffix: str


@dataclass(frozen=True, slots=True)
class Groups:
    """Compiles patterns in one graph scope. All methods raise NotExact.

    outer is the solution that EXISTS is evaluated for. The engine binds its variables before it evaluates the
    pattern. Here they are compared at the end, which is the same where nothing before depends on them: an
    expression reads them from outer, and an OPTIONAL names only those that its left side binds.
    """

    names: Names
    scope: GraphScope
    outer: dict[str, Value] = field(default_factory=dict)

    def select(self, node: Algebra, *, has_columns: bool = True) -> Solutions:
        """A query or sub-select. Without columns, a Project within is a sub-select."""
        suffix, is_distinct, shown = "", False, None
        order: tuple[OrderCondition, ...] = ()
        rows: int | None = None  # that LIMIT leaves to be sorted
        if isinstance(node, Slice):
            suffix = "" if node.length is None else f" LIMIT {node.length}"
            suffix += f" OFFSET {node.start}" if node.start else ""
            rows = None if node.length is None else node.length + (node.start or 0)
            node = node.pattern
        if has_columns and isinstance(node, Distinct | Reduced):
            is_distinct, node = True, node.pattern
        if has_columns and isinstance(node, Project):
            shown, node = {variable.name: None for variable in node.variables}, _checked(node).pattern
        if isinstance(node, OrderBy):
            order, node = node.conditions, node.pattern
        block = self.group(node)
        if is_distinct:
            used = _mentioned(*(condition.expression for condition in order)) & block.columns.keys()
            if shown is not None and not used <= shown.keys():
                raise NotExact("ORDER BY what SELECT DISTINCT does not show")
            block = _only(block, shown).wrapped(distinct=True)
        if rows is not None and _saves_lookups(block, order):
            block = _leading(_only(block, shown, _mentioned(*order)), order[0], rows)
        keys = self._keys(block, order)
        return Solutions(tuple(shown or ()), _only(block, shown), keys, suffix)

    def group(self, node: Algebra) -> Block:
        """What stands between two braces: triple patterns that are joined one after the other are compiled
        together.
        """
        first, steps = spine_of(node)
        if isinstance(first, Group):
            _check_columns(steps)
        block, together = Block(self.names), list[Bgp | Path]()
        if isinstance(first, Bgp | Path):
            together.append(first)
        else:
            block = self._operand(first)
        for step in steps:
            if isinstance(step, Join) and isinstance(step.right, Bgp | Path):
                together.append(step.right)
            else:
                block = self._step(self._matched(block, together), step)
                together = []
        return self._matched(block, together)

    def exists(self, exists: Exists, block: Block) -> str:
        """The condition that the pattern has a solution that is compatible with the block's."""
        self._check_certain(exists, block)
        outer = self.outer | block.columns
        inner = replace(self, outer=outer).group(exists.pattern)
        conditions = list(inner.conditions)
        hidden = self.scope.hidden
        if hidden is not None and hidden in inner.columns and hidden not in outer:
            raise NotExact("EXISTS before the graph of GRAPH is known")
        for name, value in inner.columns.items():
            if name in outer and (name == hidden or not name.startswith("_:")):
                if value.nullable:
                    raise NotExact("EXISTS with a variable that its pattern may leave unbound")
                condition, _ = compatible(outer[name], value)
                conditions.append("FALSE" if condition is None else condition)
        sql = f"EXISTS (SELECT 1{replace(inner, conditions=conditions).rest()})"
        return f"(NOT {sql})" if exists.negated else sql

    def _of_each_value(self, group: Group) -> Block | None:
        """A group without keys over one triple pattern, whose filters and aggregates name one end of it: they
        are computed once for each of its values. None of every other group, and where that saves little.
        """
        filters, pattern = list[Filter](), group.pattern
        while isinstance(pattern, Filter):
            filters, pattern = [pattern, *filters], pattern.pattern
        match pattern:
            case Bgp(
                triples=(TriplePattern(Variable(name=subject), Iri(value=iri), Variable(name=object_)),)
            ):
                number = self.names.constant(NamedNode(iri)).constant
            case _:
                return None
        table = None if number is None else self.names.catalog.predicates.get(number)
        asked = [*(each.expression for each in filters), *(aggregate for _, aggregate in group.aggregates)]
        used = _mentioned(*asked)
        if table is None or group.keys or self.outer or self.scope.hidden or subject == object_:
            return None
        if len(used) != 1 or any(isinstance(node, Exists) for node in nodes_below(*asked)):
            return None
        end, values = ("o", table.objects) if used == {object_} else ("s", table.subjects)
        if not used <= {subject, object_} or not 0 < _SOLUTIONS_A_VALUE * values <= table.quads:
            return None
        [name] = used
        block, edge = quads(self.names, self.scope, number)
        alias = self.names.alias("q")
        select = f"SELECT {edge}.{end} AS c0, count(*) AS n{block.rest()} GROUP BY {edge}.{end}"
        kinds = self.names.catalog.tags(number, end)
        weighed = Block(self.names, [f"({select}) {alias}"])
        weighed.columns[name] = Value(f"{alias}.c0", Rep.ID, kinds, nullable=False)
        try:
            for each in filters:
                weighed = self._step(weighed, each)
            return grouped(self._expressions(weighed), group, f"{alias}.n")
        except NotExact:
            return None  # of each solution it may be exact

    def _matched(self, block: Block, patterns: list[Bgp | Path]) -> Block:
        return joined(block, match_triples(self.names, self.scope, patterns)) if patterns else block

    def _operand(self, node: Algebra) -> Block:
        """What a group begins with or joins."""
        match node:
            case Union(branches=branches):
                return united(self.names, [self.group(branch) for branch in branches])
            case Graph():
                return self._graph(node)
            case Values():
                return _inline_data(self.names, node)
            case Moved():
                return node.block(self.names)
            case Group(pattern=pattern, keys=(), aggregates=()):
                return self.group(pattern)  # HAVING alone filters, and groups nothing
            case Group():
                found = counted_from_statistics(self.names, self.scope, node) or self._of_each_value(node)
                return found or grouped(self._expressions(self.group(node.pattern)), node)
            case Bgp() | Path() | Join() | LeftJoin() | Minus() | Filter() | Extend():
                return self.group(node)
            case _ if isinstance(node, SELECT_NODES):
                return self._sub_select(node)
        raise NotExact("SERVICE")

    def _step(self, block: Block, step: Step) -> Block:
        """One element of a group after those that block stands for, which is used up."""
        match step:
            case Join(right=right):
                return joined(block, self._operand(right))
            case LeftJoin():
                return self._optional(block, step)
            case Minus(right=right):
                if not self.outer.keys().isdisjoint(_mentioned(right)):
                    raise NotExact("MINUS within EXISTS")
                minus(block, self.group(right), self.scope.hidden)
            case Filter(expression=expression):
                self._check_certain(expression, block)
                conditions, expressions = list(conjuncts(expression)), self._expressions(block)
                block.conditions += map(expressions.condition, conditions)
                for condition in conditions:
                    narrow(block, condition)
            case Extend(variable=variable, expression=expression):
                if variable.name in self.outer:  # the engine gives it the new value
                    raise NotExact("BIND within EXISTS of a variable that has a value outside")
                self._check_certain(expression, block)
                value = self._expressions(block).value(expression)
                if value.lang is not None:
                    raise NotExact("a column of computed strings with a language")
                block.columns[variable.name] = value
            case _:
                raise TypeError(f"{step!r} is the engine's")
        return block

    def _expressions(self, block: Block) -> Expressions:
        return Expressions(block, self.exists, self.outer)

    def _check_certain(self, expression: object, block: Block) -> None:
        """Raises NotExact where the value that EXISTS is evaluated for could be missing in the block."""
        if self.outer and any(
            name in self.outer and name in block.columns and block.columns[name].nullable
            for name in _mentioned(expression)
        ):
            raise NotExact("EXISTS with a variable that its pattern may leave unbound")

    def _sub_select(self, node: Algebra) -> Block:
        if self.scope.hidden is not None or self.outer:
            raise NotExact("a sub-select within GRAPH of a variable, or within EXISTS")
        solved = self.select(node)
        if not solved.suffix:
            return solved.block
        order = f" ORDER BY {', '.join(solved.keys)}" if solved.keys else ""
        return solved.block.wrapped(suffix=order + solved.suffix)

    def _keys(self, block: Block, order: Sequence[OrderCondition]) -> list[str]:
        expressions = self._expressions(block)
        keys: list[str] = []
        ties: list[str] = []
        for condition in order:
            value = expressions.value(condition.expression)
            if value.lang is not None:
                raise NotExact("an order of computed strings with a language")
            keys += sort_keys(block, value, condition.descending)
            ties += tie_keys(value, condition.descending)
        return keys + ties

    def _optional(self, left: Block, optional: LeftJoin) -> Block:
        if self.outer:
            loose = _mentioned(optional.right, optional.condition) & self.outer.keys()
            if any(name not in left.columns or left.columns[name].nullable for name in loose):
                raise NotExact("EXISTS with a variable that only a part of its pattern names")
        right = self.group(optional.right)
        own = set(right.columns)
        mixed = []
        for condition in conjuncts(optional.condition):
            below = list(nodes_below(condition))
            used = {node.name for node in below if isinstance(node, Variable)}
            has_exists = any(isinstance(node, Exists) for node in below)
            if used.isdisjoint(left.columns.keys() - own) and not has_exists and _is_certain(right, used):
                right.conditions.append(self._expressions(right).condition(condition))
            else:
                mixed.append((condition, used))
        for _, used in mixed:
            for side, names in ((right, used & own), (left, used & left.columns.keys())):
                for name in sorted(names):
                    value = side.columns[name]
                    if value.rep is Rep.ID and not value.tags.isdisjoint(_LOOKED_UP):
                        side.lookup(value)
        right = right.wrapped(with_lookups=bool(mixed))
        both = Block(self.names, columns=dict(left.columns), lookups=left.lookups | right.lookups)
        for name, value in right.columns.items():
            if name not in both.columns:
                both.columns[name] = value
            elif both.columns[name].nullable:
                both.columns[name] = either(both.columns[name], value)
        conditions = [Expressions(both).condition(condition) for condition, _ in mixed]
        if both.tables:
            raise NotExact("a condition of OPTIONAL that looks up terms of both sides")
        return left_joined(left, right, conditions)

    def _graph(self, node: Graph) -> Block:
        graphs = self.scope.graphs
        if isinstance(node.name, Iri):
            number = self.names.constant(NamedNode(node.name.value)).constant
            assert number is not None
            if not self._is_graph(number):
                # a group without triple patterns has a solution or none, depending on where they stand
                raise NotExact("GRAPH of a name that is no graph's")
            scope = GraphScope(graphs, fixed=number)
            return replace(self, scope=scope).group(node.pattern)
        hidden = self.names.alias("_:graph")
        block = replace(self, scope=GraphScope(graphs, hidden=hidden)).group(node.pattern)
        number_of = block.columns.pop(hidden, None)
        if number_of is None or number_of.nullable:
            raise NotExact("GRAPH of a variable around a pattern that may match without a quad")
        own = Block(self.names, columns={node.name.name: number_of})
        return joined(block, own)

    def _is_graph(self, number: int) -> bool:
        if self.scope.graphs.named is not None:
            return number in self.scope.graphs.named
        return self.names.catalog.holds(f"SELECT 1 FROM graphs WHERE g = {number}")


def _checked(projected: Project) -> Project:
    if len(set(projected.variables)) < len(projected.variables):
        raise NotExact("a column that is selected twice")
    return projected


def _check_columns(steps: Sequence[Step]) -> None:
    """Raises NotExact where a column of a grouped SELECT uses one before it, which the engine refuses."""
    made: set[str] = set()
    for step in steps:
        if isinstance(step, Extend):
            if made and not made.isdisjoint(_mentioned(step.expression)):
                raise NotExact("a grouped SELECT that uses a column before it")
            made.add(step.variable.name)


def _only(block: Block, shown: dict[str, None] | None, used: AbstractSet[str] = frozenset()) -> Block:
    """The block with these columns; shown None is all."""
    if shown is not None:
        kept = {name: value for name, value in block.columns.items() if name in shown or name in used}
        block.columns = kept
    return block


def _saves_lookups(block: Block, order: Sequence[OrderCondition]) -> bool:
    """Whether the first condition of ORDER BY alone leaves few rows, whose terms the next conditions need."""
    values = []
    for condition in order:
        variable = condition.expression
        if not isinstance(variable, Variable) or variable.name not in block.columns:
            return False
        values.append(block.columns[variable.name])
    return bool(values) and not _is_looked_up(values[0]) and any(map(_is_looked_up, values[1:]))


def _leading(block: Block, first: OrderCondition, rows: int) -> Block:
    """The rows that the first condition of ORDER BY leaves for LIMIT."""
    assert isinstance(first.expression, Variable)
    keys = ", ".join(sort_keys(block, block.columns[first.expression.name], first.descending))
    return block.wrapped(suffix=f" QUALIFY rank() OVER (ORDER BY {keys}) <= {rows}") if keys else block


def _is_looked_up(value: Value) -> bool:
    return value.rep is Rep.ID and not value.tags.isdisjoint(DICTIONARY)


def _is_certain(block: Block, used: set[str]) -> bool:
    """Whether a join with another block leaves the block's variables of these as they are."""
    return all(not block.columns[name].nullable for name in used if name in block.columns)


def _inline_data(names: Names, data: Values) -> Block:
    """VALUES as a table."""
    alias = names.alias("v")
    rows: list[list[Value | None]] = [
        [None if term is None else names.constant(_term(term)) for term in row] for row in data.rows
    ]
    columns = {}
    for number, variable in enumerate(data.variables):
        cells = [row[number] for row in rows]
        tags = frozenset().union(*(cell.tags for cell in cells if cell is not None))
        nullable = any(cell is None for cell in cells)
        columns[variable.name] = Value(f"{alias}.c{number}", Rep.ID, tags, nullable)
    fields = ", ".join(f"c{number}" for number in range(len(data.variables))) or "c"
    if not rows:
        nothing = ", ".join(f"NULL::BIGINT AS c{number}" for number in range(len(columns))) or "1 AS c"
        return Block(names, [f"(SELECT {nothing} WHERE FALSE) {alias}"], [], columns)
    written = ", ".join(
        "("
        + (", ".join("NULL::BIGINT" if cell is None else f"{cell.sql}::BIGINT" for cell in row) or "1")
        + ")"
        for row in rows
    )
    return Block(names, [f"(VALUES {written}) {alias}({fields})"], [], columns)


def _term(term: Iri | RdfLiteral | TripleTerm) -> NamedNode | Literal | Triple:
    match term:
        case Iri(value=iri):
            return NamedNode(iri)
        case RdfLiteral():
            return literal_of(term)
        case TripleTerm():
            raise NotExact("a triple term in VALUES")


def _mentioned(*roots: object) -> set[str]:
    """The variables that patterns and expressions name anywhere."""
    return {node.name for node in all_below(*roots) if isinstance(node, Variable)}
