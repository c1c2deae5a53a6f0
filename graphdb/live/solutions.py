"""A SELECT of SPARQL asked live: a record is a solution, which appears or disappears and is never updated."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyoxigraph import Quad, QuerySolutions, Store

from graphdb.config.limits import GateLimits
from graphdb.errors import EvaluationFailed
from graphdb.live.neighbourhood import Around, Triple
from graphdb.live.notifications import Notification
from graphdb.live.patterns import Alternative, NotFlat, alternatives_of
from graphdb.live.records import Record, value_of
from graphdb.live.tables import Difference
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.engine_text import engine_text
from graphdb.sparql.gate import check, read_query
from graphdb.sparql.patterns import Aggregate
from graphdb.sparql.repeatable import is_repeatable
from graphdb.sparql.syntax import Query
from graphdb.sparql.tree_walk import nodes_below
from graphdb.store.quad_store import QuadStore

__all__ = ["SolutionQuery", "read_solution_query"]

_ID_BYTES = 16
_Solution: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class SolutionQuery:
    """Equal where the text is. A solution is told apart by all its variables, also those that are not shown,
    so that equal rows are several records, as they are in the answer.
    """

    text: str
    engine_text: str = field(compare=False, repr=False)  # that gives all variables
    shown: tuple[str, ...] = field(compare=False, repr=False)
    alternatives: tuple[Alternative, ...] = field(compare=False, repr=False)

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
        near = around.gather(self.alternatives)
        if not near & (around.added | around.removed):
            return
        before = self._solutions(near - around.added)
        after = self._solutions(near - around.removed)
        for solution in {**before, **after}:
            for number in range(after[solution], before[solution]):
                yield Difference("DELETE", {"id": _digest(solution, number)})
            for number in range(before[solution], after[solution]):
                yield Difference("CREATE", self._record(solution, number))

    def _solutions(self, triples: Iterable[Triple]) -> "Counter[_Solution]":
        store = Store()
        store.extend(Quad(*triple) for triple in triples)
        answer = QuadStore(store).query_text(self.engine_text, Dataset())
        assert isinstance(answer, QuerySolutions)
        names = [variable.value for variable in answer.variables]
        return Counter(tuple((name, row[name]) for name in names if row[name] is not None) for row in answer)

    def _record(self, solution: _Solution, number: int) -> Record:
        values = dict(solution)
        record: Record = {"id": _digest(solution, number)}
        for name in self.shown:
            if name in values:
                record["?id" if name == "id" else name] = value_of(values[name])
        return record


def _digest(solution: _Solution, number: int) -> str:
    """number tells equal solutions apart, the first is 0."""
    told = "\n".join(f"{name} {term}" for name, term in sorted(solution, key=lambda item: item[0]))
    return hashlib.blake2b(f"{number}\n{told}".encode(), digest_size=_ID_BYTES).hexdigest()


def read_solution_query(text: str, limits: GateLimits) -> SolutionQuery:
    """Raises QuerySyntaxError, LimitExceeded; EvaluationFailed for a query that cannot be followed."""
    query = read_query(text, None, limits)
    check(query, limits)
    if query.form != "SELECT":
        raise EvaluationFailed(f"only a SELECT can be asked live, not {query.form}")
    try:
        alternatives = _alternatives(query)
    except NotFlat as reason:
        raise EvaluationFailed(f"a query cannot be followed that has {reason}") from None
    whole, shown = _whole_solutions(query)
    return SolutionQuery(text, engine_text(read_query(whole, None, limits)).text, shown, alternatives)


def _alternatives(query: Query) -> tuple[Alternative, ...]:
    """Raises NotFlat."""
    assert query.select is not None
    assert query.where is not None
    modifiers = query.modifiers
    if modifiers.limit is not None or modifiers.offset is not None:
        raise NotFlat("LIMIT or OFFSET")
    is_grouped = modifiers.group_by or modifiers.having
    if is_grouped or any(isinstance(node, Aggregate) for node in nodes_below(query)):
        raise NotFlat("GROUP BY, HAVING or an aggregate")
    if query.dataset:
        raise NotFlat("FROM")
    if query.service_hosts:
        raise NotFlat("SERVICE")
    if not is_repeatable(query):
        raise NotFlat("a function of the clock or of chance")
    alternatives = alternatives_of(query.where)
    if query.select.distinct or query.select.reduced:
        columns = query.select.projections
        shown = None if columns is None else {one.variable.name for one in columns}
        if shown is not None and not query.where.variables <= shown:
            raise NotFlat("DISTINCT over some of its variables")
    return alternatives


def _whole_solutions(query: Query) -> tuple[str, tuple[str, ...]]:
    """The text with all variables as columns, and the columns that were asked for."""
    select, where = query.select, query.where
    assert select is not None
    assert where is not None
    names = sorted(where.variables)
    if query.values is not None:
        names = sorted(where.variables | {variable.name for variable in query.values.variables})
    computed = [one for one in select.projections or () if one.expression is not None]
    shown = (
        tuple(names) if select.projections is None else tuple(one.variable.name for one in select.projections)
    )
    columns = [f"?{name}" for name in names]
    columns += [query.text[one.span.start : one.span.end] for one in computed]
    text = f"{query.text[: select.span.start]}SELECT {' '.join(columns)} {query.text[select.span.end :]}"
    return text, shown
