"""`RemoteDocuments`: the documents of another cluster, page by page, for `_reindex`."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from graphdb.errors import GraphDBError, HostNotAllowed
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.protection import ALLOW_SIDS
from graphdb.search.remote_cluster import (
    RemoteAnswer,
    RemoteCall,
    RemoteCluster,
    RemoteHit,
    RemotePage,
    read_page,
)
from graphdb.search.results.fetching import parse_source_filter
from serve.search.backend import RemoteCaller
from serve.search.documents.rewriting import Stored

__all__ = ["RemoteDocuments", "described_remote", "remote_of"]

log = logging.getLogger(__name__)
_AGAIN_S = (0.5, 1.0, 2.0, 4.0, 8.0)  # after an answer that says that the cluster is busy
_BUSY = 429


def remote_of(source: Mapping[str, Any], remotes: RemoteCaller) -> RemoteCluster:
    """The cluster that a source names. Errors: illegal_argument_exception."""
    remote = RemoteCluster.of(source["remote"])
    try:
        remotes.check(remote.host)
    except HostNotAllowed as refused:
        raise _not_allowed(remote, refused) from None
    return remote


def described_remote(source: Mapping[str, Any]) -> str:
    """Of a request that may still be refused, without what is secret."""
    remote = source.get("remote")
    host = remote.get("host") if isinstance(remote, Mapping) else None
    return "" if remote is None else f"[host={host}]"


class RemoteDocuments:
    """One scroll on another cluster. For one task; `close` ends it."""

    def __init__(
        self,
        remotes: RemoteCaller,
        remote: RemoteCluster,
        indexes: Sequence[str],
        source: Mapping[str, Any],
        size: int,
    ) -> None:
        """source: of the request, whose query the other cluster reads. size: documents of a page."""
        self.total = 0
        self.retries = 0
        self.turn: AbstractAsyncContextManager[Any] = remotes.turn
        self._remotes, self._remote = remotes, remote
        search = {name: source[name] for name in ("query", "sort") if source.get(name) is not None}
        if source.get("_source") is not None:
            search["_source"] = _filter(source["_source"])
        self._call = remote.first(indexes, search, size)
        self._scroll_id: str | None = None
        self._is_over = False

    async def next_page(self) -> list[Stored]:
        """Empty at the end. Raises SearchError."""
        if self._is_over:
            return []
        page = await asyncio.to_thread(read_page, self._remote.address, await self._answer(self._call))
        self._follow(page)
        return [self._stored(hit) for hit in page.hits]

    def _follow(self, page: RemotePage) -> None:
        self._scroll_id = page.scroll_id or self._scroll_id
        self.total = page.total
        self._is_over = not page.hits or self._scroll_id is None
        if self._scroll_id is not None:
            self._call = self._remote.following(self._scroll_id)

    async def _answer(self, call: RemoteCall) -> RemoteAnswer:
        for wait_s in (*_AGAIN_S, None):
            try:
                answer = await self._remotes.call(call)
            except HostNotAllowed as refused:
                raise _not_allowed(self._remote, refused) from None
            if answer.status != _BUSY or wait_s is None:
                return answer
            self.retries += 1
            await asyncio.sleep(wait_s)
        raise AssertionError("the last try has returned")

    def _stored(self, hit: RemoteHit) -> Stored:
        source = bytes(hit.source)
        if not source.startswith(b"{"):
            raise illegal_argument(f"[{hit.index}][{hit.doc_id[:200]}] didn't store _source")
        return Stored(hit.index, hit.doc_id, hit.version, -1, source, hit.routing)

    async def close(self) -> None:
        """Let go of the scroll there. One that cannot be told so expires by itself."""
        if self._scroll_id is None:
            return
        call, self._scroll_id = self._remote.end(self._scroll_id), None
        try:
            await self._remotes.call(call)
        except (SearchError, GraphDBError) as error:
            log.info("the scroll on %s is left to expire: %s", self._remote.address, error)


def _filter(given: Any) -> dict[str, Any]:
    """What to leave out there already. The visibility of a document always comes along."""
    shown = parse_source_filter(given)
    includes = [*shown.includes, ALLOW_SIDS] if shown.includes else []
    excludes = [pattern for pattern in shown.excludes if not wildcard_match(pattern, ALLOW_SIDS)]
    return {"includes": includes, "excludes": excludes}


def _not_allowed(remote: RemoteCluster, refused: HostNotAllowed) -> SearchError:
    reason = refused.reason or "it is not in the list"
    return illegal_argument(
        f"[{remote.address}] not allowlisted in reindex.remote.whitelist, which is [security] reindex_allow "
        f"here: {reason}"
    )
