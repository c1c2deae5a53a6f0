"""Calls of GeoSPARQL's functions in a request: whether there are any, and whether those of constants mean
something.
"""

import sys
from difflib import get_close_matches
from typing import Any

from graphdb.errors import BadGeometry, InvalidParameter, UnknownFunction
from graphdb.geo.derived_triples import is_derived
from graphdb.geo.signatures import AGGREGATES, SIGNATURES, Kind
from graphdb.geo.vocabulary import GEOF
from graphdb.sparql.lexer import fault
from graphdb.sparql.patterns import Aggregate, FunctionCall, TriplesBlock
from graphdb.sparql.syntax import Query, Update
from graphdb.sparql.terms import Iri, RdfLiteral
from graphdb.sparql.tree_walk import nodes_below
from graphdb.sparql.writing import literal_of

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
    """Refuse a call that could have no value whatever the data are.

    Raises UnknownFunction; InvalidParameter for a wrong number of arguments and for a constant that is no
    unit or reference system; BadGeometry, LimitExceeded for one that is no geometry.
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
    for kind, argument in zip(signature.parameters, call.arguments, strict=False):
        if isinstance(argument, RdfLiteral | Iri):
            _check_constant(name, kind, argument, where)


def _check_constant(name: str, kind: Kind, constant: RdfLiteral | Iri, where: str) -> None:
    # at the top, every process that parses would load the libraries behind these
    from graphdb.geo.geometry import read_geometry
    from graphdb.geo.reference_systems import reference_system
    from graphdb.geo.units import unit

    try:
        match kind, constant:
            case Kind.GEOMETRY, RdfLiteral():
                read_geometry(literal_of(constant))
            case Kind.UNIT, Iri(value=value):
                unit(value)
            case Kind.SYSTEM, Iri(value=value):
                reference_system(value)
    except BadGeometry as error:
        raise BadGeometry(f"geof:{name} {where}: {error}") from None
    except InvalidParameter as error:
        raise InvalidParameter(f"geof:{name} {where}", str(error)) from None


def _place(text: str, start: int) -> str:
    place = fault("", text, start)
    return f"at line {place.line}, column {place.column}"
