"""`EngineFunctions`: functions in Python that queries of one validation call, where text says it badly."""

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode

from graphdb.shacl.vocabulary import Term

__all__ = ["EngineFunctions"]

_Function: TypeAlias = Callable[..., Term | None]


class EngineFunctions:
    """They stay as long as this object. A call costs the engine about three microseconds."""

    def __init__(self) -> None:
        self._functions: dict[NamedNode, _Function] = {}
        self._numbers = count()

    @property
    def by_name(self) -> Mapping[NamedNode, _Function]:
        """As the engine wants them."""
        return self._functions

    def membership(self, members: Collection[Term]) -> NamedNode:
        """A function that says whether its argument is one of these, which must be quick to ask."""
        return self._named(lambda term: Literal(term in members))

    def indexing(self, terms: tuple[Term, ...]) -> NamedNode:
        """A function that gives the term with this number, from 0 on."""

        def nth(number: Literal) -> Term:
            return terms[int(number.value)]

        return self._named(nth)

    def include(self, functions: Mapping[NamedNode, _Function]) -> None:
        """Take in functions that have names already."""
        self._functions.update(functions)

    def _named(self, function: _Function) -> NamedNode:
        name = NamedNode(f"urn:graphdb:shacl:function:{next(self._numbers)}")
        self._functions[name] = function
        return name
