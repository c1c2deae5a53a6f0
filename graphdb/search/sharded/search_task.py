"""`SearchTask`: a whole search, as each shard runs it; and the answer that their parts make together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import orjson

from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.multi.prepared import DEFAULT_OPTIONS, Prepared
from graphdb.search.query import QueryContext, Searcher, ShardSearcher
from graphdb.search.query.peers import Peers
from graphdb.search.query.searcher import PartialSearcher
from graphdb.search.query.tree import walk
from graphdb.search.results.search import SearchOptions
from graphdb.search.results.search_request import RESULT_WINDOW
from graphdb.search.sharded.narrowing import Narrowing, narrowed

__all__ = ["LookedUp", "SearchPart", "SearchTask", "answer_of", "shown_part", "whole_answer"]

LookedUp: TypeAlias = dict[tuple[str, str, str, str | None], Sequence[Any]]
"""What a `TermsLookup` has given, by its arguments."""


@dataclass(frozen=True, slots=True)
class SearchPart:
    """What a shard has of an answer. hits: its own, in order, as JSON.

    answer: the rest, which is the same in all shards, so that only the first gives it.
    """

    hits: list[bytes]
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SearchTask:
    """body is the request's. filter, boost and window: see `Target`; allow_expensive: see `QueryContext`.

    looked_up: all that the request looks up in documents, which whoever searches need not have. chosen: the
    shards whose documents are searched, None: all; the others take part with their statistics. narrowing: of
    the candidates. sids: who asks sees the documents that `_allow_sids` shows to one of these, None: all.
    """

    body: Mapping[str, Any]
    now_ms: int = 0
    options: SearchOptions = DEFAULT_OPTIONS
    filter: Any = None
    boost: float = 1.0
    window: int = RESULT_WINDOW
    allow_expensive: bool = True
    looked_up: LookedUp = field(default_factory=dict)
    chosen: frozenset[int] | None = None
    members: tuple[int, ...] | None = None
    narrowing: Narrowing | None = None
    sids: frozenset[str] | None = None

    def among(self, numbers: Sequence[int]) -> "SearchTask":
        """The same, in which only these of all shards take part."""
        return self if self.chosen is None else replace(self, members=tuple(numbers))

    def needs(self, shard: int) -> bool:
        """Whether documents of a shard are searched."""
        return self.chosen is None or shard in self.chosen

    def searcher(self, own: Searcher, peers: Peers) -> ShardSearcher:
        """Of a shard that takes part."""
        number = peers.number if self.members is None else self.members[peers.number]
        return ShardSearcher(own if self.needs(number) else PartialSearcher(own, ()), peers)

    def run(self, searcher: ShardSearcher, context: QueryContext) -> SearchPart:
        """Errors: SearchError, AllFailed."""
        context = replace(context, allow_expensive=self.allow_expensive, terms_lookup=self._terms)
        target = Target(searcher, context, self.filter, self.boost, self.window)
        prepared = prepare(self.body, [target], Searchers(), self.options)
        searcher.learn(term for query in walk(prepared.request.query) for term in query.scored_by())
        return shown_part(answer_of(prepared, self.narrowing, searcher), searcher)

    def _terms(self, index: str, doc_id: str, path: str, routing: str | None) -> Sequence[Any]:
        return self.looked_up[index, doc_id, path, routing]


def answer_of(prepared: Prepared, narrowing: Narrowing | None, searcher: Searcher) -> dict[str, Any]:
    """Of one shard."""
    if narrowing is None:
        return prepared.run()
    assert searcher.peers is not None
    return prepared.finish(narrowed(narrowing, prepared, searcher.peers))


def shown_part(answer: dict[str, Any], searcher: ShardSearcher) -> SearchPart:
    """What a shard gives of an answer."""
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
