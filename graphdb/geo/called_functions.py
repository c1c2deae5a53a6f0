"""Calls of GeoSPARQL's functions in a request: whether there are any, and such functions at all."""

import sys
from difflib import get_close_matches
from typing import Any

from graphdb.errors import InvalidParameter, UnknownFunction
from graphdb.geo.derived_triples import is_derived
from graphdb.geo.signatures import AGGREGATES, SIGNATURES
from graphdb.geo.vocabulary import GEOF
from graphdb.sparql.lexer import fault
from graphdb.sparql.patterns import Aggregate, FunctionCall, TriplesBlock
from graphdb.sparql.syntax import Query, Update
from graphdb.sparql.terms import Iri
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["are_loaded", "calls_functions", "check_calls", "load"]


def are_loaded() -> bool:
    """Whether this process has loaded what the functions need."""
    return "graphdb.geo.implementations" in sys.modules


def load() -> None:
    """Load it; that takes a fifth of a second."""
    import graphdb.geo.calls  # noqa: F401 for what it brings with it


def calls_functions(root: Any) -> bool:
    """Whether evaluating a tree calls any: one that stands in it, or that is behind a topology property."""
    for node in nodes_below(root):
        match node:
            case FunctionCall(function=Iri(value=name)) | Aggregate(name=name) if name.startswith(GEOF):
                return True
            case TriplesBlock(triples=triples) if any(map(is_derived, triples)):
                return True
    return False


def check_calls(request: Query | Update) -> None:
    """Refuse a call that no arguments could give a value.

    Raises UnknownFunction, and InvalidParameter for a wrong number of arguments. What the arguments are, if
    only constants, is no matter here: one that is no geometry is an error of the expression, as SPARQL has it
    (section 17.3), which COALESCE may catch.
    """
    operations = (request,) if isinstance(request, Query) else request.operations
    for node in nodes_below(*operations):
        if isinstance(node, FunctionCall) and node.function.value.startswith(GEOF):
            _check(node, request.text)


def _check(call: FunctionCall, text: str) -> None:
    name = call.function.value.removeprefix(GEOF)
    where = _place(text, call.span.start)
    signature = SIGNATURES.get(name)
    if signature is None:
        near = get_close_matches(name, (*SIGNATURES, *AGGREGATES), 1)
        raise UnknownFunction(f"geof:{name}", where + (f"; there is geof:{near[0]}" if near else ""))
    if not signature.takes(len(call.arguments)):
        reason = f"takes {signature}, and has {len(call.arguments)} {where}"
        raise InvalidParameter(f"geof:{name}", reason)


def _place(text: str, start: int) -> str:
    place = fault("", text, start)
    return f"at line {place.line}, column {place.column}"
