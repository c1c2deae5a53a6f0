"""What a search is of: indexes as of one moment, and which part of each the request's names show."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.mapping.lookup import FieldUnion
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.query.several import SeveralSearcher
from graphdb.search.results.request import RESULT_WINDOW

__all__ = ["INDEXES_MAX", "Failure", "Searchers", "Target", "union_context"]

INDEXES_MAX = 1_024
_KEPT_MAX = 32


@dataclass(frozen=True, slots=True)
class Target:
    """One index. filter: the query, as JSON, of the aliases that it is named by, None: all of it is seen."""

    searcher: Searcher
    context: QueryContext
    filter: Any = None
    boost: float = 1.0  # of `indices_boost`
    window: int = RESULT_WINDOW

    @property
    def name(self) -> str:
        return self.context.index_name


@dataclass(frozen=True, slots=True)
class Failure:
    """An index that could not be searched: the rest of the answer holds without it."""

    index: str
    error: SearchError


def union_context(contexts: Sequence[QueryContext]) -> QueryContext:
    """Of several indexes: queries become one query for each, fields are those of any."""
    first = contexts[0]
    names = [context.index_name for context in contexts]
    fields = FieldUnion([context.mapping for context in contexts], names)
    return QueryContext(fields, first.analyzers, first.now_ms, ",".join(names), parts=tuple(contexts))


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
