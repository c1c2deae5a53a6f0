"""Which expressions take bounded time and memory, no more than what they are given, however often they are
nested; and about how much.
"""

from typing import Any

from graphdb.geometry.geosparql_names import GEOF, RELATIONS
from graphdb.sparql import algebra, patterns
from graphdb.sparql.patterns import (
    Aggregate,
    And,
    Arithmetic,
    BuiltInCall,
    Comparison,
    FunctionCall,
    InlineData,
    Not,
    Or,
)
from graphdb.sparql.terms import Iri, RdfLiteral
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["are_bounded", "cost_of", "may_compute_durations"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
# CONCAT, REPLACE and the like can double a text at each step, REGEX can be long in compiling its pattern.
_BOUNDED = frozenset(
    {"BOUND", "COALESCE", "DATATYPE", "HASLANG", "HASLANGDIR", "IF", "IRI", "ISBLANK", "ISIRI", "ISLITERAL"}
    | {"ISNUMERIC", "ISTRIPLE", "ISURI", "LANG", "LANGDIR", "LANGMATCHES", "SAMETERM", "STR", "URI"}
    | {"CONTAINS", "LCASE", "STRAFTER", "STRBEFORE", "STRENDS", "STRLEN", "STRSTARTS", "SUBSTR", "UCASE"}
    | {"DAY", "HOURS", "MINUTES", "MONTH", "NOW", "SECONDS", "TIMEZONE", "TZ", "YEAR"}
    | {"ABS", "CEIL", "FLOOR", "ROUND", "OBJECT", "PREDICATE", "SUBJECT"}
    | {"BNODE", "RAND", "STRUUID", "UUID", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"}
    | {"STRLANG", "STRLANGDIR"}
)


# Those that make geometries can double them, as CONCAT does texts, or take long for a small one.
_BOUNDED_OF_GEOMETRY = frozenset(
    GEOF + name
    for name in (
        *(*RELATIONS, "relate", "distance", "metricDistance", "envelope", "getSRID", "geometryType"),
        *("dimension", "coordinateDimension", "spatialDimension", "isEmpty", "is3D", "isMeasured"),
        *("numGeometries", "minX", "maxX", "minY", "maxY", "minZ", "maxZ"),
        *("area", "length", "perimeter", "metricArea", "metricLength", "metricPerimeter"),
    )
)
_CHARACTERS = 64  # of a literal, that cost as much as an operator


_DURATIONS = frozenset(_XSD + name for name in ("duration", "yearMonthDuration", "dayTimeDuration"))
_DATES = frozenset(_XSD + name for name in ("dateTime", "date", "time"))
_PLAIN = frozenset(  # neither dates nor durations
    {"ABS", "CEIL", "FLOOR", "ROUND", "STRLEN", "DAY", "MONTH", "YEAR", "HOURS", "MINUTES", "SECONDS"}
    | {"CONTAINS", "STRAFTER", "STRBEFORE", "STRENDS", "STRSTARTS", "SUBSTR", "LCASE", "UCASE", "CONCAT"}
    | {"STR", "LANG", "DATATYPE", "TZ", "IRI", "URI", "RAND", "REPLACE", "STRLANG", "ENCODE_FOR_URI"}
)


def may_compute_durations(*expressions: Any) -> bool:
    """Whether the engine may compare durations, or add them to something.

    It adds a duration of months and seconds to a date month by month: `?a < ?b` takes hours where one of them
    is P1M10000000000D, and nothing can interrupt it (oxsdatatypes 0.2.4, `normalize_day`).
    """
    for node in nodes_below(*expressions):
        match node:
            case RdfLiteral(datatype=datatype) if datatype in _DURATIONS:
                return True
            case InlineData(rows=rows) | algebra.Values(rows=rows) if any(
                map(may_compute_durations, _literals(rows))
            ):
                return True
            case FunctionCall(function=function) if function.value in _DURATIONS:
                return True
            case BuiltInCall(name="STRDT"):
                return True
            case Comparison(operator=operator, left=left, right=right) if operator not in ("=", "!="):
                if not (_is_none_of(_DURATIONS, left) or _is_none_of(_DURATIONS, right)):
                    return True
            case Arithmetic(first=first, rest=rest):
                is_sum = any(operator in "+-" for operator, _ in rest)
                if is_sum and not _has_plain_operand(first, rest):
                    return True
    return False


def _literals(rows: Any) -> Any:
    return (term for row in rows for term in row if isinstance(term, RdfLiteral))


def _has_plain_operand(first: Any, rest: Any) -> bool:
    return any(
        _is_none_of(_DURATIONS | _DATES, operand) for operand in (first, *(other for _, other in rest))
    )


def _is_none_of(datatypes: frozenset[str], expression: Any) -> bool:
    """Whether the value of an expression is known to have none of these types, dates or durations."""
    match expression:
        case RdfLiteral(datatype=datatype):
            return datatype not in datatypes
        case BuiltInCall(name=name):
            return name in _PLAIN or (name == "NOW" and not datatypes & _DATES)
        case FunctionCall(function=function):
            return function.value.startswith(_XSD) and function.value not in datatypes
        case Aggregate(name=name):
            return name in ("COUNT", "GROUP_CONCAT")
        case Arithmetic(first=first, rest=rest):
            return _has_plain_operand(first, rest)
        case Iri() | Comparison() | And() | Or() | Not() | patterns.Exists() | algebra.Exists():
            return True
    return False


def cost_of(*expressions: Any) -> int:
    """How many calls, operators and operands there are, bounded ones; long literals count as many. What calls
    with geometries cost beside is for `graphdb.geo.function_calls`.
    """
    return sum(map(_cost, nodes_below(*expressions)))


def _cost(node: Any) -> int:
    match node:
        case RdfLiteral(value=value):
            return 1 + len(value) // _CHARACTERS
        case _:
            return 1


def are_bounded(*expressions: Any) -> bool:
    """Whether none has a subquery, calls a function of another's, or can make its operands grow or the engine
    run away.
    """
    if may_compute_durations(*expressions):
        return False
    for node in nodes_below(*expressions):
        match node:
            case patterns.Exists() | algebra.Exists():
                return False
            case BuiltInCall(name=name) if name not in _BOUNDED:
                return False
            case Aggregate(name="GROUP_CONCAT"):
                return False
            case Aggregate(name=name) if name.startswith(GEOF):
                return False
            case FunctionCall(function=function) if not (
                function.value.startswith(_XSD) or function.value in _BOUNDED_OF_GEOMETRY
            ):
                return False
    return True
