"""What calls of bounded functions with geometries cost, told from texts that nothing has read yet.

That is for where nothing limits an evaluation, as on an event loop. Two lines of 500 vertices can cross each
other in as many places as they have pairs of edges. A distance over the ellipsoid can take half a minute
between two texts of 500 characters, so only one between points is ever taken for short.
"""

import re
from typing import Any, Final

from graphdb.geo.vocabulary import GEOF
from graphdb.sparql.patterns import FunctionCall
from graphdb.sparql.terms import RdfLiteral
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["READING_MAX", "CallCosts", "characters_to_read", "vertices_of"]

READING_MAX: Final = 2 << 20
"""Characters that may be read on a thread: GEOS keeps everything else in the process waiting meanwhile, two
tenths of a second.
"""

# Of literals that are read at once. Others may be curves, which are drawn with many edges, or in reference
# systems that PROJ has to look up; in XML they may be either.
_SYSTEM: Final = re.compile(r"\s*<http://www\.opengis\.net/def/crs/(?:OGC/1\.3/CRS84|EPSG/0/4326)>")
_SLOW: Final = re.compile(r"<|CURVE|CIRCULAR", re.IGNORECASE)
_CURVED: Final = re.compile("CURVE|CIRC|ARC", re.IGNORECASE)
_CHARACTERS_OF_CURVES: Final = 16  # take as long as one of straight edges
_DISTANCES: Final = (GEOF + "distance", GEOF + "metricDistance")
_CALL: Final = 12  # with points, in operators
_PAIRS_AN_OPERATOR: Final = 2  # of vertices, each of another line
_VERTICES_AN_OPERATOR: Final = 16  # beside a point


def vertices_of(text: str) -> int | None:
    """At most so many vertices has the geometry that a text is read as; None where reading may be slow."""
    found = _SYSTEM.match(text)
    if _SLOW.search(text, found.end() if found else 0):
        return None
    return max(text.count(","), text.count("[")) + 1


def characters_to_read(text: str) -> int:
    """How long a text is; one with curves in it counts as the much longer one that takes as long to read."""
    return len(text) * (_CHARACTERS_OF_CURVES if _CURVED.search(text) else 1)


class CallCosts:
    """Of the calls in some expressions."""

    def __init__(self) -> None:
        self._calls = 0
        self._measures = self._is_slow = False
        self._constants: list[int] = []  # their vertices

    def __bool__(self) -> bool:
        """Whether there are any."""
        return self._calls > 0

    def count(self, *expressions: Any) -> None:
        """Count in what is called in expressions. Any text in them may become a geometry."""
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
        """Count in those of other expressions."""
        self._calls += others._calls
        self._measures |= others._measures
        self._is_slow |= others._is_slow
        self._constants += others._constants

    def for_each(self, vertices: int) -> int | None:
        """What they cost for a solution, in operators, where no value has more vertices; None: too much."""
        second, first = sorted([*self._constants, vertices, vertices])[-2:]
        if self._is_slow or (self._measures and first > 1):
            return None
        pairs = first * second
        return self._calls * (
            _CALL + (pairs // _VERTICES_AN_OPERATOR if second == 1 else pairs // _PAIRS_AN_OPERATOR)
        )
