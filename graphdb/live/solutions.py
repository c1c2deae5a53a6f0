"""A SELECT of SPARQL asked live: a record is a solution, which appears or disappears and is never updated."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyoxigraph import Quad, QuerySolutions, Store

from graphdb.live.neighbourhood import Around, Triple
from graphdb.live.notifications import Notification
from graphdb.live.patterns import Alternative
from graphdb.live.tables import Difference
from graphdb.live.whole import WholeQuery, record_of, solution_id
from graphdb.sparql.dataset import Dataset
from graphdb.store.quad_store import QuadStore

__all__ = ["SolutionQuery"]

_Solution: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class SolutionQuery:
    """Equal where the text is. A solution is told apart by all its variables, also those that are not shown,
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

    def told(self, index: int, around: Around) -> Iterator[Notification]:
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

    def _solutions(self, triples: Iterable[Triple]) -> "Counter[_Solution]":
        store = Store()
        if self.keys is not None:  # so that sums of the same numbers, added in another order, do not differ
            triples = sorted(triples, key=str)
        store.extend(Quad(*triple) for triple in triples)
        answer = QuadStore(store).query_text(self.whole.engine_text, Dataset())
        assert isinstance(answer, QuerySolutions)
        names = [variable.value for variable in answer.variables]
        return Counter(tuple((name, row[name]) for name in names if row[name] is not None) for row in answer)
