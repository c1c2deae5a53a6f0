"""`WholeQuery`: a query of SPARQL that is evaluated anew, over the whole graph, after each change that may
concern it; and what has become of its rows between two answers.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyoxigraph import QueryResultsFormat, QuerySolutions, parse_query_results

from graphdb.geo.entailment import is_derived
from graphdb.live.records import Record, value_of
from graphdb.live.tables import Difference
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.patterns import (
    AlternativePath,
    GraphPattern,
    InversePath,
    RepeatedPath,
    SequencePath,
    TriplePattern,
    TriplesBlock,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import BlankNodeLabel, Iri, Variable
from graphdb.sparql.tree_walk import nodes_below

__all__ = ["Rows", "Solution", "WholeQuery", "differences", "predicates_of", "record_of", "solution_id"]

_ID_BYTES = 16
Solution: TypeAlias = Sequence[tuple[str, Any]]
"""What is bound, by name."""


@dataclass(frozen=True, slots=True)
class WholeQuery:
    """Equal where the text is. A record is a row of the answer."""

    text: str
    engine_text: str = field(compare=False, repr=False)
    shown: tuple[str, ...] = field(compare=False, repr=False)
    predicates: frozenset[str] | None = field(compare=False, repr=False)  # see `predicates_of`
    dataset: Dataset = field(default=Dataset(), compare=False, repr=False)
    calls_geometry: bool = field(default=False, compare=False, repr=False)

    def concerns(self, parts: Iterable[ChangeSet]) -> bool:
        """Whether a change may make the answer another."""
        if self.predicates is None:
            return True
        wanted = self.predicates
        return any(
            quad.predicate.value in wanted
            for part in parts
            for quads in (part.removed, part.added)
            for quad in quads
        )


class Rows:
    """One answer, as lines of TSV: they are compared without being read."""

    def __init__(self, answer: bytes) -> None:
        """answer is in SPARQL's TSV, whole."""
        self._head, *lines = answer.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        self._count = Counter(lines)

    def missing_in(self, other: "Rows") -> "Counter[bytes]":
        """The lines that the other has not, or fewer of, with how many it has."""
        counted = ((line, count, other._count[line]) for line, count in self._count.items())
        return Counter({line: has for line, count, has in counted if count > has})

    def of(self, line: bytes) -> int:
        """How many rows are this line."""
        return self._count[line]

    def solutions(self, lines: Iterable[bytes]) -> Iterator[Solution]:
        """These lines, read."""
        if not self._head:  # no column at all
            yield from ([] for _ in lines)
            return
        answer = parse_query_results(b"\n".join((self._head, *lines, b"")), format=QueryResultsFormat.TSV)
        assert isinstance(answer, QuerySolutions)
        names = [variable.value for variable in answer.variables]
        for row in answer:
            yield [(name, row[name]) for name in names if row[name] is not None]


def differences(query: WholeQuery, before: Rows, after: Rows) -> Iterator[Difference]:
    """What has become of the rows, first those that are gone."""
    gone = before.missing_in(after)
    for line, solution in zip(gone, before.solutions(gone), strict=True):
        for number in range(gone[line], before.of(line)):
            yield Difference("DELETE", {"id": solution_id(solution, number)})
    come = after.missing_in(before)
    for line, solution in zip(come, after.solutions(come), strict=True):
        for number in range(come[line], after.of(line)):
            yield Difference("CREATE", record_of(solution, number, query.shown))


def solution_id(solution: Solution, number: int) -> str:
    """A digest of a whole solution; number tells equal ones apart, the first is 0."""
    told = "\n".join(f"{name} {term}" for name, term in sorted(solution, key=lambda item: item[0]))
    return hashlib.blake2b(f"{number}\n{told}".encode(), digest_size=_ID_BYTES).hexdigest()


def record_of(solution: Solution, number: int, shown: Iterable[str]) -> Record:
    """What is shown of a solution, with its id."""
    values = dict(solution)
    record: Record = {"id": solution_id(solution, number)}
    for name in shown:
        if name in values:
            record["?id" if name == "id" else name] = value_of(values[name])
    return record


def predicates_of(query: Query) -> frozenset[str] | None:
    """The IRIs of the predicates of triples that may concern the answer; None: any change may."""
    found: set[str] = set()
    for node in nodes_below(query):
        if isinstance(node, GraphPattern) and isinstance(node.name, Variable):
            return None  # that a graph is there may be enough
        if isinstance(node, TriplesBlock):
            for triple in node.triples:
                if is_derived(triple) or _is_everywhere(triple) or not _gather(triple.predicate, found):
                    return None
    return frozenset(found)


def _gather(path: Any, found: set[str]) -> bool:
    """False where it may be any predicate."""
    match path:
        case Iri(value=value):
            found.add(value)
            return True
        case InversePath(path=inner) | RepeatedPath(path=inner):
            return _gather(inner, found)
        case SequencePath(steps=inner) | AlternativePath(choices=inner):
            return all([_gather(one, found) for one in inner])
    return False


def _is_everywhere(triple: TriplePattern) -> bool:
    """Whether each node of the graph fits, which each triple may bring."""
    ends = triple.subject, triple.object
    return _may_be_empty(triple.predicate) and all(isinstance(end, Variable | BlankNodeLabel) for end in ends)


def _may_be_empty(path: Any) -> bool:
    match path:
        case RepeatedPath(path=inner, modifier=modifier):
            return modifier != "+" or _may_be_empty(inner)
        case InversePath(path=inner):
            return _may_be_empty(inner)
        case SequencePath(steps=inner):
            return all(map(_may_be_empty, inner))
        case AlternativePath(choices=inner):
            return any(map(_may_be_empty, inner))
    return False
