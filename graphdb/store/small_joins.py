"""Which patterns join so little that they may be evaluated at once: found by joining them, up to a budget.

A syntax tree cannot tell: `<s> :knows ?x . ?x :name ?n` is three rows or a million. So the join is walked
over the store's indexes, in the order in which the engine would take it, until it is done or has looked at
too many entries.

The engine joins triple patterns by looking up one for each solution of those before it (sparopt's
`reorder_joins`). It does not where they share no variable that is bound for sure, or where an OPTIONAL has
several patterns: these it evaluates apart, whole. And it orders only what it joins directly, so a BIND before
a pattern, or a filter within GRAPH beside others, can have it evaluate anything whole.

What is computed for each solution counts too, and so does the length of what it is computed from: else a few
long texts and a few hundred calls would be seconds.

Where a filter on geometries can be looked up in the store's spatial index, the engine is given the few values
that this finds as VALUES, and joins them as it joins patterns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from pyoxigraph import Literal, NamedNode, Triple

from graphdb.geo.entailment import is_derived
from graphdb.geo.function_calls import CallCosts, are_loaded, calls_functions, vertices_of
from graphdb.geo.lookups import Lookup
from graphdb.sparql.cheap import is_index_scan
from graphdb.sparql.engine_text import engine_text
from graphdb.sparql.patterns import (
    Bind,
    Filter,
    GraphPattern,
    GroupGraphPattern,
    OptionalPattern,
    SequencePath,
    TriplePattern,
    TriplesBlock,
)
from graphdb.sparql.printing import literal_of
from graphdb.sparql.syntax import QuadPattern, Query
from graphdb.sparql.tame_expressions import are_tame, cost_of
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable
from graphdb.store.join_walk import Choice, OverBudget, Part, Pattern, Walk, connected_parts, in_engine_order
from graphdb.store.quad_store import QuadStore, Term

__all__ = ["ENTRIES_AT_ONCE", "LittleJoin", "is_one_scan", "little_join"]

ENTRIES_AT_ONCE = 128  # of a join on the event loop, which looking at them may block for a millisecond
_PATTERNS_AT_ONCE = 8  # of a query: the engine plans so many in well under a millisecond
_CHARACTERS_AN_ENTRY = 512  # of an object; a longer one counts as several entries
_GEOMETRY_CHARACTERS_AN_ENTRY = 64  # where objects may be read as geometries
_COMPUTED_AN_ENTRY = 16  # calls, operators and operands that take as long as looking at an entry


@dataclass(slots=True)
class _Group:
    """What there is in a group."""

    required: list[Pattern] = field(default_factory=list)
    optional: list[Pattern] = field(default_factory=list)
    computed: int = 0  # what its expressions cost
    calls: CallCosts = field(default_factory=CallCosts)
    has_bind: bool = False

    def compute(self, *expressions: Any) -> None:
        self.computed += cost_of(*expressions)
        self.calls.count(*expressions)


class _InDoubt(Exception):
    """Something that this module does not judge."""


def little_join(query: Query) -> "LittleJoin | None":
    """The join that a whole query is, if it may be evaluated at once where the join fits; None for others."""
    if query.form == "DESCRIBE" or query.where is None or query.dataset or query.values is not None:
        return None
    if query.service_hosts:
        return None
    columns = query.select.projections if query.select is not None else None
    expressions = [column.expression for column in columns or () if column.expression is not None]
    if not are_tame(query.modifiers, *expressions):
        return None
    group = _Group(computed=len(query.template or ()))
    group.compute(query.modifiers, *expressions)
    lookups = engine_text(query).lookups if group.calls or calls_functions(query.where) else ()
    join = LittleJoin.of_group(query.where, group=group, lookups=lookups)
    return join if join is not None and join.patterns <= _PATTERNS_AT_ONCE else None


class _Objects:
    """What is seen of the objects in a walk."""

    characters_an_entry = _CHARACTERS_AN_ENTRY
    vertices = 1  # of none are there more, as far as one may be read as a geometry

    def weight(self, term: Term) -> int:
        """As how many entries one with this object counts."""
        return 1 + _characters(term) // self.characters_an_entry


class _Geometries(_Objects):
    """Any of them may be read as a geometry."""

    characters_an_entry = _GEOMETRY_CHARACTERS_AN_ENTRY

    def weight(self, term: Term) -> int:
        """See `_Objects.weight`. Raises OverBudget for what may be slow to read."""
        if isinstance(term, Literal | Triple):
            vertices = vertices_of(term.value if isinstance(term, Literal) else str(term))
            if vertices is None:
                raise OverBudget
            self.vertices = max(self.vertices, vertices)
        return super().weight(term)


class LittleJoin:
    """The patterns of one group, ready to be joined."""

    def __init__(self, group: _Group, lookups: Sequence[Lookup] = ()) -> None:
        self._parts = connected_parts(group.required)
        self._optional = group.optional
        self._computed = group.computed
        self._calls = group.calls
        self._lookups = lookups
        self.patterns = len(group.required) + len(group.optional)
        self._optional_apart = _optional_apart(group)
        if group.optional and len(self._parts) > 1:  # planned otherwise than without OPTIONAL
            raise _InDoubt

    @property
    def looks_at_triples_only(self) -> bool:
        """Whether only changes of the store change what it comes to: no index that is being made, no library
        that is being loaded.
        """
        return not (self._lookups or self._calls)

    @classmethod
    def of_group(
        cls,
        where: GroupGraphPattern,
        graph: NamedNode | None = None,
        *,
        group: _Group | None = None,
        lookups: Sequence[Lookup] = (),
    ) -> "LittleJoin | None":
        """Of triple patterns, tame filters and BINDs, and then OPTIONALs of one pattern each; else None.

        graph is the one that patterns outside of GRAPH are matched in, None for the default graph. group has
        what is computed for each solution outside of the pattern; lookups narrow what the engine joins.
        """
        group = group or _Group()
        match where.elements:
            case (GraphPattern(name=Iri(value=name), pattern=pattern),):  # all that there is
                where, graph = pattern, NamedNode(name)
        try:
            _collect(where, graph, group)
            return cls(group, lookups)
        except _InDoubt:
            return None

    @classmethod
    def of_quads(cls, quads: Sequence[QuadPattern], graph: NamedNode | None = None) -> "LittleJoin | None":
        """The pattern of DELETE WHERE; see `of_group`."""
        try:
            return cls(_Group([_pattern_of_quad(quad, graph) for quad in quads]))
        except _InDoubt:
            return None

    def fits(self, store: QuadStore, entries_max: int) -> bool:
        """Whether it looks at no more index entries of the store, has no more solutions, and computes little
        for each.
        """
        if self._calls and not are_loaded():
            return False  # loading what reads geometries takes a fifth of a second
        objects = _Geometries() if self._calls else _Objects()
        walk = Walk(store, entries_max, objects.weight)
        choices = self._choices(store)
        parts = [in_engine_order(_with_choices(part, choices)) for part in self._parts]
        try:
            # what shares no variable the engine evaluates apart, then multiplies
            for pattern in self._optional_apart:
                walk.scan(pattern)
            apart = [list(walk.solutions(part, {})) for part in parts[1:]]
            first = walk.solutions(parts[0], {}) if parts else ({},)
            rows = sum(walk.count_with(solution, self._optional) for solution in first)
            rows *= prod(map(len, apart))
            computed = self._computed
            if self._calls:
                called = self._calls.for_each(objects.vertices)
                if called is None:
                    return False
                computed += called
            work = max(rows, walk.looked) * computed
            return rows <= entries_max and work <= entries_max * _COMPUTED_AN_ENTRY
        except OverBudget:
            return False

    def _choices(self, store: QuadStore) -> list[Choice]:
        """What the engine will be given for the lookups that the store's index has an answer to."""
        choices = []
        for lookup in self._lookups:
            terms = store.candidates(lookup)
            if terms is not None:
                choices.append(Choice(f"?{lookup.binding.variable}", terms))
        return choices


def _characters(term: Term) -> int:
    return len(str(term) if isinstance(term, Triple) else term.value)


def _with_choices(part: list[Pattern], choices: list[Choice]) -> list[Part]:
    """The patterns of a part with the choices of its variables."""
    names = set[str]().union(*(pattern.variables for pattern in part))
    return [*(choice for choice in choices if choice.name in names), *part]


def _optional_apart(group: _Group) -> list[Pattern]:
    """The OPTIONALs that share no variable with anything: the engine evaluates them whole.

    One that shares only what another OPTIONAL binds is in doubt.
    """
    required = set[str]().union(*(pattern.variables for pattern in group.required))
    apart = [pattern for pattern in group.optional if required.isdisjoint(pattern.variables)]
    for pattern in apart:
        others = (other.variables for other in group.optional if other is not pattern)
        if any(not names.isdisjoint(pattern.variables) for names in others):
            raise _InDoubt
    return apart


def is_one_scan(where: GroupGraphPattern | Sequence[QuadPattern]) -> bool:
    """Whether the group is one pattern of which all that is looked at is a solution."""
    match where.elements if isinstance(where, GroupGraphPattern) else tuple(where):
        case (TriplesBlock(triples=(triple,)),):
            return _is_scan(triple)
        case (
            GraphPattern(name=graph, pattern=GroupGraphPattern(elements=(TriplesBlock(triples=(triple,)),))),
        ):
            return _is_scan(triple, graph)
        case (QuadPattern(subject=subject, predicate=predicate, object=object_, graph=graph),):
            return is_index_scan(subject, predicate, object_, *(() if graph is None else (graph,)))
        case _:
            return False


def _is_scan(triple: TriplePattern, *graph: object) -> bool:
    return not is_derived(triple) and is_index_scan(triple.subject, triple.predicate, triple.object, *graph)


def _collect(where: GroupGraphPattern, graph: NamedNode | None, group: _Group) -> None:
    for element in where.elements:
        match element:
            case TriplesBlock() | GraphPattern() if not group.optional and not group.has_bind:
                _collect_triples(element, graph, group)
            case OptionalPattern(pattern=pattern):
                _collect_optional(pattern, graph, group)
            case Filter(expression=expression) if are_tame(expression):
                group.compute(expression)
            case Bind(expression=expression) if are_tame(expression):
                group.compute(expression)
                group.has_bind = True
            case _:
                raise _InDoubt


def _collect_triples(element: object, graph: NamedNode | None, group: _Group) -> None:
    """Triple patterns, and GRAPH with nothing else in it."""
    match element:
        case TriplesBlock(triples=triples) if not any(map(is_derived, triples)):
            for triple in triples:
                group.required += _steps(triple, graph)
        case GraphPattern(name=Iri(value=name), pattern=pattern):
            for inner in pattern.elements:
                _collect_triples(inner, NamedNode(name), group)
        case _:
            raise _InDoubt


def _collect_optional(where: GroupGraphPattern, graph: NamedNode | None, group: _Group) -> None:
    """One pattern, without more than filters beside it."""
    inner = _Group()
    _collect(where, graph, inner)
    if len(inner.required) != 1 or inner.optional or inner.has_bind:
        raise _InDoubt
    group.optional += inner.required
    group.computed += inner.computed
    group.calls.add(inner.calls)


def _steps(triple: TriplePattern, graph: NamedNode | None) -> Iterator[Pattern]:
    """One pattern, or one for each step of a sequence."""
    if not isinstance(triple.predicate, SequencePath):
        yield _pattern(triple.subject, triple.predicate, triple.object, graph)
        return
    *steps, last = triple.predicate.steps
    start: object = triple.subject
    for number, step in enumerate(steps):
        end = Variable(f"{triple.span}/{number}", triple.span)  # no name that a text can have
        yield _pattern(start, step, end, graph)
        start = end
    yield _pattern(start, last, triple.object, graph)


def _pattern_of_quad(quad: QuadPattern, graph: NamedNode | None) -> Pattern:
    match quad.graph:
        case None:
            return _pattern(quad.subject, quad.predicate, quad.object, graph)
        case Iri(value=name):
            return _pattern(quad.subject, quad.predicate, quad.object, NamedNode(name))
        case _:
            raise _InDoubt


def _pattern(subject: object, predicate: object, object_: object, graph: NamedNode | None) -> Pattern:
    terms = (_term(subject), _term(predicate), _term(object_))
    names = [term for term in terms if isinstance(term, str)]
    if len(set(names)) < len(names):  # a filter behind a scan, which the engine plans in its own way
        raise _InDoubt
    return Pattern(terms, graph)


def _term(term: object) -> "Term | str":
    """A term to look for, or the name of a variable, which a blank node is too."""
    match term:
        case Variable(name=name):
            return f"?{name}"
        case BlankNodeLabel(label=label):
            return f"_:{label}"
        case Iri(value=value):
            return NamedNode(value)
        case RdfLiteral():
            return _literal(term)
        case _:
            raise _InDoubt


def _literal(literal: RdfLiteral) -> Literal:
    try:
        return literal_of(literal)
    except ValueError:
        raise _InDoubt from None
