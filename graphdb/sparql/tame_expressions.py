"""Which expressions take no more time and room than what they are given, however often they are nested; and
about how much.
"""

from typing import Any

from graphdb.geo.signatures import RELATIONS
from graphdb.geo.vocabulary import GEOF
from graphdb.sparql.patterns import Aggregate, BuiltInCall, Exists, FunctionCall
from graphdb.sparql.terms import RdfLiteral
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["are_tame", "cost_of"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
# CONCAT, REPLACE and the like can double a text at each step, REGEX can be long in compiling its pattern.
_TAME = frozenset(
    {"BOUND", "COALESCE", "DATATYPE", "HASLANG", "HASLANGDIR", "IF", "IRI", "ISBLANK", "ISIRI", "ISLITERAL"}
    | {"ISNUMERIC", "ISTRIPLE", "ISURI", "LANG", "LANGDIR", "LANGMATCHES", "SAMETERM", "STR", "URI"}
    | {"CONTAINS", "LCASE", "STRAFTER", "STRBEFORE", "STRENDS", "STRLEN", "STRSTARTS", "SUBSTR", "UCASE"}
    | {"DAY", "HOURS", "MINUTES", "MONTH", "NOW", "SECONDS", "TIMEZONE", "TZ", "YEAR"}
    | {"ABS", "CEIL", "FLOOR", "ROUND", "OBJECT", "PREDICATE", "SUBJECT"}
    | {"BNODE", "RAND", "STRUUID", "UUID", "MD5", "SHA1", "SHA256", "SHA384", "SHA512"}
    | {"STRDT", "STRLANG", "STRLANGDIR"}
)


# Those that make geometries can double them, as CONCAT does texts, or take long for a small one.
_TAME_OF_GEOMETRY = frozenset(
    GEOF + name
    for name in (
        *(*RELATIONS, "relate", "distance", "metricDistance", "envelope", "getSRID", "geometryType"),
        *("dimension", "coordinateDimension", "spatialDimension", "isEmpty", "is3D", "isMeasured"),
        *("numGeometries", "minX", "maxX", "minY", "maxY", "minZ", "maxZ"),
        *("area", "length", "perimeter", "metricArea", "metricLength", "metricPerimeter"),
    )
)
_CHARACTERS = 64  # of a literal, that cost as much as an operator


def cost_of(*expressions: Any) -> int:
    """How many calls, operators and operands there are, tame ones; long literals count as many. What calls
    with geometries cost beside is for `graphdb.geo.call_costs`.
    """
    return sum(map(_cost, nodes_below(*expressions)))


def _cost(node: Any) -> int:
    match node:
        case RdfLiteral(value=value):
            return 1 + len(value) // _CHARACTERS
        case _:
            return 1


def are_tame(*expressions: Any) -> bool:
    """Whether none has a subquery, calls a function of another's, or can make its operands grow."""
    for node in nodes_below(*expressions):
        match node:
            case Exists():
                return False
            case BuiltInCall(name=name) if name not in _TAME:
                return False
            case Aggregate(name="GROUP_CONCAT"):
                return False
            case Aggregate(name=name) if name.startswith(GEOF):
                return False
            case FunctionCall(function=function) if not (
                function.value.startswith(_XSD) or function.value in _TAME_OF_GEOMETRY
            ):
                return False
    return True
