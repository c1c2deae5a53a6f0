"""Calls of GeoSPARQL's functions in a request: whether they exist, and what they cost.

Costs are estimated from texts that nothing has read yet. They are for where nothing limits an evaluation, as
on an event loop. Two lines of 500 vertices can cross in as many places as they have pairs of edges. A
distance over the ellipsoid can take half a minute between two texts of 500 characters, so only one between
points is ever taken for short.
"""

import re
import sys
from difflib import get_close_matches
from typing import Any, Final

from graphdb.errors import InvalidParameter, UnknownFunction
from graphdb.geo.entailment import is_derived
from graphdb.geometry.geosparql_names import AGGREGATES, GEOF, SIGNATURES
from graphdb.sparql.lexer import fault
from graphdb.sparql.patterns import Aggregate, FunctionCall, TriplesBlock
from graphdb.sparql.syntax import Query, Update
from graphdb.sparql.terms import Iri, RdfLiteral
from graphdb.sparql.tree_walk import nodes_below

__all__ = [
    "READING_MAX",
    "CallCosts",
    "are_loaded",
    "calls_functions",
    "characters_to_read",
    "check_calls",
    "load",
    "vertices_of",
]


def are_loaded() -> bool:
    """Whether this process has loaded the libraries for geometries."""
    return "graphdb.geometry.calls" in sys.modules


def load() -> None:
    """Load the libraries for geometries, which takes a fifth of a second."""
    import graphdb.geometry.calls  # noqa: F401 for what it brings with it


def calls_functions(root: Any) -> bool:
    """Whether evaluating a tree calls functions: in expressions, or for a topology property."""
    for node in nodes_below(root):
        match node:
            case FunctionCall(function=Iri(value=name)) | Aggregate(name=name) if name.startswith(GEOF):
                return True
            case TriplesBlock(triples=triples) if any(map(is_derived, triples)):
                return True
    return False


def check_calls(request: Query | Update) -> None:
    """Refuse calls that cannot have a value, whatever their arguments are.

    Raises UnknownFunction, and InvalidParameter for a wrong number of arguments. The arguments themselves are
    not checked, even if they are constants: one that is not a geometry is an error of the expression (SPARQL,
    section 17.3), which COALESCE may catch.
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


READING_MAX: Final = 2 << 20
"""The most characters that may be read on a thread: GEOS blocks all others, for two tenths of a second."""

# Literals in these systems are read quickly. Others may be curves, which get many edges, or in reference
# systems that PROJ has to look up. In XML they may be both.
_SYSTEM: Final = re.compile(r"\s*<http://www\.opengis\.net/def/crs/(?:OGC/1\.3/CRS84|EPSG/0/4326)>")
_SLOW: Final = re.compile(r"<|CURVE|CIRCULAR", re.IGNORECASE)
_CURVED: Final = re.compile("CURVE|CIRC|ARC", re.IGNORECASE)
_CHARACTERS_OF_CURVES: Final = 16  # without curves take as long to read as one with
_DISTANCES: Final = (GEOF + "distance", GEOF + "metricDistance")
_CALL: Final = 12  # with points, in operators
_PAIRS_AN_OPERATOR: Final = 2  # of vertices, each of another line
_VERTICES_AN_OPERATOR: Final = 16  # beside a point


def vertices_of(text: str) -> int | None:
    """An upper bound of the vertices of a geometry, from its text; None if reading it may be slow."""
    found = _SYSTEM.match(text)
    if _SLOW.search(text, found.end() if found else 0):
        return None
    return max(text.count(","), text.count("[")) + 1


def characters_to_read(text: str) -> int:
    """The length of a text. With curves it counts as a longer text without, which takes as long to read."""
    return len(text) * (_CHARACTERS_OF_CURVES if _CURVED.search(text) else 1)


class CallCosts:
    """The cost of the calls in some expressions."""

    def __init__(self) -> None:
        self._calls = 0
        self._measures = self._is_slow = False
        self._constants: list[int] = []  # their vertices

    def __bool__(self) -> bool:
        """Whether there are any calls."""
        return self._calls > 0

    def count(self, *expressions: Any) -> None:
        """Add the calls in expressions. Any text in them may become a geometry."""
        for node in nodes_below(*expressions):
            match node:
                case FunctionCall(function=function) if function.value.startswith(GEOF):
                    self._calls += 1
                    self._measures |= function.value in _DISTANCES
                case RdfLiteral(value=value):
                    self._constant(value)

    def _constant(self, text: str) -> None:
        vertices = vertices_of(text)
        if vertices is None:
            self._is_slow = True
        else:
            self._constants.append(vertices)

    def add(self, others: "CallCosts") -> None:
        """Add the calls of other expressions."""
        self._calls += others._calls
        self._measures |= others._measures
        self._is_slow |= others._is_slow
        self._constants += others._constants

    def for_each(self, vertices: int) -> int | None:
        """The cost for one solution, in operators, if no value has more vertices; None if it is too high."""
        second, first = sorted([*self._constants, vertices, vertices])[-2:]
        if self._is_slow or (self._measures and first > 1):
            return None
        pairs = first * second
        return self._calls * (
            _CALL + (pairs // _VERTICES_AN_OPERATOR if second == 1 else pairs // _PAIRS_AN_OPERATOR)
        )
