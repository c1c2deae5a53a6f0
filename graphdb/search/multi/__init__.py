"""One search over one or several indexes. See DESIGN.md."""

from graphdb.search.multi.prepared import (
    SHARDS_MAX,
    AllFailed,
    Failure,
    Prepared,
    Searchers,
    Target,
    prepare,
)
from graphdb.search.multi.scrolling import Scroll

__all__ = ["SHARDS_MAX", "AllFailed", "Failure", "Prepared", "Scroll", "Searchers", "Target", "prepare"]
