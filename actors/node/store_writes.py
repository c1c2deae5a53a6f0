"""`StoreWrites`: writing to a node's own store, as one visibility shows it; `StoreWriting`: for any
visibility.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pyoxigraph import NamedNode

from actors.node.commit_runner import CommitRunner
from actors.node.edit_runner import EditRunner
from actors.node.open_store import CurrentStore, OpenStore
from actors.node.update_runner import UpdateRunner
from actors.node.visible_writer import VisibleWriter, VisibleWrites
from actors.readers.write_evaluation import WriteChecks
from actors.shard.body_source import BodySource, BodyThreads, read_small
from actors.shard.graph_clearing import GraphClearing
from actors.shard.large_bodies import LargeBodies, StagedDocument, is_dense
from actors.shard.store_directory import StoreDirectory
from actors.worker_thread import on_thread
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import check_graph, check_targets
from graphdb.graphql.edits import Edits
from graphdb.model import UNKNOWN_AUTHOR, Author, ChangeSet, Confirmation, Outcome
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch
from graphdb.rdf.quad_lines import LineChange
from graphdb.rdf.reading import read_quads
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import DeleteWhere, Modify, Update
from graphdb.store.clearing import Emptied
from graphdb.store.overlay import Overlay
from graphdb.store.staging import StagedBody, graph_deletion, patch_parts
from graphdb.store.view import StoreView
from graphdb.transactions.changes import TransactionCommit

__all__ = ["StoreWrites", "StoreWriting", "WriteMeans"]


@dataclass(frozen=True, slots=True)
class WriteMeans:
    """What a node writes by, whoever asks."""

    current: CurrentStore
    updates: UpdateRunner
    edits: EditRunner
    commits: CommitRunner
    bodies: BodyThreads
    large_bodies: LargeBodies
    checks: Callable[[StoreDirectory], WriteChecks]


class StoreWrites:
    """See `serve.backend.GraphWrites`, and `ShardWriter.write` for since. For one event loop.

    Each write is planned in the writer's turn, on what the visibility shows then.
    """

    def __init__(self, means: WriteMeans, visibility: Visibility, author: Author) -> None:
        self._means, self._visibility, self._author = means, visibility, author

    async def update(
        self, update: Update, using: Dataset, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.update`."""
        check_targets(self._visibility, update)
        shard = self._means.current.opened()

        async def write(writer: VisibleWriter) -> Confirmation:
            run, scratch = self._means.updates.run, shard.directory.scratch
            if not self._may_log_lines(shard):
                return await run(update, using, writer, scratch)
            async with _clearing(shard) as clearing:
                return await run(update, using, writer, scratch, clearing)

        looks = any(isinstance(operation, Modify | DeleteWhere) for operation in update.operations)
        return await self._visible_writes(shard, request_id, since).perform(write, needs_view=looks)

    async def write_graph(
        self,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        replace: bool,
        base_iri: str | None,
        clear: bool = False,
        keep_blank_nodes: bool = False,
        request_id: bytes | None = None,
        since: int | None = None,
        precondition: Callable[[StoreView], None] | None = None,
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.write_graph`. The body is read and parsed outside the writer's
        turn.
        """
        if not whole_dataset:
            check_graph(self._visibility, graph)
        shard = self._means.current.opened()
        beginning, is_all = await read_small(body)

        def stage_small() -> StagedDocument:
            quads = read_quads(beginning, syntax, base_iri=base_iri, fresh_blank_nodes=not keep_blank_nodes)
            directory = shard.directory.scratch
            staged = StagedBody(quads, graph=graph, whole_dataset=whole_dataset, directory=directory)
            return StagedDocument(
                staged.targets, lambda state: staged.parts(state, replace=replace, clear=clear), staged.close
            )

        def stage_large() -> StagedDocument:
            return self._means.large_bodies.stage(
                source,
                syntax,
                graph=graph,
                whole_dataset=whole_dataset,
                base_iri=base_iri,
                replace=replace,
                clear=clear,
                keep_blank_nodes=keep_blank_nodes,
                scratch=shard.directory.scratch,
                checkpointer=shard.checkpointer,
                as_lines=self._may_log_lines(shard),
            )

        def plan(state: Overlay) -> Iterable[ChangeSet] | LineChange:
            if precondition is not None:
                precondition(state)
            return staged.change(state)

        if is_all and not is_dense(beginning):
            staged = await on_thread(stage_small)
        else:
            source = BodySource(beginning, body, asyncio.get_running_loop())
            staged = await self._means.bodies.run(stage_large)
        try:
            for target in staged.targets:
                check_graph(self._visibility, target)
            return await self._visible_writes(shard, request_id, since).plan(plan)
        finally:
            await asyncio.to_thread(staged.close)

    async def delete_graph(
        self, graph: NamedNode | None, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.delete_graph`."""
        check_graph(self._visibility, graph)
        shard = self._means.current.opened()
        writing = self._visible_writes(shard, request_id, since)
        if not self._may_log_lines(shard):
            return await writing.plan(lambda state: graph_deletion(state, graph))
        emptied = Emptied((graph,), () if graph is None else (graph,))
        async with _clearing(shard) as clearing:
            await clearing.prepared(lambda store: emptied)
            return await writing.plan(
                lambda state: clearing.change(state, emptied) or graph_deletion(state, graph)
            )

    async def patch(
        self, patch: QuadPatch, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.patch`."""
        for graph in patch.targets:
            check_graph(self._visibility, graph)
        writing = self._visible_writes(self._means.current.opened(), request_id, since)
        return await writing.plan(lambda state: patch_parts(state, patch))

    async def edit(
        self, edits: Edits, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.edit`."""
        for one in edits.edits:
            check_graph(self._visibility, one.graph)
        shard = self._means.current.opened()

        async def write(writer: VisibleWriter) -> Confirmation:
            checks = self._means.checks(shard.directory)
            return await self._means.edits.run(edits, writer, checks, shard.schema, self._visibility)

        return await self._visible_writes(shard, request_id, since).perform(write)

    async def commit(
        self, commit: TransactionCommit, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `serve.backend.GraphWrites.commit`."""
        for name in await asyncio.to_thread(lambda: list(commit.graph_names)):
            check_graph(self._visibility, name)

        async def write(writer: VisibleWriter) -> Confirmation:
            return await self._means.commits.run(commit, writer, self._visibility)

        return await self._visible_writes(self._means.current.opened(), request_id, since).perform(write)

    def _may_log_lines(self, shard: OpenStore) -> bool:
        """Whether nobody looks into a change before it is logged."""
        return self._visibility.is_whole and not shard.writer.is_guarded

    def _visible_writes(self, shard: OpenStore, request_id: bytes | None, since: int | None) -> VisibleWrites:
        return VisibleWrites(shard.writer, shard.views, self._visibility, request_id, since, self._author)


@asynccontextmanager
async def _clearing(shard: OpenStore) -> AsyncIterator[GraphClearing]:
    """For one write; the files that it has made are deleted on a thread."""
    clearing = GraphClearing(shard.quads, shard.directory.scratch, shard.checkpointer.room)
    try:
        yield clearing
    finally:
        if clearing.has_files:
            await asyncio.to_thread(clearing.close)


class StoreWriting:
    """See `serve.backend.Writing`. Owned by a node, on its event loop."""

    def __init__(self, means: WriteMeans) -> None:
        self._means = means

    def writes(self, visibility: Visibility, author: Author = UNKNOWN_AUTHOR) -> StoreWrites:
        """See `serve.backend.Writing.writes`."""
        return StoreWrites(self._means, visibility, author)

    def begin_update(
        self,
        update: Update,
        outcome: Outcome,
        author: Author = UNKNOWN_AUTHOR,
        request_id: bytes | None = None,
        since: int | None = None,
    ) -> bool:
        """See `serve.backend.Writing.begin_update`, and `ShardWriter.write` for the last two."""
        means = self._means
        return means.updates.begin(update, means.current.opened().writer, outcome, author, request_id, since)

    def close(self) -> None:
        """Let go of the threads that read bodies."""
        self._means.bodies.close()
