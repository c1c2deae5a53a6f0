"""Which variables the parts of a graph pattern bring into scope (SPARQL 1.1, section 18.2.1)."""

from collections.abc import Iterable, Iterator
from typing import Any

from graphdb.sparql.patterns import (
    Bind,
    GraphPattern,
    GroupGraphPattern,
    InlineData,
    OptionalPattern,
    PatternElement,
    ServicePattern,
    SubSelect,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
)
from graphdb.sparql.terms import TripleTerm, Variable

__all__ = ["variables_of_element", "variables_of_triples"]


def variables_of_triples(triples: Iterable[TriplePattern]) -> Iterator[str]:
    """The names of all variables in the triples, in triple terms too, repeated as they are."""
    for triple in triples:
        waiting: list[Any] = [triple.subject, triple.predicate, triple.object]
        while waiting:
            term = waiting.pop()
            if isinstance(term, Variable):
                yield term.name
            elif isinstance(term, TripleTerm):
                waiting.extend((term.subject, term.predicate, term.object))


def variables_of_element(element: PatternElement) -> Iterable[str]:
    """What one element of a group brings into scope, in no order."""
    match element:
        case TriplesBlock():
            return variables_of_triples(element.triples)
        case GroupGraphPattern() | SubSelect():
            return element.variables
        case UnionPattern():
            return (name for branch in element.branches for name in branch.variables)
        case OptionalPattern():
            return element.pattern.variables
        case GraphPattern(name=name) | ServicePattern(endpoint=name):
            own = {name.name} if isinstance(name, Variable) else set()
            return element.pattern.variables | own
        case InlineData():
            return (variable.name for variable in element.variables)
        case Bind():
            return (element.variable.name,)
        case _:  # FILTER and MINUS bring nothing
            return ()
