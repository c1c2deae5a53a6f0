"""One search over one or several indexes. See DESIGN.md."""

from graphdb.search.multi.prepared import AllFailed, Prepared, prepare
from graphdb.search.multi.scrolling import Scroll
from graphdb.search.multi.targets import INDEXES_MAX, Failure, Searchers, Target

__all__ = ["INDEXES_MAX", "AllFailed", "Failure", "Prepared", "Scroll", "Searchers", "Target", "prepare"]
