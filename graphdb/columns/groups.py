"""Group graph patterns as blocks, in the order of section 18.2.2 of SPARQL 1.1."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, Triple

from graphdb.columns.blocks import Block, Names, compatible, joined, left_joined, minus, united
from graphdb.columns.expressions import Expressions, literal_of, narrow
from graphdb.columns.graph_scope import GraphScope
from graphdb.columns.term_ids import Tag
from graphdb.columns.triples import match_triples
from graphdb.columns.values import DICTIONARY, NotExact, Rep, Value
from graphdb.sparql.patterns import (
    Bind,
    Exists,
    Filter,
    GraphPattern,
    GroupGraphPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    SubSelect,
    TriplesBlock,
    UnionPattern,
    variables_of_element,
)
from graphdb.sparql.terms import Iri, RdfLiteral, TripleTerm, Variable
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["Groups", "inline_data"]

_LOOKED_UP = DICTIONARY - {Tag.BLANK_NODE, Tag.TRIPLE}
Select: TypeAlias = Callable[["Groups", SubSelect], Block]


@dataclass(frozen=True, slots=True)
class Groups:
    """Compiles groups in one graph scope. select compiles a sub-select.

    outer is the solution that EXISTS is asked of, for the conditions of the outermost group within EXISTS;
    what else names one of its variables without binding it is refused.
    """

    names: Names
    scope: GraphScope
    select: Select
    outer: dict[str, Value] = field(default_factory=dict)
    is_outermost: bool = True

    def group(self, group: GroupGraphPattern) -> Block:
        """Raises NotExact."""
        block, filters = self._unfiltered(group)
        expressions = self._expressions(block)
        for each in filters:
            block.conditions.append(expressions.condition(each.expression))
        for each in filters:
            narrow(block, each.expression)
        if filters:
            block.is_plain = False
        return block

    def exists(self, exists: Exists, block: Block) -> str:
        """The condition that the pattern has a solution that agrees with the block's."""
        outer = self.outer | block.columns
        self._check_substitutable(exists.pattern, outer)
        inner = replace(self, outer=outer, is_outermost=True).group(exists.pattern)
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

    def _unfiltered(self, group: GroupGraphPattern) -> tuple[Block, list[Filter]]:
        block, filters = Block(self.names), []
        inner = replace(self, is_outermost=False)
        for element in group.elements:
            match element:
                case Filter():
                    filters.append(element)
                case TriplesBlock():
                    block = joined(block, match_triples(self.names, self.scope, element.triples))
                case GroupGraphPattern():
                    block = joined(block, inner.group(element))
                case UnionPattern():
                    branches = [inner.group(branch) for branch in element.branches]
                    block = joined(block, united(self.names, branches))
                case OptionalPattern():
                    block = inner._optional(block, element.pattern)
                case MinusPattern():
                    minus(block, inner.group(element.pattern), self.scope.hidden)
                    block.is_plain = False
                case GraphPattern():
                    block = joined(block, inner._graph(element))
                case Bind():
                    value = self._expressions(block).value(element.expression)
                    if value.lang is not None:
                        raise NotExact("BIND of a computed string with a language")
                    block.columns[element.variable.name] = value
                    block.is_plain = False
                case InlineData():
                    block = joined(block, inline_data(self.names, element))
                case SubSelect():
                    if self.scope.hidden is not None or self.outer:
                        raise NotExact("a sub-select within GRAPH of a variable, or within EXISTS")
                    block = joined(block, self.select(inner, element))
                case _:
                    raise NotExact("SERVICE")
        return block, filters

    def _expressions(self, block: Block) -> Expressions:
        return Expressions(block, self.exists, self.outer if self.is_outermost else {})

    def _optional(self, left: Block, group: GroupGraphPattern) -> Block:
        """LeftJoin(left, group without its filters, its filters)."""
        right, filters = self._unfiltered(group)
        own = set(right.columns)
        mixed = []
        for each in filters:
            used = {node.name for node in nodes_below(each.expression) if isinstance(node, Variable)}
            has_exists = any(isinstance(node, Exists) for node in nodes_below(each.expression))
            if used.isdisjoint(left.columns.keys() - own) and not has_exists and self._certain(right, used):
                right.conditions.append(self._expressions(right).condition(each.expression))
                right.is_plain = False
            else:
                mixed.append((each, used))
        for _, used in mixed:
            for name in sorted(used & own):
                value = right.columns[name]
                if value.rep is Rep.ID and not value.tags.isdisjoint(_LOOKED_UP):
                    right.lookup(value)
            for name in sorted(used & left.columns.keys()):
                value = left.columns[name]
                if value.rep is Rep.ID and not value.tags.isdisjoint(_LOOKED_UP):
                    left.lookup(value)
        if not right.is_plain or len(right.tables) != 1:
            right = right.wrapped(with_lookups=bool(mixed))
        both = Block(self.names, columns=dict(left.columns), lookups=left.lookups | right.lookups)
        for name, value in right.columns.items():
            if name not in both.columns:
                both.columns[name] = value
            elif both.columns[name].nullable:
                mine = both.columns[name]
                both.columns[name] = replace(
                    mine, sql=f"COALESCE({mine.sql}, {value.sql})", tags=mine.tags | value.tags, constant=None
                )
        conditions = [Expressions(both).condition(each.expression) for each, _ in mixed]
        if both.tables:
            raise NotExact("a condition of OPTIONAL that looks up terms of both sides")
        return left_joined(left, right, conditions)

    def _certain(self, block: Block, used: set[str]) -> bool:
        """Whether a join with another block leaves the block's variables of these as they are."""
        return all(not block.columns[name].nullable for name in used if name in block.columns)

    def _graph(self, element: GraphPattern) -> Block:
        graphs = self.scope.graphs
        if isinstance(element.name, Iri):
            number = self.names.constant(NamedNode(element.name.value)).constant
            assert number is not None
            if not self._is_graph(number):
                # a group without triple patterns has a solution or none, depending on where they stand
                raise NotExact("GRAPH of a name that is no graph's")
            scope = GraphScope(graphs, fixed=number)
            return replace(self, scope=scope).group(element.pattern)
        hidden = self.names.alias("_:graph")
        block = replace(self, scope=GraphScope(graphs, hidden=hidden)).group(element.pattern)
        number_of = block.columns.pop(hidden, None)
        if number_of is None or number_of.nullable:
            raise NotExact("GRAPH of a variable around a pattern that may match without a quad")
        own = Block(self.names, columns={element.name.name: number_of})
        return joined(block, own)

    def _is_graph(self, number: int) -> bool:
        if self.scope.graphs.named is not None:
            return number in self.scope.graphs.named
        return self.names.catalog.holds(f"SELECT 1 FROM graphs WHERE g = {number}")

    def _check_substitutable(self, pattern: GroupGraphPattern, outer: dict[str, Value]) -> None:
        """Raises NotExact where a variable's value would reach what a join with it does not."""
        for node in nodes_below(pattern):
            if isinstance(node, MinusPattern) and not outer.keys().isdisjoint(_mentioned(node.pattern)):
                raise NotExact("MINUS within EXISTS")
        top = {
            name
            for element in pattern.elements
            if not isinstance(element, OptionalPattern)
            for name in variables_of_element(element)
        }
        for element in pattern.elements:
            if not isinstance(element, Filter):
                loose = (_mentioned(element) & outer.keys()) - top
                if loose:
                    raise NotExact("EXISTS with a variable that only a part of its pattern names")


def inline_data(names: Names, data: InlineData) -> Block:
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


def _mentioned(root: object) -> set[str]:
    """The variables that a pattern names anywhere."""
    found = set()
    for node in nodes_below(root):
        if isinstance(node, Variable):
            found.add(node.name)
        elif isinstance(node, TriplesBlock | InlineData | GraphPattern | Bind):
            found.update(variables_of_element(node))
    return found
