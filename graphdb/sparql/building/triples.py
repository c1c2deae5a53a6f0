"""Triples: shorthand for lists, blank nodes, reified triples and annotations, written out.

A node with triples of its own ([...], (...), << >>) is a `Node` until it meets the triple that it stands in.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from graphdb.sparql.building.terms import RDF, TermBuilder
from graphdb.sparql.patterns import Path, TriplePattern, TriplesBlock
from graphdb.sparql.syntax import QuadPattern
from graphdb.sparql.terms import Iri, PatternTerm, Span, TripleTerm, Variable

__all__ = ["TripleBuilder"]


@dataclass(slots=True)
class Node:
    """A term and the triples that its shorthand stands for."""

    term: PatternTerm
    triples: list[TriplePattern]


class Object(NamedTuple):
    """An object with what hangs from it: triples of its own and of annotations, and the reifiers of its
    triple.
    """

    term: PatternTerm
    triples: list[TriplePattern]
    reifiers: list[PatternTerm]


@dataclass(slots=True)
class AnnotationBlock:
    """{| ... |}, before it is known which reifier it speaks of."""

    properties: list[tuple[PatternTerm | Path, list[Object]]]
    span: Span


@dataclass(slots=True)
class Reifier:
    term: PatternTerm


class TripleBuilder(TermBuilder):
    def __init__(self, text: str, base_iri: str | None) -> None:
        super().__init__(text, base_iri)
        self.graph_variables: list[Variable] = []  # after GRAPH in the templates of this operation

    # Triples, with and without paths

    def triples_same_subject(self, parts: list[Any], start: int, end: int) -> list[TriplePattern]:
        subject, properties = parts
        triples: list[TriplePattern] = []
        if isinstance(subject, Node):
            triples.extend(subject.triples)
            subject = subject.term
        if properties is not None:
            self._write_out(subject, properties, triples)
        return triples

    triples_same_subject_path = triples_same_subject

    def triples_template(self, parts: list[Any], start: int, end: int) -> list[TriplePattern]:
        if len(parts) == 1:
            triples: list[TriplePattern] = parts[0]
            return triples
        return [triple for triples in parts for triple in triples]

    def triples_block(self, parts: list[Any], start: int, end: int) -> TriplesBlock:
        return TriplesBlock(tuple(triple for triples in parts for triple in triples), Span(start, end))

    def property_list_not_empty(self, parts: list[Any], start: int, end: int) -> list[Any]:
        return [part for part in parts if part is not None]

    property_list_path_not_empty = property_list_not_empty

    def verb_object_list(
        self, parts: list[Any], start: int, end: int
    ) -> tuple[PatternTerm | Path, list[Object]]:
        return parts[0], parts[1:]

    verb_object_list_path = verb_object_list

    def object(self, parts: list[Any], start: int, end: int) -> Object:
        node = parts[0]
        term, triples = (node.term, node.triples) if isinstance(node, Node) else (node, [])
        reifiers: list[PatternTerm] = []
        open_reifier = None  # one that a block right behind it speaks of
        for annotation in parts[1:]:
            if isinstance(annotation, Reifier):
                open_reifier = annotation.term
                reifiers.append(open_reifier)
                continue
            if open_reifier is None:
                open_reifier = self.fresh_blank_node(*annotation.span)
                reifiers.append(open_reifier)
            self._write_out(open_reifier, annotation.properties, triples)
            open_reifier = None
        return Object(term, triples, reifiers)

    object_path = object

    # Nodes with triples of their own

    def blank_node_property_list(self, parts: list[Any], start: int, end: int) -> Node:
        node = Node(self.fresh_blank_node(start, end), [])
        self._write_out(node.term, parts[0], node.triples)
        return node

    blank_node_property_list_path = blank_node_property_list

    def collection(self, parts: list[Any], start: int, end: int) -> Node:
        span = Span(start, end)
        cells: list[PatternTerm] = [self.fresh_blank_node(start, end) for _ in parts]
        first, rest = Iri(RDF + "first", span), Iri(RDF + "rest", span)
        triples: list[TriplePattern] = []
        for part, cell, following in zip(parts, cells, [*cells[1:], Iri(RDF + "nil", span)], strict=True):
            member = part.term if isinstance(part, Node) else part
            triples.append(TriplePattern(cell, first, member, span))
            if isinstance(part, Node):
                triples.extend(part.triples)
            triples.append(TriplePattern(cell, rest, following, span))
        return Node(cells[0], triples)

    collection_path = collection

    def reified_triple(self, parts: list[Any], start: int, end: int) -> Node:
        subject, verb, object_, reifier = parts
        triples: list[TriplePattern] = []
        terms = []
        for part in (subject, object_):
            if isinstance(part, Node):
                triples.extend(part.triples)
                part = part.term
            terms.append(part)
        term = reifier.term if reifier is not None else self.fresh_blank_node(start, end)
        span = Span(start, end)
        reified = TripleTerm(terms[0], verb, terms[1], span)
        return Node(term, [TriplePattern(term, Iri(RDF + "reifies", span), reified, span), *triples])

    def reifier(self, parts: list[Any], start: int, end: int) -> Reifier:
        return Reifier(parts[0] if parts[0] is not None else self.fresh_blank_node(start, end))

    def annotation_block(self, parts: list[Any], start: int, end: int) -> AnnotationBlock:
        return AnnotationBlock(parts[0], Span(start, end))

    annotation_block_path = annotation_block

    # Quads

    def quads(self, parts: list[Any], start: int, end: int) -> list[QuadPattern]:
        quads: list[QuadPattern] = []
        for part in parts:
            graph, triples = part if isinstance(part, tuple) else (None, part or ())
            quads.extend(QuadPattern(t.subject, t.predicate, t.object, graph) for t in triples)
        return quads

    def quads_not_triples(
        self, parts: list[Any], start: int, end: int
    ) -> tuple[Iri | Variable, list[TriplePattern]]:
        graph, triples = parts
        if isinstance(graph, Variable):
            self.graph_variables.append(graph)
        return graph, triples or []

    def _write_out(
        self,
        subject: PatternTerm,
        properties: list[tuple[PatternTerm | Path, list[Object]]],
        triples: list[TriplePattern],
    ) -> None:
        """Append the triples of a property list, each followed by those that hang from its object."""
        place = subject.span.start
        for verb, objects in properties:
            for term, hanging, reifiers in objects:
                span = Span(place, term.span.end)
                triples.append(TriplePattern(subject, verb, term, span))
                for reifier in reifiers:
                    if not isinstance(verb, Iri | Variable):
                        raise self.fault("a triple with a property path cannot be annotated", verb.span.start)
                    reified = TripleTerm(subject, verb, term, span)
                    predicate = Iri(RDF + "reifies", reifier.span)
                    triples.append(TriplePattern(reifier, predicate, reified, reifier.span))
                triples.extend(hanging)
