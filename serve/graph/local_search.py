"""`LocalSearch`: the indexes of the same node, over the search port's application on a Unix domain socket.

So a search in a query finds what its caller may find there, and has the same limits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx
import orjson

from graphdb.access.principal import NODE, Principal
from graphdb.errors import InvalidParameter, LimitExceeded, UnavailableError
from graphdb.node import Entities
from graphdb.public_text import fault_text
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.search_requests import IndexSearch, Part
from graphdb.store.search_tables import Table
from graphdb.text.index_search import (
    body_of,
    candidates_of,
    document_ids,
    index_table,
    is_ranked_alike,
    vector_of,
    wanted_of,
    wider,
)
from serve.access.request_scope import PRINCIPAL_HEADER

__all__ = ["LocalSearch"]

_CONNECT_S = 5.0
_PAGE = 10_000  # hits; index.max_result_window
_KEPT = "1m"
_FILTER_MAX = 10_000  # entities; more of them do not filter a search, but are asked for its hits
_LOOKED_UP_MAX = 10_000  # hits, the most that nearest neighbours are asked for
_JOINED = "the patterns beside it are looked up for each hit"


_Found: TypeAlias = tuple[list[dict[str, Any]], int]  # hits, and how many match
_Find: TypeAlias = Callable[..., Awaitable[_Found]]  # those of a request, among documents with ids


class LocalSearch:
    """See `actors.node.searching.Indexes`. For one event loop. It connects when first used."""

    def __init__(self, socket_path: str, timeout_s: float, hits_max: int) -> None:
        """timeout_s: the time limit of a search at the search port, which ends it. A search with more than
        hits_max hits is refused.
        """
        self._hits_max = hits_max
        self._http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=socket_path, retries=1),
            base_url="http://search",
            timeout=httpx.Timeout(timeout_s + _CONNECT_S, connect=_CONNECT_S),
        )

    async def table(self, search: TextSearch, caller: Principal, log_index: int, entities: Entities) -> Table:
        """What a search finds at a log index or later, for this caller. entities are those of the patterns in
        the state of this log index.

        Raises InvalidParameter with the search port's words, LimitExceeded, UnavailableError.
        """
        began = perf_counter()
        request = search.request
        assert isinstance(request, IndexSearch)
        headers = {PRINCIPAL_HEADER: caller.to_json(), "x-log-index": str(log_index)}
        index = quote(request.index, safe="")
        vector = None
        if request.like is not None:
            path = f"/{index}/_doc/{quote(request.like, safe='')}"
            document = await self._ask("GET", path, headers, None, may_be_missing=True)
            vector = vector_of(request, document)

        async def find(request: IndexSearch, ids: Sequence[str] | None = None) -> _Found:
            return await self._hits(request, index, headers, vector, ids)

        if search.within is None:
            (hits, total), plan = await find(request), _JOINED
        else:
            hits, total, plan = await self._restricted(search, request, find, entities)
        made = await asyncio.to_thread(index_table, search, hits, total, log_index, plan)
        return replace(made, report=replace(made.report, seconds=perf_counter() - began))

    async def _restricted(
        self, search: TextSearch, request: IndexSearch, find: "_Find", entities: Entities
    ) -> tuple[list[dict[str, Any]], int, str]:
        """The hits among the entities of a pattern, how many match, and how these were found.

        A pattern of few entities filters the search. Of one with many, the best hits are looked up in it,
        more and more of them, if this finds the same.
        """
        wants_total = any(part == Part.TOTAL for part, _ in search.columns)
        may_look_up = is_ranked_alike(request) and not wants_total
        most = _FILTER_MAX if may_look_up else self._hits_max
        found = await entities(search, None, most + 1)
        if len(found) <= most:
            ids = await asyncio.to_thread(document_ids, found)
            hits, total = await find(request, ids) if ids else ([], 0)
            return hits, total, f"the {len(found)} entities of the pattern in its braces filter the search"
        if not may_look_up:
            raise LimitExceeded(
                f"entities of the pattern in the braces of search:{request.index} (text.max_hits)",
                len(found),
                most,
            )
        hits, looked_up = await self._looked_up(search, request, find, entities)
        plan = f"{looked_up} hits were looked up in the pattern in its braces, which has over {most} entities"
        return hits, len(hits), plan

    async def _looked_up(
        self, search: TextSearch, request: IndexSearch, find: "_Find", entities: Entities
    ) -> tuple[list[dict[str, Any]], int]:
        wanted = wanted_of(request)
        most = min(_LOOKED_UP_MAX, self._hits_max)
        count = None if wanted is None else min(max(4 * wanted, 100), most)
        while True:
            hits, _ = await find(replace(request, limit=None) if count is None else wider(request, count))
            table = candidates_of(search, hits)
            ids = set(document_ids(await entities(search, table, len(hits)))) if hits else set()
            kept = [hit for hit in hits if hit.get("_id") in ids]
            if count is None or wanted is None:
                return kept[request.offset :], len(hits)
            if len(kept) >= wanted or len(hits) < count:
                return kept[request.offset : wanted], len(hits)
            if count == most:
                raise LimitExceeded(
                    f"hits of search:{request.index} that are looked up in the pattern in its braces",
                    count,
                    most,
                )
            count = min(8 * count, most)

    async def purge(self, log_index: int) -> None:
        """See `actors.node.searching.Indexes.purge`: only the indexes that follow the graph are merged."""
        headers = {PRINCIPAL_HEADER: NODE.to_json(), "x-log-index": str(log_index)}
        settings = await self._ask("GET", "/_all/_settings", headers, None, may_be_missing=True)
        for name, found in settings.items():
            if "graph" in found.get("settings", {}).get("index", {}):
                path = f"/{quote(name, safe='')}/_forcemerge?max_num_segments=1"
                await self._ask("POST", path, headers, None, may_be_missing=True)
        await self._ask("POST", "/_flush", headers, None)

    async def post(self, path: str, body: Mapping[str, Any], caller: Principal) -> httpx.Response:
        """The search port's answer to JSON, for this caller. Raises UnavailableError."""
        return await self._answer("POST", path, {PRINCIPAL_HEADER: caller.to_json()}, body)

    async def _hits(
        self,
        request: IndexSearch,
        index: str,
        headers: Mapping[str, str],
        vector: list[float] | None,
        ids: Sequence[str] | None,
    ) -> "_Found":
        """All hits that are wanted, and how many match; see `body_of`."""
        wanted = self._hits_max + 1 if request.limit is None else request.limit + request.offset
        body = body_of(request, vector, min(wanted, _PAGE), ids)
        if request.limit is None and (size := _size_of(request)) is not None:
            wanted = size
            body["size"] = min(size, _PAGE)
        path = f"/{index}/_search"
        page = await self._ask("POST", path, headers, body)
        total: int = page["hits"]["total"]["value"]
        hits: list[dict[str, Any]] = page["hits"]["hits"]
        if len(hits) < min(wanted, total) and len(hits) == _PAGE:
            hits = await self._scrolled(path, headers, body, min(wanted, total))
        if len(hits) > self._hits_max:
            raise LimitExceeded(
                f"hits of search:{request.index}, which it may cut with search:limit (text.max_hits)",
                total,
                self._hits_max,
            )
        return hits[request.offset :], total

    async def _scrolled(
        self, path: str, headers: Mapping[str, str], body: Mapping[str, Any], wanted: int
    ) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = []
        page = await self._ask("POST", f"{path}?scroll={_KEPT}", headers, body)
        scroll = page["_scroll_id"]
        try:
            while page["hits"]["hits"] and len(hits) < wanted:
                hits += page["hits"]["hits"]
                again = {"scroll": _KEPT, "scroll_id": scroll}
                page = await self._ask("POST", "/_search/scroll", headers, again)
        finally:
            await self._ask("DELETE", "/_search/scroll", headers, {"scroll_id": scroll}, may_be_missing=True)
        return hits[:wanted]

    async def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Mapping[str, Any] | None,
        *,
        may_be_missing: bool = False,
    ) -> dict[str, Any]:
        answer = await self._answer(method, path, headers, body)
        if answer.is_success or (may_be_missing and answer.status_code == 404):
            found: dict[str, Any] = orjson.loads(answer.content) if answer.content else {}
            return found
        raise _failure(answer, path)

    async def _answer(
        self, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> httpx.Response:
        """Raises UnavailableError."""
        content = None if body is None else orjson.dumps(body)
        all_headers = {**headers, "Content-Type": "application/json"}
        try:
            return await self._http.request(method, path, content=content, headers=all_headers)
        except httpx.HTTPError as error:
            raise UnavailableError(f"the search port does not answer: {fault_text(error)}", 1) from error

    async def close(self) -> None:
        await self._http.aclose()


def _size_of(request: IndexSearch) -> int | None:
    """How many hits a whole body asks for."""
    size = orjson.loads(request.body).get("size")
    return size if isinstance(size, int) else None


def _failure(answer: httpx.Response, path: str) -> Exception:
    try:
        error = orjson.loads(answer.content)["error"]
        causes = error.get("root_cause") or [error]
        reason = str(causes[0]["reason"])
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        reason = f"the search port answered with status {answer.status_code}"
    if answer.status_code >= 500 or answer.status_code == 429:
        return UnavailableError(reason, 1)
    return InvalidParameter(f"search:{path.split('/')[1]}", reason)
