"""The body of a search, parsed: every key is known, and every value has its type."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graphdb.search.aggregations import parse as parse_aggregations
from graphdb.search.aggregations.aggregation import Common
from graphdb.search.aggregations.options import Options
from graphdb.search.errors import SearchError, illegal_argument, illegal_request, parsing
from graphdb.search.fields import Storage
from graphdb.search.hybrid import DEFAULT_SCORER, FusedQuery, Scorer, planned
from graphdb.search.hybrid.rescoring import Rescore, parse_rescore
from graphdb.search.query import Query, QueryContext, parse_query
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery
from graphdb.search.results.fetching import Fetching, parse_fetching
from graphdb.search.results.sort_keys import ByDoc, ByField, ByScore, SortKey
from graphdb.search.results.sort_parsing import parse_sort
from graphdb.search.results.suggesting import parse_suggestions
from graphdb.search.results.suggestion import Suggestion

__all__ = [
    "RESULT_WINDOW",
    "Collapse",
    "InnerHits",
    "SearchRequest",
    "parse_inner_hits",
    "parse_request",
]

RESULT_WINDOW = 10_000  # index.max_result_window
TOTAL_DEFAULT = 10_000
_IGNORED = ("indices_boost", "stats", "timeout", "ext", "min_compatible_shard_node")
_ELSEWHERE = ("pit", "slice", "_ext", "hybrid", "runtime_mappings")  # the caller has read them


@dataclass(frozen=True, slots=True)
class InnerHits:
    """A page of hits below a hit."""

    name: str
    start: int
    size: int
    sort: tuple[SortKey, ...]
    fetching: Fetching
    collapse: str | None = None
    track_scores: bool = False


@dataclass(frozen=True, slots=True)
class Collapse:
    """One hit for each value of a field."""

    path: str
    inner_hits: tuple[InnerHits, ...] = ()


@dataclass(frozen=True)
class SearchRequest:
    """sort empty: by score. track_total: count up to so many hits, None: all, 0: none. shows_total: whether
    the answer has a total. query_is_silent: it is known that hits show nothing of the query: no names, inner
    hits or slots of documents.
    """

    query: Query
    start: int
    size: int
    sort: tuple[SortKey, ...]
    after: Sequence[Any] | None
    aggregations: Common | None
    fetching: Fetching
    post_filter: Query | None = None
    min_score: float | None = None
    track_total: int | None = TOTAL_DEFAULT
    shows_total: bool = True
    track_scores: bool = False
    collapse: Collapse | None = None
    rescore: tuple[Rescore, ...] = ()
    terminate_after: int = 0
    profile: bool = False
    suggestions: tuple[Suggestion, ...] = ()
    query_is_silent: bool = False

    def of_query(self, query: Query, **changes: Any) -> "SearchRequest":
        """The same for another query; sooner than `replace`."""
        made = object.__new__(SearchRequest)
        beside = self._has_nothing_beside  # found out once for all
        vars(made).update(vars(self), query=query, _has_nothing_beside=beside, **changes)
        return made

    @property
    def is_plain(self) -> bool:
        """Whether the best documents by score and their number are all that is asked for."""
        return not self.sort and self._is_plain_but_for_sort

    @property
    def is_sorted_by_numbers(self) -> bool:
        """Whether beside a plain request it is only sorted, by what costs nothing to prepare."""
        quick = all(
            isinstance(key, ByScore | ByDoc)
            or (isinstance(key, ByField) and key.nesting is None and key.spec.storage is not Storage.TERMS)
            for key in self.sort
        )
        return quick and self._is_plain_but_for_sort

    @property
    def tells_best_score(self) -> bool:
        """Whether the answer has a `max_score`: of sorted hits only where they are sorted by nothing but the
        score, best first, or scores are asked for, as in Elasticsearch.
        """
        first = self.sort[0] if self.sort else ByScore()
        alone = len(self.sort) < 2 and isinstance(first, ByScore) and first.descending
        return self.track_scores or alone

    @property
    def is_sorted_alone(self) -> bool:
        """Whether a page of hits, sorted, is all that is asked for."""
        return bool(self.sort) and self._is_plain_but_for_sort

    @property
    def is_aggregated_alone(self) -> bool:
        """Whether beside a plain request, whose hits need not be wanted, there are only aggregations."""
        return not self.sort and self._has_nothing_else

    @property
    def scores_hits(self) -> bool:
        """Whether hits are chosen by their scores, or show them."""
        if not self._has_nothing_else:
            return True
        by_fields = bool(self.sort) and all(isinstance(key, ByField | ByDoc) for key in self.sort)
        return self.size > 0 and (self.track_scores or not by_fields)

    @property
    def _is_plain_but_for_sort(self) -> bool:
        return self._has_nothing_else and self.aggregations is None and self.size > 0

    @property
    def _has_nothing_else(self) -> bool:
        # of a fusion, some that match are in no list
        return self._has_nothing_beside and not isinstance(self.query, FusedQuery)

    @cached_property
    def _has_nothing_beside(self) -> bool:
        """Whatever the query: `of_query` hands it on."""
        beside = (self.collapse, self.rescore, self.suggestions, self.post_filter)
        return not (any(beside) or self.min_score is not None or self.terminate_after)


def parse_request(
    body: Mapping[str, Any],
    context: QueryContext,
    window: int = RESULT_WINDOW,
    hybrid: Scorer = DEFAULT_SCORER,
) -> SearchRequest:
    """Errors: SearchError for an unknown key, a value of the wrong type, a page beyond `window`.

    hybrid: what ranks where both `query` and `knn` are given, and no `rank`.
    """
    Options("search", body)  # an object
    _check_kinds(body)
    query, rest = planned(body, context, hybrid)
    options = Options("search", rest)
    start, size = _page(options, window)
    sort = parse_sort(options.take("sort"), context)
    aggregations = [options.take(key) for key in ("aggs", "aggregations") if key in options]
    if query is None:
        # a search that only suggests finds nothing beside
        only_suggests = "suggest" in options and not aggregations
        query = MatchNoneQuery(reason="only suggestions are asked for") if only_suggests else MatchAllQuery()
    tracked, shows_total = _track_total(options.take("track_total_hits"))
    request = SearchRequest(
        query=query,
        start=start,
        size=size,
        sort=sort,
        after=_after(options.take("search_after"), sort, start),
        aggregations=parse_aggregations(aggregations[0], context) if aggregations else None,
        fetching=parse_fetching(options, context),
        post_filter=_optional(options, "post_filter", lambda value: parse_query(value, context)),
        min_score=options.number("min_score"),
        track_total=tracked,
        shows_total=shows_total,
        track_scores=options.flag("track_scores"),
        collapse=_optional(options, "collapse", lambda value: _collapse(value, context)),
        rescore=tuple(parse_rescore(entry, context) for entry in options.items("rescore")),
        terminate_after=options.integer("terminate_after", 0, 0),
        profile=options.flag("profile"),
        suggestions=_optional(options, "suggest", lambda value: parse_suggestions(value, context)) or (),
    )
    _finish(options)
    _check(request)
    return request


# Which kinds of JSON Elasticsearch reads under which member.
_VALUES = frozenset(
    {
        "_source", "explain", "from", "min_score", "profile", "seq_no_primary_term", "size", "sort",
        "stored_fields", "terminate_after", "timeout", "track_scores", "track_total_hits", "version",
    }
)  # fmt: skip
_OBJECTS = frozenset(
    {
        "_source", "aggregations", "aggs", "collapse", "ext", "highlight", "knn", "pit", "post_filter",
        "query", "rank", "rescore", "retriever", "runtime_mappings", "script_fields", "slice", "sort",
        "suggest",
    }
)  # fmt: skip
_ARRAYS = frozenset(
    {
        "_source", "docvalue_fields", "fields", "indices_boost", "knn", "rescore", "search_after", "sort",
        "stats", "stored_fields",
    }
)  # fmt: skip
_KNOWN = _VALUES | _OBJECTS | _ARRAYS


def _check_kinds(body: Mapping[str, Any]) -> None:
    """Errors: parsing_exception for a known member with JSON of another kind, or null."""
    for key, value in body.items():
        kinds = _OBJECTS if isinstance(value, Mapping) else _ARRAYS if isinstance(value, list) else _VALUES
        if key in _KNOWN and (value is None or key not in kinds):
            raise parsing(f"Unknown key for a {_token(value)} in [{key}].")


def _optional(options: Options, key: str, read: Callable[[Any], Any]) -> Any:
    value = options.take(key)
    return None if value is None else read(value)


def _finish(options: Options) -> None:
    options.ignore(*_IGNORED, *_ELSEWHERE)
    for key, value in options.rest().items():
        raise parsing(f"Unknown key for a {_token(value)} in [{key}].")


def _token(value: Any) -> str:
    for kind, name in (
        (dict, "START_OBJECT"),
        (list, "START_ARRAY"),
        (str, "VALUE_STRING"),
        (bool, "VALUE_BOOLEAN"),
    ):
        if isinstance(value, kind):
            return name
    return "VALUE_NULL" if value is None else "VALUE_NUMBER"


def _page(options: Options, window: int) -> tuple[int, int]:
    start, size = options.integer("from", 0), options.integer("size", 10)
    if start < 0:
        raise illegal_request(f"[from] parameter cannot be negative but was [{start}]")
    if size < 0:
        raise illegal_request(f"[size] parameter cannot be negative, found [{size}]")
    if start + size > window:
        raise illegal_argument(
            f"Result window is too large, from + size must be less than or equal to: [{window}] but was "
            f"[{start + size}]. See the scroll api for a more efficient way to request large data sets. This "
            "limit can be set by changing the [index.max_result_window] index level setting."
        )
    return start, size


def _after(value: Any, sort: tuple[SortKey, ...], start: int) -> Sequence[Any] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise illegal_request("Values must contains at least one value.")
    if not sort:
        raise illegal_request("Sort must contain at least one field.")
    if len(value) != len(sort):
        raise illegal_request(f"search_after has {len(value)} value(s) but sort has {len(sort)}.")
    if start > 0:
        raise SearchError(
            "action_request_validation_exception",
            "Validation Failed: 1: `from` parameter must be set to 0 when `search_after` is used;",
        )
    return value


def _track_total(value: Any) -> tuple[int | None, bool]:
    """(up to which number hits are counted, whether the answer has a total)."""
    if value is None:
        return TOTAL_DEFAULT, True
    if value is True or value == "true":
        return None, True
    if value is False or value == "false" or value == -1:
        return 0, False
    if isinstance(value, int | float) and value >= 0:
        return int(value), True
    raise illegal_request(f"[track_total_hits] parameter must be positive or equals to -1, got {value}")


def _collapse(body: Any, context: QueryContext) -> Collapse:
    options = Options("collapse", body)
    path = options.text("field")
    if path is None:
        raise illegal_request("Required [field]")
    inner = tuple(parse_inner_hits(entry, context, path) for entry in options.items("inner_hits"))
    options.ignore("max_concurrent_group_searches")
    options.done()
    if len({one.name for one in inner}) < len(inner):
        raise illegal_request("[inner_hits] already contains an entry for key")
    return Collapse(path, inner)


def parse_inner_hits(body: Any, context: QueryContext, name: str) -> InnerHits:
    """`inner_hits`; name is for those that give none."""
    options = Options("inner_hits", body)
    name = options.text("name") or name
    start, size = options.integer("from", 0, 0), options.integer("size", 3, 0)
    most = context.limits.inner_result_window
    if start + size > most:
        raise illegal_argument(
            f"Inner result window is too large, the inner hit definition's [{name}]'s from + size must be "
            f"less than or equal to: [{most}] but was [{start + size}]. This limit can be set by "
            "changing the [index.max_inner_result_window] index level setting."
        )
    sort, fetching = parse_sort(options.take("sort"), context), parse_fetching(options, context)
    path = _optional(options, "collapse", _inner_collapse)
    tracks = options.flag("track_scores")
    options.ignore("ignore_unmapped")
    options.done()
    return InnerHits(name, start, size, sort, fetching, path, tracks)


def _inner_collapse(body: Any) -> str:
    """The field of a `collapse` in `inner_hits`, which has none of its own below it."""
    options = Options("collapse", body)
    path = options.text("field")
    options.done()
    if path is None:
        raise illegal_request("Required [field]")
    return path


def _check(request: SearchRequest) -> None:
    """What does not go together."""
    if request.rescore and request.sort:
        raise SearchError(
            "action_request_validation_exception",
            "Validation Failed: 1: Cannot use [sort] option in conjunction with [rescore].;",
        )
    if request.collapse and request.after is not None:
        paths = [getattr(key, "path", None) for key in request.sort]
        if paths != [request.collapse.path]:
            raise illegal_request(
                "Cannot use [collapse] in conjunction with [search_after] unless the search is sorted on the "
                "same field. Multiple sort fields are not allowed."
            )
