"""`RemoteClusters`: calls the clusters that `_reindex` may read from."""

import asyncio
import functools
import ssl
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import httpx

from actors.egress.rules import HostRules
from graphdb.config.service import Security
from graphdb.errors import EvaluationFailed
from graphdb.search.errors import SearchError
from graphdb.search.remote_cluster import RemoteAnswer, RemoteCall

if TYPE_CHECKING:  # what calls hosts is imported with the first call, 15 ms: few nodes make any
    from actors.egress.guarded_fetch import Resolve

__all__ = ["RemoteClusters"]

_PAGES_AT_ONCE = 4  # that are in memory
_PAGE_BYTES_MAX = 100 * 1024 * 1024  # as much as Elasticsearch takes


class RemoteClusters:
    """For any number of calls at a time, on one event loop. turn: a page is read and written within it."""

    def __init__(self, security: Security, resolve: "Resolve | None" = None) -> None:
        self.turn: AbstractAsyncContextManager[None] = asyncio.Semaphore(_PAGES_AT_ONCE)
        self._rules = HostRules("REINDEX", security.reindex_allow)
        self._resolve = resolve
        self._tls = functools.cache(_tls_context)

    def check(self, url: str) -> None:
        """Raises HostNotAllowed for a host that is not allowed, as far as the URL tells by itself."""
        self._rules.destination(url)

    async def call(self, call: RemoteCall) -> RemoteAnswer:
        """Raises HostNotAllowed; SearchError where no whole answer comes."""
        from actors.egress.guarded_fetch import Bounds, Call, GuardedFetch, resolve

        bounds = Bounds(
            call.timeout_s, "socket_timeout", _PAGE_BYTES_MAX, "use a smaller batch: [size] of [source]"
        )
        fetch = GuardedFetch(self._rules, bounds, resolve=self._resolve or resolve, tls=self._tls)
        made = Call(call.url, call.method, call.headers, call.body, follows_redirects=False)
        try:
            answer = await fetch.fetch(made)
        except EvaluationFailed as failed:
            raise SearchError("connect_exception", str(failed), 500) from failed
        return RemoteAnswer(answer.status, answer.body)


def _tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()
