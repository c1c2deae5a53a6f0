"""The catalogue as a visibility shows it: other indexes and other documents are not there."""

from dataclasses import replace
from typing import Any

from graphdb.access.visibility import IndexVisibility
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.index import Index
from graphdb.search.catalog.state import CatalogState
from graphdb.search.mapping import Mapping
from graphdb.search.protection import allowed_sids, without_protection
from graphdb.search.segment import Leaf
from graphdb.search.segments.index_shard import Document, IndexShard, ShardStats, stats_of
from graphdb.search.segments.seen_segment import SeenLeaves

__all__ = ["SeenCatalog", "SeenIndex"]


class SeenShard(IndexShard[Mapping]):
    """What may be read of a shard. It is not written to."""

    def __init__(self, shard: IndexShard[Mapping], sids: frozenset[str]) -> None:
        self._shard, self._sids = shard, sids
        self._seen_leaves = SeenLeaves(sids)
        self._seen: tuple[tuple[Leaf, ...], tuple[Leaf, ...]] = ((), ())

    @property
    def mapping(self) -> Mapping:
        return self._shard.mapping

    def leaves(self) -> tuple[Leaf, ...]:
        """The same ones until the shard has others."""
        leaves, known = self._shard.leaves(), self._seen
        if known[0] is leaves:
            return known[1]
        seen = self._seen_leaves.of(leaves)
        self._seen = leaves, seen
        return seen

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
        """Of what is seen, as far as it was refreshed: what is still to be is not told."""
        return stats_of(self.leaves())

    @property
    def log_index(self) -> int:  # type: ignore[override]
        return self._shard.log_index


class SeenIndex(Index):
    """An index with the documents that are seen; in all else as it is at the moment."""

    def __init__(self, index: Index, sids: frozenset[str]) -> None:
        self._index = index
        self.shard = SeenShard(index.shard, sids)
        self._searcher = None

    def is_of(self, index: Index) -> bool:
        """Whether it shows this very one."""
        return self._index is index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


class SeenCatalog:
    """What `catalog_of` gives, for one visibility and any thread; an index stays the same one as long as it
    lives, with what its searcher keeps.
    """

    def __init__(self, visibility: IndexVisibility) -> None:
        self._visibility = visibility
        self._known: tuple[CatalogState, Catalog] | None = None

    def catalog_of(self, catalog: Catalog) -> Catalog:
        """To be read, with the templates, which are nobody's documents. Nothing is applied to it."""
        state, known = catalog.state, self._known
        if known is not None and known[0] is state:
            return known[1]
        before = {} if known is None else known[1].state.by_uuid
        seen = Catalog(self._state(state, before))
        self._known = state, seen
        return seen

    def _state(self, state: CatalogState, before: Any) -> CatalogState:
        by_uuid = {
            uuid: self._index(index, before.get(uuid))
            for uuid, index in state.by_uuid.items()
            if self._visibility.sees_index(index.name, index.follows_graph)
        }
        aliases = {uuid: aliases for uuid, aliases in state.aliases.items() if uuid in by_uuid}
        return replace(state, by_uuid=by_uuid, aliases=aliases)

    def _index(self, index: Index, before: Index | None) -> Index:
        if isinstance(before, SeenIndex) and before.is_of(index):
            return before
        return SeenIndex(index, self._visibility.sids)
