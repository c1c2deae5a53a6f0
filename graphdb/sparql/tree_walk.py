"""Walking and rewriting a syntax tree or algebra without knowing its classes, however deep it is."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from operator import is_
from typing import Any

from graphdb.sparql import algebra
from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.patterns import Aggregate, InlineData, ServicePattern, TriplePattern, TriplesBlock
from graphdb.sparql.syntax import DatasetClause, Prologue
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, TripleTerm, Variable

__all__ = [
    "all_below",
    "all_parts_of",
    "all_rewritten",
    "expression_nodes",
    "has_aggregate",
    "nodes_below",
    "nodes_of",
    "parts_of",
    "renamed",
    "rewritten",
    "rewritten_expression",
]

# What SERVICE holds is another engine's to read. The others have no pattern or expression below them.
_LEAVES = frozenset(
    {
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
        algebra.Bgp,
        algebra.Path,
        algebra.Service,
        algebra.TextSearch,
        algebra.Values,
    }
)


_SIMPLE_TERMS = frozenset({BlankNodeLabel, Iri, RdfLiteral, Variable})  # hold no other nodes


def parts_of(node: Any) -> list[Any]:
    """The patterns, clauses and expressions right below one, in the order of the tree's fields."""
    return [] if type(node) in _LEAVES else all_parts_of(node)


def all_parts_of(node: Any) -> list[Any]:
    """As parts_of, with triples and terms, and what SERVICE holds."""
    found: list[Any] = []
    for name in _fields(node.__class__) or ():
        value = getattr(node, name)
        if type(value) is tuple:
            _gather(value, found)
        elif _fields(value.__class__) is not None:
            found.append(value)
    return found


def nodes_below(*roots: Any) -> Iterator[Any]:
    """The roots and all nodes below them, each before what is below it."""
    return _below(parts_of, roots)


def nodes_of(asked: AbstractQuery) -> tuple[Any, ...]:
    """As nodes_below, of the pattern of a whole query: found once and kept with it."""
    found: tuple[Any, ...] | None = getattr(asked, "nodes", None)
    if found is None:
        found = tuple(nodes_below(asked.pattern))
        object.__setattr__(asked, "nodes", found)
    return found


def all_below(*roots: Any) -> Iterator[Any]:
    """As nodes_below, along `all_parts_of`."""
    return _below(all_parts_of, roots)


def expression_nodes(root: Any) -> Iterator[Any]:
    """An expression and all nodes below it, but for the patterns of EXISTS."""
    return _below(_parts_of_expression, (root,))


def has_aggregate(*roots: Any) -> bool:
    """Whether one of the roots, or a node below them, is an aggregate."""
    return any(isinstance(node, Aggregate) for node in nodes_below(*roots))


def rewritten(root: Any, change: Callable[[Any], Any]) -> Any:
    """A tree with change done to each of its nodes, after what is below it; see `nodes_below`."""
    return _rewritten(root, change, parts_of)


def rewritten_expression(root: Any, change: Callable[[Any], Any]) -> Any:
    """As rewritten, but for the patterns that stand in an expression."""
    return _rewritten(root, change, _parts_of_expression)


def all_rewritten(root: Any, change: Callable[[Any], Any]) -> Any:
    """As rewritten, with triples and terms; see `all_below`."""
    return _rewritten(root, change, all_parts_of)


def renamed(root: Any, names: Mapping[Any, Any]) -> Any:
    """A tree with other terms in the place of some variables or blank nodes, wherever they stand."""

    def change(node: Any) -> Any:
        return names.get(node, node) if isinstance(node, Variable | BlankNodeLabel) else node

    return all_rewritten(root, change)


def _rewritten(root: Any, change: Callable[[Any], Any], parts: Callable[[Any], list[Any]]) -> Any:
    made: dict[int, Any] = {}
    for node in reversed(list(_below(parts, (root,)))):
        made[id(node)] = change(_rebuilt(node, made))
    return made[id(root)]


def _rebuilt(node: Any, made: Mapping[int, Any]) -> Any:
    """A node with what was made of its parts; itself where all are as they were."""
    others = {}
    for name in _fields(node.__class__) or ():
        value = getattr(node, name)
        other = _replaced(value, made)
        if other is not value:
            others[name] = other
    return replace(node, **others) if others else node


def _replaced(value: Any, made: Mapping[int, Any]) -> Any:
    if type(value) is tuple:
        others = tuple([_replaced(part, made) for part in value])
        return value if all(map(is_, value, others)) else others
    return value if _fields(value.__class__) is None else made.get(id(value), value)


def _below(parts: Callable[[Any], list[Any]], roots: tuple[Any, ...]) -> Iterator[Any]:
    waiting = list(roots)  # trees may be deeper than Python calls
    while waiting:
        node = waiting.pop()
        yield node
        waiting += parts(node)


def _parts_of_expression(node: Any) -> list[Any]:
    return [] if isinstance(node, algebra.Exists) else parts_of(node)


def _gather(value: Any, found: list[Any]) -> None:
    """The nodes that a field holds: one, or several in a tuple, or beside an operator in a tuple of those."""
    if type(value) is tuple:
        for part in value:
            _gather(part, found)
    elif _fields(value.__class__) is not None:
        found.append(value)


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of the fields in which a node of this class may hold others; None of what is no node."""
    if not is_dataclass(kind):
        return None
    if kind in _SIMPLE_TERMS:
        return ()
    return tuple([name for name in kind.__dataclass_fields__ if name != "span"])
