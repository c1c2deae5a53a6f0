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
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from pyoxigraph import BaseDirection, Literal, NamedNode, Triple

from graphdb.sparql.cheap import is_index_scan
from graphdb.sparql.patterns import (
    Bind,
    Filter,
    GraphPattern,
    GroupGraphPattern,
    OptionalPattern,
    TriplesBlock,
)
from graphdb.sparql.syntax import QuadPattern, Query
from graphdb.sparql.tame_expressions import are_tame
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable
from graphdb.sparql.tree_walk import count_nodes
from graphdb.store.quad_store import QuadStore, Term

__all__ = ["LittleJoin", "is_one_scan", "little_join"]

_PATTERNS_AT_ONCE = 8  # of a query: the engine plans so many in well under a millisecond
_CHARACTERS_AN_ENTRY = 512  # of an object; a longer one counts as several entries
_COMPUTED_AN_ENTRY = 16  # calls, operators and operands that take as long as looking at an entry

# The engine's guess at how many triples match, by which of subject, predicate and object are known: it joins
# the smallest first (sparopt, `estimate_triple_pattern_size`).
_GUESSES = {
    (True, True, True): 1,
    (True, False, True): 2,
    (True, True, False): 10,
    (True, False, False): 100,
    (False, True, True): 10_000,
    (False, False, True): 100_000,
    (False, True, False): 1_000_000,
    (False, False, False): 1_000_000_000,
}


_Solution: TypeAlias = dict[str, Term]


@dataclass(frozen=True, slots=True)
class _Pattern:
    terms: tuple[Term | str, Term | str, Term | str]  # a string is the name of a variable
    graph: NamedNode | None

    @property
    def variables(self) -> set[str]:
        return {term for term in self.terms if isinstance(term, str)}


@dataclass(slots=True)
class _Group:
    """What there is in a group."""

    required: list[_Pattern] = field(default_factory=list)
    optional: list[_Pattern] = field(default_factory=list)
    computed: int = 0  # nodes of its expressions
    has_bind: bool = False


class _InDoubt(Exception):
    """Something that this module does not judge."""


class _OverBudget(Exception):
    """The join looks at more than it may."""


def little_join(query: Query) -> "LittleJoin | None":
    """The join that a whole query is, if it may be evaluated at once where the join fits; None for others."""
    if query.form == "DESCRIBE" or query.where is None or query.dataset or query.values is not None:
        return None
    columns = query.select.projections if query.select is not None else None
    expressions = [column.expression for column in columns or () if column.expression is not None]
    if not are_tame(query.modifiers, *expressions):
        return None
    computed = count_nodes(query.modifiers, *expressions) + len(query.template or ())
    join = LittleJoin.of_group(query.where, computed=computed)
    return join if join is not None and join.patterns <= _PATTERNS_AT_ONCE else None


class LittleJoin:
    """The patterns of one group, ready to be joined."""

    def __init__(self, group: _Group) -> None:
        self._parts = [_in_engine_order(part) for part in _parts(group.required)]
        self._optional = group.optional
        self._computed = group.computed
        self.patterns = len(group.required) + len(group.optional)
        self._optional_apart = _optional_apart(group)
        if group.optional and len(self._parts) > 1:  # planned otherwise than without OPTIONAL
            raise _InDoubt

    @classmethod
    def of_group(
        cls, where: GroupGraphPattern, graph: NamedNode | None = None, *, computed: int = 0
    ) -> "LittleJoin | None":
        """Of triple patterns, tame filters and BINDs, and then OPTIONALs of one pattern each; else None.

        graph is the one that patterns outside of GRAPH are matched in, None for the default graph. computed
        counts what is made of each solution outside of the group.
        """
        group = _Group(computed=computed)
        match where.elements:
            case (GraphPattern(name=Iri(value=name), pattern=pattern),):  # all that there is
                where, graph = pattern, NamedNode(name)
        try:
            _collect(where, graph, group)
            return cls(group)
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
        walk = _Walk(store, entries_max)
        try:
            # what shares no variable the engine evaluates apart, then multiplies
            for pattern in self._optional_apart:
                walk.scan(pattern)
            apart = [list(walk.solutions(part, {})) for part in self._parts[1:]]
            first = walk.solutions(self._parts[0], {}) if self._parts else ({},)
            rows = sum(walk.count_with(solution, self._optional) for solution in first)
            rows *= prod(map(len, apart))
            work = max(rows, walk.looked) * self._computed
            return rows <= entries_max and work <= entries_max * _COMPUTED_AN_ENTRY
        except _OverBudget:
            return False


def _optional_apart(group: _Group) -> list[_Pattern]:
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
            return is_index_scan(triple.subject, triple.predicate, triple.object)
        case (
            GraphPattern(name=graph, pattern=GroupGraphPattern(elements=(TriplesBlock(triples=(triple,)),))),
        ):
            return is_index_scan(triple.subject, triple.predicate, triple.object, graph)
        case (QuadPattern(subject=subject, predicate=predicate, object=object_, graph=graph),):
            return is_index_scan(subject, predicate, object_, *(() if graph is None else (graph,)))
        case _:
            return False


def _collect(where: GroupGraphPattern, graph: NamedNode | None, group: _Group) -> None:
    for element in where.elements:
        match element:
            case TriplesBlock() | GraphPattern() if not group.optional and not group.has_bind:
                _collect_triples(element, graph, group)
            case OptionalPattern(pattern=pattern):
                _collect_optional(pattern, graph, group)
            case Filter(expression=expression) if are_tame(expression):
                group.computed += count_nodes(expression)
            case Bind(expression=expression) if are_tame(expression):
                group.computed += count_nodes(expression)
                group.has_bind = True
            case _:
                raise _InDoubt


def _collect_triples(element: object, graph: NamedNode | None, group: _Group) -> None:
    """Triple patterns, and GRAPH with nothing else in it."""
    match element:
        case TriplesBlock(triples=triples):
            group.required += (
                _pattern(triple.subject, triple.predicate, triple.object, graph) for triple in triples
            )
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


def _pattern_of_quad(quad: QuadPattern, graph: NamedNode | None) -> _Pattern:
    match quad.graph:
        case None:
            return _pattern(quad.subject, quad.predicate, quad.object, graph)
        case Iri(value=name):
            return _pattern(quad.subject, quad.predicate, quad.object, NamedNode(name))
        case _:
            raise _InDoubt


def _pattern(subject: object, predicate: object, object_: object, graph: NamedNode | None) -> _Pattern:
    terms = (_term(subject), _term(predicate), _term(object_))
    names = [term for term in terms if isinstance(term, str)]
    if len(set(names)) < len(names):  # a filter behind a scan, which the engine plans in its own way
        raise _InDoubt
    return _Pattern(terms, graph)


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
    if literal.language is None:
        return Literal(literal.value, datatype=NamedNode(literal.datatype))
    direction = BaseDirection(literal.direction) if literal.direction else None
    try:
        return Literal(literal.value, language=literal.language, direction=direction)
    except ValueError:  # a language tag that the engine refuses
        raise _InDoubt from None


def _parts(patterns: list[_Pattern]) -> list[list[_Pattern]]:
    """The patterns in groups that share no variable with each other, each in the order of the text."""
    parts: list[tuple[list[int], set[str]]] = []
    for number, pattern in enumerate(patterns):
        members, names = [number], pattern.variables
        apart = []
        for part in parts:
            if part[1].isdisjoint(names):
                apart.append(part)
            else:
                members, names = part[0] + members, part[1] | names
        parts = [*apart, (members, names)]
    return [[patterns[number] for number in sorted(members)] for members, _ in parts]


def _in_engine_order(patterns: list[_Pattern]) -> list[_Pattern]:
    left, ordered = list(patterns), []
    known: set[str] = set()
    while left:
        best = min(left, key=lambda pattern: (known.isdisjoint(pattern.variables), _guess(pattern, known)))
        left.remove(best)
        ordered.append(best)
        known |= best.variables
    return ordered


def _guess(pattern: _Pattern, known: set[str]) -> int:
    subject, predicate, object_ = (not isinstance(term, str) or term in known for term in pattern.terms)
    return _GUESSES[subject, predicate, object_]


class _Walk:
    """A nested loop join, up to a budget of index entries. Its methods raise _OverBudget."""

    def __init__(self, store: QuadStore, entries_max: int) -> None:
        self._store = store
        self._entries_max = entries_max
        self.looked = 0  # at so many entries; a long one counts as several

    def solutions(self, patterns: list[_Pattern], known: _Solution) -> Iterator[_Solution]:
        """The solutions of patterns joined in this order."""
        if not patterns:
            yield known
            return
        for bound in self._matches(patterns[0], known):
            yield from self.solutions(patterns[1:], bound)

    def scan(self, pattern: _Pattern) -> None:
        """Look at all that matches one pattern by itself."""
        for _ in self._matches(pattern, {}):
            pass

    def count_with(self, known: _Solution, optional: list[_Pattern]) -> int:
        """How many solutions there are of one with what OPTIONALs add to it."""
        if not optional:
            return 1
        extended = list(self._matches(optional[0], known)) or [known]
        return sum(self.count_with(bound, optional[1:]) for bound in extended)

    def _matches(self, pattern: _Pattern, known: _Solution) -> Iterator[_Solution]:
        subject, predicate, object_ = (
            known.get(term) if isinstance(term, str) else term for term in pattern.terms
        )
        self._look(1)
        for quad in self._store.matching(subject, predicate, object_, pattern.graph):
            self._look(1 + _characters(quad.object) // _CHARACTERS_AN_ENTRY)
            bound = dict(known)
            if all(
                bound.setdefault(wanted, found) == found
                for wanted, found in zip(pattern.terms, quad.triple, strict=True)
                if isinstance(wanted, str)
            ):
                yield bound

    def _look(self, entries: int) -> None:
        self.looked += entries
        if self.looked > self._entries_max:
            raise _OverBudget


def _characters(term: Term) -> int:
    return len(str(term) if isinstance(term, Triple) else term.value)
