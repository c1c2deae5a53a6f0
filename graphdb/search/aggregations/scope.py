"""What aggregations read while they run: columns, queries, scores, and the count of buckets made so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphdb.search.aggregations.columns import Columns
from graphdb.search.aggregations.rows import Rows
from graphdb.search.errors import SearchError
from graphdb.search.query import Query, QueryContext, Searcher
from graphdb.search.segment import Bools, Floats

__all__ = ["MAX_BUCKETS", "Scope"]

MAX_BUCKETS = 65_536  # `search.max_buckets`

TopHits = Callable[[Mapping[str, Any], Rows, "Scope"], Sequence[dict[str, Any]]]


@dataclass
class Scope:
    """One run over one searcher. scores are by document in the whole, None where nothing was scored."""

    searcher: Searcher
    columns: Columns
    context: QueryContext
    scores: Floats | None = None
    top_hits: TopHits | None = None
    typed_keys: bool = False
    max_buckets: int = MAX_BUCKETS
    buckets: int = 0
    _masks: dict[int, tuple[Query, Bools]] = field(default_factory=dict)

    def matching(self, query: Query) -> Bools:
        """Which of all documents, nested ones too, a query matches."""
        known = self._masks.get(id(query))
        if known is None:
            parts = [query.matches(leaf, self.searcher).mask for leaf in self.columns.leaves]
            # The query is kept with its answer, so that its identity is not given to another.
            known = self._masks[id(query)] = (query, np.concatenate([np.zeros(0, np.bool_), *parts]))
        return known[1]

    def live(self) -> Bools:
        """Which of all documents are not deleted."""
        return np.concatenate([np.zeros(0, np.bool_), *(leaf.live for leaf in self.columns.leaves)])

    def count_buckets(self, made: int) -> None:
        """Note that so many buckets go into the answer; too many in all are refused."""
        self.buckets += made
        if self.buckets > self.max_buckets:
            raise SearchError(
                "too_many_buckets_exception",
                f"Trying to create too many buckets. Must be less than or equal to: [{self.max_buckets}] but "
                "this number of buckets was exceeded. This limit can be set by changing the "
                "[search.max_buckets] cluster level setting.",
                400,
                {"max_buckets": self.max_buckets},
            )
