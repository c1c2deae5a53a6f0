"""`knn`: the documents whose vectors are nearest to one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.vectors import from_hex, vector_of
from graphdb.search.query.clause import Clause, malformed
from graphdb.search.query.context import QueryContext
from graphdb.search.query.explanation import Explanation
from graphdb.search.query.filter_rows import allowed_rows, is_kept
from graphdb.search.query.parsers import ClauseParser, Parse
from graphdb.search.query.ranked import RankedQuery, Ranking, merged
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query
from graphdb.search.segment import Leaf
from graphdb.search.vectors import Metric, Sought, VectorRows, nearest_in, nearest_ns_max, of_usual_length

__all__ = ["CANDIDATES_MAX", "PARSERS", "KnnQuery"]

CANDIDATES_MAX = 10_000
_PER_HIT = 1.5  # candidates, where a request does not say
_PREVIEW = 3
_STEP_NS = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class KnnQuery(RankedQuery):
    """The k nearest in one index, of all live documents that the filters match.

    score_min: what scores less is not found.
    """

    sought: Sought
    filters: tuple[Query, ...] = ()
    score_min: float | None = None

    @property
    def gives_likelihoods(self) -> bool:
        """Whether scores are between 0 and 1."""
        return self.boost == 1.0 and self.sought.metric.similarity != "max_inner_product"

    def rank(self, searcher: Searcher) -> Ranking:
        parts = []
        for leaf in searcher.leaves:
            rows = VectorRows.of(leaf.segment, self.sought.path)
            if rows is not None:
                checkpoint()
                allowed = allowed_rows(leaf, self.sought.path, rows, self.filters, searcher)
                docs, scores = nearest_in(leaf.segment, rows, self.sought, allowed)
                parts.append((docs + leaf.base, scores))
        return merged(parts, self.gives_likelihoods).best(self.sought.k, self.score_min)

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
    outside = context if context.nested_path is None else replace(context, nested_path=None)
    filters = tuple(parse(one, outside) for one in _items(clause.take("filter")))
    clause.ignore("rescore_vector")  # of quantised vectors; ours are whole
    clause.done()
    spec = context.mapping.field(path)
    if spec is None:
        return MatchNoneQuery(reason=f"field [{path}] does not exist in the mapping", name=clause.name)
    sought = _sought(spec, given, k, candidates, context)
    return KnnQuery(
        sought=sought,
        filters=filters,
        score_min=None if similarity is None else sought.metric.threshold(similarity),
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
        dims = len(given)
    if len(given) != dims:
        raise context.failed(
            f"The query vector has a different number of dimensions [{len(given)}] than the document vectors "
            f"[{dims}]."
        )
    try:
        vector = vector_of(given, path, dims, spec.options["similarity"], spec.options["element_type"], "")
    except SearchError as error:
        raise context.failed(error.reason) from error
    if spec.options["similarity"] == "cosine":
        vector = of_usual_length(vector)
    metric = Metric(spec.options["similarity"], dims, spec.options["element_type"] == "byte")
    inside = spec.nested is not None and context.nested_path is not None
    return Sought(path, vector, metric, k, candidates, spec.nested is not None, inside)


def _decoded(text: str) -> list[int]:
    """Bytes in hexadecimal digits: numbers of a field of floats, too."""
    try:
        return from_hex(text)
    except SearchError as error:
        raise malformed("[knn] failed to parse field [query_vector]") from error


PARSERS: dict[str, ClauseParser] = {"knn": _knn}
