"""What an aggregation is: documents in scope, rows of a bucket, buckets, and how a tree of them runs."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from graphdb.search.abstract import Abstract
from graphdb.search.aggregations.columns import Columns
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.rounding import Spans
from graphdb.search.aggregations.tallies import Tally
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Longs
from graphdb.search.query import Query, QueryContext, Searcher
from graphdb.search.query.cost import steps_together

__all__ = [
    "BUCKET_STEPS",
    "MAX_BUCKETS",
    "Aggregation",
    "Answer",
    "Cells",
    "Common",
    "Definition",
    "Measured",
    "Pipeline",
    "Rows",
    "Scope",
    "Scored",
    "SingleBucket",
    "all_cells",
    "answers_below",
    "bucket_lists",
    "cells_of",
    "columns_of",
    "keyed_buckets",
    "measure_below",
    "members_of",
    "over_shards",
    "own_cells",
    "run",
]

# Documents in buckets: what every aggregation collects, and how one makes buckets of buckets.
#
# Buckets are numbered through all their owners, so that a tree of any depth costs one pass of arrays a
# level and no loop over buckets.


@dataclass(frozen=True, slots=True)
class Rows:
    """Document docs[i] is in bucket owners[i], of count buckets. docs keep the order of their leaves."""

    docs: Longs
    owners: Longs
    count: int

    def kept(self, which: "np.typing.NDArray[np.bool_]") -> "Rows":
        """The same buckets with fewer documents."""
        return Rows(self.docs[which], self.owners[which], self.count)

    def sizes(self, doc_counts: Longs | None = None) -> Longs:
        """How many documents each bucket has. doc_counts: for how many each stands, None: for one."""
        weights = None if doc_counts is None else doc_counts[self.docs]
        return np.bincount(self.owners, weights, self.count).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Cells:
    """The buckets that one aggregation makes below each of its owners.

    Cell c is the bucket with key keys[c] of owner owners[c]; document docs[i] is in cell members[i].
    """

    owners: Longs
    keys: Longs
    counts: Longs
    docs: Longs
    members: Longs

    def __len__(self) -> int:
        return len(self.keys)

    def rows(self) -> Rows:
        """The documents of each cell, for the aggregations below."""
        return Rows(self.docs, self.members, len(self.keys))

    def picked(self, chosen: Longs) -> "Cells":
        """Only these cells, in this order."""
        if not len(self.members):
            return Cells(self.owners[chosen], self.keys[chosen], self.counts[chosen], self.docs, self.members)
        number = np.full(len(self.keys), -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        members = number[self.members]
        kept = members >= 0
        return Cells(
            self.owners[chosen], self.keys[chosen], self.counts[chosen], self.docs[kept], members[kept]
        )

    def filled(self, owners: Longs, keys: Longs) -> "Cells":
        """As many cells as there are (owner, key), with no documents where there was none.

        Both this and the new ones ascend by (owner, key); the new ones hold all of this.
        """
        low = int(keys.min(initial=0))
        width = int(keys.max(initial=0)) - low + 1
        position = np.searchsorted(owners * width + (keys - low), self.owners * width + (self.keys - low))
        counts = np.zeros(len(keys), np.int64)
        counts[position] = self.counts
        return Cells(owners, keys, counts, self.docs, position[self.members])

    def ranks(self) -> Longs:
        """The place of each cell among those of its owner; owners must ascend."""
        return np.arange(len(self.owners)) - np.searchsorted(self.owners, self.owners)

    def ordered(self, *keys: Longs | Doubles) -> "Cells":
        """Sorted by owner, then by these, the most important first."""
        return self.picked(np.lexsort((*reversed(keys), self.owners)))


def own_cells(rows: Rows, members: Longs, keys: Longs, doc_counts: Longs | None) -> Cells:
    """Group: the document at place members[i] of the rows has key keys[i], not negative.

    A document counts once for a key, given that equal keys of one document stand together; or as often as
    doc_counts says for it. The cells ascend by (owner, key).
    """
    if len(keys):
        new = np.ones(len(keys), np.bool_)
        new[1:] = (members[1:] != members[:-1]) | (keys[1:] != keys[:-1])
        if not new.all():
            members, keys = members[new], keys[new]
    width = int(keys.max(initial=0)) + 1
    combined = rows.owners[members] * width + keys
    docs = rows.docs[members]
    if rows.count * width <= 4 * len(combined) + 1024:
        counts = np.bincount(combined, minlength=1)
        present = np.flatnonzero(counts)
        number = np.cumsum(counts > 0) - 1
        inverse, counts = number[combined], counts[present]
    else:
        present, inverse, counts = np.unique(combined, return_inverse=True, return_counts=True)
    if doc_counts is not None:
        counts = np.bincount(inverse, doc_counts[docs], len(present)).astype(np.int64)
    return Cells(present // width, present % width, counts, docs, inverse)


# What aggregations read while they run: columns, queries, scores, and the count of buckets made so far.

MAX_BUCKETS = 65_536  # `search.max_buckets`
BUCKET_STEPS = 50  # to show one, see `Aggregation.steps`

Piece = TypeVar("Piece")

TopHits = Callable[[Mapping[str, Any], Rows, "Scope"], Sequence[dict[str, Any]]]


def columns_of(searcher: Searcher) -> Columns:
    """The columns of a searcher; made once, as their merged dictionaries are dear."""
    own = searcher.own
    return own.keep("columns", lambda: Columns(own.leaves, _indexes(own)))


def _indexes(searcher: Searcher) -> list[Searcher]:
    return [searcher.part(leaf)[2] for leaf in searcher.leaves]


@dataclass(slots=True)
class Measured:
    """What an aggregation has taken, with those below it: nanoseconds, and documents that it was given.
    buckets: how many with documents it has made, None: nobody has counted. steps: the nanoseconds of those
    that are told apart, by Elasticsearch's names. debug: what else is shown of it.
    """

    nanoseconds: int = 0
    documents: int = 0
    buckets: int | None = None
    steps: dict[str, int] = field(default_factory=dict)
    debug: dict[str, int] = field(default_factory=dict)

    def note_step(self, step: str, nanoseconds: int) -> None:
        self.steps[step] = self.steps.get(step, 0) + nanoseconds


class Scored(Protocol):
    """Documents by their number in the whole, and their scores; None where nothing was scored."""

    @property
    def docs(self) -> Longs: ...
    @property
    def scores(self) -> Floats | None: ...


@dataclass
class Scope:
    """One run over one searcher. scored: what has scores, None where nothing was scored."""

    searcher: Searcher
    columns: Columns
    context: QueryContext
    scored: Scored | None = None
    top_hits: TopHits | None = None
    typed_keys: bool = False
    max_buckets: int = MAX_BUCKETS
    buckets: int = 0
    visible: Query | None = None  # what the aliases show of the indexes, None: all
    clock_ns: Callable[[], int] | None = None  # what `profile` measures by, None: nothing is measured
    measured: dict[int, "Measured"] = field(default_factory=dict)  # by the identity of an aggregation
    spans: Spans | None = None  # the intervals of the date_histogram that the buckets at hand are in
    _masks: dict[int, tuple[Query, Bools]] = field(default_factory=dict)
    _scores: Floats | None = field(default=None, init=False)

    # No cached_property: in Python 3.11 that holds one lock for all objects, and shards wait for one another.
    @property
    def scores(self) -> Floats | None:
        """By document in the whole; made for the few aggregations that ask for them."""
        if self._scores is None and self.scored is not None and self.scored.scores is not None:
            self._scores = np.zeros(self.columns.size, np.float32)
            self._scores[self.scored.docs] = self.scored.scores
        return self._scores

    def gathered(self, place: str, piece: Piece) -> list[Piece]:
        """What each shard that is searched has at this place, by number; all of them come by it."""
        peers = self.searcher.peers
        return [piece] if peers is None else peers.gather(place, piece)

    def total(self, counts: Longs) -> Longs:
        """Counts of the documents of these leaves as counts of those of all shards."""
        if self.searcher.peers is None:
            return counts
        return np.asarray(np.sum(self.gathered("counts", counts), axis=0))

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

    def shown(self) -> Longs:
        """All documents that the request's names show, whatever the query."""
        mask = self.live() & self.columns.at_path(None)
        if self.visible is not None:
            mask &= self.matching(self.visible)
        return np.flatnonzero(mask)

    @contextmanager
    def below(self, owners: Longs, spans: Spans | None = None) -> Iterator[None]:
        """While aggregations in new buckets run. owners: the bucket that each of these is in. spans: their
        own intervals, None: those that they are in.
        """
        before = self.spans
        self.spans = spans if spans is not None or before is None else before.of(owners)
        try:
            yield
        finally:
            self.spans = before

    def note_buckets(self, aggregation: "Aggregation", cells: Cells) -> None:
        """What an aggregation has made before it chooses what to show, for `profile`."""
        if self.clock_ns is not None:
            measured = self.measured.setdefault(id(aggregation), Measured())
            measured.buckets = (measured.buckets or 0) + int(np.count_nonzero(cells.counts))

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


def cells_of(scope: Scope, rows: Rows, members: Longs, keys: Longs) -> Cells:
    """`own_cells`, with the cells of all shards. Keys mean the same in each."""
    return over_shards(scope, own_cells(rows, members, keys, scope.columns.doc_counts))


def over_shards(scope: Scope, cells: Cells) -> Cells:
    """The cells of all shards and their counts, with the documents of this one. They ascend as before."""
    if scope.searcher.peers is None:
        return cells
    parts = scope.gathered("cells", (cells.owners, cells.keys, cells.counts))
    owners, keys, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    width = int(keys.max(initial=0)) + 1
    present, inverse = np.unique(owners * width + keys, return_inverse=True)
    totals = np.zeros(len(present), np.int64)
    np.add.at(totals, inverse, counts)
    number = np.searchsorted(present, cells.owners * width + cells.keys)
    return Cells(present // width, present % width, totals, cells.docs, number[cells.members])


# What an aggregation is: it answers for all the buckets that it stands in at once.

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Common:
    """What every aggregation has beside its own parameters."""

    name: str
    meta: Mapping[str, Any] | None = None
    children: tuple["Aggregation", ...] = ()
    pipelines: tuple["Pipeline", ...] = ()


class Pipeline(Abstract):
    """Works on answers instead of documents. Those beside others come after them, in the order given."""

    name: str
    meta: Mapping[str, Any] | None

    @property
    def typed(self) -> str:
        """The name of the answer's kind, for `typed_keys`."""
        return "simple_value"

    @abstractmethod
    def beside(self, answers: Answer) -> None:
        """Add to, or change, the answers of the aggregations that this one stands beside."""

    @abstractmethod
    def among(self, buckets: list[Answer]) -> list[Answer]:
        """The buckets of the aggregation that this one stands in, changed."""

    def forget(self, buckets: list[Answer]) -> None:
        """Take away from buckets what was only there for this one; no pipeline runs after that."""


@dataclass(frozen=True)
class Aggregation(Abstract):
    """A node of the tree, parsed and checked against the mapping."""

    common: Common
    leaf_only: ClassVar[bool] = False  # metrics take no aggregations below

    @property
    @abstractmethod
    def typed(self) -> str:
        """The name of the answer's kind, for `typed_keys`."""

    @property
    def profiled(self) -> str:
        """What `profile` calls it: the name of Elasticsearch's class, where there is one like it."""
        return f"{type(self).__name__}Aggregator"

    @abstractmethod
    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        """One answer for each of rows.count buckets."""

    def tally(self, scope: Scope) -> Tally | None:
        """What counts its documents and writes its buckets at the top level of a search; None: `answers` has
        to.
        """
        return None

    def steps(self, scope: Scope, documents: int) -> float | None:
        """How much is walked at the top level for so many documents, in steps of some 10 ns; None: who knows,
        or something would have to be prepared first.
        """
        return None

    def steps_below(self, scope: Scope, documents: int, buckets: int) -> float | None:
        """The same of what is in so many of its buckets, to which the documents are dealt out for that; None
        also where that are buckets again, whose number nobody knows.
        """
        children = self.common.children
        if not children:
            return 0
        steps = steps_together(
            child.steps(scope, documents) if child.leaf_only else None for child in children
        )
        return None if steps is None else documents + BUCKET_STEPS * buckets * len(children) + steps

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        """One number for each bucket, to order buckets by. path leads to an aggregation further below."""
        raise SearchError(
            "aggregation_execution_exception",
            f"Invalid aggregation order path [{'>'.join([*path, metric])}]. Buckets can only be sorted on a "
            "sub-aggregator path that is built out of zero or more single-bucket aggregations within the "
            "path and a final single-bucket or a metrics aggregation at the path end.",
        )


@dataclass(frozen=True)
class SingleBucket(Aggregation):
    """One bucket in each that it stands in: filter, missing, global, nested."""

    @abstractmethod
    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        """Other documents for the same buckets."""

    def answers(self, scope: Scope, rows: Rows) -> list[Answer]:
        scope.count_buckets(rows.count)
        inner = self.narrowed(scope, rows)
        sizes = scope.total(inner.sizes(scope.columns.doc_counts)).tolist()
        below = answers_below(scope, self.common, inner)
        return [{"doc_count": size, **sub} for size, sub in zip(sizes, below, strict=True)]

    def measure(self, scope: Scope, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
        inner = self.narrowed(scope, rows)
        if not path:
            if metric not in ("", "doc_count", "_count"):
                return super().measure(scope, rows, path, metric)
            return scope.total(inner.sizes(scope.columns.doc_counts)).astype(float)
        return measure_below(scope, self.common, inner, path, metric)


def answers_below(scope: Scope, common: Common, rows: Rows) -> list[Answer]:
    """For each bucket the answers of all aggregations that stand in it, by name."""
    found: list[Answer] = [{} for _ in range(rows.count)]
    if not common.children and not common.pipelines:
        return found
    for child in common.children:
        checkpoint()
        key = f"{child.typed}#{child.common.name}" if scope.typed_keys else child.common.name
        meta = {} if child.common.meta is None else {"meta": child.common.meta}
        for target, answer in zip(found, _answers(scope, child, rows), strict=True):
            target[key] = {**meta, **answer}
    for pipeline in common.pipelines:
        for target in found:
            pipeline.beside(target)
        _name_by_type(scope, pipeline, found)
    return found


def _answers(scope: Scope, child: Aggregation, rows: Rows) -> list[Answer]:
    if scope.clock_ns is None:
        return child.answers(scope, rows)
    start = scope.clock_ns()
    measured = scope.measured.setdefault(id(child), Measured())
    measured.documents += len(rows.docs)
    initialized = scope.clock_ns()
    answers = child.answers(scope, rows)
    measured.note_step("initialize", initialized - start)
    measured.nanoseconds += scope.clock_ns() - start
    return answers


def _name_by_type(scope: Scope, pipeline: "Pipeline", answers: list[Answer]) -> None:
    """With `typed_keys` also what pipelines have added is named by its type."""
    if scope.typed_keys:
        for answer in answers:
            if pipeline.name in answer:
                answer[f"{pipeline.typed}#{pipeline.name}"] = answer.pop(pipeline.name)


def measure_below(scope: Scope, common: Common, rows: Rows, path: Sequence[str], metric: str) -> Doubles:
    """The numbers of the aggregation that a path names, for each bucket."""
    for child in common.children:
        if child.common.name == path[0]:
            return child.measure(scope, rows, path[1:], metric)
    known = [child.common.name for child in common.children]
    raise illegal_argument(
        f"Invalid aggregator order path [{'>'.join(path)}]. The provided aggregation [{path[0]}] either does "
        f"not exist, or is a pipeline aggregation and cannot be used to sort the buckets. Known: {known}"
    )


# Runs a tree of aggregations over the documents that a search has matched.


def run(aggregations: Common, scope: Scope, docs: Longs) -> Answer:
    """What stands under `aggregations` in the answer. docs ascend."""
    (answers,) = answers_below(scope, aggregations, Rows(docs, np.zeros(len(docs), np.int64), 1))
    return answers


# From the cells of an aggregation to the buckets of its answer.


def bucket_lists(
    scope: Scope,
    common: Common,
    cells: Cells,
    count: int,
    head: Callable[[int], Answer],
    spans: Spans | None = None,
) -> list[list[Answer]]:
    """For each of count owners its buckets, in the order of the cells. head shows the key of a number. spans:
    the intervals that the cells are.
    """
    lists: list[list[Answer]] = [[] for _ in range(count)]
    columns = cells.owners.tolist(), cells.keys.tolist(), cells.counts.tolist()
    if common.children or common.pipelines:
        with scope.below(cells.owners, spans):
            below = answers_below(scope, common, cells.rows())
        for owner, key, size, sub in zip(*columns, below, strict=True):
            shown = head(key)
            # An aggregation below may be called `key`: the bucket's own name stays.
            lists[owner].append({**shown, "doc_count": size, **sub, **shown})
    else:
        for owner, key, size in zip(*columns, strict=True):
            lists[owner].append({**head(key), "doc_count": size})
    for pipeline in common.pipelines:
        lists = [pipeline.among(buckets) for buckets in lists]
        for buckets in lists:
            _name_by_type(scope, pipeline, buckets)
    for pipeline in common.pipelines:
        for buckets in lists:
            pipeline.forget(buckets)
    return lists


def keyed_buckets(buckets: list[Answer]) -> dict[str, Answer]:
    """`keyed`: an object by the buckets' keys, which they then lack themselves."""
    return {bucket.pop("key"): bucket for bucket in buckets}


def members_of(masks: Iterable[Bools]) -> tuple[Longs, Longs]:
    """(places, numbers): the documents at the places that each mask has, with the mask's number."""
    places = []
    for mask in masks:
        checkpoint()
        places.append(np.flatnonzero(mask))
    numbers = np.repeat(np.arange(len(places)), [len(found) for found in places])
    joined = np.concatenate([np.empty(0, np.int64), *places])
    order = np.argsort(joined, kind="stable")
    return joined[order], numbers[order]


def all_cells(scope: Scope, rows: Rows, masks: list[Bools]) -> Cells:
    """A cell for each owner and each mask, empty ones too; a mask says which rows are in its bucket."""
    scope.count_buckets(rows.count * len(masks))
    cells = cells_of(scope, rows, *members_of(masks))
    owners = np.repeat(np.arange(rows.count), len(masks))
    return cells.filled(owners, np.tile(np.arange(len(masks)), rows.count))


# One aggregation of a request, taken apart as far as all kinds have it in common.


@dataclass(frozen=True, slots=True)
class Definition:
    """kind is what the request calls it; options are its own parameters."""

    kind: str
    common: Common
    options: Options
    context: QueryContext

    @property
    def name(self) -> str:
        return self.common.name

    def with_options(self, options: Options) -> "Definition":
        """The same for a part that names a field of its own."""
        return replace(self, options=options)
