"""`ShardScroll`: a scroll of an index whose shards are searched elsewhere, page by page.

The index is held as it was, and each page is a search after the last hit of the page before. So no order of
all hits is kept anywhere, and whoever can search that moment, other copies or the node itself, can go on.
"""

from asyncio import Lock
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.search.multi import Failure, Target

__all__ = ["ShardScroll", "may_scroll_apart"]

Found: TypeAlias = tuple[Sequence[Failure], dict[str, Any]]

# what ranks otherwise than by sort values
_RANKING = ("knn", "retriever", "rank", "sub_searches")
_BY_NUMBER = {"_shard_doc": "asc"}


def may_scroll_apart(body: Mapping[str, Any]) -> bool:
    """Whether a page can be found by the sort values of the hit before it: those of fields and of scores."""
    if any(name in body for name in _RANKING):
        return False
    names = [next(iter(key), "") if isinstance(key, Mapping) else key for key in _keys(body)]
    return all((isinstance(name, str) and name[:1] != "_") or name in ("_score", "_doc") for name in names)


def _keys(body: Mapping[str, Any]) -> list[Any]:
    given = body.get("sort", [])
    return list(given) if isinstance(given, list) else [given]


@dataclass(slots=True)
class _First:
    """Of the first page, as all pages show it."""

    total: Any
    max_score: Any


class ShardScroll:
    """Owned by a search context, for the event loop. Several may ask at once: each gets another page."""

    def __init__(
        self,
        targets: Sequence[Target],
        body: Mapping[str, Any],
        search: Callable[[Mapping[str, Any]], Awaitable[Found]],
    ) -> None:
        """search: of that moment of the targets, by a body, with the hits as objects."""
        self.targets = tuple(targets)
        self._asked, self._search = body, search
        self._is_sorted = bool(_keys(body))
        self._first: _First | None = None
        self._after: list[Any] | None = None
        self._lock = Lock()

    async def page(self) -> dict[str, Any]:
        """The next hits, as the answer shows them, and with the first what is asked for beside. Raises
        SearchError, AllFailed.
        """
        async with self._lock:
            if self._first is not None and self._after is None:
                return self._shown([])
            _, answer = await self._search(self._body())
            hits = answer["hits"]["hits"]
            self._after = list(hits[-1]["sort"]) if hits else None
            for hit in hits:
                values = hit.pop("sort")[:-1]
                if self._is_sorted:
                    hit["sort"] = values
            if self._first is None:
                self._first = _First(answer["hits"].get("total"), answer["hits"]["max_score"])
                return {**answer, **self._shown(hits)}
            return self._shown(hits)

    def _shown(self, hits: Sequence[Any]) -> dict[str, Any]:
        assert self._first is not None
        shown = {"total": self._first.total, "max_score": self._first.max_score, "hits": list(hits)}
        return {"timed_out": False, "hits": shown}

    def _body(self) -> dict[str, Any]:
        body = {**self._asked, "track_total_hits": True}
        keys = _keys(body)
        if not keys:
            keys = ["_score"]
            body["track_scores"] = True
        body["sort"] = [*keys, _BY_NUMBER]
        if self._after is not None:
            for name in ("aggs", "aggregations", "suggest"):
                body.pop(name, None)
            body["search_after"] = self._after
        return body
