"""What EXPLAIN has an engine do with a query: count what each pattern looks at, then evaluate it for real."""

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyoxigraph import QueryBoolean, QuerySolutions, QueryTriples

from graphdb.errors import EvaluationFailed
from graphdb.rdf.pieces import Sink
from graphdb.store.engine_errors import request_failures

__all__ = ["COUNTING_S", "explain"]

COUNTING_S = 1.0  # for the scans of one query, give or take the last one that is counted

_Ask: TypeAlias = Callable[[str], QuerySolutions | QueryTriples | QueryBoolean]


def explain(
    ask: _Ask,
    text: str,
    count_queries: Sequence[str],
    sink: Sink,
    clock: Callable[[], float],
) -> None:
    """Evaluate a query and throw its rows away. Hands sink two pieces, each an object in JSON.

    The first, `{"quads": [...]}`, is there before the evaluation begins: for each of the count_queries
    (`graphdb.sparql.explain`) its figure, or null where the time for counting was up or the engine refuses
    the pattern. The second is `{"rows": n}`, of solutions or triples; null for ASK.
    ask begins to evaluate a text on the query's dataset; clock is in seconds.
    Raises EvaluationFailed, and what ask and sink raise.
    """
    until = clock() + COUNTING_S
    quads = [_count(ask, query) if clock() < until else None for query in count_queries]
    sink(json.dumps({"quads": quads}).encode())
    with request_failures():
        answer = ask(text)
        rows = None if isinstance(answer, QueryBoolean) else sum(1 for _ in answer)
    sink(json.dumps({"rows": rows}).encode())


def _count(ask: _Ask, query: str) -> int | None:
    try:
        with request_failures():
            answer = ask(query)
            assert isinstance(answer, QuerySolutions)
            (row,) = answer
            return int(row["n"].value)
    except EvaluationFailed:
        return None
