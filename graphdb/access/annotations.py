"""Annotations: which triples of the data say who may see what, and when they change."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from pyoxigraph import Literal, NamedNode, Quad, Triple

from graphdb.access.visibility import Visibility
from graphdb.model import ChangeSet, GraphName
from graphdb.rdf.quad_lines import AddedLines, ClearedLines
from graphdb.store.view import Subject, Term

__all__ = [
    "ALLOWED_SID",
    "REIFIES",
    "AnnotationWatch",
    "Statements",
    "VisibleQuads",
    "has_annotations",
    "is_annotating",
]

# `VisibleQuads`: which quads of one state of the store a visibility shows.
#
# A triple is annotated in its graph by statements of that graph, `_:r rdf:reifies <<( s p o )>>` and `_:r
# <urn:graphdb:acl#allowedSid> "S-1-5-21-..."`, a plain string; which is what RDF 1.2's Turtle makes of `<<
# s p o >> <urn:graphdb:acl#allowedSid> "S-1-5-21-..."`. Whoever has one of the SIDs sees it.
#
# What is said about a hidden triple is hidden with it, in its graph: whatever has it as a triple term, and
# every statement of its reifiers; and so what is said about those. What annotates is hidden with all it
# says.

ALLOWED_SID = NamedNode("urn:graphdb:acl#allowedSid")
REIFIES = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies")


class Statements(Protocol):
    """As much of a `StoreView` as judges."""

    def contains(self, quad: Quad) -> bool: ...
    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]: ...


def has_annotations(state: Statements) -> bool:
    """Whether any triple may be hidden by its annotations; one look into an index."""
    return next(iter(state.quads_matching(None, ALLOWED_SID, None, None)), None) is not None


def is_annotating(state: Statements, reifier: Subject, graph: GraphName) -> bool:
    """Whether what a reifier reifies in the graph is annotated by it."""
    return next(iter(state.quads_matching(reifier, ALLOWED_SID, None, graph)), None) is not None


class VisibleQuads:
    """What one visibility shows of one state. It looks into the state at each call, and keeps nothing."""

    def __init__(self, visibility: Visibility, state: Statements) -> None:
        self._visibility, self._state = visibility, state
        self._allowed = frozenset(
            map(Literal, visibility.sids)
        )  # plain strings; other literals let nobody in

    def sees(self, quad: Quad) -> bool:
        """Whether a quad, which need not be there, is seen where it is: its graph, its subject as a reifier,
        the triple, and every triple term in it at any depth; what annotates is seen by a whole visibility
        alone.
        """
        if self._visibility.is_whole:
            return True
        graph = quad.graph_name
        if not self._visibility.sees_graph(graph) or quad.predicate == ALLOWED_SID:
            return False
        return not self._is_hidden([(quad.triple, True)], graph)

    def sees_statements_of(self, subject: Subject, graph: GraphName) -> bool:
        """Whether a resource, in a graph that is seen, is no reifier that hides what it says."""
        if self._visibility.is_whole:
            return True
        said = Triple(subject, REIFIES, subject)
        return not self._is_hidden([(said, True)], graph)

    def _is_hidden(self, ahead: list[tuple[Triple, bool]], graph: GraphName) -> bool:
        """A search for something hidden from triples, each with whether it is taken to be there, to the terms
        in them, from such as are there to their subjects, and from these to what they reify; which may lead
        back to where it was.
        """
        reifiers: set[Subject] = set()
        while ahead:
            triple, is_there = ahead.pop()
            if not self._is_allowed(triple, graph):
                return True
            if isinstance(triple.object, Triple):
                ahead.append((triple.object, False))
            subject = triple.subject
            if subject in reifiers or not (is_there or self._is_there(triple, graph)):
                continue
            reifiers.add(subject)
            if is_annotating(self._state, subject, graph):
                return True
            for reifying in self._state.quads_matching(subject, REIFIES, None, graph):
                if isinstance(reifying.object, Triple):
                    ahead.append((reifying.object, False))
        return False

    def _is_there(self, triple: Triple, graph: GraphName) -> bool:
        return self._state.contains(Quad(triple.subject, triple.predicate, triple.object, graph))

    def _is_allowed(self, triple: Triple, graph: GraphName) -> bool:
        is_annotated = False
        for reifying in self._state.quads_matching(None, REIFIES, triple, graph):
            for allowing in self._state.quads_matching(reifying.subject, ALLOWED_SID, None, graph):
                if allowing.object in self._allowed:
                    return True
                is_annotated = True
        return not is_annotated


# `AnnotationWatch`: tells when a store may have come to hold annotations.


class AnnotationWatch:
    """Listens to a store, and counts before a change is visible. Written by one thread, read by any.

    Whoever finds no annotation in the store, having taken `count` before, and takes the same count after
    reading, has read of states without any.
    """

    def __init__(self) -> None:
        self.count = 0  # of the changes that have brought annotations

    def applying(self, changes: Iterable[ChangeSet]) -> Iterable[ChangeSet]:
        """See `graphdb.store.quad_store.ChangeListener`."""
        if isinstance(changes, tuple):
            for change in changes:
                self._note(change)
            return changes
        return self._passing(changes)

    def applying_lines(self, lines: AddedLines | ClearedLines) -> None:
        """See `graphdb.store.quad_store.ChangeListener`."""
        if isinstance(lines, AddedLines) and next(lines.with_predicates((ALLOWED_SID,)), None) is not None:
            self.count += 1

    def applied(self) -> None:
        """See `graphdb.store.quad_store.ChangeListener`."""

    def _note(self, change: ChangeSet) -> None:
        if any(quad.predicate == ALLOWED_SID for quad in change.added):
            self.count += 1

    def _passing(self, changes: Iterable[ChangeSet]) -> Iterator[ChangeSet]:
        for change in changes:
            self._note(change)
            yield change
