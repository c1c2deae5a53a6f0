"""`terms` and `rare_terms`: which terms count, and in which order their buckets come."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import mmh3
import numpy as np

from graphdb.search.aggregations.aggregation import (
    BUCKET_STEPS,
    Aggregation,
    Answer,
    Cells,
    Common,
    Definition,
    Rows,
    Scope,
    bucket_lists,
    cells_of,
    measure_below,
)
from graphdb.search.aggregations.columns import Numbers
from graphdb.search.aggregations.rounding import Spans
from graphdb.search.aggregations.tallies import FIRST_MAX, Tally, TermTally
from graphdb.search.aggregations.value_sources import COMPARABLE, Source, TermVocabulary, Vocabulary
from graphdb.search.errors import illegal_argument, illegal_request, parsing
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Longs
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.query.regexp import Regexp

__all__ = [
    "ByCount",
    "ByKey",
    "ByMetric",
    "Choice",
    "Order",
    "RareTerms",
    "Terms",
    "first_cells",
    "parse_order",
    "parse_path",
    "parse_rare_terms",
    "parse_terms",
    "sorted_cells",
]

# `include` and `exclude` of terms: a regular expression, a list of values, or one part of several.

VALUES_MAX = 65_536

Test = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which terms may become buckets: those that pass every test."""

    tests: tuple[Test, ...] = ()

    @staticmethod
    def parse(name: str, source: Source, include: Any, exclude: Any) -> "Choice":
        tests: list[Test] = []
        if isinstance(include, dict):
            tests.append(_partition(source, include))
        elif include is not None:
            tests.append(_test(name, source, include))
        if exclude is not None:
            unwanted = _test(name, source, exclude)
            tests.append(lambda value: not unwanted(value))
        return Choice(tuple(tests))

    def kept(self, members: Longs, numbers: Longs, vocabulary: Vocabulary) -> tuple[Longs, Longs]:
        """Those (members, numbers) whose number means a value that passes."""
        if not self.tests:
            return members, numbers
        values = (vocabulary.value(number) for number in range(len(vocabulary)))
        passing = np.fromiter((all(test(value) for test in self.tests) for value in values), np.bool_)
        return members[passing[numbers]], numbers[passing[numbers]]


def _test(name: str, source: Source, wanted: Any) -> Test:
    if isinstance(wanted, list):
        if len(wanted) > VALUES_MAX:
            raise illegal_request(f"[include] and [exclude] take at most [{VALUES_MAX}] values")
        spec = source.spec
        values = {value if spec is None else term_of(spec, value) for value in wanted}
        return values.__contains__
    is_address = source.spec is not None and source.spec.type in ("ip", "version")
    if source.storage is not None and (not source.textual or is_address):
        listed = (
            "values for include/exclude clauses"
            if source.textual
            else "numeric values for include/exclude clauses used to filter numeric fields"
        )
        raise illegal_argument(
            f"Aggregation [{name}] cannot support regular expression style include/exclude settings as they "
            f"can only be applied to string fields. Use an array of {listed}"
        )
    return Regexp(str(wanted)).matches


def _partition(source: Source, include: dict[str, Any]) -> Test:
    number, count = include.get("partition"), include.get("num_partitions")
    if (
        not isinstance(number, int)
        or not isinstance(count, int)
        or set(include) - {"partition", "num_partitions"}
    ):
        raise illegal_request("Missing [partition] or [num_partitions] parameter for partition-based include")
    if not 0 <= number < count:
        raise illegal_request(f"partition must be in [0, num_partitions) but was [{number}] of [{count}]")
    return lambda value: _partition_hash(source, value) % count == number


_HASH_SEED = 31


def _partition_hash(source: Source, value: Any) -> int:
    """As Elasticsearch hashes it, so that clients which read partitions by turns get the same ones.

    Source: `IncludeExclude` of Elasticsearch 8 and `BitMixer` of HPPC: Murmur3 of the bytes of a term; of a
    number, its 64 bits mixed, where those of a double are in the order of their values.
    """
    if isinstance(value, str):
        is_address = source.spec is not None and source.spec.type == "ip"
        term = bytes.fromhex(value.replace(":", "")) if is_address else value.encode("utf-8", "surrogatepass")
        return mmh3.hash(term, _HASH_SEED, signed=True)
    bits = np.float64(value).view(np.int64).item() if isinstance(value, float) else int(value)
    if isinstance(value, float) and bits < 0:
        bits ^= 2**63 - 1
    mixed = bits % 2**64
    for shift, factor in ((32, 0x4CD6944C5CC20B6D), (29, 0xFC12C5B19D3259E9)):
        mixed = (mixed ^ mixed >> shift) * factor % 2**64
    mixed ^= mixed >> 32
    return mixed - 2**64 if mixed >= 2**63 else mixed


# The order of buckets: by `_count`, `_key`, or what an aggregation below them gives.

Places = Callable[[Longs], Numbers]


@dataclass(frozen=True, slots=True)
class ByCount:
    descending: bool


@dataclass(frozen=True, slots=True)
class ByKey:
    descending: bool


@dataclass(frozen=True, slots=True)
class ByMetric:
    """path leads through single-bucket aggregations; metric is empty where a metric has one value only."""

    path: tuple[str, ...]
    metric: str
    descending: bool


Order = tuple[ByCount | ByKey | ByMetric, ...]

_MOST_FREQUENT: Order = (ByCount(True), ByKey(False))


def parse_order(value: Any, default: Order) -> Order:
    """`order`: an object with one entry, or a list of those. Equal buckets are ordered by key in the end."""
    entries = value if isinstance(value, list) else [value]
    parts = default if value is None else tuple(_entry(entry) for entry in entries)
    return parts if any(isinstance(part, ByKey) for part in parts) else (*parts, ByKey(False))


def _entry(entry: Any) -> ByCount | ByKey | ByMetric:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise parsing("Must specify at least one field for [order]")
    ((path, direction),) = entry.items()
    if str(direction).lower() not in ("asc", "desc"):
        raise parsing(f"Unknown order direction [{direction}]")
    descending = str(direction).lower() == "desc"
    if path == "_count":
        return ByCount(descending)
    if path in ("_key", "_term", "_time"):
        return ByKey(descending)
    return ByMetric(*parse_path(path), descending)


def parse_path(path: str) -> tuple[tuple[str, ...], str]:
    """`a>b.avg` or `a>b[avg]` as (("a", "b"), "avg")."""
    if not path or len(path) > 1000:
        raise illegal_request(f"Invalid aggregation order path [{path[:100]}]")
    *names, last = path.split(">")
    if last.endswith("]") and "[" in last:
        last, _, metric = last[:-1].partition("[")
    else:
        last, _, metric = last.partition(".")
    return (*names, last), metric


def sorted_cells(
    scope: Scope, common: Common, cells: Cells, order: Order, places: Places, spans: Spans | None = None
) -> Longs:
    """The numbers of all cells, by owner and then in order. places is the order of keys; spans: see
    `bucket_lists`.
    """
    keys = []
    for part in order:
        if isinstance(part, ByCount):
            column = cells.counts.astype(np.float64)
        elif isinstance(part, ByKey):
            column = places(cells.keys)
        else:
            with scope.below(cells.owners, spans):
                column = measure_below(scope, common, cells.rows(), part.path, part.metric)
        column = -column if part.descending else column
        keys.append(np.where(np.isnan(column), np.inf, column))  # what has no value comes last either way
    return np.lexsort((*reversed(keys), cells.owners))


def first_cells(
    scope: Scope, cells: Cells, in_order: Longs, size: int, count: int
) -> tuple[Cells, list[int]]:
    """(the first cells of each of count owners, how many documents the others of each have)."""
    if count == 1:
        scope.count_buckets(len(in_order[:size]))
        return cells.picked(in_order[:size]), [int(cells.counts[in_order[size:]].sum())]
    owners = cells.owners[in_order]
    ranks = np.arange(len(owners)) - np.searchsorted(owners, owners)
    shown, rest = in_order[ranks < size], in_order[ranks >= size]
    scope.count_buckets(len(shown))
    others = np.bincount(cells.owners[rest], cells.counts[rest], count).astype(np.int64)
    return cells.picked(shown), others.tolist()


# `terms`: a bucket for each value of a field, the most frequent first.


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
        storage = self.source.storage
        if storage is None:
            return "umterms"
        return {Storage.INTS: "lterms", Storage.FLOATS: "dterms"}.get(storage, "sterms")

    @property
    def profiled(self) -> str:
        if self.source.textual:
            return "GlobalOrdinalsStringTermsAggregator"
        return "NumericTermsAggregator"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        cells, vocabulary = self._candidates(scope, rows)
        scope.note_buckets(self, cells)
        if self.order == _MOST_FREQUENT and rows.count == 1 and self._is_counted_alone(scope):
            in_order = (-cells.counts).argsort(kind="stable")  # keys ascend as terms do
        else:
            in_order = sorted_cells(scope, self.common, cells, self.order, vocabulary.places)
        shown, others = first_cells(scope, cells, in_order, self.size, rows.count)
        if rows.count == 1 and self._are_plain:
            lists = [self._plain_buckets(shown, vocabulary)]
        else:
            lists = bucket_lists(scope, self.common, shown, rows.count, partial(self._head, vocabulary))
        return [
            {"doc_count_error_upper_bound": 0, "sum_other_doc_count": rest, "buckets": buckets}
            for rest, buckets in zip(others, lists, strict=True)
        ]

    @property
    def _are_plain(self) -> bool:
        """Whether buckets show nothing but a term and how many documents have it."""
        spec = self.source.spec
        beside = self.common.children or self.common.pipelines or self.show_error
        return spec is not None and spec.type == "keyword" and not beside

    @staticmethod
    def _plain_buckets(cells: Cells, vocabulary: Vocabulary) -> list[Answer]:
        """Of one owner."""
        pairs = zip(vocabulary.listed(cells.keys), cells.counts.tolist(), strict=True)
        return [{"key": term, "doc_count": count} for term, count in pairs]

    def _head(self, vocabulary: Vocabulary, number: int) -> Answer:
        head = self.source.head(vocabulary.value(number))
        return {**head, "doc_count_error_upper_bound": 0} if self.show_error else head

    def _candidates(self, scope: Scope, rows: Rows) -> tuple[Cells, Vocabulary]:
        """All buckets that may be shown."""
        whole = self.min_doc_count == 0
        if not whole and rows.count == 1 and self._is_counted_alone(scope):
            return self._counted(scope, rows.docs)
        members, numbers, vocabulary = self.source.keyed(scope, rows.docs, whole)
        members, numbers = self.choice.kept(members, numbers, vocabulary)
        cells = cells_of(scope, rows, members, numbers)
        if whole:
            # not those that only deleted documents have, or hidden ones
            own = np.unique(self.source.keyed(scope, np.flatnonzero(scope.live()), whole)[1])
            every = np.unique(np.concatenate(scope.gathered("every value", own)))
            every, _ = self.choice.kept(every, every, vocabulary)
            if len(every) * rows.count > scope.max_buckets * 16:
                scope.count_buckets(len(every) * rows.count)
            owners = np.repeat(np.arange(rows.count), len(every))
            cells = cells.filled(owners, np.tile(every, rows.count))
        elif self.min_doc_count > 1:
            cells = cells.picked(np.flatnonzero(cells.counts >= self.min_doc_count))
        return cells, vocabulary

    def steps(self, scope: Scope, documents: int) -> float | None:
        spec = self.source.spec
        if spec is None or not self._is_of_texts(scope) or not scope.columns.is_merged(spec):
            return None
        terms, alone = len(scope.columns.dictionary(spec)), self._is_counted_alone(scope)
        if alone and documents == scope.searcher.max_doc and scope.columns.knows_term_counts(spec):
            documents = 0
        own = documents // 2 + terms // 8 + BUCKET_STEPS * min(terms, self.size)
        if alone:
            return own
        below = self.steps_below(scope, self.source.values_among(scope, documents), terms)
        return None if self.choice.tests or self.common.pipelines or below is None else own + below

    def tally(self, scope: Scope) -> Tally | None:
        spec = self.source.spec
        if spec is None or not self._are_plain or not self._is_counted_alone(scope):
            return None
        if self.order != _MOST_FREQUENT or self.size > FIRST_MAX or self.min_doc_count < 1:
            return None
        columns = scope.columns
        if columns.keep(("constants", spec.path), lambda: columns.has_constants(spec)):
            return None
        return TermTally(columns, spec, self.size, self.min_doc_count)

    def _is_counted_alone(self, scope: Scope) -> bool:
        """Whether no one asks which documents are in a bucket, or for other terms than those of the field."""
        alone = not self.common.children and not self.common.pipelines and not self.choice.tests
        return alone and self._is_of_texts(scope)

    def _is_of_texts(self, scope: Scope) -> bool:
        """Whether its buckets are the terms of a field, of one shard."""
        spec = self.source.spec
        held = spec is not None and spec.storage is Storage.TERMS and spec.type != "text"
        simple = scope.searcher.peers is None and scope.columns.doc_counts is None
        return held and self.source.missing is None and simple

    def _counted(self, scope: Scope, docs: Longs) -> tuple[Cells, Vocabulary]:
        """The same, without the documents of each bucket."""
        assert self.source.spec is not None
        counts = scope.columns.term_counts(self.source.spec, docs)
        present, none = np.flatnonzero(counts >= self.min_doc_count), np.empty(0, np.int64)
        cells = Cells(np.zeros(len(present), np.int64), present, counts[present], none, none)
        return cells, TermVocabulary(scope.columns.dictionary(self.source.spec), None)


def parse_terms(definition: Definition) -> Aggregation:
    """The parameters that only steer shards (`shard_size`, `collect_mode` and so on) change nothing."""
    options = definition.options
    size = options.integer("size", 10)
    if size < 1:
        raise illegal_request(f"[size] must be greater than 0. Found [{size}] in [{definition.name}]")
    order = parse_order(options.take("order"), _MOST_FREQUENT)
    source = Source.parse(definition, COMPARABLE)
    choice = Choice.parse(definition.name, source, options.take("include"), options.take("exclude"))
    least = options.integer("min_doc_count", 1, 0)
    show_error = options.flag("show_term_doc_count_error")
    options.ignore("shard_size", "shard_min_doc_count", "execution_hint", "collect_mode")
    options.done()
    return Terms(definition.common, source, size, least, order, choice, show_error)


# `rare_terms`: a bucket for each value that few documents have, the rarest first.

RARE_MAX = 100  # documents


@dataclass(frozen=True)
class RareTerms(Aggregation):
    """Counts are exact, whatever the precision that is asked for."""

    source: Source
    most: int
    choice: Choice

    @property
    def typed(self) -> str:
        if self.source.storage is None:
            return "umrareterms"
        return "lrareterms" if self.source.storage is Storage.INTS else "srareterms"

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        members, numbers, vocabulary = self.source.keyed(scope, rows.docs)
        members, numbers = self.choice.kept(members, numbers, vocabulary)
        cells = cells_of(scope, rows, members, numbers)
        cells = cells.picked(np.flatnonzero(cells.counts <= self.most))
        cells = cells.picked(np.lexsort((vocabulary.places(cells.keys), cells.counts, cells.owners)))
        scope.count_buckets(len(cells))
        head = lambda number: self.source.head(vocabulary.value(number))  # noqa: E731 handed on
        return [{"buckets": page} for page in bucket_lists(scope, self.common, cells, rows.count, head)]


def parse_rare_terms(definition: Definition) -> Aggregation:
    options = definition.options
    most = options.integer("max_doc_count", 1)
    if most < 1:
        raise illegal_request(
            f"[max_doc_count] must be greater than 0. Found [{most}] in [{definition.name}]"
        )
    if most > RARE_MAX:
        raise illegal_request(
            f"[max_doc_count] must be smaller than [{RARE_MAX}], found [{most}] in [{definition.name}]"
        )
    precision = options.number("precision", 0.001)
    if precision is None or precision < 0.00001:
        raise illegal_request(f"[precision] must be greater than 0.00001, in [{definition.name}]")
    source = Source.parse(definition, COMPARABLE)
    if source.storage is Storage.FLOATS:
        raise illegal_argument("RareTerms aggregation does not support floating point fields.")
    choice = Choice.parse(definition.name, source, options.take("include"), options.take("exclude"))
    options.done()
    return RareTerms(definition.common, source, most, choice)
