"""One index searched shard by shard, without processes: what passes between them is pickled all the same."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from graphdb.search.catalog.state import Index
from graphdb.search.leaf_reader import Leaf
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results.search import SearchOptions
from graphdb.search.sharded import (
    Call,
    IndexPart,
    LookedUp,
    Lost,
    SearchShard,
    SearchTask,
    SeveralTask,
    View,
    search_shards,
)

__all__ = ["Transport", "search_apart", "search_several_apart", "shards_apart", "shards_of"]


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
    shards: Sequence[SearchShard],
    body: dict[str, Any],
    options: SearchOptions | None = None,
    chosen: frozenset[int] | None = None,
    looked_up: LookedUp | None = None,
) -> dict[str, Any]:
    """The answer of all of them, or of those that are chosen; none of them keeps anything."""
    copies = {number: [shard] for number, shard in enumerate(shards)}
    task = SearchTask(body, options=options or SearchOptions(), looked_up=looked_up or {}, chosen=chosen)
    answer, failures = search_shards("search", copies, task, Transport())
    assert not failures.lost
    assert not any(map(len, shards))
    return answer


def search_several_apart(
    indexes: Sequence[Index],
    body: dict[str, Any],
    shared_statistics: bool = False,
    without: int | None = None,
) -> dict[str, Any]:
    """The answer of all shards of several indexes, which are named i0, i1, ...; without: one that is lost."""
    contexts = [_named(index.context, f"i{number}") for number, index in enumerate(indexes)]

    def other(shape: bytes) -> View:
        index = indexes[int(shape)]
        empty = Searcher([], index.mapping, index.analyzers, index_name=index.name)
        return View(empty, contexts[int(shape)])

    shards = []
    for index, context in zip(indexes, contexts, strict=True):
        view = index.shards.view()
        for number in range(len(view.parts)):
            own = Searcher(view.of_shards([number]), index.mapping, index.analyzers, index_name=index.name)
            shards.append(SearchShard(partial(View, own, context, other)))
    parts = tuple(IndexPart(str(number).encode(), len(index.shards)) for number, index in enumerate(indexes))
    task = SeveralTask(body, parts, options=SearchOptions(), shared_statistics=shared_statistics)
    copies = {number: [] if number == without else [shard] for number, shard in enumerate(shards)}
    answer, failures = search_shards("search", copies, task, Transport())
    assert set(failures.lost) == ({without} if without is not None else set())
    assert not any(map(len, shards))
    return answer


def _named(context: Callable[[int], QueryContext], name: str) -> Callable[[int], QueryContext]:
    return lambda now_ms: replace(context(now_ms), index_name=name)
