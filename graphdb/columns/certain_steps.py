"""How many solutions an evaluation looks at for certain, whatever the order of its joins.

Triple patterns that have no variable in common multiply, and their matches are counted exactly. Anything else
may turn out to have no solution, and then an evaluation is over soon: so nothing is certain there.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from graphdb.columns.catalog import Catalog
from graphdb.columns.estimate import constant_term, is_constant, limited
from graphdb.columns.expressions import conjuncts
from graphdb.columns.term_ids import DEFAULT_GRAPH
from graphdb.sparql.algebra import (
    AbstractQuery,
    Bgp,
    Exists,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Select,
    Values,
    spine_of,
)
from graphdb.sparql.patterns import BuiltInCall, Comparison, In, TriplePattern
from graphdb.sparql.terms import BlankNodeLabel, Variable
from graphdb.sparql.tree_walk import expression_nodes

__all__ = ["certain_steps"]

_PREDICATES_MAX: Final = 1_000  # that are counted for one pattern
_EQUALITIES: Final = ("=", "!=")


class _Uncertain(Exception):
    """Nothing is certain."""


def certain_steps(query: AbstractQuery, catalog: Catalog) -> float:
    """Of a query on the default graph; 0 where nothing is certain."""
    if query.dataset:
        return 0.0
    select = query.select
    try:
        parts, filters = _parts(select)
        counts = [_count(part, catalog) for part in parts]
        least = float(prod(counts))
        for condition in filters:
            least = min(least, _needed_for(condition, parts, counts))
    except _Uncertain:
        return 0.0
    if query.form == "ASK" or (select.length is not None and not (select.is_grouped or select.order)):
        if filters or select.modifier is not None:
            return 0.0
        return min(least, 1.0 if query.form == "ASK" else float(limited(select)))
    return least


def _parts(select: Select) -> tuple[list[TriplePattern | Values], list[Any]]:
    """What is multiplied, and the conditions on it. Raises _Uncertain."""
    first, steps = spine_of(select.where)
    parts, filters, computed = _operands(first), list[Any](), set[Any]()
    is_whole = False
    for step in steps:
        match step:
            case Filter(expression=expression):
                filters += conjuncts(expression)
            case Join(right=right) if not is_whole:
                parts += _operands(right)
            case LeftJoin() | Minus():
                is_whole = True
            case Extend(variable=variable):
                computed.add(variable)
            case _:
                raise _Uncertain
    met = set[Any]()
    for part in parts:
        names = _names(part)
        if met.intersection(names) or computed.intersection(names) or len(set(names)) < len(names):
            raise _Uncertain
        met.update(names)
    return parts, filters


def _operands(node: Any) -> list[TriplePattern | Values]:
    if isinstance(node, Bgp):
        return list(node.triples)
    if isinstance(node, Values):
        return [node]
    raise _Uncertain


def _names(part: TriplePattern | Values) -> Sequence[Any]:
    """Variables and blank nodes."""
    if isinstance(part, Values):
        return part.variables
    ends = (part.subject, part.predicate, part.object)
    names = [end for end in ends if isinstance(end, Variable | BlankNodeLabel)]
    if any(not is_constant(end) for end in ends if end not in names):
        raise _Uncertain  # a triple term
    return names


def _needed_for(condition: Any, parts: Sequence[Any], counts: Sequence[int]) -> float:
    """The solutions of which a condition is asked, which may be the first thing that is evaluated."""
    nodes = list(expression_nodes(condition))
    for node in nodes:
        match node:
            case Exists():
                raise _Uncertain
            case Comparison(operator=operator, left=left, right=right) if operator in _EQUALITIES:
                _check_one_sided(left, right)
            case In(expression=expression, options=options):
                _check_one_sided(expression, *options)
            case BuiltInCall(name="SAMETERM", arguments=arguments):
                _check_one_sided(*arguments)
    used = {node for node in nodes if isinstance(node, Variable)}
    asked = [count for part, count in zip(parts, counts, strict=True) if used.intersection(_names(part))]
    if len(asked) < 2:
        raise _Uncertain  # it may leave nothing of what it is asked of
    return float(prod(asked))


def _check_one_sided(*sides: Any) -> None:
    """What is equal can be joined by it. Raises _Uncertain."""
    with_variables = [
        side for side in sides if any(isinstance(node, Variable) for node in expression_nodes(side))
    ]
    if len(with_variables) > 1:
        raise _Uncertain


def _count(part: TriplePattern | Values, catalog: Catalog) -> int:
    """The matches in the default graph."""
    if isinstance(part, Values):
        return len(part.rows)
    ends = {"s": part.subject, "o": part.object}
    numbers = {column: catalog.id_of(constant_term(end)) for column, end in ends.items() if is_constant(end)}
    if None in numbers.values():
        return 0
    conditions = " AND ".join([f"g = {DEFAULT_GRAPH}", *(f"{each} = {numbers[each]}" for each in numbers)])
    predicates = [*catalog.predicates]
    if is_constant(part.predicate):
        number = catalog.id_of(constant_term(part.predicate))
        predicates = [number] if number is not None and number in catalog.predicates else []
    if len(predicates) > _PREDICATES_MAX:
        raise _Uncertain
    return sum(catalog.count(predicate, conditions) for predicate in predicates)
