"""Which triples an answer depends on, as far as the predicates of a query's patterns say it."""

from collections.abc import Iterator
from typing import Any

from graphdb.sparql.algebra import Algebra, Bgp, Graph, Path, operands_of
from graphdb.sparql.patterns import AlternativePath, InversePath, RepeatedPath, SequencePath, TriplePattern
from graphdb.sparql.terms import BlankNodeLabel, Iri, Variable
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["may_be_empty", "predicates_read", "triple_patterns"]


def triple_patterns(pattern: Algebra) -> Iterator[TriplePattern]:
    """All triple patterns of a pattern, also those in EXISTS; not its paths, nor what SERVICE holds."""
    for node in nodes_below(pattern):
        if isinstance(node, Bgp):
            yield from node.triples


def predicates_read(pattern: Algebra) -> frozenset[str] | None:
    """The IRIs of the predicates of stated triples that may change the answer; None: any triple may."""
    found: set[str] = set()
    for node in nodes_below(pattern):
        match node:
            case Bgp(triples=triples):
                if not all([_gather(triple.predicate, found) for triple in triples]):
                    return None
            case Path():
                if _matches_every_node(node) or not _gather(node.predicate, found):
                    return None
            case Graph(name=Variable()) if not _requires_triple(node.pattern):
                return None  # the existence of a graph may be enough
    return frozenset(found)


def may_be_empty(path: Any) -> bool:
    """Whether a path may have the length zero, so that it leads from every term to the same term."""
    match path:
        case RepeatedPath(path=inner, modifier=modifier):
            return modifier != "+" or may_be_empty(inner)
        case InversePath(path=inner):
            return may_be_empty(inner)
        case SequencePath(steps=inner):
            return all(map(may_be_empty, inner))
        case AlternativePath(choices=inner):
            return any(map(may_be_empty, inner))
    return False


def _gather(path: Any, found: set[str]) -> bool:
    """Add the predicates of a path. False where it may be any predicate."""
    match path:
        case Iri(value=value):
            found.add(value)
            return True
        case InversePath(path=inner) | RepeatedPath(path=inner):
            return _gather(inner, found)
        case SequencePath(steps=inner) | AlternativePath(choices=inner):
            return all([_gather(one, found) for one in inner])
    return False


def _matches_every_node(path: Path) -> bool:
    """Whether every node of the graph is a solution; any triple may add a node."""
    ends = path.subject, path.object
    return may_be_empty(path.predicate) and all(isinstance(end, Variable | BlankNodeLabel) for end in ends)


def _requires_triple(pattern: Algebra) -> bool:
    """Whether each solution has a triple, so that the graph of that triple exists."""
    return any(isinstance(operand, Bgp) and operand.triples for operand in operands_of(pattern))
