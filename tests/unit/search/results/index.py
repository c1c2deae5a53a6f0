"""A small index in two segments, for tests of whole searches."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results import SearchOptions, search
from graphdb.search.segments import SegmentBuilder
from tests.support.search_apart import search_apart, shards_apart

__all__ = ["Index"]

JsonObject = dict[str, Any]


class Index:
    """Its documents have the ids 0, 1, 2 and so on; the second half of them is a segment of its own."""

    def __init__(self, properties: JsonObject, documents: Sequence[JsonObject]) -> None:
        analyzers = Analyzers.of({})
        mapping = Mapping.of({"properties": properties}, analyzers)
        leaves, base = [], 0
        middle = (len(documents) + 1) // 2
        for low, high in ((0, middle), (middle, len(documents))):
            builder = SegmentBuilder()
            for number in range(low, high):
                parsed, mapping = mapping.parse(documents[number])
                builder.add(str(number), orjson.dumps(documents[number]), number, 1, parsed)
            segment = builder.build(f"s{low}")
            leaves.append(Leaf(segment, np.ones(segment.size, np.bool_), base))
            base += segment.size
        self.searcher = Searcher(leaves, mapping, analyzers)
        self.context = QueryContext(mapping, analyzers, now_ms=1_600_000_000_000, index_name="books")
        parts = [[replace(leaf, base=0)] for leaf in leaves]
        self._shards = shards_apart([*parts, []], self.searcher, lambda now_ms: self.context)

    def search(self, body: JsonObject, options: SearchOptions | None = None) -> JsonObject:
        """The answer, or error, that is the same where each segment is a shard of its own."""
        options, looked_up = options or SearchOptions(), dict[tuple[str, str, str, str | None], Any]()
        lookup = self.context.terms_lookup

        def recorded(*key: Any) -> Any:
            assert lookup is not None
            looked_up[key] = lookup(*key)
            return looked_up[key]

        context = self.context if lookup is None else replace(self.context, terms_lookup=recorded)
        try:
            answer = search(body, self.searcher, context, None, options)
        except SearchError as error:
            with pytest.raises(SearchError, match=f"^{re.escape(str(error))}$"):
                search_apart(self._shards, body, options, looked_up=looked_up)
            raise
        assert search_apart(self._shards, body, options, looked_up=looked_up) == answer
        return answer

    def hits(self, **body: Any) -> list[JsonObject]:
        hits: list[JsonObject] = self.search(body)["hits"]["hits"]
        return hits

    def ids(self, **body: Any) -> list[str]:
        return [hit["_id"] for hit in self.hits(**body)]

    def aggregations(self, aggs: JsonObject, **body: Any) -> JsonObject:
        answer: JsonObject = self.search({"size": 0, "aggs": aggs, **body})["aggregations"]
        return answer
