"""What EXPLAIN has an engine do with a query: count what each pattern looks at, then evaluate it for real."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyoxigraph import QueryBoolean, QuerySolutions

from graphdb.errors import EvaluationFailed
from graphdb.rdf.pieces import Sink
from graphdb.store.engine_errors import request_failures
from graphdb.store.engine_query import Ask, EngineAnswer

__all__ = ["COUNTING_S", "explain"]

COUNTING_S = 1.0  # for the scans of one query, give or take the last one that is counted


def explain(
    ask: Ask,
    evaluate: Callable[[], EngineAnswer],
    count_queries: Sequence[str],
    sink: Sink,
    clock: Callable[[], float],
    lookups: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Evaluate a query and throw its rows away. Hands sink two pieces, each an object in JSON.

    The first, `{"quads": [...], "lookups": [...]}`, is there before the evaluation begins: for each of the
    count_queries (`graphdb.planning.sources`) its figure, or null where the time for counting was up or the
    engine refuses the pattern; and lookups as they are, if there are any. The second is `{"rows": n}`, of
    solutions or triples; null for ASK.
    ask begins to evaluate a text on the query's dataset, evaluate the query; clock is in seconds.
    Raises EvaluationFailed, and what ask, evaluate and sink raise.
    """
    until = clock() + COUNTING_S
    quads = [_count(ask, query) if clock() < until else None for query in count_queries]
    found = {"quads": quads, "lookups": lookups} if lookups else {"quads": quads}
    sink(json.dumps(found).encode())
    with request_failures():
        answer = evaluate()
        rows = None if isinstance(answer, QueryBoolean) else sum(1 for _ in answer)
    sink(json.dumps({"rows": rows}).encode())


def _count(ask: Ask, query: str) -> int | None:
    try:
        with request_failures():
            answer = ask(query)
            assert isinstance(answer, QuerySolutions)
            (row,) = answer
            return int(row["n"].value)
    except EvaluationFailed:
        return None
