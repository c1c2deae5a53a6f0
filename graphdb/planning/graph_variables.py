"""GRAPH with a variable, for an engine that has it bound already within the braces.

The specification evaluates what stands within for each graph by itself, and joins the graph's name only then
(SPARQL 1.1, section 18.6). pyoxigraph makes the variable one of every triple pattern within and joins those.
The two differ, and the algebra is changed, where

- the variable itself stands within, but for triples right there: it is renamed, and compared outside;
- a group begins without a triple pattern (with VALUES, or another GRAPH): the engine would not go through the
  graphs, so `GRAPH ?g {}` is put first;
- a sub-select does not hand the variable on: it is made to, and to group by it, and one with LIMIT or OFFSET
  is evaluated graph by graph (LATERAL). An aggregate over all solutions also has a row for a graph that has
  none, by a second branch; not so around another such aggregate, lest the text double at every level;
- the sides of MINUS have the graph's variable in common and no other: it removes nothing, so it goes, and so
  it does in EXISTS, where the engine has outer variables on both sides. Where a variable in common may be
  unbound at run time, the engine's reading stays.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from graphdb.sparql.algebra import (
    EMPTY,
    Algebra,
    Bgp,
    Distinct,
    Exists,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    Lateral,
    LeftJoin,
    Minus,
    OrderBy,
    Path,
    Project,
    Reduced,
    Select,
    Service,
    Slice,
    Union,
    Values,
    join,
    operands_of,
    spine_of,
    variables_in_scope,
)
from graphdb.sparql.patterns import BuiltInCall, Not, Or
from graphdb.sparql.rewriting import GroupPass
from graphdb.sparql.terms import BlankNodeLabel, RdfLiteral, Variable
from graphdb.sparql.translation import FreshNames
from graphdb.sparql.tree_walk import all_below, all_parts_of, nodes_below, renamed

__all__ = ["GraphVariables", "may_list_graphs", "needs_graph_variables"]

_FALSE = RdfLiteral("false", "http://www.w3.org/2001/XMLSchema#boolean", None, None)


def needs_graph_variables(node: Any) -> bool:
    """Whether a node is one for which the pass is there."""
    return isinstance(node, Minus) or (isinstance(node, Graph) and isinstance(node.name, Variable))


def may_list_graphs(nodes: Iterable[Any]) -> bool:
    """Whether any of the nodes may tell that a graph without quads is there, as `GRAPH ?g {}` does."""
    return any(
        isinstance(node, Graph) and isinstance(node.name, Variable) and not _needs_quad(node.pattern)
        for node in nodes
    )


def _needs_quad(node: Algebra) -> bool:
    """Whether a pattern in GRAPH surely has no solution in a graph without quads."""
    match node:
        case Bgp(triples=triples):
            return bool(triples)
        case Join(left=left, right=right):
            return _needs_quad(left) or _needs_quad(right)
        case LeftJoin(left=left) | Minus(left=left):
            return _needs_quad(left)
        case Union(branches=branches):
            return all(map(_needs_quad, branches))
        case Filter() | Extend() | OrderBy() | Project() | Distinct() | Reduced() | Slice():
            return _needs_quad(node.pattern)
        case Group(pattern=pattern, keys=keys):
            return bool(keys) and _needs_quad(pattern)
    return False


class GraphVariables(GroupPass):
    """The pass over one query or pattern."""

    def __init__(self, fresh: FreshNames) -> None:
        self._fresh = fresh

    def group(self, node: Algebra, graph: Variable | None = None) -> Algebra:
        """See `GroupPass`."""
        made = super().group(node, graph)
        if graph is None or not _lacks_graph(node, graph):
            return made
        return _begun_with(Graph(graph, EMPTY), made)

    def operand(self, node: Any, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        if isinstance(node, Graph) and isinstance(node.name, Variable):
            return self._graph(node.name, node.pattern, graph)
        return super().operand(node, graph)

    def step(self, step: Any, left: Algebra, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        if isinstance(step, Minus) and _is_idle(step):
            return left
        return super().step(step, left, graph)

    def select(self, node: Any, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        if graph is None or not isinstance(node, Project | Distinct | Reduced | Slice):
            return super().select(node, graph)
        plain = Select.of(node)
        return self._handing_on(plain, self.parts(plain, graph), graph)

    def _graph(self, name: Variable, pattern: Algebra, around: Variable | None) -> Algebra:
        """GRAPH with a variable, which gets a new name within if need be."""
        if not _stands_elsewhere(name, pattern):
            return Graph(name, self.group(pattern, name))
        new = Variable(self._fresh.prefix("graph"))
        inner = Graph(name, self.group(renamed(pattern, {name: new}), name))
        shown = variables_in_scope(pattern)
        if name.name not in shown:
            return inner
        # Where the renamed variable may have a value, it is the graph, and is not shown.
        own = [] if around is None else [around]
        columns = [*own, name, *map(Variable, sorted(shown - {name.name}))]
        test = Or((Not(BuiltInCall("BOUND", (new,))), BuiltInCall("SAMETERM", (new, name))))
        return Project(Filter(test, inner), tuple(dict.fromkeys(columns)))

    def _handing_on(self, plain: Select, select: Select, graph: Variable) -> Algebra:
        """A sub-select with the graph among its columns and keys; plain is what it was."""
        assert select.variables is not None
        is_whole = select.is_grouped and not select.keys
        keys = (graph, *select.keys) if select.is_grouped else ()
        made = replace(select, variables=(*select.variables, graph), keys=keys).pattern()
        if select.start is not None or select.length is not None:
            made = Lateral(Graph(graph, EMPTY), made)
        without = self._without_solutions(plain, select.where, graph) if is_whole else None
        return made if without is None else Union((made, without))

    def _without_solutions(self, select: Select, where: Algebra, graph: Variable) -> Algebra | None:
        """The row of an aggregate over nothing, for each graph without solutions."""
        if any(isinstance(node, Group) and not node.keys for node in nodes_below(select.where)):
            return None
        none = replace(select, where=Filter(_FALSE, EMPTY)).pattern()
        # The engine has no blank node in two patterns.
        labels = {node for node in all_below(where) if isinstance(node, BlankNodeLabel)}
        start = self._fresh.prefix("node") if labels else ""
        names = {label: Variable(f"{start}_{number}") for number, label in enumerate(labels)}
        test = Exists(renamed(where, names), negated=True)
        return Filter(test, Join(Graph(graph, EMPTY), none))


def _is_idle(minus: Minus) -> bool:
    """Whether the sides have no variable in common."""
    return variables_in_scope(minus.left).isdisjoint(variables_in_scope(minus.right))


def _stands_elsewhere(name: Variable, pattern: Algebra) -> bool:
    """Whether a variable stands in a pattern, but for triples that its group joins."""
    plain = {id(each) for each in operands_of(pattern) if isinstance(each, Bgp | Path)}
    waiting: list[Any] = [pattern]
    while waiting:
        node = waiting.pop()
        if node == name:
            return True
        if id(node) not in plain:
            waiting.extend(all_parts_of(node))
    return False


def _lacks_graph(node: Algebra, graph: Variable) -> bool:
    """Whether a group in GRAPH has solutions before its first OPTIONAL or MINUS that are of no graph."""
    first, steps = spine_of(node)
    while steps and isinstance(steps[-1], Filter):
        steps.pop()
    lacking = False
    for operand in (first, *steps):
        match operand.right if isinstance(operand, Join) else operand:
            case Bgp() | Path() as triples:
                if triples != EMPTY:
                    return False
            case Values() | Service():
                lacking = True
            case Graph(name=name):
                lacking = lacking or name != graph
            case LeftJoin() | Minus() | Lateral() | Filter():
                break
            case Extend(expression=expression):
                if any(isinstance(each, Exists) for each in nodes_below(expression)):
                    break
    return lacking


def _begun_with(first: Algebra, node: Algebra) -> Algebra:
    """A group with one more operand before all others."""
    begin, steps = spine_of(node)
    made = join(first, begin)
    for step in steps:
        side = "pattern" if isinstance(step, Filter | Extend) else "left"
        made = replace(step, **{side: made})  # type: ignore[arg-type]
    return made
