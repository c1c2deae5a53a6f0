"""What a change is matched against: the triple patterns of a query, laid flat.

They say which triples make a solution, and which say more of it. `alternatives_of` visits the algebra; where
the solutions of a query depend on more than some triples each, it raises `NotFlat`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise, product
from typing import Any, TypeAlias

from pyoxigraph import NamedNode

from graphdb.geo.entailment import is_derived
from graphdb.sparql.algebra import (
    SELECT_NODES,
    Algebra,
    Bgp,
    Exists,
    Extend,
    Filter,
    Join,
    LeftJoin,
    Minus,
    Path,
    Union,
    Values,
    spine_of,
)
from graphdb.sparql.patterns import InversePath, SequencePath, TriplePattern
from graphdb.sparql.printing import literal_of
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, Variable
from graphdb.sparql.tree_walk import expression_nodes

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


def alternatives_of(pattern: Algebra) -> tuple[Alternative, ...]:
    """What the solutions of a pattern consist of: each of them fulfils one of these. Raises NotFlat."""
    found = tuple(
        Alternative(tuple(required), tuple(attached)) for required, attached in _Flattening().group(pattern)
    )
    for one in found:
        if not one.required:
            raise NotFlat("a solution without any triple of its own")
        if sum(map(len, (one.required, *one.attached))) > _PATTERNS_MAX:
            raise NotFlat(f"more than {_PATTERNS_MAX} triple patterns")
        if not _is_connected(one.required):
            raise NotFlat("triples that have no variable in common")
        shared = frozenset().union(*(each.variables for each in one.required))
        for group in filter(None, one.attached):
            names = frozenset().union(*(each.variables for each in group))
            if not _is_connected(group) or not shared & names:
                raise NotFlat("an OPTIONAL, MINUS or EXISTS that shares no variable with the rest")
    return found


_Flat: TypeAlias = tuple[list[FlatPattern], list[Conjunction]]


class _Flattening:
    """Of one query. Every method raises NotFlat."""

    def __init__(self) -> None:
        self._nodes = count()  # on the way of paths

    def group(self, node: Algebra) -> list[_Flat]:
        """The required patterns of each alternative, and what is attached to it."""
        first, steps = spine_of(node)
        found = self._operand(first)
        for step in steps:
            match step:
                case Join(right=right):
                    found = _joined(found, self.group(right))
                case LeftJoin(right=right, condition=condition):
                    inner = right if condition is None else Filter(condition, right)
                    found = _with_attached(found, self._attached(inner))
                case Minus(right=right):
                    found = _with_attached(found, self._attached(right))
                case Filter(expression=expression) | Extend(expression=expression):
                    found = _with_attached(found, self._in_exists(expression))
                case _:
                    raise NotFlat(type(step).__name__)
            _check_count(found)
        return found

    def _operand(self, node: Algebra) -> list[_Flat]:
        match node:
            case Bgp(triples=triples):
                return [([one for triple in triples for one in self._triple(triple)], [])]
            case Path(subject=subject, predicate=predicate, object=object_):
                return [(list(self._path(_term(subject), predicate, _term(object_))), [])]
            case Union(branches=branches):
                found = [one for branch in branches for one in self.group(branch)]
                _check_count(found)
                return found
            case Values():
                return [([], [])]
        raise NotFlat("a SELECT within" if isinstance(node, SELECT_NODES) else type(node).__name__.upper())

    def _attached(self, node: Algebra) -> list[Conjunction]:
        """Each conjunction whole: that of a group within a group with what is around it."""
        found: list[Conjunction] = []
        for required, attached in self.group(node):
            found.append(tuple(required))
            found += [tuple(required) + one for one in attached]
        return found

    def _in_exists(self, expression: Any) -> list[Conjunction]:
        nodes = [node for node in expression_nodes(expression) if isinstance(node, Exists)]
        return [one for node in nodes for one in self._attached(node.pattern)]

    def _triple(self, triple: TriplePattern) -> Iterator[FlatPattern]:
        if is_derived(triple):
            raise NotFlat("a property that is derived from geometries")
        return self._path(_term(triple.subject), triple.predicate, _term(triple.object))

    def _path(self, subject: Any, path: Any, object_: Any) -> Iterator[FlatPattern]:
        match path:
            case Iri() | Variable():
                yield FlatPattern(subject, _term(path), object_)
            case InversePath(path=inner):
                yield from self._path(object_, inner, subject)
            case SequencePath(steps=steps):
                ends = [subject, *(f" {next(self._nodes)}" for _ in steps[1:]), object_]
                for step, (start, end) in zip(steps, pairwise(ends), strict=True):
                    yield from self._path(start, step, end)
            case _:
                raise NotFlat("a path of several lengths or ways")


def _joined(one: Iterable[_Flat], other: Iterable[_Flat]) -> list[_Flat]:
    return [(left[0] + right[0], left[1] + right[1]) for left, right in product(one, other)]


def _with_attached(found: Iterable[_Flat], extra: list[Conjunction]) -> list[_Flat]:
    return [(required, attached + extra) for required, attached in found]


def _check_count(found: list[_Flat]) -> None:
    if len(found) > _ALTERNATIVES_MAX:
        raise NotFlat(f"more than {_ALTERNATIVES_MAX} alternatives")


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
