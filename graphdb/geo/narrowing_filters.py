"""Which filters of a query a spatial index can narrow, told from its algebra alone.

A filter that holds only where a variable's geometry meets a constant one, or is near it, leaves few of the
values that the variable may have. So these few can be written before the pattern that binds it, as VALUES;
they need only be all that the filter lets through. That is right where filter and pattern belong to one
group, or nothing but braces and GRAPH stands between them: what follows in a group extends its solutions, and
leaves a variable as it is.

The nearest: where a whole query is ordered by the distance from a constant, and cut, what is further than the
last row can be left out as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import chain, starmap
from typing import Any

from graphdb.geo.lookups import (
    MEETING,
    NEAR,
    NEAREST,
    Binding,
    Constant,
    Lookup,
    Meets,
    Nearest,
    Ordered,
    Within,
)
from graphdb.geometry.geosparql_names import GEOF
from graphdb.sparql.algebra import (
    Algebra,
    Bgp,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Minus,
    Path,
    Select,
    Slot,
    Values,
    spine_of,
    variables_in_scope,
)
from graphdb.sparql.patterns import (
    AlternativePath,
    And,
    Comparison,
    FunctionCall,
    SequencePath,
    TriplePattern,
)
from graphdb.sparql.rewriting import GroupPass
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable

__all__ = ["Narrowing"]

_DISTANCE, _METRIC_DISTANCE, _RELATE = GEOF + "distance", GEOF + "metricDistance", GEOF + "relate"
_BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"
# The engine guesses 10 triples for a subject, 1,000 for an object, a million for a property.
_VALUES_UNLOCATED, _VALUES_BESIDE_OBJECTS, _VALUES_FIRST = 200, 1_000, 10_000
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Narrowing(GroupPass):
    """The pass over one query: puts slots before the patterns that lookups narrow.

    lookups are those of its slots, by the number that is the slot's name, and nearest what its order asks.
    """

    def __init__(self) -> None:
        self.lookups: list[Lookup] = []
        self.nearest: Ordered | None = None
        self._slots: dict[int, list[str]] = {}  # by the identity of the operand that they come before

    def of_query(self, pattern: Algebra) -> Algebra:
        """The pattern of a whole query, with slots."""
        select = Select.of(pattern)
        found = _nearest_of(select)
        if found is None:
            return self.parts(select, None).pattern()
        self.nearest, operand = found
        self._put_before(operand, NEAREST)
        made = self.parts(select, None)
        near = Filter(Slot(NEAR), _before_order(made).pattern())
        return replace(made, where=near, extends=()).pattern()

    def new_slot(self, lookup: Lookup) -> str:
        """The name of a slot for what a lookup finds."""
        self.lookups.append(lookup)
        return str(len(self.lookups) - 1)

    def group(self, node: Algebra, graph: Variable | None = None) -> Algebra:
        """See `GroupPass`."""
        for condition, pattern in _filtered(node):
            for operand, lookup in _lookups_of(condition, pattern):
                self._put_before(operand, self.new_slot(lookup))
        return super().group(node, graph)

    def operand(self, node: Any, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        made = super().operand(node, graph)
        slots = [Slot(name) for name in self._slots.pop(id(node), ())]
        return reduce(Join, [*slots, made])

    def step(self, step: Any, left: Algebra, graph: Variable | None) -> Algebra:
        """See `GroupPass`."""
        if isinstance(step, Join):
            for name in self._slots.pop(id(step.right), ()):
                left = Join(left, Slot(name))
        return super().step(step, left, graph)

    def _put_before(self, operand: Algebra, name: str) -> None:
        self._slots.setdefault(id(operand), []).append(name)


def _filtered(node: Algebra) -> Iterator[tuple[Any, Algebra]]:
    """The conditions that stand right in a group or an OPTIONAL of it, and the pattern that each is about."""
    _, steps = spine_of(node)
    for step in steps:
        match step:
            case Filter(expression=expression, pattern=pattern):
                yield expression, pattern
            case LeftJoin(right=right, condition=condition) if condition is not None:
                yield condition, right


def _lookups_of(condition: Any, group: Algebra) -> Iterator[tuple[Algebra, Lookup]]:
    """Those of a group's filter, each variable once, and the operand that they come before."""
    names = _Names(group)
    conditions: dict[str, list[Meets | Within]] = {}
    for conjunct in _conjuncts(condition):
        for variable, found in names.conditions(conjunct):
            conditions.setdefault(variable, []).append(found)
    for variable, all_of_them in conditions.items():
        bound = _binding(group, variable)
        if bound is not None:
            yield bound[1], Lookup(bound[0], tuple(all_of_them))


def _nearest_of(select: Select) -> tuple[Ordered, Algebra] | None:
    """What can be said of a query's order and cut; None where rows are made of several solutions."""
    if select.variables is None or select.length is None or select.is_grouped:
        return None
    if not select.order or select.order[0].descending:
        return None
    names = _Names(_before_order(select).pattern())
    key = names.resolved(select.order[0].expression)
    if not isinstance(key, FunctionCall) or (found := names.distance(key)) is None:
        return None
    variable, place = found
    bound = _binding(select.where, variable)
    if bound is None:
        return None
    return Ordered(bound[0], place, key, select.length, select.start or 0), bound[1]


def _before_order(select: Select) -> Select:
    """The pattern of a SELECT, with its computed columns."""
    return Select(select.where, extends=select.extends)


class _Names:
    """What BIND and VALUES of one group make of its variables: expressions that stand for them everywhere."""

    def __init__(self, group: Algebra) -> None:
        elements = list(_elements(group))
        given = [pair for element, _ in elements for pair in _given(element)]
        counts: dict[str, int] = {}
        for name in chain.from_iterable(starmap(_brought_by, elements)):
            counts[name] = counts.get(name, 0) + 1
        # one that something else binds too may have another value, where BIND fails
        self._given: Mapping[str, Any] = {name: value for name, value in given if counts[name] == 1}

    def resolved(self, expression: Any) -> Any:
        for _ in self._given:  # as many steps as there can be, lest they go round in a circle
            if isinstance(expression, Variable):
                expression = self._given.get(expression.name, expression)
        return expression

    def conditions(self, expression: Any) -> Iterator[tuple[str, Meets | Within]]:
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

    def _meeting(self, arguments: tuple[Any, ...]) -> Iterator[tuple[str, Meets]]:
        for variable, geometry in self._variable_and_constant(arguments):
            yield variable, Meets(geometry)

    def _comparison(self, operator: str, left: Any, right: Any) -> Iterator[tuple[str, Within]]:
        call, limit = self.resolved(left), self.constant(right)
        if operator in ("<", "<=") and isinstance(call, FunctionCall) and isinstance(limit, RdfLiteral):
            found = self.distance(call)
            if found is not None:
                yield found[0], Within(found[1], limit)

    def _variable_and_constant(self, arguments: tuple[Any, ...]) -> Iterator[tuple[str, Constant]]:
        """Of the first two arguments."""
        for one, other in (arguments[:2], arguments[1::-1]):
            variable, geometry = self.resolved(one), self.constant(other)
            if isinstance(variable, Variable) and geometry is not None:
                yield variable.name, geometry


def _elements(group: Algebra) -> Iterator[tuple[Any, bool]]:
    """The elements of a group, in order, and whether each is an operand of a join; of others, their nodes."""
    first, steps = spine_of(group)
    yield first, True
    for step in steps:
        yield (step.right, True) if isinstance(step, Join) else (step, False)


def _brought_by(element: Any, is_operand: bool) -> set[str]:
    """The variables that an element itself brings into scope."""
    match element:
        case _ if is_operand:
            return variables_in_scope(element)
        case Extend(variable=variable):
            return {variable.name}
        case LeftJoin(right=right):
            return variables_in_scope(right)
        case _:
            return set()


def _given(element: Any) -> Iterator[tuple[str, Any]]:
    match element:
        case Extend(expression=expression, variable=variable):
            yield variable.name, expression
        case Values(variables=variables, rows=(row,)):
            for variable, value in zip(variables, row, strict=True):
                if isinstance(value, RdfLiteral | Iri):
                    yield variable.name, value


def _conjuncts(expression: Any) -> Iterator[Any]:
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


def _binding(group: Algebra, variable: str) -> tuple[Binding, Algebra] | None:
    """The operand before whose triples the values of a variable go that these bind as an object of known
    properties, in every solution.
    """
    found = _place_of(group, variable)
    return None if found is None else (Binding(variable, found[0], _values_max(group)), found[1])


def _place_of(group: Algebra, variable: str) -> tuple[frozenset[str], Algebra] | None:
    begin: Algebra | None = None  # of the triples that stand together
    for element, is_operand in _elements(group):
        inner = None
        match element:
            case Bgp() | Path():
                begin = begin or element
                properties = _properties_of(element, variable)
                if properties is not None:
                    return properties, begin
                continue
            case Graph(name=name, pattern=pattern):
                inner = None if name == Variable(variable) else _place_of(pattern, variable)
            case Join() | LeftJoin() | Minus() | Filter() | Extend() if is_operand:
                inner = _place_of(element, variable)
        if inner is not None:
            return inner
        begin = None
    return None


def _properties_of(triples: Bgp | Path, variable: str) -> frozenset[str] | None:
    """The properties of which a variable is an object, by one of some triple patterns."""
    for triple in triples.triples if isinstance(triples, Bgp) else (triples,):
        if triple.object == Variable(variable):
            found = _last_properties(triple.predicate)
            if found is not None:
                return found
    return None


def _values_max(group: Algebra) -> int:
    """How many VALUES the engine still takes for less than any other part of a join, by its guesses.

    It would go through all of them for each solution of a part that it took first.
    """
    most = _VALUES_FIRST
    for element, is_operand in _elements(group):
        match element:
            case Bgp(triples=triples):
                most = min([most, *map(_less_than, triples)])
            case Path():
                most = min(most, _less_than(element))
            case Graph(pattern=inner):
                most = min(most, _values_max(inner))
            case Join() | LeftJoin() | Minus() | Filter() | Extend():
                most = min(most, _values_max(element)) if is_operand else most
            case _:
                most = _VALUES_UNLOCATED
    return most


def _less_than(triple: TriplePattern | Path) -> int:
    if not isinstance(triple.subject, Variable | BlankNodeLabel):
        return _VALUES_UNLOCATED
    if not isinstance(triple.predicate, Iri | SequencePath | AlternativePath):
        return _VALUES_UNLOCATED
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
