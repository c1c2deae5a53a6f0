"""Operators and aggregates that the engine evaluates otherwise than SPARQL 1.2 (section 17) says.

    true > ?v, ?v < ?w        truth values are ordered, false first: compared as integers
    ?v / 2.5                  to the engine an error where ?v is 0
    NOW() + ?duration         to the engine an error, unlike NOW() - (-?duration)
    COUNT(?v + 1)             to the engine an error if one value is, which is not to be counted: the argument
                              becomes a variable below the group

What would need an operand twice is left as it is where the operand is large: texts do not grow without bound.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from graphdb.sparql.algebra import Exists, Extend, Group
from graphdb.sparql.patterns import (
    Aggregate,
    And,
    Arithmetic,
    BuiltInCall,
    Comparison,
    FunctionCall,
    In,
    Not,
    Or,
    Signed,
)
from graphdb.sparql.terms import Iri, RdfLiteral, Variable
from graphdb.sparql.translation import FreshNames
from graphdb.sparql.tree_walk import nodes_below, rewritten

__all__ = ["needs_operators", "with_operators"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_BOOLEAN, _INTEGER = Iri(f"{_XSD}boolean"), Iri(f"{_XSD}integer")
_ZERO = RdfLiteral("0.0", f"{_XSD}decimal", None, None)
_INTEGERS = frozenset(
    _XSD + name
    for name in (
        *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger"),
        *("nonPositiveInteger", "negativeInteger"),
        *("unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_INEXACT = frozenset((f"{_XSD}double", f"{_XSD}float"))
_NUMERIC = _INTEGERS | _INEXACT | {f"{_XSD}decimal"}
_COUNTS = frozenset(("DAY", "HOURS", "MINUTES", "MONTH", "STRLEN", "YEAR"))
_NUMBERS = _COUNTS | {"ABS", "CEIL", "FLOOR", "RAND", "ROUND", "SECONDS"}
_TESTS = frozenset(
    {"BOUND", "CONTAINS", "HASLANG", "HASLANGDIR", "ISBLANK", "ISIRI", "ISLITERAL", "ISNUMERIC"}
    | {"ISTRIPLE", "ISURI", "LANGMATCHES", "REGEX", "SAMETERM", "STRENDS", "STRSTARTS"}
)
_REPEATED_NODES_MAX = 16  # of what stands in the text several times


def needs_operators(node: Any) -> bool:
    """Whether a node is to be changed."""
    return _changed(node, Variable(""), "") is not node


def with_operators(pattern: Any, fresh: FreshNames) -> Any:
    """A pattern that means to the engine what it means by the specification."""
    unbound, counted = Variable(fresh.prefix("error")), fresh.prefix("counted")
    return rewritten(pattern, lambda node: _changed(node, unbound, counted))


def _changed(node: Any, unbound: Variable, counted: str) -> Any:
    """A node as the engine is to read it; itself where that is the same. unbound never has a value."""
    match node:
        case Comparison():
            return _ordered(node, unbound)
        case Arithmetic():
            return _arithmetic(node, unbound)
        case Group() if any(_counts_values(each) for _, each in node.aggregates):
            return _with_counted_values(node, counted)
    return node


def _ordered(comparison: Comparison, unbound: Variable) -> Any:
    """A comparison that orders truth values."""
    left, right = comparison.left, comparison.right
    kinds = (_is_truth(left), _is_truth(right))
    if comparison.operator in ("=", "!=") or False in kinds:
        return comparison
    if kinds == (True, True):
        return replace(comparison, left=_as_integer(left), right=_as_integer(right))
    by_value = replace(
        comparison,
        left=_as_integer(left) if kinds[0] else _integer_of_truth(left, unbound),
        right=_as_integer(right) if kinds[1] else _integer_of_truth(right, unbound),
    )
    return by_value if True in kinds else BuiltInCall("COALESCE", (comparison, by_value))


def _is_truth(expression: Any) -> bool | None:
    """Whether an expression is a truth value wherever it is no error; None if that is open."""
    match expression:
        case And() | Or() | Not() | Comparison() | In() | Exists() | RdfLiteral(datatype=_BOOLEAN.value):
            return True
        case BuiltInCall(name=name) if name in _TESTS:
            return True
        case FunctionCall(function=function) if function == _BOOLEAN:
            return True
        case Variable():
            return None
    return False


def _as_integer(truth: Any) -> FunctionCall:
    return FunctionCall(_INTEGER, (truth,), False)


def _integer_of_truth(variable: Any, unbound: Variable) -> BuiltInCall:
    is_truth = Comparison("=", BuiltInCall("DATATYPE", (variable,)), _BOOLEAN)
    return BuiltInCall("IF", (is_truth, _as_integer(variable), unbound))


def _arithmetic(node: Arithmetic, unbound: Variable) -> Any:
    made, steps = node.first, list[tuple[str, Any]]()

    def flushed() -> Any:
        return Arithmetic(made, tuple(steps)) if steps else made

    for operator, operand in node.rest:
        otherwise = _otherwise(flushed(), operator, operand, unbound)
        if otherwise is None:
            steps.append((operator, operand))
            continue
        plain = Arithmetic(made, (*steps, (operator, operand)))
        made, steps = BuiltInCall("COALESCE", (plain, otherwise)), []
    return node if not isinstance(made, BuiltInCall) or made is node.first else flushed()


def _otherwise(left: Any, operator: str, right: Any, unbound: Variable) -> Any:
    """The value of what may be an error to the engine alone; None if nothing is."""
    if operator == "/":
        is_open = _may_be(left, lambda value: not value.strip("+-0.")) and not _has_type(
            right, _INTEGERS | _INEXACT, _COUNTS
        )
        if not is_open or not _may_repeat(left, right):
            return None
        is_zero = Comparison("=", left, _ZERO)
        return BuiltInCall("IF", (And((is_zero, Comparison("!=", right, _ZERO))), _ZERO, unbound))
    if operator != "+" or any(_has_type(each, _NUMERIC, _NUMBERS) for each in (left, right)):
        return None
    return Arithmetic(left, (("-", Signed("-", right)),)) if _may_repeat(left, right) else None


def _may_be(expression: Any, accepts: Callable[[str], bool]) -> bool:
    """Whether an expression may be a number that is written so."""
    return not isinstance(expression, RdfLiteral) or accepts(expression.value)


def _has_type(expression: Any, datatypes: frozenset[str], calls: frozenset[str]) -> bool:
    """Whether it has one of the datatypes wherever it is no error."""
    match expression:
        case RdfLiteral(datatype=datatype):
            return datatype in datatypes
        case FunctionCall(function=function):
            return function.value in datatypes
        case BuiltInCall(name=name):
            return name in calls
        case Arithmetic(rest=((("*" | "/"), _), *_)):
            return datatypes == _NUMERIC
        case Arithmetic(first=first, rest=rest):
            return datatypes == _NUMERIC and any(
                _has_type(each, datatypes, calls) for each in (first, *(operand for _, operand in rest))
            )
        case Signed(operand=operand):
            return _has_type(operand, datatypes, calls)
    return False


def _may_repeat(*operands: Any) -> bool:
    nodes = list(nodes_below(*operands))
    return len(nodes) <= _REPEATED_NODES_MAX and not any(isinstance(node, Exists) for node in nodes)


def _counts_values(aggregate: Aggregate) -> bool:
    return aggregate.name == "COUNT" and not isinstance(aggregate.expression, Variable | None)


def _with_counted_values(group: Group, name: str) -> Group:
    """A group that counts variables only, which the engine counts where they are bound."""
    pattern, aggregates = group.pattern, list[tuple[Variable, Aggregate]]()
    for variable, aggregate in group.aggregates:
        argument = aggregate.expression
        if argument is not None and _counts_values(aggregate):
            value = Variable(f"{name}_{len(aggregates)}")
            pattern = Extend(pattern, value, argument)
            aggregates.append((variable, replace(aggregate, expression=value)))
        else:
            aggregates.append((variable, aggregate))
    return replace(group, pattern=pattern, aggregates=tuple(aggregates))
