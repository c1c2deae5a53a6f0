"""`LocalGraph`: the graph of the same node, over its application on a Unix domain socket.

So what a search asks of the graph goes through the same gate, has the same limits and is evaluated by the
same readers as what comes to the graph port.
"""

import asyncio
from collections.abc import AsyncIterator
from copy import copy
from typing import Any

import httpx
import orjson

from graphdb.access.principal import NODE, Principal
from graphdb.errors import UnavailableError
from graphdb.public_text import fault_text
from graphdb.search.errors import SearchError
from serve.access.request_scope import PRINCIPAL_HEADER

__all__ = ["LocalGraph"]

_RESULTS = "application/sparql-results+json"
_ROWS = "text/tab-separated-values"
_CONNECT_S = 5.0
_PARSED_AT_ONCE = 100_000  # bytes; more of them for a thread


class LocalGraph:
    """For one event loop. It connects when first used; a graph port that is made again is found again.

    It asks for the node itself; what `acting_for` returns shares its connections.
    """

    def __init__(self, socket_path: str, timeout_s: float) -> None:
        """timeout_s: the time limit of a query at the graph port, which ends it."""
        self._headers = {PRINCIPAL_HEADER: NODE.to_json()}
        self._http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=socket_path, retries=1),
            base_url="http://graph",
            timeout=httpx.Timeout(timeout_s + _CONNECT_S, connect=_CONNECT_S),
        )

    def acting_for(self, principal: Principal) -> "LocalGraph":
        """The same graph for another principal."""
        made = copy(self)
        made._headers = {PRINCIPAL_HEADER: principal.to_json()}
        return made

    async def select(self, query: str, min_index: int | None = None) -> dict[str, Any]:
        """SPARQL 1.1 results JSON of a SELECT or ASK, of a state at min_index or later.

        Raises SearchError with the graph port's words, UnavailableError.
        """
        answer = await self._ask(query, _RESULTS, min_index)
        if len(answer) > _PARSED_AT_ONCE:
            results: dict[str, Any] = await asyncio.to_thread(orjson.loads, answer)
        else:
            results = orjson.loads(answer)
        return results

    async def construct(self, query: str, media_type: str) -> str:
        """The triples of a CONSTRUCT or DESCRIBE in a syntax. Raises as select does."""
        return (await self._ask(query, media_type, None)).decode()

    async def rows(self, query: str) -> AsyncIterator[bytes]:
        """SPARQL 1.1 results TSV of a SELECT, in pieces as they come. Raises as select does."""
        headers = self._headers | {"Accept": _ROWS, "Content-Type": "application/sparql-query"}
        try:
            async with self._http.stream("POST", "/sparql", content=query, headers=headers) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise _failure(answer)
                async for piece in answer.aiter_bytes():
                    yield piece
        except httpx.HTTPError as error:
            raise UnavailableError(f"the graph does not answer: {fault_text(error)}", 1) from error

    async def close(self) -> None:
        await self._http.aclose()

    async def _ask(self, query: str, accept: str, min_index: int | None) -> bytes:
        headers = self._headers | {"Accept": accept, "Content-Type": "application/sparql-query"}
        parameters = {} if min_index is None else {"min_index": str(min_index)}
        try:
            answer = await self._http.post("/sparql", content=query, headers=headers, params=parameters)
        except httpx.HTTPError as error:
            raise UnavailableError(f"the graph does not answer: {fault_text(error)}", 1) from error
        if answer.is_success:
            return answer.content
        raise _failure(answer)


def _failure(answer: httpx.Response) -> Exception:
    try:
        reason = str(orjson.loads(answer.content)["error"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        reason = f"the graph answered with status {answer.status_code}"
    if answer.status_code >= 500:
        return UnavailableError(reason, int(answer.headers.get("Retry-After", "1")))
    kind = "security_exception" if answer.status_code in (401, 403) else "sparql_exception"
    return SearchError(kind, reason, answer.status_code)
