"""Joins in the engine's order, walked over the store's indexes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pyoxigraph import NamedNode

from graphdb.store.quad_store import QuadStore, Term

__all__ = [
    "Choice",
    "Found",
    "OverBudget",
    "Part",
    "Pattern",
    "Walk",
    "after_searches",
    "connected_parts",
    "in_engine_order",
]

_COMPARED_AN_ENTRY = 16  # terms that are compared in the time of looking at an entry

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
class Pattern:
    """A triple pattern in one graph; None is what queries see as the default graph."""

    terms: tuple[Term | str, Term | str, Term | str]  # a string is the name of a variable
    graph: NamedNode | None

    @property
    def variables(self) -> set[str]:
        return {term for term in self.terms if isinstance(term, str)}

    def filled(self, terms: Mapping[Any, Term]) -> "Pattern":
        """With other constants in the place of some."""
        subject, predicate, object_ = self.terms
        return Pattern(
            (terms.get(subject, subject), terms.get(predicate, predicate), terms.get(object_, object_)),
            self.graph,
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """VALUES of one variable."""

    name: str
    terms: list[Term]

    @property
    def variables(self) -> set[str]:
        return {self.name}

    def filled(self, _terms: Mapping[Any, Term]) -> "Choice":
        """Itself: what an index has found is no constant of a text."""
        return self


@dataclass(frozen=True, slots=True)
class Found:
    """What a search binds, by its name."""

    search: str
    names: tuple[str, ...]
    rows: Sequence[tuple[Term | None, ...]] = ()

    @property
    def variables(self) -> set[str]:
        return set(self.names)

    def filled(self, _terms: Mapping[Any, Term]) -> "Found":
        """Itself, as `Choice`."""
        return self


Part: TypeAlias = Pattern | Choice | Found


class OverBudget(Exception):
    """The join looks at more than it may."""


P = TypeVar("P", bound=Part)


def connected_parts(patterns: Sequence[P]) -> list[list[P]]:
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


def in_engine_order(patterns: Sequence[Part]) -> list[Part]:
    """As the engine joins them: the smallest first, by its guess, then the smallest that shares one."""
    left, ordered = list(patterns), list[Part]()
    known: set[str] = set()
    while left:
        best = min(left, key=lambda pattern: (known.isdisjoint(pattern.variables), _guess(pattern, known)))
        left.remove(best)
        ordered.append(best)
        known |= best.variables
    return ordered


def after_searches(parts: Sequence[Part]) -> list[Part]:
    """As `graphdb.planning.search_joins` has the engine join them: what searches found, then the pattern that
    shares a variable and has the fewest unknown ones.
    """
    ordered: list[Part] = [part for part in parts if isinstance(part, Found)]
    left = [part for part in parts if not isinstance(part, Found)]
    known = set[str]().union(*(part.variables for part in ordered))
    while left:
        near = [part for part in left if not known.isdisjoint(part.variables)]
        best = min(near or left, key=lambda part: len(part.variables - known))
        left.remove(best)
        ordered.append(best)
        known |= best.variables
    return ordered


def _guess(pattern: Part, known: set[str]) -> int:
    if isinstance(pattern, Choice):
        return len(pattern.terms)
    if isinstance(pattern, Found):
        return len(pattern.rows)
    subject, predicate, object_ = (not isinstance(term, str) or term in known for term in pattern.terms)
    return _GUESSES[subject, predicate, object_]


def _terms_of(part: Part) -> Sequence["Term | str"]:
    match part:
        case Pattern(terms=terms):
            return terms
        case Found(names=names):
            return names
    return (part.name,)


def _place(term: "Term | str", slots: dict[str, int]) -> Any:
    """The number of a variable's slot; a constant itself."""
    return slots.setdefault(term, len(slots)) if isinstance(term, str) else term


class Walk:
    """A nested loop join, up to a budget of index entries. Its methods raise OverBudget."""

    def __init__(self, store: QuadStore, entries_max: int, weigh: Callable[[Term], int]) -> None:
        """weigh says of an object as how many entries one with it counts; it may raise OverBudget."""
        self._store = store
        self._entries_max = entries_max
        self._weigh = weigh
        self.looked = 0  # at so many entries

    def solutions(self, patterns: Sequence[Part], known: _Solution) -> Iterator[_Solution]:
        """The solutions of patterns joined in this order."""
        if not patterns:
            yield known
            return
        for bound in self._matches(patterns[0], known):
            yield from self.solutions(patterns[1:], bound)

    def table(self, parts: Sequence[Part], columns: Sequence[str]) -> Iterator[list[Term | None]]:
        """What these bind the variables to, joined in this order: `solutions` made quick. No pattern has a
        variable twice, and none that was found comes after the first part.
        """
        slots: dict[str, int] = {}
        steps = []
        for part in parts:
            known = len(slots)
            places = tuple([_place(term, slots) for term in _terms_of(part)])
            steps.append((part, places, known))
        bound: list[Term | None] = [None] * len(slots)
        return self._joined(steps, 0, bound, [slots[name] for name in columns])

    def _joined(
        self,
        steps: Sequence[tuple[Part, tuple[Any, ...], int]],
        level: int,
        bound: list[Any],
        shown: list[int],
    ) -> Iterator[list[Term | None]]:
        if level == len(steps):
            yield [bound[slot] for slot in shown]
            return
        part, places, known = steps[level]
        if not isinstance(part, Pattern):
            rows = part.rows if isinstance(part, Found) else [(term,) for term in part.terms]
            self._look(1 + len(rows))
            for row in rows:
                for place, term in zip(places, row, strict=True):
                    bound[place] = term
                yield from self._joined(steps, level + 1, bound, shown)
            return
        self._look(1)
        subject, predicate, object_ = (
            place if not isinstance(place, int) else bound[place] if place < known else None
            for place in places
        )
        fresh = [
            (place, number)
            for number, place in enumerate(places)
            if isinstance(place, int) and place >= known
        ]
        for quad in self._store.matching(subject, predicate, object_, part.graph):
            found = quad.object
            self._look(self._weigh(found))
            for place, number in fresh:
                bound[place] = found if number == 2 else quad.predicate if number else quad.subject
            yield from self._joined(steps, level + 1, bound, shown)

    def scan(self, pattern: Pattern) -> None:
        """Look at all that matches one pattern by itself."""
        for _ in self._matches(pattern, {}):
            pass

    def rows(self, pattern: Pattern, columns: Sequence[str]) -> Iterator[list[Term | None]]:
        """What one pattern, which has no variable twice, binds these variables to: `solutions` made quick."""
        places = [pattern.terms.index(name) for name in columns]
        subject, predicate, object_ = (None if isinstance(term, str) else term for term in pattern.terms)
        self._look(1)
        for quad in self._store.matching(subject, predicate, object_, pattern.graph):
            found = quad.object
            self._look(self._weigh(found))
            yield [found if place == 2 else quad.predicate if place else quad.subject for place in places]

    def count_with(self, known: _Solution, optional: list[Pattern]) -> int:
        """How many solutions there are of one with what OPTIONALs add to it."""
        if not optional:
            return 1
        extended = list(self._matches(optional[0], known)) or [known]
        return sum(self.count_with(bound, optional[1:]) for bound in extended)

    def _chosen(self, choice: Choice, known: _Solution) -> Iterator[_Solution]:
        """The engine compares all of VALUES with each solution that it has so far."""
        self._look(1 + len(choice.terms) // _COMPARED_AN_ENTRY)
        for term in choice.terms:
            if known.get(choice.name, term) == term:
                yield {**known, choice.name: term}

    def _found(self, found: Found, known: _Solution) -> Iterator[_Solution]:
        """Compared as VALUES are."""
        self._look(1 + len(found.rows) // (_COMPARED_AN_ENTRY if known else 1))
        for row in found.rows:
            bound = dict(known)
            if all(
                term is None or bound.setdefault(name, term) == term
                for name, term in zip(found.names, row, strict=True)
            ):
                yield bound

    def _matches(self, pattern: Part, known: _Solution) -> Iterator[_Solution]:
        if isinstance(pattern, Choice):
            yield from self._chosen(pattern, known)
            return
        if isinstance(pattern, Found):
            yield from self._found(pattern, known)
            return
        subject, predicate, object_ = (
            known.get(term) if isinstance(term, str) else term for term in pattern.terms
        )
        self._look(1)
        for quad in self._store.matching(subject, predicate, object_, pattern.graph):
            self._look(self._weigh(quad.object))
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
            raise OverBudget
