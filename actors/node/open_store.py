"""`OpenStore`: what a node has while its store is open; opening it."""

import asyncio
import gc
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.history.past_states import PastStates
from actors.readers.checkpoints import Checkpoints
from actors.shard.checkpointer import Checkpointer
from actors.shard.shard_writer import ShardWriter
from actors.shard.spatial_keeper import SpatialKeeper
from actors.shard.store_directory import KeptBeside, StoreDirectory, StoreLost
from actors.shard.text_keeper import TextKeeper
from actors.views.views import Views, VisibleStore
from graphdb.access.annotations import AnnotationWatch
from graphdb.errors import CorruptionError, LogUnavailable
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.history.purging import PurgedUpTo
from graphdb.log.replay import Replayer
from graphdb.log.views import ViewStatus
from graphdb.store.quad_store import ChangeListener, QuadStore

__all__ = ["CurrentStore", "OpenStore", "let_go", "open_quads"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenStore:
    """What a node has while its store is open, and what it closes with it."""

    directory: StoreDirectory
    quads: QuadStore
    schema: SchemaWatch  # these two listen to the quads
    annotations: AnnotationWatch
    kept: KeptBeside
    replayer: Replayer
    writer: ShardWriter
    checkpointer: Checkpointer
    checkpoints: Checkpoints
    spatial: SpatialKeeper
    text: TextKeeper
    views: Views
    past: PastStates
    whole: VisibleStore  # as it is read by those who see everything

    async def make_snapshot(self, tree: Path) -> int:
        """Write what another node needs to be where this one is to tree; the log index that it is of.

        Between two writes the state is exactly that of resume_index: parts of a large change have no effect
        before it is closed. Raises StorageFull, CorruptionError, LogUnavailable.
        """

        def make(_applied_index: int) -> int:
            index = self.replayer.resume_index
            self.directory.make_snapshot(self.quads, self.kept, tree)
            return index

        return await self.writer.in_turn(make)

    @property
    def unpurged(self) -> list[PurgedUpTo]:
        """What was purged that the files of the history may still have."""
        return self.directory.unpurged(self.kept.purges)

    def view_statuses(self) -> list[ViewStatus]:
        """How the store, and what principals see of it, follow the log."""
        return [self.writer.view_status(), *self.views.view_statuses()]

    async def close(self) -> None:
        """Finish the writes that are waiting, and a checkpoint that is under way; let the readers go."""
        await self.writer.close()
        await self.past.close()
        await self.views.close()
        await self.spatial.close()
        await self.text.close()
        await self.checkpoints.close()
        await self.checkpointer.finish()


class CurrentStore:
    """The store of a node, while it is open. Its `StoreLifecycle` writes it, on the event loop; any thread
    reads it.
    """

    def __init__(self) -> None:
        self.open: OpenStore | None = None

    def opened(self) -> OpenStore:
        """Raises LogUnavailable."""
        if self.open is None:
            raise LogUnavailable("the node is starting or stopping")
        return self.open

    def readable(self) -> OpenStore:
        """The same for whoever reads it: LogUnavailable also while it lacks what was confirmed already."""
        if self.opened().writer.lacks_confirmed:
            raise LogUnavailable("the store could not take the last confirmed write, and tries again")
        return self.opened()

    @property
    def applied_index(self) -> int | None:
        """The log index of the last entry that readers see; None while no store is open."""
        return self.open.writer.applied_index if self.open else None


async def open_quads(
    directory: StoreDirectory,
    first_index: int,
    listeners: Sequence[ChangeListener],
    *,
    union_default_graph: bool,
) -> tuple[QuadStore, int]:
    """The store and the index after which to replay a log that begins at first_index; where the store is
    lost, an empty one and 0. The listeners hear of all changes.

    Raises CorruptionError where the log begins too late for it.
    """
    applied = directory.read_applied()
    try:
        quads = await asyncio.to_thread(
            directory.open_store, applied, listeners, union_default_graph=union_default_graph
        )
    except StoreLost as lost:
        if first_index > 1:
            raise CorruptionError(
                f"{lost}, and the log begins at {first_index}, too late to make it anew: restore it",
                str(directory.store),
            ) from lost
        logger.error("%s: making the store anew from the log", lost)
        directory.set_store_aside()
        applied = 0
        quads = await asyncio.to_thread(
            directory.open_store, 0, listeners, union_default_graph=union_default_graph
        )
    if first_index > applied + 1:
        raise CorruptionError(
            f"the store ends at {applied} and the log begins at {first_index}: restore a backup",
            str(directory.log),
        )
    return quads, applied


def let_go() -> None:
    """The engine lets its directory go with the last reference to it; errors may hold one in a circle."""
    gc.collect()
