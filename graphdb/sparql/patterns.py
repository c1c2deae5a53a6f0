"""What stands between the braces of a query: triple patterns, property paths, expressions and graph patterns.

Operators of one level stand side by side, as `a || b || c` does in the text: only brackets nest, so the depth
of a tree is bounded by the parser's limit on brackets. Brackets that only group leave no node.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphdb.sparql.terms import NOWHERE, Iri, PatternTerm, RdfLiteral, Span, TripleTerm, Variable

__all__ = [
    "Aggregate",
    "AlternativePath",
    "And",
    "Arithmetic",
    "Bind",
    "BuiltInCall",
    "Comparison",
    "Exists",
    "Expression",
    "Filter",
    "FunctionCall",
    "GraphPattern",
    "GroupCondition",
    "GroupGraphPattern",
    "In",
    "InlineData",
    "InversePath",
    "MinusPattern",
    "NegatedPropertySet",
    "Not",
    "OptionalPattern",
    "Or",
    "OrderCondition",
    "Path",
    "PatternElement",
    "Projection",
    "RepeatedPath",
    "SelectClause",
    "SequencePath",
    "ServicePattern",
    "Signed",
    "SolutionModifiers",
    "SubSelect",
    "TriplePattern",
    "TriplesBlock",
    "UnionPattern",
    "variables_of_element",
    "variables_of_triples",
]


# Property paths. A path of one IRI is that Iri itself.


@dataclass(frozen=True, slots=True)
class InversePath:
    """^path."""

    path: "Path"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SequencePath:
    """a/b/c: two steps or more."""

    steps: tuple["Path", ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class AlternativePath:
    """a|b|c: two choices or more."""

    choices: tuple["Path", ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RepeatedPath:
    """path?, path* or path+; modifier is that sign."""

    path: "Path"
    modifier: str
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NegatedPropertySet:
    """!(a|^b); an inverse member is an InversePath of an Iri."""

    members: tuple[Iri | InversePath, ...]
    span: Span = field(default=NOWHERE, compare=False)


Path: TypeAlias = Iri | InversePath | SequencePath | AlternativePath | RepeatedPath | NegatedPropertySet


# Expressions. A term is an expression by itself.


@dataclass(frozen=True, slots=True)
class Or:
    """a || b || c: two operands or more."""

    operands: tuple["Expression", ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """a && b && c: two operands or more."""

    operands: tuple["Expression", ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """left operator right; operator is one of = != < > <= >=."""

    operator: str
    left: "Expression"
    right: "Expression"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class In:
    """expression [NOT] IN (options)."""

    expression: "Expression"
    options: tuple["Expression", ...]
    negated: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """first, then operator and operand in turn, from the left: all of + and -, or all of * and /.

    `?a -1` is read as the grammar reads it, `?a + (-1)`, and `?a -1 * 2` as `?a + (-1 * 2)`.
    """

    first: "Expression"
    rest: tuple[tuple[str, "Expression"], ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """!operand."""

    operand: "Expression"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Signed:
    """+operand or -operand; a signed number is an RdfLiteral instead."""

    sign: str
    operand: "Expression"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class BuiltInCall:
    """A built-in function but an aggregate or EXISTS; name is in upper case, such as "STRLEN" or "ISIRI"."""

    name: str
    arguments: tuple["Expression", ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function named by an IRI: a cast or an extension."""

    function: Iri
    arguments: tuple["Expression", ...]
    distinct: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """name is COUNT, SUM, MIN, MAX, AVG, SAMPLE, GROUP_CONCAT or the IRI of an aggregate of GeoSPARQL;
    expression None is the star of COUNT(*).
    """

    name: str
    expression: "Expression | None"
    distinct: bool
    separator: str | None  # of GROUP_CONCAT, None where the text gives none
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """[NOT] EXISTS { ... }."""

    pattern: "GroupGraphPattern"
    negated: bool
    span: Span = field(default=NOWHERE, compare=False)


Expression: TypeAlias = (
    Iri
    | Variable
    | RdfLiteral
    | TripleTerm
    | Or
    | And
    | Comparison
    | In
    | Arithmetic
    | Not
    | Signed
    | BuiltInCall
    | FunctionCall
    | Aggregate
    | Exists
)


# Graph patterns.


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """One triple of a pattern or template, all shorthand expanded; only patterns have paths.

    span covers subject to object; what shorthand adds has the span of that shorthand.
    """

    subject: PatternTerm
    predicate: PatternTerm | Path
    object: PatternTerm
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TriplesBlock:
    """Triple patterns that stand together."""

    triples: tuple[TriplePattern, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class GroupGraphPattern:
    """{ ... }: its elements in the order of the text; a sub-select is the only element of its group.

    variables are those in scope at its end (SPARQL 1.1, section 18.2.1).
    """

    elements: tuple["PatternElement", ...]
    variables: frozenset[str] = field(compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class UnionPattern:
    """{...} UNION {...} UNION {...}: two branches or more."""

    branches: tuple[GroupGraphPattern, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OptionalPattern:
    pattern: GroupGraphPattern
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MinusPattern:
    pattern: GroupGraphPattern
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """GRAPH name {...}."""

    name: Iri | Variable
    pattern: GroupGraphPattern
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ServicePattern:
    """SERVICE [SILENT] endpoint {...}.

    is_restricted: a search, among what the rest of its group matches. Then it is the first element of the
    group that stands for its braces.
    """

    endpoint: Iri | Variable
    silent: bool
    pattern: GroupGraphPattern
    span: Span = field(default=NOWHERE, compare=False)
    is_restricted: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    expression: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Bind:
    """BIND (expression AS variable)."""

    expression: Expression
    variable: Variable
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class InlineData:
    """VALUES: rows as wide as variables; None is UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | RdfLiteral | TripleTerm | None, ...], ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Projection:
    """One column of SELECT; expression None is the variable itself."""

    variable: Variable
    expression: Expression | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SelectClause:
    """SELECT [DISTINCT | REDUCED] and its columns; projections None is the star."""

    projections: tuple[Projection, ...] | None
    distinct: bool
    reduced: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class GroupCondition:
    """One key of GROUP BY, with the name that AS gives it."""

    expression: Expression
    variable: Variable | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OrderCondition:
    expression: Expression
    descending: bool
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SolutionModifiers:
    """What follows WHERE; empty or None where the text has none."""

    group_by: tuple[GroupCondition, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class SubSelect:
    """A query within a group. variables are those that it projects; values None where there is no VALUES."""

    select: SelectClause
    where: GroupGraphPattern
    modifiers: SolutionModifiers
    values: InlineData | None
    variables: frozenset[str] = field(compare=False, repr=False)
    span: Span = field(default=NOWHERE, compare=False)


PatternElement: TypeAlias = (
    TriplesBlock
    | GroupGraphPattern
    | UnionPattern
    | OptionalPattern
    | MinusPattern
    | GraphPattern
    | ServicePattern
    | Filter
    | Bind
    | InlineData
    | SubSelect
)


# Which variables the parts of a graph pattern bring into scope (SPARQL 1.2, section 18.2.1).


def variables_of_triples(triples: Iterable[TriplePattern]) -> Iterator[str]:
    """The names of all variables in the triples, in triple terms too, repeated as they are."""
    for triple in triples:
        waiting: list[Any] = [triple.subject, triple.predicate, triple.object]
        while waiting:
            term = waiting.pop()
            if isinstance(term, Variable):
                yield term.name
            elif isinstance(term, TripleTerm):
                waiting.extend((term.subject, term.predicate, term.object))


def variables_of_element(element: PatternElement) -> Iterable[str]:
    """What one element of a group brings into scope, in no order."""
    match element:
        case TriplesBlock():
            return variables_of_triples(element.triples)
        case GroupGraphPattern() | SubSelect():
            return element.variables
        case UnionPattern():
            return (name for branch in element.branches for name in branch.variables)
        case OptionalPattern():
            return element.pattern.variables
        case GraphPattern(name=name) | ServicePattern(endpoint=name):
            own = {name.name} if isinstance(name, Variable) else set()
            return element.pattern.variables | own
        case InlineData():
            return (variable.name for variable in element.variables)
        case Bind():
            return (element.variable.name,)
        case _:  # FILTER and MINUS bring nothing
            return ()
