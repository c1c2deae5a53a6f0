"""What aggregations read while they run: columns, queries, scores, and the count of buckets made so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphdb.search.aggregations.columns import Columns
from graphdb.search.aggregations.rows import Rows
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError
from graphdb.search.query import Query, QueryContext, Searcher
from graphdb.search.segment import Bools, Floats

__all__ = ["MAX_BUCKETS", "Scope", "columns_of"]

MAX_BUCKETS = 65_536  # `search.max_buckets`

TopHits = Callable[[Mapping[str, Any], Rows, "Scope"], Sequence[dict[str, Any]]]


def columns_of(searcher: Searcher) -> Columns:
    """The columns of a searcher; made once, as their merged dictionaries are dear."""
    return searcher.keep("columns", lambda: Columns(searcher.leaves, _indexes(searcher)))


def _indexes(searcher: Searcher) -> list[Searcher]:
    return [searcher.part(leaf)[2] for leaf in searcher.leaves]


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
    visible: Query | None = None  # what the aliases show of the indexes, None: all
    _masks: dict[int, tuple[Query, Bools]] = field(default_factory=dict)

    def matching(self, query: Query) -> Bools:
        """Which of all documents, nested ones too, a query matches."""
        known = self._masks.get(id(query))
        if known is None:
            parts = []
            for leaf in self.columns.leaves:
                checkpoint()
                parts.append(query.mask(leaf, self.searcher))
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
            raise self._too_many("this number of buckets was exceeded")

    def check_buckets(self, asked: int) -> None:
        """Refuse a request for more buckets than there may be."""
        if asked > self.max_buckets:
            raise self._too_many(f"was [{asked}]")

    def _too_many(self, what: str) -> SearchError:
        return SearchError(
            "too_many_buckets_exception",
            f"Trying to create too many buckets. Must be less than or equal to: [{self.max_buckets}] but "
            f"{what}. This limit can be set by changing the [search.max_buckets] cluster level setting.",
            400,
            {"max_buckets": self.max_buckets},
        )
