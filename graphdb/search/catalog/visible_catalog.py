"""The catalog as a principal may see it: other indexes and other documents do not exist in it."""

from dataclasses import replace
from typing import Any

from graphdb.access.visibility import IndexVisibility
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.state import CatalogState, Index
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping import Mapping
from graphdb.search.protection import allowed_sids, without_protection
from graphdb.search.segments.index_counters import IndexCounters
from graphdb.search.segments.index_shard import Document, IndexShard, ShardStats, stats_of
from graphdb.search.segments.index_shards import IndexShards, ShardLeaves
from graphdb.search.segments.visible_segment import VisibleLeaves

__all__ = ["VisibleCatalog", "VisibleIndex"]


class VisibleShard(IndexShard[Mapping]):
    """What may be read of a shard. It is not written to."""

    def __init__(self, shard: IndexShard[Mapping], sids: frozenset[str]) -> None:
        self._shard, self._sids, self.number = shard, sids, shard.number
        self._visible_leaves = VisibleLeaves(sids)
        self._visible: tuple[tuple[Leaf, ...], tuple[Leaf, ...]] = ((), ())

    @property
    def mapping(self) -> Mapping:
        return self._shard.mapping

    def leaves(self) -> tuple[Leaf, ...]:
        """The same ones until the shard has others."""
        return self.of(self._shard.leaves())

    def of(self, leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
        """What is visible of leaves that the shard has or has had."""
        known = self._visible
        if known[0] is leaves:
            return known[1]
        visible = self._visible_leaves.of(leaves)
        self._visible = leaves, visible
        return visible

    def get(self, doc_id: str, realtime: bool = True) -> Document | None:
        document = self._shard.get(doc_id, realtime)
        if document is None:
            return None
        allowed = allowed_sids(document.source)
        if allowed is None:
            return document
        if allowed.isdisjoint(self._sids):
            return None
        return replace(document, source=without_protection(document.source))

    def stats(self) -> ShardStats:
        """Of the visible documents, as of the last refresh; pending writes do not count."""
        return stats_of(self.leaves())

    @property
    def log_index(self) -> int:  # type: ignore[override]
        return self._shard.log_index


class VisibleShards(IndexShards[Mapping]):
    """What may be read of the shards of an index."""

    def __init__(self, shards: IndexShards[Mapping], sids: frozenset[str]) -> None:
        self._whole, self.routing = shards, shards.routing
        self.counters = IndexCounters()  # those of all would tell how many documents there are
        self._shards = self._visible = tuple(VisibleShard(shard, sids) for shard in shards)
        self._known: tuple[ShardLeaves, ShardLeaves] | None = None

    def view(self) -> ShardLeaves:
        """The same one until the index has another."""
        whole, known = self._whole.view(), self._known
        if known is not None and known[0] is whole:
            return known[1]
        parts = zip(self._visible, whole.parts, strict=True)
        visible = ShardLeaves.of(tuple(shard.of(part) for shard, part in parts))
        self._known = whole, visible
        return visible


class VisibleIndex(Index):
    """An index with its visible documents; all else is the same."""

    def __init__(self, index: Index, sids: frozenset[str]) -> None:
        self._index, self.sids = index, sids
        self.shards = VisibleShards(index.shards, sids)
        self._searcher = None

    def is_of(self, index: Index) -> bool:
        """Whether it shows this very one."""
        return self._index is index

    @property
    def whole(self) -> Index:
        """For those who see to it themselves that nothing of the rest is shown."""
        return self._index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


class VisibleCatalog:
    """Makes the visible catalog of one visibility, on any thread. An index stays the same object as long as
    it exists, and its searcher keeps its caches.
    """

    def __init__(self, visibility: IndexVisibility) -> None:
        self._visibility = visibility
        self._known: tuple[CatalogState, Catalog] | None = None

    def catalog_of(self, catalog: Catalog) -> Catalog:
        """To be read only. It has all templates, because these contain no documents."""
        state, known = catalog.state, self._known
        if known is not None and known[0] is state:
            return known[1]
        before = {} if known is None else known[1].state.by_uuid
        visible = Catalog(self._state(state, before))
        self._known = state, visible
        return visible

    def _state(self, state: CatalogState, before: Any) -> CatalogState:
        by_uuid = {
            uuid: self._index(index, before.get(uuid))
            for uuid, index in state.by_uuid.items()
            if self._visibility.sees_index(state.stream_of(uuid) or index.name, index.follows_graph)
        }
        aliases = {uuid: aliases for uuid, aliases in state.aliases.items() if uuid in by_uuid}
        return replace(state, by_uuid=by_uuid, aliases=aliases)

    def _index(self, index: Index, before: Index | None) -> Index:
        if isinstance(before, VisibleIndex) and before.is_of(index):
            return before
        return VisibleIndex(index, self._visibility.sids)
