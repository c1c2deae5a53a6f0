"""GeoSPARQL's functions for the engine: its custom_functions and custom_aggregate_functions.

Importing this module is cheap. The libraries for geometries are imported when a function is first called.
They are native code that nothing can interrupt, and some arguments take minutes. So a query with such a
function has to run in a process that can be killed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.errors import RequestError
from graphdb.geometry.geosparql_names import AGGREGATES as _AGGREGATES
from graphdb.geometry.geosparql_names import GEOF, RELATIONS, SIGNATURES

if TYPE_CHECKING:
    from pyoxigraph import AggregateFunctionAccumulator

__all__ = ["AGGREGATES", "FUNCTIONS", "Accumulator", "Term"]

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple


def _function(name: str) -> Callable[..., Term | None]:
    def function(*terms: Term) -> Term | None:
        from graphdb.geometry.calls import call

        try:
            return call(name, terms)
        except RequestError:
            return None

    return function


def _remembering(function: Callable[..., Term | None]) -> Callable[..., Term | None]:
    """The function with its last result kept: the engine repeats a call with constants for each solution."""
    last: tuple[tuple[Term, ...], Term | None] | None = None

    def remembering(*terms: Term) -> Term | None:
        nonlocal last
        known = last
        if known is None or known[0] != terms:
            last = known = terms, function(*terms)
        return known[1]

    return remembering


class Accumulator:
    """The geometries of one group, for the engine. If one cannot be read, the result is an error (None)."""

    def __init__(self, name: str) -> None:
        from graphdb.geometry.calls import Group

        self._name = name
        self._group: Group | None = Group()

    def accumulate(self, element: Term) -> None:
        from graphdb.geometry.geometry import read_geometry

        if self._group is None:
            return
        try:
            if not isinstance(element, Literal):
                self._group = None
            else:
                self._group.add(read_geometry(element))
        except RequestError:
            self._group = None

    def finish(self) -> Literal | None:
        from graphdb.geometry.calls import AGGREGATES
        from graphdb.geometry.geometry import write_geometry

        together = None if self._group is None else self._group.together()
        try:
            return None if together is None else write_geometry(AGGREGATES[self._name](together))
        except RequestError:
            return None


def _aggregate(name: str) -> "Callable[[], AggregateFunctionAccumulator]":
    return lambda: Accumulator(name)


FUNCTIONS: dict[NamedNode, Callable[..., Term | None]] = {
    NamedNode(GEOF + name): _function(name) if name in RELATIONS else _remembering(_function(name))
    for name in SIGNATURES
}
"""Each returns None for an error of SPARQL. It is a dict because the engine requires one; never change it."""

AGGREGATES: "dict[NamedNode, Callable[[], AggregateFunctionAccumulator]]" = {
    NamedNode(GEOF + name): _aggregate(name) for name in _AGGREGATES
}
"""Each makes an accumulator for one group. An empty group has no result."""
