"""A small index to ask, made of documents as they are posted."""

import json
from collections.abc import Mapping as JsonObject
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdb.search.analysis import Analyzers
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher, explain, parse_query, top_hits
from graphdb.search.segments import SegmentBuilder

__all__ = ["Corpus"]


class Corpus:
    """Documents by `_id` "0", "1" and so on, spread over as many segments as are asked for."""

    def __init__(
        self,
        documents: Sequence[JsonObject[str, Any]],
        mappings: JsonObject[str, Any],
        segments: int = 1,
        similarity: JsonObject[str, Any] | None = None,
        analysis: JsonObject[str, Any] | None = None,
    ) -> None:
        self.analyzers = Analyzers.of(analysis or {}, similarity=similarity or {})
        self.mapping = Mapping.of(mappings, self.analyzers)
        leaves, base = [], 0
        for number, part in enumerate(np.array_split(np.arange(len(documents)), segments)):
            builder = SegmentBuilder()
            for doc in part.tolist():
                source = documents[doc]
                parsed, self.mapping = self.mapping.parse(dict(source))
                builder.add(str(doc), json.dumps(source).encode(), doc, 1, parsed)
            segment = builder.build(f"s{number}")
            leaves.append(Leaf(segment, np.ones(segment.size, dtype=np.bool_), base))
            base += segment.size
        self.searcher = Searcher(leaves, self.mapping, self.analyzers)
        self.context = QueryContext(self.mapping, self.analyzers, now_ms=1_700_000_000_000, index_name="i")

    def hits(self, body: JsonObject[str, Any], k: int = 100) -> list[tuple[str, float]]:
        """(`_id`, score), best first."""
        query = parse_query(body, self.context)
        found = []
        for doc, score in top_hits(query, self.searcher, k):
            leaf, local = self.searcher.locate(doc)
            found.append((leaf.segment.doc_id(local), score))
        return found

    def ids(self, body: JsonObject[str, Any]) -> list[str]:
        """The `_id`s, in order of themselves."""
        return sorted((doc_id for doc_id, _ in self.hits(body)), key=int)

    def explained(self, body: JsonObject[str, Any]) -> dict[str, float | None]:
        """The value of each document's explanation, by `_id`; None where it says that there is no match."""
        query = parse_query(body, self.context)
        values: dict[str, float | None] = {}
        for leaf in self.searcher.leaves:
            for doc in range(leaf.segment.size):
                matched, explanation = explain(query, leaf, doc, self.searcher)
                values[leaf.segment.doc_id(doc)] = explanation["value"] if matched else None
        return values
