"""The live queries of SPARQL. A record is a solution, which appears or disappears and is never updated.

`SolutionQuery` is evaluated over the triples near each change, as they were and as they are. `WholeQuery` is
evaluated again over the whole graph after each change that may concern it, and two answers are compared.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyoxigraph import Quad, QueryResultsFormat, QuerySolutions, Store, parse_query_results

from graphdb.live.change_patterns import Alternative
from graphdb.live.neighbourhood import Around, Triple
from graphdb.live.notifications import Difference, Notification
from graphdb.live.records import Record, value_of
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.store.quad_store import QuadStore

__all__ = ["Rows", "Solution", "SolutionQuery", "WholeQuery", "differences", "record_of", "solution_id"]

_ID_BYTES = 16
Solution: TypeAlias = Sequence[tuple[str, Any]]
"""What is bound, by name."""


@dataclass(frozen=True, slots=True)
class WholeQuery:
    """Equal where the text is. A record is a row of the answer."""

    text: str
    engine_text: str = field(compare=False, repr=False)
    shown: tuple[str, ...] = field(compare=False, repr=False)
    predicates: frozenset[str] | None = field(compare=False, repr=False)  # None: any
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
    """A digest of a whole solution; number distinguishes equal ones, the first is 0."""
    text = "\n".join(f"{name} {term}" for name, term in sorted(solution, key=lambda item: item[0]))
    return hashlib.blake2b(f"{number}\n{text}".encode(), digest_size=_ID_BYTES).hexdigest()


def record_of(solution: Solution, number: int, shown: Iterable[str]) -> Record:
    """What is shown of a solution, with its id."""
    values = dict(solution)
    record: Record = {"id": solution_id(solution, number)}
    for name in shown:
        if name in values:
            record["?id" if name == "id" else name] = value_of(values[name])
    return record


@dataclass(frozen=True, slots=True)
class SolutionQuery:
    """Equal where the text is. A solution is identified by all its variables, also those that are not shown,
    so that equal rows are several records, as they are in the answer.

    Where solutions are grouped (GROUP BY, DISTINCT), a record is a group, and keys are variables that all
    solutions of a group have in common.
    """

    text: str
    whole: WholeQuery = field(compare=False, repr=False)  # the same records, without looking near a change
    alternatives: tuple[Alternative, ...] = field(compare=False, repr=False)
    keys: frozenset[str] | None = field(default=None, compare=False, repr=False)

    @property
    def graph(self) -> None:
        """See `AroundQuery`: queries with GRAPH or FROM are not followed."""

    @property
    def predicates(self) -> frozenset[str] | None:
        """The IRIs of the predicates of triples that may concern it; None: any."""
        found = {
            pattern.predicate
            for one in self.alternatives
            for patterns in (one.required, *one.attached)
            for pattern in patterns
        }
        if any(isinstance(one, str) for one in found):
            return None
        return frozenset(one.value for one in found)

    def notifications(self, index: int, around: Around) -> Iterator[Notification]:
        """See `AroundQuery`."""
        for found in self._differences(around):
            yield Notification(index, found.action, found.result)

    def _differences(self, around: Around) -> Iterator[Difference]:
        """What a change means to the solutions. Raises TooFar, EvaluationFailed.

        The query is evaluated over the triples near the change, as they were and as they are. Solutions that
        it does not concern come out the same both times, whole or not.
        """
        near = around.gather(self.alternatives, self.keys)
        if not near & (around.added | around.removed):
            return
        before = self._solutions(near - around.added)
        after = self._solutions(near - around.removed)
        for solution in {**before, **after}:
            for number in range(after[solution], before[solution]):
                yield Difference("DELETE", {"id": solution_id(solution, number)})
            for number in range(before[solution], after[solution]):
                yield Difference("CREATE", record_of(solution, number, self.whole.shown))

    def _solutions(self, triples: Iterable[Triple]) -> "Counter[tuple[tuple[str, Any], ...]]":
        store = Store()
        if self.keys is not None:  # so that sums of the same numbers, added in another order, do not differ
            triples = sorted(triples, key=str)
        store.extend(Quad(*triple) for triple in triples)
        answer = QuadStore(store).query_text(self.whole.engine_text, Dataset())
        assert isinstance(answer, QuerySolutions)
        names = [variable.value for variable in answer.variables]
        return Counter(tuple((name, row[name]) for name in names if row[name] is not None) for row in answer)
