"""`graphdb mcp`: the tools for agents over standard input and output, of a service that runs anywhere."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import httpx
import typer

from serve.cli.credentials import find_target
from serve.cli.options import Endpoint, ProfileName
from serve.mcp.graph_calls import ANSWER_BYTES_MAX, Reply, ToolFailure

__all__ = ["mcp"]


def mcp(
    endpoint: Endpoint = None,
    profile: ProfileName = None,
    search: Annotated[
        str | None, typer.Option(help="Address of the search port, for the tool search.", metavar="URL")
    ] = None,
    allow_updates: Annotated[
        bool, typer.Option("--allow-updates", help="Offer the tool update, within the credentials' rights.")
    ] = False,
) -> None:
    """Offer the graph to an agent by the Model Context Protocol, on standard input and output.

    Agents start this command themselves. A service also offers the same at /mcp.
    """
    target = find_target(endpoint, profile)
    client = httpx.AsyncClient(
        base_url=target.endpoint.rstrip("/"),
        headers=target.headers,
        auth=target.auth,
        timeout=httpx.Timeout(None, connect=5),
        trust_env=False,
    )
    asyncio.run(_serve(HttpCalls(client, search), allow_updates))


async def _serve(calls: "HttpCalls", may_update: bool) -> None:
    from mcp.server.stdio import stdio_server  # takes a second of processor time

    from serve.mcp.mcp_server import make_server

    server = make_server(lambda _context: calls, may_search=calls.has_search, may_update=may_update)
    async with calls.client, stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class HttpCalls:
    """See `GraphCalls`."""

    def __init__(self, client: httpx.AsyncClient, search_url: str | None) -> None:
        self.client, self._search_url = client, search_url

    @property
    def has_search(self) -> bool:
        """See `GraphCalls.has_search`."""
        return self._search_url is not None

    async def graph(
        self,
        path: str,
        form: Mapping[str, str],
        *,
        accept: str = "application/json",
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Reply:
        """See `GraphCalls.graph`."""
        body = bytearray()
        try:
            async with self.client.stream(
                "POST", path, data=dict(form), headers={"Accept": accept}
            ) as answer:
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > bytes_max:
                        break
                kept = bytes(body[:bytes_max])
                return Reply(answer.status_code, dict(answer.headers), kept, len(body) <= bytes_max)
        except httpx.HTTPError as error:
            raise ToolFailure(f"the service at {self.client.base_url} does not answer: {error}") from None

    async def search(self, path: str, body: Mapping[str, Any]) -> Reply:
        """See `GraphCalls.search`."""
        try:
            answer = await self.client.post(f"{self._search_url}{path}", json=dict(body))
        except httpx.HTTPError as error:
            raise ToolFailure(f"the search port does not answer: {error}") from None
        return Reply(answer.status_code, dict(answer.headers), answer.content)
