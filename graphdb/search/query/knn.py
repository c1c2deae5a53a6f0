"""The knn query, and the documents that its filter lets in."""

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping.vectors import from_hex, measure_of, oversample_of, rescore_of, vector_of
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.compound import BoolQuery, ConstantScoreQuery
from graphdb.search.query.exact_knn import ExactKnnQuery
from graphdb.search.query.explanation import Explanation
from graphdb.search.query.nested import NestedQuery, inner_hits_of
from graphdb.search.query.ranked import Part, RankedQuery, Ranking, merged
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import (
    BooleanQuery,
    ExistsQuery,
    KeywordQuery,
    NumberRangeQuery,
    NumbersQuery,
    TermQuery,
    TermsQuery,
)
from graphdb.search.query.tree import MatchAllQuery, Matches, MatchNoneQuery, Query, walk
from graphdb.search.vectors import (
    Metric,
    RowSet,
    Sought,
    VectorRows,
    nearest_in,
    nearest_ns_max,
    of_usual_length,
)

__all__ = ["CANDIDATES_MAX", "PARSERS", "KnnQuery", "allowed_rows", "is_kept"]

# Which rows of a vector field filters leave: as bits, kept with a segment for the requests to come.
#
# Filters come again: a tenant, a language, what is in stock. A segment never changes, so neither does what
# a filter matches in it, as long as that depends on nothing else.

_KEPT_MAX = 64  # for a field of a segment: all together take eight bytes for each of its rows
_CHARACTERS_MAX = 2_000  # of a filter that is kept
_KEPT = "filtered rows"
_OF_ITS_SEGMENT = frozenset(
    {
        BoolQuery, BooleanQuery, ConstantScoreQuery, ExistsQuery, KeywordQuery, MatchAllQuery, MatchNoneQuery,
        NumberRangeQuery, NumbersQuery, TermQuery, TermsQuery,
    }
)  # fmt: skip


def allowed_rows(
    leaf: Leaf, path: str, rows: VectorRows, filters: Sequence[Query], searcher: Searcher
) -> RowSet | None:
    """The rows of a vector field whose documents live and match all filters; None where all do."""
    allowed = searcher.keep(("live rows", leaf.base, path), lambda: _live(leaf, rows))
    for query in filters:
        found = _known(leaf, path, query) or _matching(leaf, path, rows, query, searcher)
        allowed = found if allowed is None else allowed & found
    return allowed


def is_kept(leaf: Leaf, path: str, query: Query) -> bool:
    """Whether it takes no time to tell which rows a filter leaves."""
    return _known(leaf, path, query) is not None


def _live(leaf: Leaf, rows: VectorRows) -> RowSet | None:
    return None if leaf.live.all() else rows.where(leaf.live)


def _known(leaf: Leaf, path: str, query: Query) -> RowSet | None:
    kept: _KeptRows | None = leaf.segment.derived.get((_KEPT, path))
    return kept.get(query) if kept is not None and _may_be_kept(query) else None


def _matching(leaf: Leaf, path: str, rows: VectorRows, query: Query, searcher: Searcher) -> RowSet:
    found = rows.where(query.mask(leaf, searcher))
    if not leaf.segment.live_only and _may_be_kept(query) and len(str(query)) <= _CHARACTERS_MAX:
        kept: _KeptRows = leaf.segment.derived.setdefault((_KEPT, path), _KeptRows())
        kept.put(query, found)
    return found


def _may_be_kept(query: Query) -> bool:
    return all(type(node) in _OF_ITS_SEGMENT for node in walk(query))


class _KeptRows:
    """By query, the least recently asked go first; for any thread."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Query, RowSet] = OrderedDict()
        self._lock = Lock()

    def get(self, query: Query) -> RowSet | None:
        with self._lock:
            found = self._rows.get(query)
            if found is not None:
                self._rows.move_to_end(query)
            return found

    def put(self, query: Query, rows: RowSet) -> None:
        with self._lock:
            self._rows[query] = rows
            if len(self._rows) > _KEPT_MAX:
                self._rows.popitem(last=False)


# `knn`: the documents whose vectors are nearest to one.

CANDIDATES_MAX = 10_000
_PER_HIT = 1.5  # candidates, where a request does not say
_PREVIEW = 3
_STEP_NS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class KnnQuery(RankedQuery):
    """The k nearest in one index, of all live documents that the filters match.

    score_min: what scores less is not found. shown: the objects that its `inner_hits` show.
    """

    sought: Sought
    filters: tuple[Query, ...] = ()
    score_min: float | None = None
    shown: NestedQuery | None = None

    @property
    def gives_likelihoods(self) -> bool:
        """Whether scores are between 0 and 1."""
        return self.boost == 1.0 and self.sought.metric.similarity != "max_inner_product"

    def rank(self, searcher: Searcher) -> Ranking:
        parts = searcher.ask(_Nearest(self))
        return merged(parts, self.gives_likelihoods).best(self.sought.k, self.score_min)

    def nearest(self, searcher: Searcher) -> Part:
        """The k nearest of these leaves, by the documents' numbers among those of all shards."""
        parts = []
        for leaf in searcher.leaves:
            rows = VectorRows.of(leaf.segment, self.sought.path)
            if rows is not None:
                checkpoint()
                allowed = allowed_rows(leaf, self.sought.path, rows, self.filters, searcher)
                docs, scores = nearest_in(leaf.segment, rows, self.sought, allowed)
                parts.append((docs + leaf.base, scores))
        found = merged(parts).best(self.sought.k)
        return found.docs + searcher.first.number, found.scores

    def steps(self, searcher: Searcher) -> float:
        """How much is walked at most, as `is_short_query` counts it, without matching filters."""
        found = [(leaf.segment, VectorRows.of(leaf.segment, self.sought.path)) for leaf in searcher.leaves]
        filtered = bool(self.filters)
        return sum(
            nearest_ns_max(segment, rows, self.sought, filtered) / _STEP_NS
            for segment, rows in found
            if rows is not None
        )

    def unknown_filters(self, searcher: Searcher) -> list[Query]:
        """Those that have to be matched first."""
        path = self.sought.path
        return [
            query for query in self.filters if not all(is_kept(leaf, path, query) for leaf in searcher.leaves)
        ]

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        _, own, its_searcher = searcher.part(leaf)
        return super().matches(own, its_searcher, boost)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        _, own, its_searcher = searcher.part(leaf)
        return super().explain(own, doc, its_searcher, boost)

    def text(self) -> str:
        first = ", ".join(str(value) for value in self.sought.vector[:_PREVIEW])
        return f"KnnFloatVectorQuery:{self.sought.path}[{first},...][{self.sought.k}]"


@dataclass(frozen=True, slots=True)
class _Nearest:
    """The nearest of a shard."""

    query: KnnQuery

    def answered(self, searcher: Searcher) -> Part:
        return self.query.nearest(searcher)


def _knn(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    """A field that is not mapped has no vectors: nothing matches."""
    clause = Clause("knn", body, "[{}] unknown field [{}]")
    path = clause.string("field")
    if path is None:
        raise illegal_request("Required [field]")
    if clause.take("query_vector_builder") is not None:
        raise illegal_request(
            "[query_vector_builder] is not supported: there are no models to embed text with"
        )
    given = clause.take("query_vector")
    if given is None:
        raise illegal_request("either [query_vector_builder] or [query_vector] must be provided")
    k, candidates = _sizes(clause, context.size)
    similarity = clause.number("similarity", 0.0) if "similarity" in clause else None
    wanted = clause.take("inner_hits") if context.is_knn_section else None
    outside = context
    if context.nested_path is not None or context.is_knn_section or context.exact_vectors:
        outside = replace(context, nested_path=None, is_knn_section=False, exact_vectors=False)
    filters = tuple(parse(one, outside) for one in _items(clause.take("filter")))
    rescore = clause.take("rescore_vector")
    oversample = None if rescore is None else rescore_of(rescore)
    clause.done()
    spec = context.mapping.field(path)
    if spec is None:
        return MatchNoneQuery(reason=f"field [{path}] does not exist in the mapping", name=clause.name)
    if oversample is None:
        oversample = oversample_of(spec.options)
    candidates = max(candidates, min(math.ceil(k * oversample), CANDIDATES_MAX))
    sought = _sought(spec, given, k, candidates, context)
    score_min = None if similarity is None else sought.metric.threshold(similarity)
    exact = ExactKnnQuery(sought=sought, score_min=score_min, boost=clause.boost, name=clause.name)
    if context.exact_vectors:
        return exact
    shown = None
    if spec.nested is not None and (inner_hits := inner_hits_of(wanted, spec.nested)) is not None:
        shown = NestedQuery(path=spec.nested, query=exact, inner_hits=inner_hits)
    return KnnQuery(
        sought=sought,
        filters=filters,
        score_min=score_min,
        shown=shown,
        boost=clause.boost,
        name=clause.name,
    )


def _sizes(clause: Clause, size: int) -> tuple[int, int]:
    """(k, num_candidates)"""
    given_k = clause.integer("k", 0) if "k" in clause else None
    given = clause.integer("num_candidates", 0) if "num_candidates" in clause else None
    if given_k is not None and given_k < 1:
        raise illegal_request("[k] must be greater than 0")
    if given is not None and given < 1:
        raise illegal_request("[num_candidates] must be greater than 0")
    k = given_k or max(1, min(size, given or size))
    candidates = given or min(round(_PER_HIT * k), CANDIDATES_MAX)
    if candidates < k:
        raise illegal_request("[num_candidates] cannot be less than [k]")
    if candidates > CANDIDATES_MAX:
        raise illegal_request(f"[num_candidates] cannot exceed [{CANDIDATES_MAX}]")
    return k, candidates


def _items(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _sought(spec: FieldSpec, given: Any, k: int, candidates: int, context: QueryContext) -> Sought:
    path = spec.path
    if spec.storage is not Storage.VECTORS:
        raise context.failed("[knn] queries are only supported on [dense_vector] fields")
    if not spec.indexed:
        raise context.failed(
            f"to perform knn search on field [{path}], its mapping must have [index] set to [true]"
        )
    if isinstance(given, str):
        given = _decoded(given)
    if not isinstance(given, list):
        raise malformed("[knn] failed to parse field [query_vector]")
    dims = spec.options["dims"]
    if dims is None:  # no document has given them yet
        dims = len(given) * (8 if spec.options["element_type"] == "bit" else 1)
    element_type = spec.options["element_type"]
    own_dims = len(given) * (8 if element_type == "bit" else 1)
    if own_dims != dims:
        raise context.failed(
            f"The query vector has a different number of dimensions [{own_dims}] than the document vectors "
            f"[{dims}]."
        )
    try:
        vector = vector_of(given, path, dims, spec.options["similarity"], element_type, "")
    except SearchError as error:
        raise context.failed(error.reason) from error
    if spec.options["similarity"] == "cosine":
        vector = of_usual_length(vector)
    metric = Metric(measure_of(spec.options), dims, element_type == "byte")
    inside = spec.nested is not None and context.nested_path is not None
    return Sought(path, vector, metric, k, candidates, spec.nested is not None, inside)


def _decoded(text: str) -> list[int]:
    """Bytes in hexadecimal digits: numbers of a field of floats, too."""
    try:
        return from_hex(text)
    except SearchError as error:
        raise malformed("[knn] failed to parse field [query_vector]") from error


PARSERS: dict[str, ClauseParser] = {"knn": _knn}
