"""Which patterns join so little that they may be evaluated at once: found by joining them, up to a budget.

A syntax tree cannot tell: `<s> :knows ?x . ?x :name ?n` is three rows or a million. So the join is walked
over the store's indexes, in the order in which the engine would take it, until it is done or has looked at
too many entries.

The engine joins triple patterns by looking up one for each solution of those before it. It does not where
they share no variable, or where an OPTIONAL has several patterns: these it evaluates apart, whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from pyoxigraph import BaseDirection, Literal, NamedNode

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
from graphdb.store.quad_store import QuadStore, Term

__all__ = ["LittleJoin", "is_one_scan", "little_join"]

_PATTERNS_AT_ONCE = 8  # of a query: the engine plans so many in well under a millisecond

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


class _InDoubt(Exception):
    """Something that this module does not judge."""


class _OverBudget(Exception):
    """The join looks at more than it may."""


def little_join(query: Query) -> "LittleJoin | None":
    """The join that a whole query is, if it may be evaluated at once where the join fits; None for others."""
    if query.form == "DESCRIBE" or query.where is None or query.dataset or query.values is not None:
        return None
    if not are_tame(query.modifiers, *(() if query.select is None else (query.select,))):
        return None
    join = LittleJoin.of_group(query.where)
    return join if join is not None and join.patterns <= _PATTERNS_AT_ONCE else None


class LittleJoin:
    """The patterns of one group, ready to be joined."""

    def __init__(self, required: list[_Pattern], optional: list[_Pattern]) -> None:
        self._parts = [_in_engine_order(part) for part in _parts(required)]
        self._optional = optional
        self.patterns = len(required) + len(optional)
        known = set[str]().union(*(pattern.variables for pattern in required))
        for pattern in optional:
            if known.isdisjoint(pattern.variables):
                raise _InDoubt
            known |= pattern.variables

    @classmethod
    def of_group(cls, where: GroupGraphPattern, graph: NamedNode | None = None) -> "LittleJoin | None":
        """Of triple patterns, tame filters and BINDs, and then OPTIONALs of one pattern each; else None.

        graph is the one that patterns outside of GRAPH are matched in, None for the default graph.
        """
        required: list[_Pattern] = []
        optional: list[_Pattern] = []
        try:
            _collect(where, graph, required, optional)
            return cls(required, optional)
        except _InDoubt:
            return None

    @classmethod
    def of_quads(cls, quads: Sequence[QuadPattern], graph: NamedNode | None = None) -> "LittleJoin | None":
        """The pattern of DELETE WHERE; see `of_group`."""
        try:
            return cls([_pattern_of_quad(quad, graph) for quad in quads], [])
        except _InDoubt:
            return None

    def fits(self, store: QuadStore, entries_max: int) -> bool:
        """Whether it looks at no more index entries of the store, and has no more solutions."""
        walk = _Walk(store, entries_max)
        try:
            # what shares no variable the engine evaluates apart, then multiplies
            apart = [list(walk.solutions(part, {})) for part in self._parts[1:]]
            first = walk.solutions(self._parts[0], {}) if self._parts else ({},)
            rows = sum(walk.count_with(solution, self._optional) for solution in first)
            return rows * prod(map(len, apart)) <= entries_max
        except _OverBudget:
            return False


def is_one_scan(where: GroupGraphPattern | Sequence[QuadPattern]) -> bool:
    """Whether the group is one triple pattern: all that is looked at is a solution, or nearly so."""
    if not isinstance(where, GroupGraphPattern):
        return len(where) == 1
    match where.elements:
        case (TriplesBlock(triples=(triple,)),):
            return isinstance(triple.predicate, Iri | Variable)
        case (GraphPattern(pattern=pattern),):
            return is_one_scan(pattern)
        case _:
            return False


def _collect(
    where: GroupGraphPattern, graph: NamedNode | None, required: list[_Pattern], optional: list[_Pattern]
) -> None:
    for element in where.elements:
        match element:
            case TriplesBlock(triples=triples) if not optional:
                required += (
                    _pattern(triple.subject, triple.predicate, triple.object, graph) for triple in triples
                )
            case GraphPattern(name=Iri(value=name), pattern=pattern) if not optional:
                _collect(pattern, NamedNode(name), required, optional)
            case OptionalPattern(pattern=pattern):
                optional.append(_only_pattern(pattern, graph))
            case Filter(expression=expression) | Bind(expression=expression) if are_tame(expression):
                pass
            case _:
                raise _InDoubt


def _only_pattern(where: GroupGraphPattern, graph: NamedNode | None) -> _Pattern:
    """The one pattern of a group without more than filters beside it."""
    if any(isinstance(element, Bind) for element in where.elements):
        raise _InDoubt
    required: list[_Pattern] = []
    optional: list[_Pattern] = []
    _collect(where, graph, required, optional)
    if len(required) != 1 or optional:
        raise _InDoubt
    return required[0]


def _pattern_of_quad(quad: QuadPattern, graph: NamedNode | None) -> _Pattern:
    match quad.graph:
        case None:
            return _pattern(quad.subject, quad.predicate, quad.object, graph)
        case Iri(value=name):
            return _pattern(quad.subject, quad.predicate, quad.object, NamedNode(name))
        case _:
            raise _InDoubt


def _pattern(subject: object, predicate: object, object_: object, graph: NamedNode | None) -> _Pattern:
    return _Pattern((_term(subject), _term(predicate), _term(object_)), graph)


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
    """The patterns in groups that share no variable with each other."""
    parts: list[tuple[list[_Pattern], set[str]]] = []
    for pattern in patterns:
        members, names = [pattern], pattern.variables
        apart = []
        for part in parts:
            if part[1].isdisjoint(names):
                apart.append(part)
            else:
                members, names = part[0] + members, part[1] | names
        parts = [*apart, (members, names)]
    return [members for members, _ in parts]


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
        self._left = entries_max

    def solutions(self, patterns: list[_Pattern], known: _Solution) -> Iterator[_Solution]:
        """The solutions of patterns joined in this order."""
        if not patterns:
            yield known
            return
        for bound in self._matches(patterns[0], known):
            yield from self.solutions(patterns[1:], bound)

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
        self._look()
        for quad in self._store.matching(subject, predicate, object_, pattern.graph):
            self._look()
            bound = dict(known)
            if all(
                bound.setdefault(wanted, found) == found
                for wanted, found in zip(pattern.terms, quad.triple, strict=True)
                if isinstance(wanted, str)
            ):
                yield bound

    def _look(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _OverBudget
