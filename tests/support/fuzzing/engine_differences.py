"""What SPARQL 1.2 allows and pyoxigraph refuses: the classes of queries that get 400 for that."""

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any

from pyoxigraph import Literal

from graphdb.sparql.lexer import tokens
from graphdb.sparql.patterns import (
    Aggregate,
    FunctionCall,
    NegatedPropertySet,
    SelectClause,
    SolutionModifiers,
)
from graphdb.sparql.syntax import Query, Update
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import RdfLiteral, TripleTerm, Variable

__all__ = ["why_refused"]


def why_refused(request: Query | Update) -> str | None:
    """The class of a request that the engine does not read though SPARQL allows it; None if it is of none."""
    return next((reason for reason, holds in DIFFERENCES.items() if holds(request)), None)


def _nodes(root: Any) -> Iterator[Any]:
    """Every dataclass of a tree, terms too."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if is_dataclass(node):
            yield node
            waiting.extend(getattr(node, name) for name in node.__dataclass_fields__)
        elif type(node) is tuple:
            waiting.extend(node)


def _holds(kind: type, condition: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda root: any(isinstance(node, kind) and condition(node) for node in _nodes(root))


def _has_name_beyond_ffff(request: Query | Update) -> bool:
    if request.text.isascii():
        return False
    named = (each for each in tokens(load_tables(), request.text) if each.terminal in NAMES)
    return any(max(token.text) > "\uffff" for token in named)


def _is_no_language(literal: RdfLiteral) -> bool:
    if literal.language is None:
        return False
    try:
        Literal("", language=literal.language)
    except ValueError:
        return True
    return False


def _names_a_column_twice(clause: SelectClause) -> bool:
    names = [projection.variable.name for projection in clause.projections or ()]
    return len(set(names)) < len(names)


def _uses_a_column_beside_an_aggregate(clause: SelectClause) -> bool:
    columns: set[str] = set()
    for projection in clause.projections or ():
        names = {node.name for node in _nodes(projection.expression) if isinstance(node, Variable)}
        if names & columns:
            return _has_aggregate(clause)
        columns.add(projection.variable.name)
    return False


def _describes_a_variable_twice(request: Query | Update) -> bool:
    described = (request.described or ()) if isinstance(request, Query) else ()
    return len(set(described)) < len(described)


NAMES = ("VAR1", "VAR2", "PNAME_LN", "PNAME_NS", "BLANK_NODE_LABEL")

_has_term_within_a_term = _holds(
    TripleTerm, lambda term: TripleTerm in (type(term.subject), type(term.object))
)
_has_aggregate = _holds(Aggregate, lambda _: True)

DIFFERENCES: dict[str, Callable[[Any], bool]] = {
    "annotations beside triple terms within each other": lambda request: (
        "~" in request.text and _has_term_within_a_term(request)
    ),
    "names with characters beyond U+FFFF": _has_name_beyond_ffff,
    "language tags that BCP 47 does not know": _holds(RdfLiteral, _is_no_language),
    "DISTINCT arguments of a function": _holds(FunctionCall, lambda call: call.distinct),
    "the empty set of properties, !()": _holds(NegatedPropertySet, lambda path: not path.members),
    "a column named twice": _holds(SelectClause, _names_a_column_twice),
    "a column, in an expression beside aggregates": _holds(SelectClause, _uses_a_column_beside_an_aggregate),
    "a variable described twice": _describes_a_variable_twice,
    "groups without SELECT": lambda request: (
        isinstance(request, Query)
        and request.form != "SELECT"
        and bool(request.modifiers.group_by or request.modifiers.having)
    ),
    "an aggregate in HAVING": _holds(
        SolutionModifiers, lambda modifiers: any(map(_has_aggregate, modifiers.having))
    ),
}
