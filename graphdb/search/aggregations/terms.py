"""`terms`: a bucket for each value of a field, the most frequent first."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from graphdb.search.aggregations.base import Aggregation, Answer
from graphdb.search.aggregations.buckets import bucket_lists
from graphdb.search.aggregations.choice import Choice
from graphdb.search.aggregations.definition import Definition
from graphdb.search.aggregations.order import ByCount, ByKey, Order, parse_order, sorted_cells
from graphdb.search.aggregations.rows import Cells, Rows, cells_of
from graphdb.search.aggregations.scope import Scope
from graphdb.search.aggregations.sources import COMPARABLE, Source
from graphdb.search.aggregations.vocabulary import Vocabulary
from graphdb.search.errors import illegal_request
from graphdb.search.fields import Storage

__all__ = ["Terms", "parse_terms"]


@dataclass(frozen=True)
class Terms(Aggregation):
    """Counts are exact: `doc_count_error_upper_bound` is always 0."""

    source: Source
    size: int
    min_doc_count: int
    order: Order
    choice: Choice
    show_error: bool

    @property
    def typed(self) -> str:
        if self.source.spec is None:
            return "umterms"
        storage = self.source.spec.storage
        return {Storage.INTS: "lterms", Storage.FLOATS: "dterms"}.get(storage, "sterms")

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        cells, vocabulary = self._candidates(scope, rows)
        in_order = sorted_cells(scope, self.common, cells, self.order, vocabulary.places)
        owners = cells.owners[in_order]
        ranks = np.arange(len(owners)) - np.searchsorted(owners, owners)
        shown = cells.picked(in_order[ranks < self.size])
        scope.count_buckets(len(shown))
        other = np.bincount(
            owners[ranks >= self.size], cells.counts[in_order[ranks >= self.size]], rows.count
        )
        lists = bucket_lists(scope, self.common, shown, rows.count, partial(self._head, vocabulary))
        return [
            {"doc_count_error_upper_bound": 0, "sum_other_doc_count": int(rest), "buckets": buckets}
            for rest, buckets in zip(other.tolist(), lists, strict=True)
        ]

    def _head(self, vocabulary: Vocabulary, number: int) -> Answer:
        value = vocabulary.value(number)
        head = {"key": self.source.display.key(value)}
        text = self.source.display.key_text(value)
        if text is not None:
            head["key_as_string"] = text
        if self.show_error:
            head["doc_count_error_upper_bound"] = 0
        return head

    def _candidates(self, scope: Scope, rows: Rows) -> tuple[Cells, Vocabulary]:
        """All buckets that may be shown."""
        whole = self.min_doc_count == 0
        members, numbers, vocabulary = self.source.keyed(scope, rows.docs, whole)
        allowed = self.choice.mask(vocabulary)
        if allowed is not None:
            kept = allowed[numbers]
            members, numbers = members[kept], numbers[kept]
        cells = cells_of(rows, members, numbers)
        if whole:
            # not those that only deleted documents have, or such as whoever asks does not see
            every = np.unique(self.source.keyed(scope, np.flatnonzero(scope.live()), whole)[1])
            if allowed is not None:
                every = every[allowed[every]]
            if len(every) * rows.count > scope.max_buckets * 16:
                scope.count_buckets(len(every) * rows.count)
            owners = np.repeat(np.arange(rows.count), len(every))
            cells = cells.filled(owners, np.tile(every, rows.count))
        elif self.min_doc_count > 1:
            cells = cells.picked(np.flatnonzero(cells.counts >= self.min_doc_count))
        return cells, vocabulary


def parse_terms(definition: Definition) -> Aggregation:
    """The parameters that only steer shards (`shard_size`, `collect_mode` and so on) change nothing."""
    options = definition.options
    size = options.integer("size", 10)
    if size < 1:
        raise illegal_request(f"[size] must be greater than 0. Found [{size}] in [{definition.name}]")
    order = parse_order(options.take("order"), (ByCount(True), ByKey(False)))
    source = Source.parse(definition, COMPARABLE)
    choice = Choice.parse(definition.name, source, options.take("include"), options.take("exclude"))
    least = options.integer("min_doc_count", 1, 0)
    show_error = options.flag("show_term_doc_count_error")
    options.ignore("shard_size", "shard_min_doc_count", "execution_hint", "collect_mode")
    options.done()
    return Terms(definition.common, source, size, least, order, choice, show_error)
