"""`GroupPass`: what passes over the algebra have in common that depend on groups and on the GRAPH around."""

from dataclasses import replace
from typing import Any

from graphdb.sparql.algebra import (
    SELECT_NODES,
    Algebra,
    Exists,
    Extend,
    Filter,
    Graph,
    Join,
    Lateral,
    LeftJoin,
    Minus,
    Narrowed,
    Select,
    Union,
    spine_of,
)
from graphdb.sparql.terms import Variable
from graphdb.sparql.tree_walk import rewritten_expression

__all__ = ["GroupPass"]

_OF_GROUPS = (Join, LeftJoin, Minus, Lateral, Narrowed, Filter, Extend)


class GroupPass:
    """Rewrites a pattern from the outside to the inside, and puts it together again.

    graph is the variable of the GRAPH around a pattern; None where it is a GRAPH with an IRI, or none.
    """

    def group(self, node: Algebra, graph: Variable | None = None) -> Algebra:
        """What stands between two braces, with what follows it."""
        first, steps = spine_of(node)
        made = self.operand(first, graph)
        for step in steps:
            made = self.step(step, made, graph)
        return made

    def operand(self, node: Any, graph: Variable | None) -> Algebra:
        """What a group begins with or joins."""
        match node:
            case Union(branches=branches):
                return Union(tuple([self.group(branch, graph) for branch in branches]))
            case Graph(name=name):
                within = name if isinstance(name, Variable) else None
                return Graph(name, self.group(node.pattern, within))
            case _:
                return self.select(node, graph)

    def select(self, node: Any, graph: Variable | None) -> Algebra:
        """A sub-select, or what has no pattern in it."""
        return self.parts(Select.of(node), graph).pattern() if isinstance(node, SELECT_NODES) else node

    def parts(self, select: Select, graph: Variable | None) -> Select:
        """The parts of a query or sub-select."""
        aggregates = [(variable, self.expression(each, graph)) for variable, each in select.aggregates]
        return replace(
            select,
            where=self.group(select.where, graph),
            aggregates=tuple(aggregates),
            having=None if select.having is None else self.expression(select.having, graph),
            extends=tuple([(variable, self.expression(each, graph)) for variable, each in select.extends]),
            order=tuple([self.expression(condition, graph) for condition in select.order]),
        )

    def step(self, step: Any, left: Algebra, graph: Variable | None) -> Algebra:
        """One element after the first, with what was made of those before it."""
        match step:
            case Filter(expression=expression):
                return Filter(self.expression(expression, graph), left)
            case Extend(variable=variable, expression=expression):
                return Extend(left, variable, self.expression(expression, graph))
            case LeftJoin(right=right, condition=condition):
                condition = None if condition is None else self.expression(condition, graph)
                return LeftJoin(left, self.group(right, graph), condition)
            case Join(right=right) if not isinstance(right, _OF_GROUPS):
                return Join(left, self.operand(right, graph))
            case Join() | Minus() | Lateral():
                return replace(step, left=left, right=self.group(step.right, graph))
        raise TypeError(f"{step!r} is no step of a group")

    def expression(self, expression: Any, graph: Variable | None) -> Any:
        """An expression, of which the patterns of EXISTS are groups."""

        def change(node: Any) -> Any:
            return Exists(self.group(node.pattern, graph), node.negated) if isinstance(node, Exists) else node

        return rewritten_expression(expression, change)
