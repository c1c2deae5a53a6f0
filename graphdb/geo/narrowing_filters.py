"""Which filters of a query a spatial index can narrow, told from the syntax tree alone.

A filter that holds only where a variable's geometry meets a constant one, or is near it, leaves few of the
values that the variable may have. So these few can be written before the pattern that binds it, as VALUES;
they need only be all that the filter lets through. That is right where filter and pattern belong to one
group, or nothing but braces and GRAPH stands between them: what follows in a group extends its solutions, and
leaves a variable as it is.

The nearest: where a whole query is ordered by the distance from a constant, and cut, what is further than the
last row can be left out as well.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from graphdb.geo.lookups import (
    MEETING,
    Binding,
    Constant,
    Lookup,
    Meets,
    Nearest,
    Ordered,
    Within,
)
from graphdb.geo.vocabulary import GEOF
from graphdb.sparql.patterns import (
    AlternativePath,
    And,
    Bind,
    Comparison,
    Expression,
    Filter,
    FunctionCall,
    GraphPattern,
    GroupGraphPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    PatternElement,
    SequencePath,
    TriplePattern,
    TriplesBlock,
)
from graphdb.sparql.scope import variables_of_element
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Span, Variable
from graphdb.sparql.tree_walk import has_aggregate

__all__ = ["lookups_of_group", "nearest_of"]

_DISTANCE, _METRIC_DISTANCE, _RELATE = GEOF + "distance", GEOF + "metricDistance", GEOF + "relate"
_BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"
# The engine guesses 10 triples for a subject, 1,000 for an object, a million for a property.
_VALUES_ANYWHERE, _VALUES_BESIDE_OBJECTS, _VALUES_FIRST = 200, 1_000, 10_000
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def lookups_of_group(group: GroupGraphPattern) -> Iterator[tuple[Span, Lookup]]:
    """Those of the filters that stand right in a group, each variable once, and the triples that bind it."""
    names = _Names(group)
    conditions: dict[str, list[Meets | Within]] = {}
    for element in group.elements:
        if isinstance(element, Filter):
            for conjunct in _conjuncts(element.expression):
                for variable, condition in names.conditions(conjunct):
                    conditions.setdefault(variable, []).append(condition)
    for variable, found in conditions.items():
        bound = _binding(group, variable)
        if bound is not None:
            yield bound[1], Lookup(bound[0], tuple(found))


def nearest_of(query: Query) -> Ordered | None:
    """What can be said of a query's order and cut; None where rows are made of several solutions."""
    modifiers, select = query.modifiers, query.select
    if select is None or query.where is None or modifiers.limit is None or query.values is not None:
        return None
    if modifiers.group_by or modifiers.having or not modifiers.order_by or modifiers.order_by[0].descending:
        return None
    if has_aggregate(select, modifiers):
        return None
    names = _Names(query.where)
    columns = {
        column.variable.name: column.expression
        for column in select.projections or ()
        if column.expression is not None
    }
    key: Any = modifiers.order_by[0].expression
    if isinstance(key, Variable) and key.name in columns:
        key = columns[key.name]
    key = names.resolved(key)
    if not isinstance(key, FunctionCall) or (found := names.distance(key)) is None:
        return None
    variable, place = found
    bound = _binding(query.where, variable)
    if bound is None:
        return None
    return Ordered(*bound, place, key.span, modifiers.limit, modifiers.offset or 0)


class _Names:
    """What BIND and VALUES of one group make of its variables: expressions that stand for them everywhere."""

    def __init__(self, group: GroupGraphPattern) -> None:
        given = [pair for element in group.elements for pair in _given(element)]
        counts: dict[str, int] = {}
        for name in chain.from_iterable(map(variables_of_element, group.elements)):
            counts[name] = counts.get(name, 0) + 1
        # one that something else binds too may have another value, where BIND fails
        self._given: Mapping[str, Expression] = {name: value for name, value in given if counts[name] == 1}

    def resolved(self, expression: Any) -> Any:
        for _ in self._given:  # as many steps as there can be, lest they go round in a circle
            if isinstance(expression, Variable):
                expression = self._given.get(expression.name, expression)
        return expression

    def conditions(self, expression: Expression) -> Iterator[tuple[str, Meets | Within]]:
        """What an expression's being true says of variables."""
        match self.resolved(expression):
            case Comparison(operator="=", left=call, right=RdfLiteral(value="true" | "1", datatype=datatype)):
                if datatype == _BOOLEAN:
                    yield from self.conditions(call)
            case FunctionCall(function=Iri(value=name), arguments=arguments):
                if name in MEETING or (name == _RELATE and _meets(arguments[2])):
                    yield from self._meeting(arguments)
            case Comparison(operator=operator, left=left, right=right) if operator in _MIRRORED:
                yield from self._comparison(operator, left, right)
                yield from self._comparison(_MIRRORED[operator], right, left)

    def distance(self, call: FunctionCall) -> tuple[str, Nearest] | None:
        """The variable whose distance from a constant is called for."""
        if call.function.value not in (_DISTANCE, _METRIC_DISTANCE):
            return None
        unit = self.constant(call.arguments[2]) if call.function.value == _DISTANCE else None
        if unit is None and call.function.value == _DISTANCE:
            return None
        for variable, geometry in self._variable_and_constant(call.arguments):
            return variable, Nearest(geometry, unit)
        return None

    def constant(self, expression: Any) -> Constant | None:
        """What has the same value in every solution, with nothing but constants in it."""
        expression = self.resolved(expression)
        match expression:
            case RdfLiteral() | Iri():
                return expression
            case FunctionCall(function=Iri(value=name), arguments=arguments) if name.startswith(GEOF):
                parts = tuple(self.constant(argument) for argument in arguments)
                if None not in parts:
                    return FunctionCall(expression.function, parts, False, expression.span)  # type: ignore[arg-type]
        return None

    def _meeting(self, arguments: tuple[Expression, ...]) -> Iterator[tuple[str, Meets]]:
        for variable, geometry in self._variable_and_constant(arguments):
            yield variable, Meets(geometry)

    def _comparison(self, operator: str, left: Any, right: Any) -> Iterator[tuple[str, Within]]:
        call, limit = self.resolved(left), self.constant(right)
        if operator in ("<", "<=") and isinstance(call, FunctionCall) and isinstance(limit, RdfLiteral):
            found = self.distance(call)
            if found is not None:
                yield found[0], Within(found[1], limit)

    def _variable_and_constant(self, arguments: tuple[Expression, ...]) -> Iterator[tuple[str, Constant]]:
        """Of the first two arguments."""
        for one, other in (arguments[:2], arguments[1::-1]):
            variable, geometry = self.resolved(one), self.constant(other)
            if isinstance(variable, Variable) and geometry is not None:
                yield variable.name, geometry


def _given(element: PatternElement) -> Iterator[tuple[str, Expression]]:
    match element:
        case Bind(expression=expression, variable=variable):
            yield variable.name, expression
        case InlineData(variables=variables, rows=(row,)):
            for variable, value in zip(variables, row, strict=True):
                if isinstance(value, RdfLiteral | Iri):
                    yield variable.name, value


def _conjuncts(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, And):
        for operand in expression.operands:
            yield from _conjuncts(operand)
    else:
        yield expression


def _meets(pattern: Any) -> bool:
    """Whether a pattern of the DE-9IM asks the two geometries to have a point in common."""
    if not isinstance(pattern, RdfLiteral) or len(pattern.value) != 9:
        return False
    return any(pattern.value[place].upper() in "T012" for place in (0, 1, 3, 4))


def _binding(group: GroupGraphPattern, variable: str) -> tuple[Binding, Span] | None:
    """Triples of a group that bind a variable as an object of known properties, in every solution."""
    found = _place_of(group, variable)
    return None if found is None else (Binding(variable, found[0], _values_max(group)), found[1])


def _place_of(group: GroupGraphPattern, variable: str) -> tuple[frozenset[str], Span] | None:
    for element in group.elements:
        found = None
        match element:
            case TriplesBlock(triples=triples, span=span):
                ends = (
                    _last_properties(triple.predicate)
                    for triple in triples
                    if isinstance(triple.object, Variable) and triple.object.name == variable
                )
                found = next(((properties, span) for properties in ends if properties is not None), None)
            case GraphPattern(name=Variable(name=name)) if name == variable:
                continue
            case GraphPattern(pattern=pattern):
                found = _place_of(pattern, variable)
            case GroupGraphPattern():
                found = _place_of(element, variable)
        if found is not None:
            return found
    return None


def _values_max(group: GroupGraphPattern) -> int:
    """How many VALUES the engine still takes for less than any other part of a join, by its guesses.

    It would go through all of them for each solution of a part that it took first.
    """
    most = _VALUES_FIRST
    for element in group.elements:
        match element:
            case TriplesBlock(triples=triples):
                most = min([most, *map(_less_than, triples)])
            case GraphPattern(pattern=inner) | (GroupGraphPattern() as inner):
                most = min(most, _values_max(inner))
            case Filter() | Bind() | OptionalPattern() | MinusPattern():
                pass
            case _:
                most = _VALUES_ANYWHERE
    return most


def _less_than(triple: TriplePattern) -> int:
    if not isinstance(triple.subject, Variable | BlankNodeLabel):
        return _VALUES_ANYWHERE
    if not isinstance(triple.predicate, Iri | SequencePath | AlternativePath):
        return _VALUES_ANYWHERE
    return _VALUES_FIRST if isinstance(triple.object, Variable | BlankNodeLabel) else _VALUES_BESIDE_OBJECTS


def _last_properties(path: Any) -> frozenset[str] | None:
    """The properties of which the end of a path is an object."""
    match path:
        case Iri(value=value):
            return frozenset((value,))
        case SequencePath(steps=steps):
            return _last_properties(steps[-1])
        case AlternativePath(choices=choices):
            found = [_last_properties(choice) for choice in choices]
            return None if None in found else frozenset().union(*found)  # type: ignore[arg-type]
        case _:
            return None
