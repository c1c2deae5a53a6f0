"""One index searched shard by shard, without processes: what passes between them is pickled all the same."""

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from graphdb.search.catalog.state import Index
from graphdb.search.leaf_reader import Leaf
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results.search import SearchOptions
from graphdb.search.sharded import Call, Lost, SearchShard, SearchTask, View, search_shards

__all__ = ["Transport", "search_apart", "shards_apart", "shards_of"]


class Transport:
    """Calls shards one after the other, and counts that. lost: those that do not answer, from a call on."""

    def __init__(self) -> None:
        self.calls = 0
        self.lost: dict[SearchShard, int] = {}  # by shard, the number of its calls that are answered

    def __call__(self, calls: Sequence[Call]) -> list[Any]:
        return [self._called(call) for call in calls]

    def _called(self, call: Call) -> Any:
        self.calls += 1
        assert isinstance(call.copy, SearchShard)
        if call.copy in self.lost:
            self.lost[call.copy] -= 1
            if self.lost[call.copy] < 0:
                return Lost("connection refused")
        arguments = pickle.loads(pickle.dumps(call.arguments))
        return pickle.loads(pickle.dumps(getattr(call.copy, call.method)(*arguments)))


def shards_apart(
    parts: Sequence[Sequence[Leaf]], like: Searcher, context: Callable[[int], QueryContext]
) -> list[SearchShard]:
    """Shards of these leaves; like: their mapping and analyzers."""
    searchers = [Searcher(part, like.mapping, like.analyzers, index_name=like.index_name) for part in parts]
    return [SearchShard(partial(View, own, context)) for own in searchers]


def shards_of(index: Index) -> list[SearchShard]:
    """Those of an index, as of now."""
    view = index.shards.view()
    parts = [view.of_shards([number]) for number in range(len(view.parts))]
    return shards_apart(parts, index.searcher(), index.context)


def search_apart(
    shards: Sequence[SearchShard], body: dict[str, Any], options: SearchOptions | None = None
) -> dict[str, Any]:
    """The answer of all of them; none of them keeps anything."""
    copies = {number: [shard] for number, shard in enumerate(shards)}
    task = SearchTask(body, options=options or SearchOptions())
    answer, failures = search_shards("search", copies, task, Transport())
    assert not failures.reasons
    assert not any(map(len, shards))
    return answer
