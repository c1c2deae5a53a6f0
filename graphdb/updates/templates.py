"""Quad templates: what DELETE and INSERT make of each solution of their WHERE clause."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, cast

from pyoxigraph import (
    BaseDirection,
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QuerySolution,
    Triple,
)

from graphdb.model import GraphName
from graphdb.planning.decisions import is_index_scan
from graphdb.sparql.syntax import (
    BlankNodeLabel,
    Iri,
    PatternTerm,
    QuadPattern,
    RdfLiteral,
    TripleTerm,
    Variable,
)
from graphdb.store.stored_form import stored_term

__all__ = ["ScannedQuads", "Template", "scanned_by", "variables_of"]

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
ScannedQuads: TypeAlias = tuple[NamedNode | None, NamedNode | None, NamedNode | Literal | None, GraphName]


class _FreshBlankNodes(dict[str, BlankNode]):
    """The blank nodes of one solution by their labels in the template, made as they are asked for."""

    def __init__(self, fresh_blank_node: Callable[[], BlankNode]) -> None:
        super().__init__()
        self._fresh_blank_node = fresh_blank_node

    def __missing__(self, label: str) -> BlankNode:
        node = self[label] = self._fresh_blank_node()
        return node


Slot: TypeAlias = Callable[[QuerySolution, _FreshBlankNodes], Term | None]


class Template:
    """The quads of a DELETE or INSERT clause, ready to be filled with the solutions of one query.

    variables are those that the query projects, in their order. Quads without a graph of their own go to
    default_graph (what WITH names).
    """

    def __init__(
        self,
        patterns: Sequence[QuadPattern],
        variables: Sequence[str],
        default_graph: GraphName,
        fresh_blank_node: Callable[[], BlankNode],
    ) -> None:
        index = {name: place for place, name in enumerate(variables)}
        self._fresh_blank_node = fresh_blank_node
        self._quads = [
            (
                _slot(pattern.subject, index),
                _slot(pattern.predicate, index),
                _slot(pattern.object, index),
                (lambda solution, blank: default_graph)
                if pattern.graph is None
                else _slot(pattern.graph, index),
            )
            for pattern in patterns
        ]

    def fill(self, solution: QuerySolution) -> Iterator[Quad]:
        """The quads for one solution; those with an unbound variable or an ill-formed place are left out.

        A blank node of the template is a new one for each call (SPARQL 1.1 Update, section 3.1.3).
        """
        blank = _FreshBlankNodes(self._fresh_blank_node)
        for subject, predicate, object_, graph in self._quads:
            quad = _quad(
                subject(solution, blank),
                predicate(solution, blank),
                object_(solution, blank),
                graph(solution, blank),
            )
            if quad is not None:
                yield quad


def variables_of(patterns: Sequence[QuadPattern]) -> list[str]:
    """The names of the variables in a template, in order of appearance."""
    names: dict[str, None] = {}
    for pattern in patterns:
        for term in (pattern.subject, pattern.predicate, pattern.object, pattern.graph):
            if term is not None:
                names.update(dict.fromkeys(_variables(term)))
    return list(names)


def scanned_by(patterns: Sequence[QuadPattern]) -> ScannedQuads | None:
    """What `StoreView.quads_matching` is asked for to get all quads that DELETE WHERE with these patterns
    removes. None where one look into an index does not tell.
    """
    if len(patterns) != 1:
        return None
    pattern = patterns[0]
    graph, (subject, predicate, object_) = pattern.graph, (pattern.subject, pattern.predicate, pattern.object)
    if isinstance(graph, Variable) or not is_index_scan(subject, predicate, object_):
        return None
    if not isinstance(subject, Iri | Variable) or not isinstance(predicate, Iri | Variable):
        return None
    if not isinstance(object_, Iri | Variable | RdfLiteral):
        return None
    value = stored_term(_literal(object_)) if isinstance(object_, RdfLiteral) else _iri(object_)
    assert isinstance(value, NamedNode | Literal | None)
    return _iri(subject), _iri(predicate), value, _iri(graph) or DefaultGraph()


def _iri(term: Iri | Variable | None) -> NamedNode | None:
    return NamedNode(term.value) if isinstance(term, Iri) else None


def _variables(term: PatternTerm) -> Iterator[str]:
    if isinstance(term, Variable):
        yield term.name
    elif isinstance(term, TripleTerm):
        for part in (term.subject, term.predicate, term.object):
            yield from _variables(part)


def _slot(term: PatternTerm, index: dict[str, int]) -> Slot:
    """How to fill one place of a quad."""
    match term:
        case Variable(name):
            place = index[name]
            return lambda solution, blank: solution[place]
        case BlankNodeLabel(label):
            return lambda solution, blank: blank[label]
        case TripleTerm():
            return _triple_slot(term, index)
        case Iri(value):
            iri = NamedNode(value)
            return lambda solution, blank: iri
        case RdfLiteral():
            literal = _literal(term)
            return lambda solution, blank: literal


def _triple_slot(term: TripleTerm, index: dict[str, int]) -> Slot:
    subject, predicate, object_ = (_slot(part, index) for part in (term.subject, term.predicate, term.object))

    def fill(solution: QuerySolution, blank: _FreshBlankNodes) -> Triple | None:
        parts = subject(solution, blank), predicate(solution, blank), object_(solution, blank)
        if None in parts:
            return None
        try:
            return Triple(*cast(tuple[NamedNode, NamedNode, NamedNode], parts))
        except TypeError:  # a literal as subject and the like
            return None

    return fill


def _quad(subject: Term | None, predicate: Term | None, object_: Term | None, graph: object) -> Quad | None:
    if subject is None or predicate is None or object_ is None or graph is None:
        return None
    try:
        return Quad(cast(NamedNode, subject), cast(NamedNode, predicate), object_, cast(NamedNode, graph))
    except TypeError:  # pyoxigraph's word for a term in a place where RDF does not allow it
        return None


def _literal(term: RdfLiteral) -> Literal:
    if term.direction is not None:
        return Literal(term.value, language=term.language, direction=BaseDirection(term.direction))
    if term.language is not None:
        return Literal(term.value, language=term.language)
    return Literal(term.value, datatype=NamedNode(term.datatype))
