"""Which rows of a vector field filters leave: as bits, kept with a segment for the requests to come.

Filters come again: a tenant, a language, what is in stock. A segment never changes, so neither does what a
filter matches in it, as long as that depends on nothing else.
"""

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.compound import ConstantScoreQuery
from graphdb.search.query.number_queries import ExistsQuery, NumberRangeQuery, NumbersQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import BooleanQuery, KeywordQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query, walk
from graphdb.search.segment import Leaf
from graphdb.search.vectors import RowSet, VectorRows

__all__ = ["allowed_rows", "is_kept"]

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
