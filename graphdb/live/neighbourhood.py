"""The triples around a change: those that solutions which it may concern are made of, before and after it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

from graphdb.live.change_patterns import Alternative, FlatPattern, is_hidden

__all__ = ["Around", "TooFar", "Triple"]

Triple: TypeAlias = tuple[Any, Any, Any]
Binding: TypeAlias = Mapping[str, Any]
Find: TypeAlias = Callable[[Any, Any, Any], Iterable[Triple]]
"""The triples with these terms, None standing for any."""


class TooFar(Exception):
    """More triples would have to be looked at than are allowed."""


class Around:
    """One change, and what is near it. Each triple that is looked at counts."""

    def __init__(
        self, find: Find, added: Sequence[Triple], removed: Sequence[Triple], looks_max: int
    ) -> None:
        """find reads the state after the change."""
        self._find = find
        self.added, self.removed = frozenset(added), frozenset(removed)
        self._looks = looks_max

    @cached_property
    def _gone(self) -> Mapping[tuple[int, Any], Sequence[Triple]]:
        """What was removed, by the number of a part (0 the subject) and the term there."""
        found: dict[tuple[int, Any], list[Triple]] = {}
        for triple in self.removed:
            for part in enumerate(triple):
                found.setdefault(part, []).append(triple)
        return found

    def triples(self, subject: Any, predicate: Any, object_: Any, *, after: bool) -> Iterator[Triple]:
        """Those with these terms, None standing for any, as it is after the change or was before it.

        Raises TooFar.
        """
        for triple in self._find(subject, predicate, object_):
            self.look()
            if after or triple not in self.added:
                yield triple
        if not after:
            wanted = (subject, predicate, object_)
            part = next((number for number in (0, 2, 1) if wanted[number] is not None), None)
            for triple in self.removed if part is None else self._gone.get((part, wanted[part]), ()):
                if all(term is None or term == there for term, there in zip(wanted, triple, strict=True)):
                    self.look()
                    yield triple

    def look(self, count: int = 1) -> None:
        """Count what is looked at. Raises TooFar."""
        self._looks -= count
        if self._looks < 0:
            raise TooFar

    def gather(self, alternatives: Iterable[Alternative], keys: frozenset[str] | None = None) -> set[Triple]:
        """All triples of all solutions that the change may concern, in both states, and perhaps others.

        With keys also those of all solutions that have the same values of these variables.
        Raises TooFar.
        """
        alternatives = list(alternatives)
        found: set[Triple] = set()
        known: set[tuple[int, frozenset[tuple[str, Any]]]] = set()
        for binding in chain.from_iterable(map(self._touched, alternatives)):
            for number, alternative in enumerate(alternatives):
                for whole in self._equal(alternative, binding, keys):
                    key = number, frozenset(whole.items())
                    if key not in known:
                        known.add(key)
                        found.update(self._triples_of(alternative, whole))
        return found

    def _equal(
        self, alternative: Alternative, binding: Binding, keys: frozenset[str] | None
    ) -> Iterator[Binding]:
        """The solutions of the required patterns that may be rows equal to that of a binding: how many there
        are of them is what distinguishes them. With keys: those that are grouped with it.
        """
        names = frozenset().union(*(pattern.variables for pattern in alternative.required))
        if keys is not None:
            names &= keys
        known = {name: term for name, term in binding.items() if name in names and not is_hidden(name)}
        if known or not names:
            yield from self._joined(alternative.required, known, True)
            yield from self._joined(alternative.required, known, False)

    def _triples_of(self, alternative: Alternative, binding: Binding) -> Iterator[Triple]:
        for pattern in alternative.required:
            yield _triple(pattern, binding)
        for group in alternative.attached:
            for after in (True, False):
                for extended in self._joined(group, binding, after):
                    yield from (_triple(pattern, extended) for pattern in group)

    def _touched(self, alternative: Alternative) -> Iterator[Binding]:
        """The solutions of the required patterns that a changed triple is part of, or may say more of."""
        required = alternative.required
        names = frozenset().union(*(pattern.variables for pattern in required))
        for triples, after in ((self.removed, False), (self.added, True)):
            for triple in triples:
                yield from self._through(required, triple, {}, after)
                for group in alternative.attached:
                    for extended in self._through(group, triple, {}, after):
                        shared = {name: term for name, term in extended.items() if name in names}
                        yield from self._joined(required, shared, after)
                        yield from self._joined(required, shared, not after)

    def _through(
        self, patterns: Sequence[FlatPattern], triple: Triple, known: Binding, after: bool
    ) -> Iterator[Binding]:
        """The solutions of the patterns that have the triple in them."""
        for place, pattern in enumerate(patterns):
            binding = pattern.matched(triple, known)
            if binding is not None:
                yield from self._joined((*patterns[:place], *patterns[place + 1 :]), binding, after)

    def _joined(self, patterns: Sequence[FlatPattern], known: Binding, after: bool) -> Iterator[Binding]:
        if not patterns:
            yield known
            return
        # the pattern of which most is known
        place = max(range(len(patterns)), key=lambda number: _known(patterns[number], known))
        pattern = patterns[place]
        rest = (*patterns[:place], *patterns[place + 1 :])
        for triple in self._matching(pattern, known, after):
            binding = pattern.matched(triple, known)
            if binding is not None:
                yield from self._joined(rest, binding, after)

    def _matching(self, pattern: FlatPattern, known: Binding, after: bool) -> Iterator[Triple]:
        terms = [known.get(part) if isinstance(part, str) else part for part in pattern.parts]
        return self.triples(*terms, after=after)


def _known(pattern: FlatPattern, known: Binding) -> int:
    """How selective it is: what is given, a subject or object more than a predicate."""
    weights = (4, 1, 3)
    return sum(
        weight
        for part, weight in zip(pattern.parts, weights, strict=True)
        if not isinstance(part, str) or part in known
    )


def _triple(pattern: FlatPattern, binding: Binding) -> Triple:
    subject, predicate, object_ = (binding[part] if isinstance(part, str) else part for part in pattern.parts)
    return subject, predicate, object_
