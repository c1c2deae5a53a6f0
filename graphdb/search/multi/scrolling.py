"""`Scroll`: all hits of a search in order, page by page, whatever happens to the indexes meanwhile."""

from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.leaf_reader import Floats
from graphdb.search.multi.prepared import Prepared
from graphdb.search.results.hits import Fetcher
from graphdb.search.results.inner_hits import NestedHits
from graphdb.search.results.matching import Found, Sorting
from graphdb.search.results.sort_keys import ByDoc, ByScore, short_float

__all__ = ["Scroll", "check_batch", "check_scroll"]


def check_batch(size: Any, window: int) -> None:
    """Refuse pages that are larger than `index.max_result_window`."""
    if isinstance(size, int) and size > window:
        raise illegal_request(
            f"Batch size is too large, size must be less than or equal to: [{window}] but was [{size}]. "
            "Scroll batch sizes cost as much memory as result windows so they are controlled by the "
            "[index.max_result_window] index level setting."
        )


def check_scroll(prepared: Prepared, cached: bool) -> None:
    """Refuse what does not go with a scroll. cached: whether the request asks for that."""
    request = prepared.request
    problems = [
        (request.track_total == 0, "disabling [track_total_hits] is not allowed in a scroll context"),
        (request.start > 0, "using [from] is not allowed in a scroll context"),
        (request.size == 0, "[size] cannot be [0] in a scroll context"),
        (bool(request.rescore), "using [rescore] is not allowed in a scroll context"),
        (cached, "[request_cache] cannot be used in a scroll context"),
        (request.after is not None, "`search_after` cannot be used in a scroll context."),
        (request.collapse is not None, "cannot use `collapse` in a scroll context"),
    ]
    found = [text for wrong, text in problems if wrong]
    if found:
        listed = "".join(f" {number}: {text};" for number, text in enumerate(found, 1))
        raise SearchError("action_request_validation_exception", f"Validation Failed:{listed}")


@dataclass(slots=True)
class _Order:
    """All hits, first to last; scores None where nothing was scored."""

    docs: NDArray[np.int32]
    scores: Floats | None


class Scroll:
    """Owned by a search context. Any thread may ask, also several at once: each gets another page."""

    def __init__(self, prepared: Prepared, found: Found) -> None:
        """found: the candidates; what `post_filter` leaves out of them is no hit."""
        self._prepared = prepared
        request, scope = prepared.request, prepared.scope
        if request.post_filter is not None:
            found = found.kept(scope.matching(request.post_filter)[found.docs])
        self._scored = (
            not request.sort or request.track_scores or any(isinstance(key, ByScore) for key in request.sort)
        )
        self._total = len(found.docs)
        has_best = request.tells_best_score and found.scores is not None and self._total
        self._best = float(found.scores.max()) if has_best and found.scores is not None else None
        self._order = _ordered(prepared, found, self._scored)
        self._next, self._lock = 0, Lock()

    @property
    def prepared(self) -> Prepared:
        return self._prepared

    def page(self) -> dict[str, Any]:
        """The next hits, as the answer shows them; none at the end."""
        size = self._prepared.request.size
        with self._lock:
            first, self._next = self._next, self._next + size
        docs = self._order.docs[first : first + size].astype(np.int64)
        scores = None if self._order.scores is None else self._order.scores[first : first + size]
        return {
            "total": {"value": self._total, "relation": "eq"},
            "max_score": None if self._best is None else short_float(self._best),
            "hits": self._shown(docs, scores),
        }

    def _shown(self, docs: NDArray[np.int64], scores: Floats | None) -> list[dict[str, Any]]:
        request, scope = self._prepared.request, self._prepared.scope
        ascending = np.argsort(docs)
        found = Found(docs[ascending], None if scores is None else scores[ascending])
        rows = np.empty_like(ascending)
        rows[ascending] = np.arange(len(docs))
        hits = Sorting(scope, found, request.sort).hits(rows, self._scored)
        fetcher = Fetcher(scope, request.query, self._prepared.options.raw_source)
        nested = NestedHits(scope, request.query)
        shown = []
        for hit in hits:
            one, inner = fetcher.shown(hit, request.fetching), nested.of(hit.doc)
            shown.append({**one, "inner_hits": inner} if inner else one)
        return shown


def _ordered(prepared: Prepared, found: Found, scored: bool) -> _Order:
    keys = prepared.request.sort
    if len(keys) == 1 and isinstance(keys[0], ByDoc) and not keys[0].descending:
        rows = np.arange(len(found.docs))
    else:
        rows = Sorting(prepared.scope, found, keys).first(len(found.docs))
    scores = found.scores[rows] if scored and found.scores is not None else None
    return _Order(found.docs[rows].astype(np.int32), scores)
