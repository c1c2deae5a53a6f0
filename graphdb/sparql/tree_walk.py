"""Walking a syntax tree without knowing its classes."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

from graphdb.sparql.patterns import Aggregate, InlineData, ServicePattern, TriplePattern, TriplesBlock
from graphdb.sparql.syntax import DatasetClause, Prologue
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, TripleTerm, Variable

__all__ = ["has_aggregate", "nodes_below", "parts_of"]

# What SERVICE holds is another engine's to read. The others have no pattern or expression below them.
_LEAVES = (
    BlankNodeLabel,
    DatasetClause,
    InlineData,
    Iri,
    Prologue,
    RdfLiteral,
    ServicePattern,
    TriplePattern,
    TripleTerm,
    TriplesBlock,
    Variable,
)


def parts_of(node: Any) -> Iterator[Any]:
    """The patterns, clauses and expressions right below one, in the order of the tree's fields."""
    if isinstance(node, _LEAVES):
        return
    for name in node.__dataclass_fields__:
        yield from _nodes_in(getattr(node, name))


def nodes_below(*roots: Any) -> Iterator[Any]:
    """The roots and all nodes below them, each before what is below it."""
    waiting = list(roots)  # trees may be deeper than Python calls
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(parts_of(node))


def has_aggregate(*roots: Any) -> bool:
    """Whether one of the roots, or a node below them, is an aggregate."""
    return any(isinstance(node, Aggregate) for node in nodes_below(*roots))


def _nodes_in(value: Any) -> Iterator[Any]:
    """The nodes that a field holds: one, or several in a tuple, or beside an operator in a tuple of those."""
    if type(value) is tuple:
        for part in value:
            yield from _nodes_in(part)
    elif is_dataclass(value):
        yield value
