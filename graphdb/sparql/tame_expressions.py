"""Which expressions take no more time and room than what they are given, however often they are nested."""

from typing import Any

from graphdb.sparql.patterns import Aggregate, BuiltInCall, Exists, FunctionCall
from graphdb.sparql.tree_walk import parts_of

__all__ = ["are_tame"]

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


def are_tame(*expressions: Any) -> bool:
    """Whether none has a subquery, calls a function of another's, or can make its operands grow."""
    waiting = list(expressions)  # expressions may be nested more deeply than Python calls
    while waiting:
        node = waiting.pop()
        match node:
            case Exists():
                return False
            case BuiltInCall(name=name) if name not in _TAME:
                return False
            case Aggregate(name="GROUP_CONCAT"):
                return False
            case FunctionCall(function=function) if not function.value.startswith(_XSD):
                return False
        waiting.extend(parts_of(node))
    return True
