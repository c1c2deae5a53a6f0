"""A search over several indexes: its targets, its slices, and which of its shards fail."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Common, Scope
from graphdb.search.aggregations.options import Options
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.hybrid import Scorer
from graphdb.search.mapping.lookup import FieldUnion
from graphdb.search.query import Matches, Query, QueryContext, Searcher, parse_query
from graphdb.search.query.clause import ResultLimits
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.cost import (
    STEPS_MAX,
    documents_max,
    is_narrow_query,
    is_short_query,
    steps_together,
)
from graphdb.search.query.ranked import RankedQuery
from graphdb.search.query.several import PerIndexQuery, SeveralSearcher
from graphdb.search.query.tree import MatchAllQuery, boosted
from graphdb.search.results.competitive import passes_over
from graphdb.search.results.matching import Found
from graphdb.search.results.search import SearchOptions, answered, find, scope_of, whole_answer
from graphdb.search.results.search_request import RESULT_WINDOW, SearchRequest, parse_request

__all__ = [
    "DEFAULT_OPTIONS",
    "SHARDS_MAX",
    "AllFailed",
    "Failure",
    "Prepared",
    "Searchers",
    "Slice",
    "Target",
    "check_request",
    "is_of_request",
    "is_short",
    "parse_slice",
    "prepare",
    "union_context",
]

# Whose fault it is: the request's, which no index could answer, or one index's, with another mapping.

# Elasticsearch reads a body before it knows which indexes are asked; then shards meet their mappings.
_OF_REQUEST = frozenset(
    {
        "action_request_validation_exception",
        "parsing_exception",
        "search_phase_execution_exception",
        "security_exception",
        "sparql_exception",
        "x_content_parse_exception",
    }
)


def is_of_request(error: SearchError) -> bool:
    """Whether an error would be the same for every index."""
    return error.of_request or error.kind in _OF_REQUEST or error.status >= 500


# `slice`: one of several disjoint parts of what a search finds, so that several clients can read it.


@dataclass(frozen=True, slots=True)
class Slice:
    """Part `number` of `count`. By sequence numbers, which stay through refreshes and merges: the parts are
    disjoint although each client opens its own search.
    """

    number: int
    count: int

    def of(self, found: Found, scope: Scope) -> Found:
        seq_nos = [leaf.segment.seq_nos for leaf in scope.columns.leaves]
        own = np.concatenate([np.zeros(0, np.int64), *seq_nos])[found.docs]
        return found.kept(np.asarray(own % self.count == self.number))


def parse_slice(body: Any, most: int) -> Slice | None:
    """`{"id": 0, "max": 2}`, with at most so many slices; field is accepted. Errors: SearchError."""
    if body is None:
        return None
    options = Options("slice", body)
    number, count = options.integer("id", -1), options.integer("max", -1)
    options.ignore("field")
    options.done()
    if count <= 1:
        raise illegal_request("max must be greater than 1")
    if number < 0:
        raise illegal_request("id must be greater than or equal to 0")
    if number >= count:
        raise illegal_request("max must be greater than id")
    if count > most:
        raise illegal_argument(
            f"The number of slices [{count}] is too large. It must be less than [{most}]. This limit "
            "can be set by changing the [index.max_slices_per_scroll] index level setting."
        )
    return Slice(number, count)


# What a search is of: indexes as of one moment, and which part of each the request's names show.

SHARDS_MAX = 1_024
_KEPT_MAX = 32


@dataclass(frozen=True, slots=True)
class Target:
    """One index. filter: the query, as JSON, of the aliases that it is named by; None: all of it.

    shards: the numbers of those that the searcher is over.
    """

    searcher: Searcher
    context: QueryContext
    filter: Any = None
    boost: float = 1.0  # of `indices_boost`
    window: int = RESULT_WINDOW
    shards: tuple[int, ...] = (0,)

    @property
    def name(self) -> str:
        return self.context.index_name


@dataclass(frozen=True, slots=True)
class Failure:
    """An index, or shards of it, that could not be searched: the rest of the answer holds without it.

    node: where these shards are, None: nowhere. Without is_elsewhere they are on the node that is asked.
    """

    index: str
    error: SearchError
    shards: tuple[int, ...] = (0,)
    is_elsewhere: bool = False
    node: str | None = None

    def node_id(self, own: str) -> str | None:
        """As clients know it. own: that of the node that is asked."""
        return self.node if self.is_elsewhere else own


def union_context(contexts: Sequence[QueryContext]) -> QueryContext:
    """Of several indexes: queries become one query for each, fields are those of any."""
    first = contexts[0]
    names = [context.index_name for context in contexts]
    fields = FieldUnion([context.mapping for context in contexts], names)
    limits = ResultLimits.widest([context.limits for context in contexts])
    return QueryContext(
        fields, first.analyzers, first.now_ms, ",".join(names), limits=limits, parts=tuple(contexts)
    )


class Searchers:
    """What was made for several indexes together, as it is dear: merged dictionaries, counts.

    For any thread. The last ones are kept, at most one for the same names.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], SeveralSearcher] = OrderedDict()
        self._lock = Lock()

    def of(self, targets: Sequence[Target], shared_statistics: bool = False) -> Searcher:
        """One searcher over all of them."""
        if len(targets) == 1:
            return targets[0].searcher
        searchers = [target.searcher for target in targets]
        names = (shared_statistics, *(target.name for target in targets))
        with self._lock:
            known = self._kept.get(names)
            if known is None or any(
                one is not other for one, other in zip(known.searchers, searchers, strict=True)
            ):
                known = self._kept[names] = SeveralSearcher(searchers, shared_statistics)
            self._kept.move_to_end(names)
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return known


# `Prepared`: a search that has been parsed for every index it is of, to be run in one go or step by step.

DEFAULT_OPTIONS = SearchOptions()


class AllFailed(Exception):
    """No index could be searched. The interface words the error."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__(failures)
        self.failures = failures


@dataclass(frozen=True, slots=True)
class Prepared:
    """targets are those that are searched, failures the others. Run it once, on one thread at a time.

    run()                        the whole; the short way where it may be taken
    find() ─► Found ─► finish()  candidates, which the caller narrows or scores in between
    """

    request: SearchRequest
    scope: Scope
    options: SearchOptions
    targets: tuple[Target, ...]
    failures: tuple[Failure, ...] = ()
    slice: Slice | None = None

    def run(self, matches: Sequence[Matches] | None = None) -> dict[str, Any]:
        """The answer without `took` and `_shards`. matches, one for each leaf, stand for the query's."""
        if matches is not None or self.slice is not None or self._hides:
            return self.finish(self.find(matches))
        return whole_answer(self.request, self.scope, self.options)

    def find(self, matches: Sequence[Matches] | None = None) -> Found:
        """All documents that match, with their scores."""
        found = find(self.request, self.scope, matches)
        if self._hides:
            assert self.scope.visible is not None
            found = found.kept(self.scope.matching(self.scope.visible)[found.docs])
        return found if self.slice is None else self.slice.of(found, self.scope)

    @property
    def _hides(self) -> bool:
        """Whether aliases hide some of what the query finds."""
        return self.scope.visible is not None and isinstance(self.request.query, RankedQuery)

    def finish(self, found: Found) -> dict[str, Any]:
        """The answer for these candidates."""
        return answered(self.request, self.scope, found, self.options)


def prepare(
    body: Mapping[str, Any],
    targets: Sequence[Target],
    searchers: Searchers,
    options: SearchOptions = DEFAULT_OPTIONS,
    shared_statistics: bool = False,
) -> Prepared:
    """Parse a search. At least one target, in the order in which equal hits are to come.

    Raises SearchError for what no index could answer, AllFailed where each fails for itself.
    """
    targets = _with_runtime(body.get("runtime_mappings"), targets)
    usable, failures = _usable(body, targets, options.hybrid)
    if not usable:
        raise AllFailed(failures)
    searcher = searchers.of(usable, shared_statistics)
    contexts = [target.context for target in usable]
    context = contexts[0] if len(contexts) == 1 else union_context(contexts)
    window = min(target.window for target in usable)
    try:
        request = parse_request(_nearest_shown(body, usable), context, window, options.hybrid)
    except SearchError as error:
        if is_of_request(error):
            raise
        raise AllFailed([Failure(target.name, error, target.shards) for target in usable]) from error
    filters = [_filter_of(target) for target in usable]
    scope = scope_of(searcher, context, options)
    if any(filters):
        shown = [one or MatchAllQuery() for one in filters]
        scope.visible = shown[0] if len(shown) == 1 else PerIndexQuery(queries=tuple(shown))
    narrowed = _narrowed(request.query, usable, filters)
    if narrowed is not request.query:
        request = replace(request, query=narrowed)
    part = parse_slice(body.get("slice"), context.limits.slices_per_scroll)
    return Prepared(request, scope, options, tuple(usable), tuple(failures), part)


def _with_runtime(section: Any, targets: Sequence[Target]) -> Sequence[Target]:
    """The same, with the runtime fields of the request.

    Errors: mapper_parsing_exception, script_exception.
    """
    if not section:
        return targets
    found = []
    for target in targets:
        mapping = target.searcher.mapping.with_runtime(section)
        searcher = target.searcher.with_runtime_fields(mapping)
        found.append(replace(target, searcher=searcher, context=replace(target.context, mapping=mapping)))
    return found


def check_request(body: Mapping[str, Any], context: QueryContext, hybrid: Scorer) -> None:
    """Of a search that names no index; context: of an index without fields.

    Raises SearchError for what no index could answer.
    """
    try:
        parse_request(body, context, RESULT_WINDOW, hybrid)
    except SearchError as error:
        if is_of_request(error):
            raise


def _usable(
    body: Mapping[str, Any], targets: Sequence[Target], hybrid: Scorer
) -> tuple[list[Target], list[Failure]]:
    """Which of several indexes can read the request. (One alone is read when it is its turn.)"""
    if len(targets) == 1:
        return list(targets), []
    usable, failures = [], []
    for target in targets:
        try:
            parse_request(body, target.context, target.window, hybrid)
            usable.append(target)
        except SearchError as error:
            if is_of_request(error):
                raise
            failures.append(Failure(target.name, error, target.shards))
    return usable, failures


def _filter_of(target: Target) -> Query | None:
    return None if target.filter is None else parse_query(target.filter, target.context)


def _narrowed(query: Query, targets: Sequence[Target], filters: Sequence[Query | None]) -> Query:
    """With what aliases show and `indices_boost` put in.

    A ranking over all indexes stays whole: what aliases hide is taken out of what it finds (`Prepared.find`).
    """
    if not any(filters) and all(target.boost == 1.0 for target in targets):
        return query
    if isinstance(query, RankedQuery):
        return query
    parts = []
    for number, (target, narrowed_by) in enumerate(zip(targets, filters, strict=True)):
        part = query.part(number)
        if narrowed_by is not None:
            part = BoolQuery(must=(part,), filter=(narrowed_by,))
        parts.append(boosted(part, target.boost))
    return parts[0] if len(parts) == 1 else PerIndexQuery(queries=tuple(parts))


def _nearest_shown(body: Mapping[str, Any], targets: Sequence[Target]) -> Mapping[str, Any]:
    """The request with an alias's filter in each `knn`, so that as many are found as are asked for."""
    knn = body.get("knn")
    if knn is None or len(targets) > 1 or targets[0].filter is None:
        return body
    clauses = knn if isinstance(knn, list) else [knn]
    if not all(isinstance(clause, Mapping) for clause in clauses):
        return body  # refused where it is parsed
    filtered = []
    for clause in clauses:
        own = clause.get("filter", [])
        filters = [*own, targets[0].filter] if isinstance(own, list) else [own, targets[0].filter]
        filtered.append({**clause, "filter": filters})
    return {**body, "knn": filtered}


# Whether a whole search is known to be short: see `graphdb.search.query.cost`.

_HITS_MAX = 100
_AGGREGATIONS_MAX = 4


def is_short(prepared: Prepared) -> bool:
    """Whether it may run where others wait for it."""
    request = prepared.request
    fetching, searcher = request.fetching, prepared.scope.searcher
    shows_much = request.start + request.size > _HITS_MAX or not fetching.is_raw or fetching.explain
    if shows_much or prepared.slice is not None:
        return False
    if request.is_plain:
        return is_short_query(request.query, searcher, request.track_total)
    if request.aggregations is not None:
        return request.is_aggregated_alone and _is_counted_soon(request.aggregations, prepared)
    return request.is_sorted_by_numbers and _is_sorted_soon(prepared)


def _is_sorted_soon(prepared: Prepared) -> bool:
    """Whether all that the query matches is found, and the first of it in order, within two milliseconds."""
    request, scope = prepared.request, prepared.scope
    return is_narrow_query(
        request.query,
        scope.searcher,
        lambda: request.after is None and passes_over(scope.columns, request.sort[0]),
    )


def _is_counted_soon(aggregations: Common, prepared: Prepared) -> bool:
    """Whether all that the query matches is found, and goes into buckets, within about two milliseconds."""
    documents = documents_max(prepared.request.query, prepared.scope.searcher)
    if documents is None or aggregations.pipelines or len(aggregations.children) > _AGGREGATIONS_MAX:
        return False
    steps = steps_together(one.steps(prepared.scope, documents) for one in aggregations.children)
    return steps is not None and steps <= STEPS_MAX
