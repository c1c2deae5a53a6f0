"""`SearchTask`: a whole search, as each shard runs it; and the answer that their parts make together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.multi.prepared import DEFAULT_OPTIONS
from graphdb.search.query import QueryContext, ShardSearcher
from graphdb.search.query.tree import walk
from graphdb.search.results.search import SearchOptions
from graphdb.search.results.search_request import RESULT_WINDOW

__all__ = ["SearchPart", "SearchTask", "whole_answer"]


@dataclass(frozen=True, slots=True)
class SearchPart:
    """What a shard has of an answer. hits: its own, in order, as JSON.

    answer: the rest, which is the same in all shards, so that only the first gives it.
    """

    hits: list[bytes]
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SearchTask:
    """body is the request's. filter, boost and window: see `Target`."""

    body: Mapping[str, Any]
    now_ms: int = 0
    options: SearchOptions = DEFAULT_OPTIONS
    filter: Any = None
    boost: float = 1.0
    window: int = RESULT_WINDOW

    def run(self, searcher: ShardSearcher, context: QueryContext) -> SearchPart:
        """Errors: SearchError, AllFailed."""
        target = Target(searcher, context, self.filter, self.boost, self.window)
        prepared = prepare(self.body, [target], Searchers(), self.options)
        searcher.learn(term for query in walk(prepared.request.query) for term in query.scored_by())
        answer = prepared.run()
        hits = [orjson.dumps(hit) for hit in answer["hits"].pop("hits")]
        is_first = searcher.peers is None or searcher.peers.number == 0
        return SearchPart(hits, answer if is_first else None)


def whole_answer(parts: Sequence[SearchPart], owners: Sequence[int], raw: bool) -> dict[str, Any]:
    """owners: the shard of each hit. raw: hits stay JSON, as orjson.Fragment."""
    answer = dict(cast(Mapping[str, Any], parts[0].answer))
    left = [iter(part.hits) for part in parts]
    read = orjson.Fragment if raw else orjson.loads
    answer["hits"] = {**answer["hits"], "hits": [read(next(left[owner])) for owner in owners]}
    return answer
