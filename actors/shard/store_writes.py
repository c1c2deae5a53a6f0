"""`StoreWrites`: writing to a node's own store, as one sight sees it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from pyoxigraph import NamedNode

from actors.readers.write_checks import WriteChecks
from actors.shard.body_source import BodySource, BodyThreads, read_small
from actors.shard.edit_runner import EditRunner
from actors.shard.open_shard import OpenShard
from actors.shard.seen_writer import SeenWriter, SeenWrites
from actors.shard.update_runner import UpdateRunner
from graphdb.access.sight import Sight
from graphdb.access.write_targets import check_graph, check_targets
from graphdb.graphql.edits import Edits
from graphdb.model import ChangeSet, Confirmation
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import DeleteWhere, Modify, Update
from graphdb.store.overlay import Overlay
from graphdb.store.staging import StagedBody, graph_deletion
from graphdb.store.view import StoreView

__all__ = ["StoreWrites", "WriteMeans"]


@dataclass(frozen=True, slots=True)
class WriteMeans:
    """What a `StoreShard` writes by, whoever asks."""

    opened: Callable[[], OpenShard]  # raises LogUnavailable
    updates: UpdateRunner
    edits: EditRunner
    bodies: BodyThreads
    checks: Callable[[OpenShard], WriteChecks]


class StoreWrites:
    """See `serve.backend.GraphWrites`, and `ShardWriter.write` for since. For one event loop.

    Each write is planned in the writer's turn, on what the sight sees then.
    """

    def __init__(self, means: WriteMeans, sight: Sight) -> None:
        self._means, self._sight = means, sight

    async def update(
        self, update: Update, using: Dataset, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `GraphWrites.update`."""
        check_targets(self._sight, update)
        shard = self._means.opened()

        async def write(writer: SeenWriter) -> Confirmation:
            return await self._means.updates.run(update, using, writer, shard.directory.scratch)

        looks = any(isinstance(operation, Modify | DeleteWhere) for operation in update.operations)
        return await self._seen_writes(shard, request_id, since).perform(write, needs_view=looks)

    async def write_graph(
        self,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        replace: bool,
        base_iri: str | None,
        request_id: bytes | None = None,
        since: int | None = None,
        precondition: Callable[[StoreView], None] | None = None,
    ) -> Confirmation:
        """See `GraphWrites.write_graph`. The body is read and parsed outside the writer's turn."""
        if not whole_dataset:
            check_graph(self._sight, graph)
        shard = self._means.opened()
        beginning, is_all = await read_small(body)
        source = beginning if is_all else BodySource(beginning, body, asyncio.get_running_loop())

        def stage() -> StagedBody:
            quads = read_quads(source, syntax, base_iri=base_iri)
            if not is_all:
                quads = shard.checkpointer.staged(quads)
            directory = shard.directory.scratch
            return StagedBody(quads, graph=graph, whole_dataset=whole_dataset, directory=directory)

        def plan(state: Overlay) -> Iterable[ChangeSet]:
            if precondition is not None:
                precondition(state)
            return staged.parts(state, replace=replace)

        staged = await (asyncio.to_thread(stage) if is_all else self._means.bodies.run(stage))
        try:
            for target in staged.targets:
                check_graph(self._sight, target)
            return await self._seen_writes(shard, request_id, since).plan(plan)
        finally:
            await asyncio.to_thread(staged.close)

    async def delete_graph(
        self, graph: NamedNode | None, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `GraphWrites.delete_graph`."""
        check_graph(self._sight, graph)
        writing = self._seen_writes(self._means.opened(), request_id, since)
        return await writing.plan(lambda state: graph_deletion(state, graph))

    async def edit(
        self, edits: Edits, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `GraphWrites.edit`."""
        for one in edits.edits:
            check_graph(self._sight, one.graph)
        shard = self._means.opened()

        async def write(writer: SeenWriter) -> Confirmation:
            return await self._means.edits.run(edits, writer, self._means.checks(shard), self._sight)

        return await self._seen_writes(shard, request_id, since).perform(write)

    def _seen_writes(self, shard: OpenShard, request_id: bytes | None, since: int | None) -> SeenWrites:
        return SeenWrites(shard.writer, shard.views, self._sight, request_id, since)
