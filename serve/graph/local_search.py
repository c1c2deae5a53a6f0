"""`LocalSearch`: the indexes of the same node, over the search port's application on a Unix domain socket.

So a search in a query finds what its caller may find there, and has the same limits.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from graphdb.access.principal import Principal
from graphdb.errors import InvalidParameter, LimitExceeded, UnavailableError
from graphdb.public_text import fault_text
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.search_requests import IndexSearch
from graphdb.store.search_tables import Table
from graphdb.text.index_search import body_of, index_table, vector_of
from serve.access.request_scope import PRINCIPAL_HEADER

__all__ = ["LocalSearch"]

_CONNECT_S = 5.0
_PAGE = 10_000  # hits; index.max_result_window
_KEPT = "1m"


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

    async def table(self, search: TextSearch, caller: Principal, log_index: int) -> Table:
        """What a search finds at a log index or later, for this caller.

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
        hits, total = await self._hits(request, index, headers, vector)
        made = await asyncio.to_thread(index_table, search, hits, total, log_index)
        return replace(made, report=replace(made.report, seconds=perf_counter() - began))

    async def _hits(
        self, request: IndexSearch, index: str, headers: Mapping[str, str], vector: list[float] | None
    ) -> tuple[list[dict[str, Any]], int]:
        """All hits that are wanted, and how many match."""
        wanted = self._hits_max + 1 if request.limit is None else request.limit + request.offset
        body = body_of(request, vector, min(wanted, _PAGE))
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
        content = None if body is None else orjson.dumps(body)
        all_headers = {**headers, "Content-Type": "application/json"}
        try:
            answer = await self._http.request(method, path, content=content, headers=all_headers)
        except httpx.HTTPError as error:
            raise UnavailableError(f"the search port does not answer: {fault_text(error)}", 1) from error
        if answer.is_success or (may_be_missing and answer.status_code == 404):
            found: dict[str, Any] = orjson.loads(answer.content) if answer.content else {}
            return found
        raise _failure(answer, path)

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
