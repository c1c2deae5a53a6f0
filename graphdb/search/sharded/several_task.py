"""`SeveralTask`: a search of several indexes, as each shard of each of them runs it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphdb.search.multi import Searchers, Target, prepare
from graphdb.search.multi.prepared import DEFAULT_OPTIONS
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.query.peers import Peers
from graphdb.search.query.several import ShardSeveralSearcher
from graphdb.search.query.tree import walk
from graphdb.search.results.search import SearchOptions
from graphdb.search.results.search_request import RESULT_WINDOW
from graphdb.search.sharded.narrowing import Narrowing
from graphdb.search.sharded.search_task import LookedUp, SearchPart, answer_of, shown_part

__all__ = ["IndexPart", "SeveralTask"]


@dataclass(frozen=True, slots=True)
class IndexPart:
    """One of the indexes. shape: what shards that are not of it make its mapping of; see `View.other`.

    filter, boost and window: see `Target`. shards: how many it has.
    """

    shape: bytes
    shards: int
    filter: Any = None
    boost: float = 1.0
    window: int = RESULT_WINDOW


@dataclass(frozen=True, slots=True)
class SeveralTask:
    """See `SearchTask`. The shards that take part are numbered index by index."""

    body: Mapping[str, Any]
    parts: tuple[IndexPart, ...]
    now_ms: int = 0
    options: SearchOptions = DEFAULT_OPTIONS
    allow_expensive: bool = True
    looked_up: LookedUp = field(default_factory=dict)
    shared_statistics: bool = False
    members: tuple[int, ...] | None = None
    narrowing: Narrowing | None = None
    sids: frozenset[str] | None = None

    def among(self, numbers: Sequence[int]) -> "SeveralTask":
        """The same, in which only these of all shards take part."""
        return replace(self, members=tuple(numbers))

    def needs(self, _shard: int) -> bool:
        """Whether documents of a shard are searched."""
        return True

    def index_of(self, member: int) -> int:
        """The place of the index that a shard is of, by its number among those that take part."""
        shard = member if self.members is None else self.members[member]
        for place, part in enumerate(self.parts):
            if shard < part.shards:
                return place
            shard -= part.shards
        raise IndexError(shard)

    def searcher(self, searchers: Sequence[Searcher], peers: Peers) -> ShardSeveralSearcher:
        """searchers: of one shard, by index."""
        return ShardSeveralSearcher(searchers, peers, self.shared_statistics)

    def run(self, searcher: ShardSeveralSearcher, contexts: Sequence[QueryContext]) -> SearchPart:
        """Errors: SearchError, AllFailed."""
        targets = [
            Target(
                own,
                replace(context, allow_expensive=self.allow_expensive, terms_lookup=self._terms),
                part.filter,
                part.boost,
                part.window,
                tuple(range(part.shards)),
            )
            for own, context, part in zip(searcher.searchers, contexts, self.parts, strict=True)
        ]
        prepared = prepare(self.body, targets, _One(searcher), self.options, self.shared_statistics)
        assert not prepared.failures, "whoever asks has parsed the request for each index"
        for number, own in enumerate(searcher.searchers):
            scored = prepared.request.query.part(number)
            scoring = searcher if self.shared_statistics else own
            scoring.learn(term for query in walk(scored) for term in query.scored_by())
        return shown_part(answer_of(prepared, self.narrowing, searcher), searcher)

    def _terms(self, index: str, doc_id: str, path: str, routing: str | None) -> Sequence[Any]:
        return self.looked_up[index, doc_id, path, routing]


class _One(Searchers):
    """Gives a searcher that is there."""

    def __init__(self, searcher: Searcher) -> None:
        super().__init__()
        self._searcher = searcher

    def of(self, targets: Sequence[Target], shared_statistics: bool = False) -> Searcher:
        return self._searcher
