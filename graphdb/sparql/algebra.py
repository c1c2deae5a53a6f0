"""The SPARQL algebra (SPARQL 1.2, section 18): what a query asks, without how its text is written.

Names are those of the specification. Expressions are those of `patterns`, with two differences: an EXISTS
holds algebra, and an aggregate stands only in `Group`, which gives its value to a variable. A path stays
one `Path`; the engine itself turns sequences and inverses into triple patterns.

`translation` makes the algebra of a syntax tree, passes rewrite it, and `printing` writes it for the engine.
The nodes at the end are the engine's: no text of a client has them.

A group of a text, `{ ... }`, becomes a spine: the node of its last element, which holds that of the element
before it, down to the first. FILTERs of a group become one `Filter` at the top of its spine.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.sparql import patterns
from graphdb.sparql.patterns import OrderCondition, TriplePattern, variables_of_triples
from graphdb.sparql.search_requests import IndexSearch, LiteralSearch, Part
from graphdb.sparql.syntax import DatasetClause
from graphdb.sparql.terms import Iri, PatternTerm, RdfLiteral, TripleTerm, Variable

__all__ = [
    "EMPTY",
    "SELECT_NODES",
    "AbstractQuery",
    "Algebra",
    "Bgp",
    "Distinct",
    "Exists",
    "Expression",
    "Extend",
    "Filter",
    "Graph",
    "Group",
    "Join",
    "Lateral",
    "LeftJoin",
    "Minus",
    "Narrowed",
    "OrderBy",
    "Path",
    "Project",
    "Reduced",
    "Select",
    "Service",
    "Slice",
    "Slot",
    "Spelled",
    "Step",
    "TextSearch",
    "Union",
    "Values",
    "conjunction",
    "join",
    "operands_of",
    "spine_of",
    "variables_in_scope",
]


@dataclass(frozen=True, slots=True)
class Bgp:
    """A basic graph pattern: triple patterns without paths."""

    triples: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """A property path pattern."""

    subject: PatternTerm
    predicate: patterns.Path
    object: PatternTerm


@dataclass(frozen=True, slots=True)
class Values:
    """ToMultiSet of inline data: rows as wide as variables; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | RdfLiteral | TripleTerm | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Join:
    left: "Algebra"
    right: "Algebra"


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """condition None is true."""

    left: "Algebra"
    right: "Algebra"
    condition: "Expression | None"


@dataclass(frozen=True, slots=True)
class Minus:
    left: "Algebra"
    right: "Algebra"


@dataclass(frozen=True, slots=True)
class Union:
    """Two branches or more, as Union of the first and the Union of the others."""

    branches: tuple["Algebra", ...]


@dataclass(frozen=True, slots=True)
class Filter:
    expression: "Expression"
    pattern: "Algebra"


@dataclass(frozen=True, slots=True)
class Extend:
    pattern: "Algebra"
    variable: Variable
    expression: "Expression"


@dataclass(frozen=True, slots=True)
class Graph:
    name: Iri | Variable
    pattern: "Algebra"


@dataclass(frozen=True, slots=True)
class Service:
    endpoint: Iri | Variable
    pattern: "Algebra"
    silent: bool


@dataclass(frozen=True, slots=True)
class TextSearch:
    """The hits of a search as solutions, one a hit, which the evaluation puts in before everything else.

    columns says which part of a hit (`search_requests.Part`) each variable has, each variable once. fixed are
    parts that the query gives: other hits are none. graph is the GRAPH around it; None is the default graph.
    within: only the entities that this pattern has are searched, so that they alone are ranked and counted.
    It stands beside the search as well.
    """

    name: str  # of its place in the engine's text; each search of a query has its own
    request: LiteralSearch | IndexSearch
    graph: Iri | Variable | None
    columns: tuple[tuple[str, Variable], ...]
    fixed: tuple[tuple[str, Iri | RdfLiteral], ...] = ()
    within: "Algebra | None" = None

    @property
    def entity(self) -> Variable | None:
        """The variable of what a hit is about."""
        return next((variable for part, variable in self.columns if part == Part.SUBJECT), None)


@dataclass(frozen=True, slots=True)
class Group:
    """Group and AggregateJoin: a solution for each group, with the keys and the values of the aggregates.

    Without keys there is one group. An expression of GROUP BY is an `Extend` in pattern.
    """

    pattern: "Algebra"
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, patterns.Aggregate], ...]


@dataclass(frozen=True, slots=True)
class OrderBy:
    pattern: "Algebra"
    conditions: tuple[OrderCondition, ...]


@dataclass(frozen=True, slots=True)
class Project:
    pattern: "Algebra"
    variables: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    pattern: "Algebra"


@dataclass(frozen=True, slots=True)
class Reduced:
    pattern: "Algebra"


@dataclass(frozen=True, slots=True)
class Slice:
    """start and length are None where the text has no OFFSET and no LIMIT."""

    pattern: "Algebra"
    start: int | None
    length: int | None


@dataclass(frozen=True, slots=True)
class Exists:
    """[NOT] EXISTS, in an expression."""

    pattern: "Algebra"
    negated: bool


# The engine's.


@dataclass(frozen=True, slots=True)
class Lateral:
    """Evaluates the right side once for each solution of the left one, which binds its variables."""

    left: "Algebra"
    right: "Algebra"


@dataclass(frozen=True, slots=True)
class Slot:
    """Where what an index finds is put when the query is run, a pattern or a FILTER; nothing otherwise."""

    name: str


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Join of left and found where an index finds something for the slot; else Lateral of left and right.

    found has a `Slot` of that name wherever the values go.
    """

    left: "Algebra"
    right: "Algebra"
    name: str
    found: "Algebra"


@dataclass(frozen=True, slots=True)
class Spelled:
    """An expression in the words of the engine."""

    text: str


Algebra: TypeAlias = (
    Bgp
    | Path
    | Values
    | Join
    | LeftJoin
    | Minus
    | Union
    | Filter
    | Extend
    | Graph
    | Service
    | TextSearch
    | Group
    | OrderBy
    | Project
    | Distinct
    | Reduced
    | Slice
    | Lateral
    | Slot
    | Narrowed
)
Expression: TypeAlias = patterns.Expression | Exists | Slot | Spelled

EMPTY = Bgp(())
"""One solution that binds nothing."""
SELECT_NODES = (Project, Distinct, Reduced, Slice, OrderBy, Group)
"""What a group has only in a sub-select (`Select`)."""


class _Known:
    """Has places for what is found out about a query once. They are not parts of it."""

    __slots__ = ("nodes", "taken_apart")
    nodes: tuple[Any, ...]
    taken_apart: "Select"


@dataclass(frozen=True, slots=True)
class AbstractQuery(_Known):
    """A query form over a pattern (SPARQL 1.2, section 18.2). A SELECT's pattern projects its columns.

    template belongs to CONSTRUCT, described to DESCRIBE. base is what IRI() resolves against; None where it
    is not called.
    """

    form: str
    pattern: Algebra
    dataset: tuple[DatasetClause, ...] = ()
    template: tuple[TriplePattern, ...] = ()
    described: tuple[Iri | Variable, ...] = ()
    base: str | None = None

    @property
    def graph_clauses(self) -> tuple[DatasetClause, ...]:
        """Those of the `Query`: translation leaves out the clauses that name states."""
        return self.dataset

    @property
    def select(self) -> "Select":
        """The pattern taken apart; of other forms than SELECT, a Project is a sub-select."""
        found: Select | None = getattr(self, "taken_apart", None)
        if found is None:
            found = Select.of(self.pattern, has_columns=self.form == "SELECT")
            object.__setattr__(self, "taken_apart", found)
        return found


@dataclass(frozen=True, slots=True)
class Select:
    """The parts of a query's or sub-select's pattern, from the inside: where, grouping, and what follows.

    variables is None where nothing is projected. extends are the computed columns, in their order; where
    nothing is grouped these include the BINDs at the end of its pattern.
    """

    where: Algebra
    keys: tuple[Variable, ...] = ()
    aggregates: tuple[tuple[Variable, patterns.Aggregate], ...] = ()
    is_grouped: bool = False
    having: "Expression | None" = None
    values: Values | None = None  # of a grouped query; else it is joined to the pattern
    extends: tuple[tuple[Variable, "Expression"], ...] = ()
    order: tuple[OrderCondition, ...] = ()
    variables: tuple[Variable, ...] | None = None
    modifier: type[Distinct] | type[Reduced] | None = None
    start: int | None = None
    length: int | None = None

    @classmethod
    def of(cls, node: Algebra, *, has_columns: bool = True) -> "Select":
        """Take a pattern apart. Without columns, a Project within belongs to where."""
        parts: dict[str, Any] = {}
        if isinstance(node, Slice):
            parts["start"], parts["length"], node = node.start, node.length, node.pattern
        if isinstance(node, Distinct | Reduced) and has_columns:
            parts["modifier"], node = type(node), node.pattern
        if isinstance(node, Project) and has_columns:
            parts["variables"], node = node.variables, node.pattern
        if isinstance(node, OrderBy):
            parts["order"], node = node.conditions, node.pattern
        extends = []
        while isinstance(node, Extend):
            extends.append((node.variable, node.expression))
            node = node.pattern
        parts["extends"] = tuple(reversed(extends))
        grouped: Algebra = node
        if isinstance(grouped, Join) and isinstance(grouped.right, Values):
            parts["values"], grouped = grouped.right, grouped.left
        if isinstance(grouped, Filter):
            parts["having"], grouped = grouped.expression, grouped.pattern
        if not isinstance(grouped, Group):
            parts.pop("values", None)
            parts.pop("having", None)
            return cls(node, **parts)
        return cls(grouped.pattern, grouped.keys, grouped.aggregates, True, **parts)

    @property
    def rows_max(self) -> int | None:
        """How many solutions there are at most; None where the data decides."""
        if not self.is_grouped or self.keys:
            return self.length
        groups = 1 if self.values is None else len(self.values.rows)
        return groups if self.length is None else min(groups, self.length)

    def pattern(self) -> Algebra:
        """Put it together again."""
        made: Algebra = self.where
        if self.is_grouped:
            made = Group(made, self.keys, self.aggregates)
        if self.having is not None:
            made = Filter(self.having, made)
        if self.values is not None:
            made = Join(made, self.values)
        for variable, expression in self.extends:
            made = Extend(made, variable, expression)
        if self.order:
            made = OrderBy(made, self.order)
        if self.variables is not None:
            made = Project(made, self.variables)
        if self.modifier is not None:
            made = self.modifier(made)
        if self.start is not None or self.length is not None:
            made = Slice(made, self.start, self.length)
        return made


def join(left: Algebra, right: Algebra) -> Algebra:
    """Join without the empty pattern (section 18.2.2.8); adjacent basic graph patterns are one."""
    if left == EMPTY:
        return right
    if right == EMPTY:
        return left
    if isinstance(right, Bgp):
        if isinstance(left, Bgp):
            return Bgp(left.triples + right.triples)
        if isinstance(left, Join) and isinstance(left.right, Bgp):
            return Join(left.left, Bgp(left.right.triples + right.triples))
    return Join(left, right)


def conjunction(conditions: "list[Any]") -> "Expression | None":
    """That all of some conditions hold; None of no condition."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return patterns.And(tuple(conditions))


Step: TypeAlias = Join | LeftJoin | Minus | Lateral | Narrowed | Filter | Extend


def spine_of(node: Algebra) -> tuple[Algebra, list[Step]]:
    """The first operand of a group, and the nodes around it from the inside to the whole group."""
    steps: list[Step] = []
    while True:
        match node:
            case Join() | LeftJoin() | Minus() | Lateral() | Narrowed():
                steps.append(node)
                node = node.left
            case Filter() | Extend():
                steps.append(node)
                node = node.pattern
            case _:
                steps.reverse()
                return node, steps


def operands_of(node: Algebra) -> list[Algebra]:
    """What a group joins, in its order; neither what is optional nor what is taken away."""
    first, steps = spine_of(node)
    return [first, *(step.right for step in steps if isinstance(step, Join))]


def variables_in_scope(root: Algebra) -> set[str]:
    """The names of the variables that solutions may bind (section 18.2.1)."""
    names: set[str] = set()
    waiting: list[Any] = [root]
    while waiting:
        node = waiting.pop()
        match node:
            case Bgp():
                names.update(variables_of_triples(node.triples))
            case Path():
                names.update(
                    variables_of_triples((TriplePattern(node.subject, node.predicate, node.object),))
                )
            case Join() | LeftJoin() | Lateral() | Narrowed():
                waiting += (node.left, node.right)
            case Minus():
                waiting.append(node.left)
            case Union():
                waiting += node.branches
            case Values():
                names.update(variable.name for variable in node.variables)
            case TextSearch():
                names.update(variable.name for _, variable in node.columns)
            case Project():
                names.update(variable.name for variable in node.variables)
            case Group():
                names.update(variable.name for variable in node.keys)
                names.update(variable.name for variable, _ in node.aggregates)
            case Extend():
                names.add(node.variable.name)
                waiting.append(node.pattern)
            case Graph(name=name) | Service(endpoint=name):
                if isinstance(name, Variable):
                    names.add(name.name)
                waiting.append(node.pattern)
            case Slot():
                pass
            case _:
                waiting.append(node.pattern)
    return names
