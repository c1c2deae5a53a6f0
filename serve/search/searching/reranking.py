"""`text_similarity_reranker`: the search of the retriever inside, the call of the model, and the request with
the new scores in its place.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from graphdb.search.errors import illegal_request
from graphdb.search.hybrid.plan import COMPOUND, PINNED, check_window
from graphdb.search.hybrid.reranker import Rerankers, RerankRequest, reranked, with_filters

__all__ = ["asks_for_model", "with_relevance"]

Find = Callable[[Mapping[str, Any]], Awaitable[Sequence[Mapping[str, Any]]]]
"""The hits of a search, with `_index`, `_id` and `fields`."""

_KIND = "text_similarity_reranker"
_AROUND = (*COMPOUND, PINNED, "rescorer")
_DEPTH_MAX = 30
_CALLS_MAX = 10  # of one search


def asks_for_model(body: Mapping[str, Any]) -> bool:
    """Whether a search has such a retriever anywhere."""
    return body.get("retriever") is not None and _has(body["retriever"], 0)


def _has(retriever: Any, depth: int) -> bool:
    if not isinstance(retriever, Mapping) or depth > _DEPTH_MAX:
        return False
    if _KIND in retriever:
        return True
    return any(
        _has(inner, depth + 1)
        for kind, members in retriever.items()
        if kind in _AROUND and isinstance(members, Mapping)
        for inner in (members.get("retriever"), *_listed(kind, members))
    )


def _listed(kind: str, members: Mapping[str, Any]) -> list[Any]:
    entries = members.get("retrievers")
    if not isinstance(entries, list):
        return []
    if kind != "linear":
        return entries
    return [entry.get("retriever") for entry in entries if isinstance(entry, Mapping)]


async def with_relevance(body: Mapping[str, Any], rerankers: Rerankers, find: Find) -> Mapping[str, Any]:
    """The request with the hits of each such retriever, and what the model says of them, in its place.

    Raises SearchError; UnavailableError where the model does not answer.
    """
    return {**body, "retriever": await _Resolving(body, rerankers, find).resolved(body["retriever"], (), 0)}


class _Resolving:
    """Of one request."""

    def __init__(self, body: Mapping[str, Any], rerankers: Rerankers, find: Find) -> None:
        self._rerankers, self._find = rerankers, find
        self._calls = 0
        self._beside = {key: body[key] for key in ("runtime_mappings", "timeout") if key in body}
        self._size = body.get("size", 10)

    async def resolved(self, retriever: Any, filters: tuple[Any, ...], depth: int) -> Any:
        """filters: those of the retrievers around."""
        if not isinstance(retriever, Mapping) or len(retriever) != 1 or depth > _DEPTH_MAX:
            return retriever
        ((kind, members),) = retriever.items()
        if not isinstance(members, Mapping) or kind not in (_KIND, *_AROUND):
            return retriever
        if kind == _KIND:
            return await self._reranked(members, filters, depth)
        own = members.get("filter") or []
        filters = (*filters, *(own if isinstance(own, list) else [own]))
        made = dict(members)
        if "retriever" in members:
            made["retriever"] = await self.resolved(members["retriever"], filters, depth + 1)
        if isinstance(members.get("retrievers"), list):
            made["retrievers"] = [
                await self._entry(kind, entry, filters, depth + 1) for entry in members["retrievers"]
            ]
        return {kind: made}

    async def _entry(self, kind: str, entry: Any, filters: tuple[Any, ...], depth: int) -> Any:
        if kind != "linear":
            return await self.resolved(entry, filters, depth)
        if not isinstance(entry, Mapping) or "retriever" not in entry:
            return entry
        return {**entry, "retriever": await self.resolved(entry["retriever"], filters, depth)}

    async def _reranked(self, members: Mapping[str, Any], filters: tuple[Any, ...], depth: int) -> Any:
        self._calls += 1
        if self._calls > _CALLS_MAX:
            raise illegal_request(f"a search takes at most [{_CALLS_MAX}] retrievers of type [{_KIND}]")
        request = RerankRequest.parse(members)
        if depth == 0 and isinstance(self._size, int):
            check_window(_KIND, request.window, self._size)
        name = self._rerankers.named(request.inference_id)
        inner = await self.resolved(with_filters(request.retriever, filters), (), depth + 1)
        request = request.of(inner)
        hits = await self._find({**self._beside, **request.search()})
        texts = request.texts(hits)
        asked = [place for place, text in enumerate(texts) if text]
        relevance = [float("-inf")] * len(texts)
        if asked:
            found = await self._rerankers.relevance(name, request.question, [texts[place] for place in asked])
            for place, score in zip(asked, found, strict=True):
                relevance[place] = score
        return reranked(request, hits, relevance)
