"""Property paths whose solutions the engine counts otherwise than SPARQL 1.2 (section 18.2.2.5) says.

To the engine an alternative has no duplicates, and neither has a negated property set between two ends that
are bound already. By the specification they are unions of what their members match:

    ?s (:p|:q) ?o        { ?s :p ?o } UNION { ?s :q ?o }
    ?s !(:p|^:q) ?o      { ?s ?a ?o FILTER(?a != :p) } UNION { ?o ?b ?s FILTER(?b != :q) }

What stands below `*`, `+` and `?` is left as it is, for these have no duplicates.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any

from graphdb.sparql.algebra import Algebra, Bgp, Filter, Path, Union, join
from graphdb.sparql.patterns import (
    Aggregate,
    AlternativePath,
    Comparison,
    In,
    InversePath,
    NegatedPropertySet,
    SequencePath,
    TriplePattern,
)
from graphdb.sparql.terms import BlankNodeLabel, Iri, Variable
from graphdb.sparql.translation import FreshNames
from graphdb.sparql.tree_walk import all_below, nodes_below, renamed, rewritten

__all__ = ["needs_unions", "with_unions"]


def needs_unions(node: Any) -> bool:
    """Whether a node is a path with what is to become a union."""
    return isinstance(node, Path) and _branches(node.predicate)


def with_unions(pattern: Algebra, fresh: FreshNames) -> Algebra:
    """A pattern in which the solutions of paths are as many as they are by the specification."""
    paths = [node for node in nodes_below(pattern) if needs_unions(node)]
    labels = {node for path in paths for node in all_below(path) if isinstance(node, BlankNodeLabel)}
    if labels and any(map(_counts_rows_once, nodes_below(pattern))):
        return pattern  # the variables that are to stand for blank nodes would be counted
    if labels:
        start = fresh.prefix("end")
        names = {label: Variable(f"{start}_{place}") for place, label in enumerate(labels)}
        pattern = renamed(pattern, names)
    unions = _Unions(fresh.prefix("step"))
    return rewritten(pattern, lambda node: unions.of(node) if needs_unions(node) else node)  # type: ignore[no-any-return]


def _branches(path: Any) -> bool:
    match path:
        case AlternativePath() | NegatedPropertySet():
            return True
        case InversePath(path=inner):
            return _branches(inner)
        case SequencePath(steps=steps):
            return any(map(_branches, steps))
    return False


def _counts_rows_once(node: Any) -> bool:
    return isinstance(node, Aggregate) and node.expression is None and node.distinct


class _Unions:
    """Of one query; start is what the names of its variables begin with."""

    def __init__(self, start: str) -> None:
        self._names: Iterator[Variable] = (Variable(f"{start}_{number}") for number in count())

    def of(self, path: Path) -> Algebra:
        return self._matched(path.subject, path.predicate, path.object)

    def _matched(self, subject: Any, path: Any, object_: Any) -> Algebra:
        match path:
            case Iri():
                return Path(subject, path, object_)  # of a path GeoSPARQL entails nothing
            case InversePath(path=inner):
                return self._matched(object_, inner, subject)
            case AlternativePath(choices=choices):
                return Union(tuple([self._matched(subject, each, object_) for each in choices]))
            case SequencePath(steps=steps) if _branches(path):
                ends = [subject, *(next(self._names) for _ in steps[1:]), object_]
                first, *others = map(self._matched, ends, steps, ends[1:])
                for other in others:
                    first = join(first, other)
                return first
            case NegatedPropertySet(members=members):
                forward = [each for each in members if isinstance(each, Iri)]
                backward = [each.path for each in members if isinstance(each, InversePath)]
                if not backward:
                    return self._without(subject, forward, object_)
                inverse = self._without(object_, backward, subject)
                return Union((self._without(subject, forward, object_), inverse)) if forward else inverse
        return Path(subject, path, object_)

    def _without(self, subject: Any, excluded: list[Any], object_: Any) -> Algebra:
        """The triples with other predicates."""
        predicate = next(self._names)
        triples = Bgp((TriplePattern(subject, predicate, object_),))
        if not excluded:
            return triples
        if len(excluded) == 1:
            return Filter(Comparison("!=", predicate, excluded[0]), triples)
        return Filter(In(predicate, tuple(excluded), True), triples)
