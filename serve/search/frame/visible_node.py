"""`VisibleNode`: the node behind the search port as one principal sees it, which every operation is given."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdb.access.principal import Principal
from graphdb.access.visibility import IndexVisibility
from graphdb.node import NodeStatus
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import Command, DocumentWrite, WriteResult
from graphdb.search.catalog.state import Index, KnownNode
from graphdb.search.catalog.visible_catalog import VisibleCatalog
from graphdb.search.contexts import SearchContext, SearchContexts
from graphdb.search.errors import SearchError
from graphdb.search.hybrid.reranker import Rerankers
from graphdb.search.pool_use import PoolUse
from graphdb.search.protection import protection_forbidden, sets_protection, without_protection
from graphdb.search.segments.operations import Action, OperationResult
from serve.search.backend import (
    GraphAccess,
    RemoteCaller,
    SearchBackend,
    SearchHelpers,
    ShardSearch,
    ToldWrite,
)

__all__ = ["VisibleNode", "VisibleNodes"]

_KEPT_MAX = 256  # visibilities whose searchers are kept


class VisibleNodes:
    """Of one node, for every principal. For one event loop; equal visibilities share what is kept of them."""

    def __init__(self, node: SearchBackend) -> None:
        self._node = node
        self._catalogs: OrderedDict[IndexVisibility, VisibleCatalog] = OrderedDict()

    def of(self, principal: Principal) -> SearchBackend:
        """The node itself for a principal that sees everything."""
        visibility = principal.index_visibility
        if visibility.is_whole:
            return self._node
        visible = self._catalogs.get(visibility)
        if visible is None:
            visible = self._catalogs[visibility] = VisibleCatalog(visibility)
        self._catalogs.move_to_end(visibility)
        if len(self._catalogs) > _KEPT_MAX:
            self._catalogs.popitem(last=False)
        return VisibleNode(self._node, principal, visible)


class VisibleNode:
    """A `SearchBackend` in which hidden indexes and documents do not exist; they cannot be written either."""

    def __init__(self, node: SearchBackend, principal: Principal, visible: VisibleCatalog) -> None:
        self._node, self._visible = node, visible
        self._visibility = principal.index_visibility
        self.graph: GraphAccess = node.graph
        self.remotes: RemoteCaller = node.remotes
        self.rerankers: Rerankers = node.rerankers
        self.own: KnownNode = node.own
        self.filling: set[str] = node.filling
        self.shards: ShardSearch | None = node.shards
        self.helpers: SearchHelpers | None = None  # they know nothing of visibility
        # under another visibility somebody is somebody else: a scroll goes on showing what it showed
        owner = f"{principal.provider}:{principal.name}:{self._visibility.to_json()}"
        self.contexts: SearchContexts = _OwnContexts(node.contexts, owner)

    @property
    def catalog(self) -> Catalog:
        """See `SearchBackend.catalog`."""
        return self._visible.catalog_of(self._node.catalog)

    async def perform(self, command: Command) -> Any:
        """Only whoever sees everything changes indexes. Raises SearchError (403)."""
        raise _forbidden("changes of indexes, aliases and templates are for admins")

    async def write(self, writes: Sequence[DocumentWrite], refresh: str = "false") -> list[WriteResult]:
        """See `SearchBackend.write`. What the visibility forbids fails by itself, with status 403."""
        catalog, refused, allowed = self.catalog, dict[int, WriteResult](), list[DocumentWrite]()
        for place, write in enumerate(writes):
            error = self._refusal(catalog, write)
            if error is not None:
                result = OperationResult(write.operation.action, write.operation.doc_id)
                refused[place] = WriteResult(write.index, result.failed(error))
            else:
                allowed.append(replace(write, operation=write.operation._replace(sids=self._visibility.sids)))
        done = iter(await self._node.write(allowed, refresh) if allowed else ())
        return [refused[place] if place in refused else _shown(next(done)) for place in range(len(writes))]

    def begin_write(self, write: DocumentWrite, told: ToldWrite) -> bool:
        """See `SearchBackend.begin_write`: all goes by `write`, which knows what is visible."""
        return False

    def _refusal(self, catalog: Catalog, write: DocumentWrite) -> SearchError | None:
        name = write.index
        if self._is_hidden(catalog, name):
            return _forbidden(f"action on [{name[:255]}] is unauthorized: the index is not visible")
        operation = write.operation
        if sets_protection(operation.body, operation.action is Action.UPDATE):
            return protection_forbidden()
        return None

    def _is_hidden(self, catalog: Catalog, name: str) -> bool:
        """Whether what a document would go to, or would make, is none of the indexes that are visible."""
        whole = self._node.catalog.state
        if name in whole.by_name:
            return name not in catalog.state.by_name
        if name not in whole.by_alias:
            return not self._visibility.sees_index(name)
        # Where an alias writes to must be visible, so all of its indexes are: which one it is may change.
        return whole.by_alias[name].keys() - catalog.state.by_uuid.keys() != set()

    async def refresh(self, indexes: Sequence[Index]) -> None:
        """See `SearchBackend.refresh`."""
        await self._node.refresh(self._itself(indexes))

    async def flush(self, indexes: Sequence[Index]) -> None:
        """See `SearchBackend.flush`."""
        await self._node.flush(self._itself(indexes))

    async def force_merge(
        self, indexes: Sequence[Index], segments_max: int | None, *, only_deletions: bool = False
    ) -> None:
        """See `SearchBackend.force_merge`."""
        await self._node.force_merge(self._itself(indexes), segments_max, only_deletions=only_deletions)

    def _itself(self, indexes: Iterable[Index]) -> list[Index]:
        """The indexes behind those that are visible, as far as they are still there."""
        whole = self._node.catalog.state.by_uuid
        return [whole[index.uuid] for index in indexes if index.uuid in whole]

    async def ask_other(self, node_id: int, request: bytes, timeout_s: float) -> bytes:
        """See `SearchBackend.ask_other`: the request says for whom it is."""
        return await self._node.ask_other(node_id, request, timeout_s)

    def writing(self) -> PoolUse:
        """See `SearchBackend.writing`."""
        return self._node.writing()

    def following(self, index: Index) -> Mapping[str, Any] | None:
        """See `SearchBackend.following`."""
        found = self._itself([index])
        return self._node.following(found[0]) if found else None

    def status(self) -> NodeStatus:
        """See `SearchBackend.status`."""
        return self._node.status()

    def now_ms(self) -> int:
        """See `SearchBackend.now_ms`."""
        return self._node.now_ms()


class _OwnContexts(SearchContexts):
    """Scrolls and points in time of one principal; those of others are not there."""

    def __init__(self, contexts: SearchContexts, owner: str) -> None:
        self._contexts, self._owner = contexts, owner

    def __len__(self) -> int:
        return len(self._contexts)

    def open(
        self, state: Any, keep_alive_ms: int, owner: str | None = None, indexes: Iterable[str] = ()
    ) -> str:
        return self._contexts.open(state, keep_alive_ms, self._owner, indexes)

    def get(
        self, context_id: str, keep_alive_ms: int | None = None, owner: str | None = None
    ) -> SearchContext:
        return self._contexts.get(context_id, keep_alive_ms, self._owner)

    def count_on(self, indexes: Iterable[str], owner: str | None = None) -> int:
        return self._contexts.count_on(indexes, self._owner)

    def close(self, ids: Iterable[str], owner: str | None = None) -> int:
        return self._contexts.close(ids, self._owner)


def _shown(done: WriteResult) -> WriteResult:
    source = done.result.source
    if source is None:
        return done
    return replace(done, result=done.result._replace(source=without_protection(source)))


def _forbidden(reason: str) -> SearchError:
    return SearchError("security_exception", reason, 403)
