"""Aggregations over some of the documents: `sampler`, `diversified_sampler`, `random_sampler`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Aggregation, Answer, Definition, Rows, Scope, SingleBucket
from graphdb.search.aggregations.value_sources import COMPARABLE, Source
from graphdb.search.errors import illegal_argument, illegal_request, parsing
from graphdb.search.leaf_reader import Longs

__all__ = ["RandomSampler", "Sampler", "parse_random_sampler", "parse_sampler"]


@dataclass(frozen=True)
class Sampler(SingleBucket):
    """The best documents of the bucket. With a source, of each of its values only so many; all documents
    without one have the same value.
    """

    size: int
    source: Source | None = None
    each: int = 1

    @property
    def typed(self) -> str:
        return "sampler"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        scores = np.zeros(len(rows.docs)) if scope.scores is None else scope.scores[rows.docs]
        values = self._values(scope, rows)
        # best first, ties by document; of several shards by shard and document
        order = np.lexsort((rows.docs, -scores, rows.owners))
        kept = order[_first(rows.owners[order], values[order], self.each, self.size, self.source is not None)]
        peers = scope.searcher.peers
        if peers is not None:
            own = rows.owners[kept], -scores[kept], values[kept]
            parts = scope.gathered("sample", own)
            shard = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
            place = np.concatenate([np.arange(len(part[0])) for part in parts])
            owners, negative, every = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.lexsort((place, shard, negative, owners))
            first = order[_first(owners[order], every[order], self.each, self.size, self.source is not None)]
            kept = kept[place[first[shard[first] == peers.number]]]
        mask = np.zeros(len(rows.docs), np.bool_)
        mask[kept] = True
        return rows.kept(mask)

    def _values(self, scope: Scope, rows: Rows) -> Longs:
        """A number for the value of each document, -1 for none. Errors: illegal_argument_exception."""
        found = np.full(len(rows.docs), -1, np.int64)
        if self.source is None:
            return found
        members, numbers, _ = self.source.keyed(scope, rows.docs)
        if len(np.unique(members)) < len(members):
            raise illegal_argument("Sample diversifying key must be a single valued-field")
        found[members] = numbers
        return found


def _first(owners: Longs, values: Longs, each: int, size: int, by_value: bool) -> Longs:
    """Which of documents, in order by owner, are the first of theirs, and so far of their value."""
    kept = np.arange(len(owners))
    if by_value:
        order = np.lexsort((kept, values, owners))
        groups = np.zeros(len(order), np.int64)
        groups[1:] = np.cumsum((np.diff(owners[order]) != 0) | (np.diff(values[order]) != 0))
        ranks = np.arange(len(order)) - np.searchsorted(groups, groups)
        kept = np.sort(order[ranks < each])
    ranks = np.arange(len(kept)) - np.searchsorted(owners[kept], owners[kept])
    return kept[ranks < size]


def parse_sampler(definition: Definition) -> Aggregation:
    """sampler and diversified_sampler."""
    options, kind = definition.options, definition.kind
    size, source, each = options.integer("shard_size", 100), None, 1
    if size < 1:
        raise illegal_request(f"[shard_size] must be greater than 0. Found [{size}] in [{definition.name}]")
    if kind == "diversified_sampler":
        each = options.integer("max_docs_per_value", 1, 1)
        source = Source.parse(definition, COMPARABLE)
        options.ignore("execution_hint")
    options.done()
    return Sampler(definition.common, size, source, each)


@dataclass(frozen=True)
class RandomSampler(SingleBucket):
    """All documents: what would be an estimate from a part of them is exact."""

    parameters: Mapping[str, Any]

    @property
    def typed(self) -> str:
        return "random_sampler"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        return rows

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        return [{**self.parameters, **answer} for answer in super().answers(scope, rows)]


def parse_random_sampler(definition: Definition) -> Aggregation:
    options = definition.options
    probability, seed = options.number("probability"), options.take("seed")
    shard_seed = options.take("shard_seed")
    options.done()
    if probability is None:
        raise illegal_request("Required one of fields [probability], but none were specified. ")
    if not (0 < probability < 0.5 or probability == 1.0):
        raise illegal_request(
            f"[probability] must be between 0.0 and 0.5 or exactly 1.0, was [{probability}]"
        )
    for given in (seed, shard_seed):
        if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
            raise parsing(f"[random_sampler] [seed] must be a whole number in [{definition.name}]")
    return RandomSampler(definition.common, {"seed": 0 if seed is None else seed, "probability": probability})
