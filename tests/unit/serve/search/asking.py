"""The search port within this process, asked by whomever."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import orjson

from graphdb.access.permissions import Permission
from graphdb.access.principal import Principal
from graphdb.access.visibility import IndexVisibility
from serve.access.request_scope import PRINCIPAL_HEADER, InternalApplication
from serve.search_app import build_search_app
from tests.support.memory_search import MemorySearch
from tests.unit.serve.access.accounts import settings_of

__all__ = ["Asking", "principal_of"]


def principal_of(name: str, *sids: str, patterns: tuple[str, ...] = ("logs-*",)) -> Principal:
    visibility = IndexVisibility(patterns=frozenset(patterns), sids=frozenset(sids))
    return Principal(
        name, "jwt", permission=Permission.WRITE, sids=frozenset(sids), index_visibility=visibility
    )


class Asking:
    """The port, asked by whomever."""

    def __init__(self, directory: Path, node: MemorySearch | None = None) -> None:
        self.node = MemorySearch() if node is None else node
        self._app = InternalApplication(build_search_app(self.node, settings_of(directory)))

    def __call__(
        self, who: Principal, method: str, path: str, body: Any = None, lines: list[Any] | None = None
    ) -> httpx.Response:
        headers = {PRINCIPAL_HEADER: who.to_json(), "Content-Type": "application/json"}
        content = None if body is None else orjson.dumps(body)
        if lines is not None:
            headers["Content-Type"] = "application/x-ndjson"
            content = b"".join(orjson.dumps(line) + b"\n" for line in lines)

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(ask())
