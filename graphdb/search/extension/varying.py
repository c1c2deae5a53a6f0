"""Where a placeholder may become a variable: whether one query with the values in front means the same as one
query for each value.

    { <{id}> :p ?x }                    { VALUES (?n ?iri) { (0 <a>) (1 <b>) } ?iri :p ?x }

It does where every part that has the placeholder is joined with the values, one by one: its solutions are
then those of each constant, side by side. It does not where a part is evaluated before the join and what one
value gives hides or changes what another gets (MINUS, OPTIONAL further in, sub-selects, filters of inner
groups), and not at the end of a path of length zero, as a constant need not be in the graph for that but a
variable does. Decided by the tree alone, and narrowly: what is not named here is asked for each value.
"""

from collections.abc import Iterable
from typing import Any

from graphdb.search.extension.template import Template
from graphdb.sparql.patterns import (
    Aggregate,
    AlternativePath,
    Bind,
    Exists,
    Filter,
    FunctionCall,
    GraphPattern,
    GroupGraphPattern,
    InversePath,
    OptionalPattern,
    RepeatedPath,
    SequencePath,
    SolutionModifiers,
    TriplePattern,
    TriplesBlock,
    UnionPattern,
)
from graphdb.sparql.terms import Iri, RdfLiteral, Span, TripleTerm
from graphdb.sparql.tree_walk import parts_of

__all__ = ["enumerates", "varies"]


def varies(template: Template) -> bool:
    """Whether all placeholders may become variables."""
    query = template.query
    if query.where is None or query.values is not None or query.modifiers != SolutionModifiers():
        return False
    if query.select is not None and _has_aggregate(query.select):
        return False
    places = _Places()
    places.top(query.where)
    if query.select is not None:
        for projection in query.select.projections or ():
            places.expression(projection.expression, exists=False)
    return all(slot.span in places.free for slot in template.slots)


def enumerates(template: Template) -> bool:
    """Whether such a query finds the values by itself, with none in front: one kind of placeholder, which a
    triple pattern binds before anything else has it.
    """
    if len({slot.is_iri for slot in template.slots}) != 1 or template.query.where is None:
        return False
    spans = {slot.span for slot in template.slots}
    for element in template.query.where.elements:
        if isinstance(element, Filter) or not _holds(element, spans):
            continue
        places = _Places()
        if isinstance(element, TriplesBlock):
            places.triples(element)
        return any(span in places.free for span in spans)
    return False


class _Places:
    """Collects the spans of the terms that may become variables."""

    def __init__(self) -> None:
        self._found: set[Span] = set()
        self._fixed: set[Span] = (
            set()
        )  # a term stands once before several predicates, one of which forbids it

    @property
    def free(self) -> set[Span]:
        return self._found - self._fixed

    def top(self, group: GroupGraphPattern) -> None:
        """The outermost group: the values are joined to it before everything else in it."""
        for element in group.elements:
            if isinstance(element, Filter | Bind):
                self.expression(element.expression, exists=True)
            elif isinstance(element, OptionalPattern):
                self.joined(element.pattern)
            else:
                self._joined_element(element)

    def joined(self, group: GroupGraphPattern) -> None:
        """A group further in: only what it joins."""
        for element in group.elements:
            self._joined_element(element)

    def _joined_element(self, element: Any) -> None:
        match element:
            case TriplesBlock():
                self.triples(element)
            case GroupGraphPattern():
                self.joined(element)
            case UnionPattern():
                for branch in element.branches:
                    self.joined(branch)
            case GraphPattern():
                self.joined(element.pattern)
            case _:
                pass

    def triples(self, block: TriplesBlock) -> None:
        for triple in block.triples:
            self._triple(triple)

    def _triple(self, triple: TriplePattern) -> None:
        into = self._fixed if _may_be_empty(triple.predicate) else self._found
        if isinstance(triple.predicate, Iri):
            self._found.add(triple.predicate.span)
        waiting: list[Any] = [triple.subject, triple.object]
        while waiting:
            term = waiting.pop()
            if isinstance(term, Iri | RdfLiteral):
                into.add(term.span)
            elif isinstance(term, TripleTerm):
                waiting += (term.subject, term.predicate, term.object)

    def expression(self, node: Any, exists: bool) -> None:
        """An expression over solutions that have the values. exists: whether to look into EXISTS."""
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if isinstance(one, Iri | RdfLiteral):
                self._found.add(one.span)
            elif isinstance(one, Exists):
                if exists:
                    self.joined(one.pattern)
            elif isinstance(one, FunctionCall):
                waiting.extend(one.arguments)  # the function itself is no term
            elif one is not None:
                waiting.extend(parts_of(one))


def _may_be_empty(path: Any) -> bool:
    """Whether any step of a path may be taken zero times."""
    match path:
        case RepeatedPath():
            return path.modifier in ("?", "*") or _may_be_empty(path.path)
        case InversePath():
            return _may_be_empty(path.path)
        case SequencePath():
            return any(map(_may_be_empty, path.steps))
        case AlternativePath():
            return any(map(_may_be_empty, path.choices))
        case _:
            return False


def _has_aggregate(node: Any) -> bool:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Aggregate):
            return True
        waiting.extend(parts_of(one))
    return False


def _holds(element: Any, spans: Iterable[Span]) -> bool:
    return any(element.span.start <= span.start and span.end <= element.span.end for span in spans)
