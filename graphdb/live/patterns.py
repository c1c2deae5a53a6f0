"""The triple patterns of a query, laid flat: which triples make a solution, and which say more of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from pyoxigraph import NamedNode

from graphdb.geo.entailment import is_derived
from graphdb.sparql.patterns import (
    Bind,
    Exists,
    Filter,
    GroupGraphPattern,
    InlineData,
    InversePath,
    MinusPattern,
    OptionalPattern,
    SequencePath,
    SubSelect,
    TriplesBlock,
    UnionPattern,
)
from graphdb.sparql.printing import literal_of
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["Alternative", "FlatPattern", "NotFlat", "alternatives_of", "is_hidden"]

_ALTERNATIVES_MAX = 16
_PATTERNS_MAX = 60


class NotFlat(Exception):
    """What a query has that makes its solutions depend on more than some triples each."""


@dataclass(frozen=True, slots=True)
class FlatPattern:
    """A triple pattern; what is a text is a variable's name, else it is a term."""

    subject: Any
    predicate: Any
    object: Any

    @property
    def parts(self) -> tuple[Any, Any, Any]:
        return self.subject, self.predicate, self.object

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(part for part in self.parts if isinstance(part, str))

    def matched(self, triple: tuple[Any, Any, Any], known: Mapping[str, Any]) -> dict[str, Any] | None:
        """The variables' values where a triple is one of these; None where it is not."""
        found = dict(known)
        for part, term in zip(self.parts, triple, strict=True):
            if not isinstance(part, str):
                if part != term:
                    return None
            elif found.setdefault(part, term) != term:
                return None
        return found


Conjunction: TypeAlias = tuple[FlatPattern, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Patterns that a solution fulfils, all of them, and groups of others (OPTIONAL, MINUS, EXISTS) that say
    more of it.
    """

    required: Conjunction
    attached: tuple[Conjunction, ...]


def is_hidden(name: str) -> bool:
    """Whether a variable is none that the query can show: a blank node, or a node on the way of a path."""
    return name.startswith(("_:", " "))


def alternatives_of(group: GroupGraphPattern) -> tuple[Alternative, ...]:
    """Every solution is one of one of these. Raises NotFlat."""
    found = tuple(Alternative(tuple(required), tuple(attached)) for required, attached in _flat(group))
    for one in found:
        if not one.required:
            raise NotFlat("a solution without any triple of its own")
        if sum(map(len, (one.required, *one.attached))) > _PATTERNS_MAX:
            raise NotFlat(f"more than {_PATTERNS_MAX} triple patterns")
        if not _is_connected(one.required):
            raise NotFlat("triples that have no variable in common")
        shared = frozenset().union(*(pattern.variables for pattern in one.required))
        for group_ in one.attached:
            if not group_:
                continue
            if not _is_connected(group_) or not shared & frozenset().union(
                *(pattern.variables for pattern in group_)
            ):
                raise NotFlat("an OPTIONAL, MINUS or EXISTS that shares no variable with the rest")
    return found


_Flat: TypeAlias = tuple[list[FlatPattern], list[Conjunction]]


def _flat(group: GroupGraphPattern) -> list[_Flat]:
    found: list[_Flat] = [([], [])]
    for element in group.elements:
        match element:
            case TriplesBlock(triples=triples):
                patterns = [pattern for triple in triples for pattern in _patterns(triple)]
                found = [(required + patterns, attached) for required, attached in found]
            case GroupGraphPattern():
                found = _joined(found, _flat(element))
            case UnionPattern(branches=branches):
                found = _joined(found, [one for branch in branches for one in _flat(branch)])
            case OptionalPattern(pattern=pattern) | MinusPattern(pattern=pattern):
                extra = _attached(pattern)
                found = [(required, attached + extra) for required, attached in found]
            case Filter(expression=expression) | Bind(expression=expression):
                extra = [
                    one
                    for node in nodes_below(expression)
                    if isinstance(node, Exists)
                    for one in _attached(node.pattern)
                ]
                found = [(required, attached + extra) for required, attached in found]
            case InlineData():
                pass
            case SubSelect():
                raise NotFlat("a SELECT within")
            case _:
                raise NotFlat(type(element).__name__.removesuffix("Pattern").upper())
        if len(found) > _ALTERNATIVES_MAX:
            raise NotFlat(f"more than {_ALTERNATIVES_MAX} alternatives")
    return found


def _joined(one: Iterable[_Flat], other: Iterable[_Flat]) -> list[_Flat]:
    return [(left[0] + right[0], left[1] + right[1]) for left, right in product(one, other)]


def _attached(group: GroupGraphPattern) -> list[Conjunction]:
    """Each conjunction whole: that of a group within a group with what is around it."""
    found: list[Conjunction] = []
    for required, attached in _flat(group):
        found.append(tuple(required))
        found += [tuple(required) + one for one in attached]
    return found


def _patterns(triple: Any) -> Iterator[FlatPattern]:
    if is_derived(triple):
        raise NotFlat("a property that is derived from geometries")
    yield from _path(_term(triple.subject), triple.predicate, _term(triple.object), f"{triple.span}")


def _path(subject: Any, path: Any, object_: Any, place: str) -> Iterator[FlatPattern]:
    """place makes the names of the nodes on the way unlike all others."""
    match path:
        case Iri() | Variable():
            yield FlatPattern(subject, _term(path), object_)
        case InversePath(path=inner):
            yield from _path(object_, inner, subject, place)
        case SequencePath(steps=steps):
            ends = [subject, *(f" {place} {number}" for number in range(1, len(steps))), object_]
            for number, step in enumerate(steps):
                yield from _path(ends[number], step, ends[number + 1], f"{place} {number}")
        case _:
            raise NotFlat("a path of several lengths or ways")


def _term(term: Any) -> Any:
    match term:
        case Variable(name=name):
            return name
        case BlankNodeLabel(label=label):
            return f"_:{label}"
        case Iri(value=value):
            return NamedNode(value)
        case RdfLiteral():
            return literal_of(term)
    raise NotFlat("a triple term")


def _is_connected(patterns: Conjunction) -> bool:
    """Whether each pattern can be reached from each other over variables; without any it stands alone."""
    rest, reached = list(patterns[1:]), set(patterns[0].variables)
    while rest:
        near = [pattern for pattern in rest if not pattern.variables or pattern.variables & reached]
        if not near:
            return False
        for pattern in near:
            reached |= pattern.variables
            rest.remove(pattern)
    return True
