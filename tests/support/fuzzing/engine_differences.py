"""What SPARQL 1.2 allows and pyoxigraph refuses: the classes of queries that get 400 for that."""

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any

from pyoxigraph import Literal

from graphdb.sparql.lexer import tokens
from graphdb.sparql.patterns import FunctionCall
from graphdb.sparql.syntax import Query, Update
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import RdfLiteral, TripleTerm
from graphdb.sparql.translation import columns_of, searches_of

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


def _shows_name_beyond_ffff(request: Query | Update) -> bool:
    """Or names one elsewhere, in an update or beside a search."""
    if request.text.isascii():
        return False
    if isinstance(request, Query) and not searches_of(request):
        return any(max(name) > "\uffff" for name in columns_of(request))
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


NAMES = ("VAR1", "VAR2", "PNAME_LN", "PNAME_NS", "BLANK_NODE_LABEL")

_has_term_within_a_term = _holds(
    TripleTerm, lambda term: TripleTerm in (type(term.subject), type(term.object))
)

DIFFERENCES: dict[str, Callable[[Any], bool]] = {
    # the engine's parser gives the reifier a place from which it cannot be written
    "annotations beside triple terms within each other": lambda request: (
        "~" in request.text and _has_term_within_a_term(request)
    ),
    # the engine writes the head of an answer, and its grammar ends there; elsewhere others stand in
    "columns whose names have characters beyond U+FFFF": _shows_name_beyond_ffff,
    # no term of the engine can have one, and RDF 1.2 has none: a language tag is well-formed by BCP 47
    "language tags that BCP 47 does not know": _holds(RdfLiteral, _is_no_language),
    # to SPARQL that is a custom aggregate, and the engine has only those that it is given
    "DISTINCT arguments of a function": _holds(FunctionCall, lambda call: call.distinct),
}
