"""GeoSPARQL's functions for the engine: what to give it as custom_functions and custom_aggregate_functions.

Importing this module is cheap; the libraries for geometries are imported when a function is first called.
They are native code that nothing can interrupt, and that takes minutes for some arguments: a query with such
a function belongs into a process that can be killed.
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
    """With its last answer: the engine makes a call of constants anew for each solution."""
    last: tuple[tuple[Term, ...], Term | None] | None = None

    def remembering(*terms: Term) -> Term | None:
        nonlocal last
        known = last
        if known is None or known[0] != terms:
            last = known = terms, function(*terms)
        return known[1]

    return remembering


class Accumulator:
    """The geometries of one group, for the engine. What cannot be read makes the result an error (None)."""

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
"""Each answers None where SPARQL has an error. The engine takes nothing but a dict; nobody changes it."""

AGGREGATES: "dict[NamedNode, Callable[[], AggregateFunctionAccumulator]]" = {
    NamedNode(GEOF + name): _aggregate(name) for name in _AGGREGATES
}
"""Each makes what gathers one group; an empty group has no result."""
