"""Which changes of the graph a SELECT can notice, and whether its documents depend on one resource each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphdb.geo.entailment import READ_PROPERTIES, is_derived
from graphdb.sparql.patterns import (
    Aggregate,
    Bind,
    Exists,
    Filter,
    GraphPattern,
    GroupGraphPattern,
    InlineData,
    OptionalPattern,
    RepeatedPath,
    SubSelect,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Iri, TripleTerm, Variable
from graphdb.sparql.tree_walk import parts_of

__all__ = ["Reach", "reach_of"]

_STAR_PATTERNS = (
    TriplesBlock,
    GroupGraphPattern,
    OptionalPattern,
    UnionPattern,
    GraphPattern,
    Filter,
    Bind,
    InlineData,
)


@dataclass(frozen=True, slots=True)
class Reach:
    """predicates: of quads that can matter, None: any. is_star: what the query says of a resource depends on
    nothing but the quads whose subject it is.
    """

    predicates: frozenset[str] | None
    is_star: bool


def reach_of(query: Query, id_name: str) -> Reach:
    """id_name: the variable that names the document."""
    assert query.where is not None
    return Reach(_predicates(query), _is_star(query, id_name))


def _nodes(root: Any) -> Iterator[Any]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += parts_of(node)


def _predicates(query: Query) -> frozenset[str] | None:
    predicates: set[str] = set()
    for node in _nodes(query):
        if isinstance(node, TriplesBlock):
            for triple in node.triples:
                found = _of_path(triple.predicate)
                if found is None:
                    return None
                predicates |= found
                if is_derived(triple):
                    predicates.update(READ_PROPERTIES)
    return frozenset(predicates)


def _of_path(path: Any) -> set[str] | None:
    """None: any predicate, or a path that may have no length, which every term of the graph has."""
    found: set[str] = set()
    for node in _nodes(path):
        if isinstance(node, Iri):
            found.add(node.value)
        elif not type(node).__name__.endswith("Path") or (
            isinstance(node, RepeatedPath) and node.modifier != "+"
        ):
            return None
    return found


def _is_star(query: Query, id_name: str) -> bool:
    modifiers = query.modifiers
    cut = modifiers.limit is not None or modifiers.offset is not None
    if modifiers.group_by or modifiers.having or cut or query.values is not None:
        return False
    assert query.select is not None
    for projection in query.select.projections or ():
        if projection.expression is not None and not (
            projection.variable.name != id_name and _is_plain(projection.expression)
        ):
            return False
    return _is_star_group(query.where, id_name) and _binds(query.where, id_name)


def _is_star_group(group: Any, id_name: str) -> bool:
    pending: list[Any] = [group]
    while pending:
        node = pending.pop()
        if not isinstance(node, _STAR_PATTERNS):
            return False
        if isinstance(node, TriplesBlock):
            if not all(_is_of(triple, id_name) for triple in node.triples):
                return False
        elif isinstance(node, Filter | Bind):
            if not _is_plain(node.expression) or (isinstance(node, Bind) and node.variable.name == id_name):
                return False
        elif isinstance(node, GroupGraphPattern):
            pending += node.elements
        elif isinstance(node, UnionPattern):
            pending += node.branches
        elif isinstance(node, OptionalPattern | GraphPattern):
            pending.append(node.pattern)
    return True


def _is_of(triple: TriplePattern, id_name: str) -> bool:
    subject, predicate = triple.subject, triple.predicate
    is_subject = isinstance(subject, Variable) and subject.name == id_name and not is_derived(triple)
    plain = isinstance(predicate, Iri | Variable) and not isinstance(triple.object, TripleTerm)
    return is_subject and plain


def _is_plain(expression: Any) -> bool:
    """Whether it looks at nothing but its solution."""
    return not any(isinstance(node, Exists | Aggregate | SubSelect) for node in _nodes(expression))


def _binds(group: GroupGraphPattern | None, id_name: str) -> bool:
    """Whether some pattern that every solution has binds the variable."""
    assert group is not None
    return any(
        isinstance(element, TriplesBlock) and any(_is_of(triple, id_name) for triple in element.triples)
        for element in group.elements
    )
