"""Whether a whole search is known to be short: see `graphdb.search.query.cost`."""

from graphdb.search.multi.prepared import Prepared
from graphdb.search.query.cost import is_short_query

__all__ = ["is_short"]

_HITS_MAX = 100


def is_short(prepared: Prepared) -> bool:
    """Whether it may run where others wait for it."""
    request = prepared.request
    fetching = request.fetching
    return (
        request.is_plain
        and prepared.slice is None
        and request.start + request.size <= _HITS_MAX
        and fetching.is_raw
        and not fetching.explain
        and is_short_query(request.query, prepared.scope.searcher)
    )
