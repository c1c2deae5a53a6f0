"""`SpatialKeeper`: keeps a store's spatial index up, on a thread that gives way."""

from pathlib import Path

from actors.log.applied_index import AppliedIndex
from actors.shard.index_keeper import IndexKeeper
from graphdb.geo.spatial_index import SpatialIndex
from graphdb.store.quad_store import QuadStore

__all__ = ["SpatialKeeper"]


class SpatialKeeper(IndexKeeper[SpatialIndex]):
    """A store without geometries costs a look at its start."""

    def __init__(self, quads: QuadStore, applied: AppliedIndex, directory: Path) -> None:
        """directory is for the index's files, which have no names."""
        super().__init__(
            applied, "spatial", "the spatial index failed; queries go without, and it is made anew soon"
        )
        self._quads, self._directory = quads, directory
        self._begin()

    async def _make(self) -> SpatialIndex:
        return SpatialIndex(self._quads.objects_of, self._directory, self._has_work)

    def _show(self, index: SpatialIndex | None) -> None:
        self._quads.spatial_index = index

    def _note_steps(self, index: SpatialIndex) -> None:
        if (exact := self._applied.exact) is not None:
            index.publish(exact)
