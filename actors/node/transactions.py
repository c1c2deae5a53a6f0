"""`Transactions`: the transactions over several requests that are open on this node. `Transaction`: one.

A transaction holds no lock. It keeps a checkpoint of the state at its begin, and what it wants to be there
afterwards. Only where it is read, or an update has to be planned, a store of its own is opened on a copy of
the checkpoint, with what it wants laid into it. See `actors/node/DESIGN.md`.
"""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from operator import or_
from pathlib import Path
from secrets import token_hex

from pyoxigraph import Quad, Store

from actors.log.applied_index import AppliedIndex
from actors.node.graph_reads import GraphReads
from actors.node.open_store import CurrentStore
from actors.node.query_paths import QueryPaths
from actors.node.update_runner import UpdateRunner
from actors.readers.checkpoints import Checkpoint, Checkpoints
from actors.views.view_directory import delete_after, linked_copy
from actors.views.views import VisibleStore
from actors.worker_thread import on_thread
from graphdb.access.principal import Principal
from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import check_graph, check_targets
from graphdb.config.service import Repository
from graphdb.errors import (
    InvalidParameter,
    LimitExceeded,
    LogUnavailable,
    NotFound,
    Overloaded,
    TransactionConflict,
)
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.log import request_ids
from graphdb.model import ChangeSet, Confirmation
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import Load, Query, Update
from graphdb.store.quad_store import QuadStore
from graphdb.transactions.changes import RecordingOverlay, TransactionCommit, Wanted
from graphdb.transactions.read_pattern import ReadPattern
from graphdb.transactions.read_set import ReadSet

__all__ = ["Transaction", "Transactions"]

_RETRY_S = 1
_PLACED = re.compile(r"([0-9]{1,9})-[0-9a-f]+")


class Transactions:
    """See `serve.backend.Transactions`. Owned by a node, on its event loop."""

    def __init__(
        self,
        current: CurrentStore,
        paths: QueryPaths,
        updates: UpdateRunner,
        release: Callable[[str], Awaitable[None]],
        limits: Repository,
        node_id: int | None,
    ) -> None:
        """release: as for `Checkpoints`. node_id: of a node of a cluster, in which each knows its own."""
        self._node_id = node_id
        self._ask: Callable[[int, bytes], Awaitable[bytes]] | None = None
        self._perform: Callable[[bytes], Awaitable[bytes]] | None = None
        self._current, self._paths, self._updates, self._release = current, paths, updates, release
        self._limits = limits
        self._open: dict[str, Transaction] = {}
        self._beginning = 0

    @property
    def open_count(self) -> int:
        """See `serve.backend.Transactions.open_count`."""
        return len(self._open)

    @property
    def timeout_s(self) -> float:
        """See `serve.backend.Transactions.timeout_s`."""
        return self._limits.transaction_timeout_seconds

    async def begin(self, principal: Principal) -> "Transaction":
        """See `serve.backend.Transactions.begin`."""
        most = self._limits.max_transactions
        if len(self._open) + self._beginning >= most:
            raise Overloaded(
                f"{most} transactions are open on this node (repository.max_transactions)", _RETRY_S
            )
        self._beginning += 1
        try:
            store = self._current.readable()
            is_whole = principal.visibility.is_whole
            annotations, count = store.annotations, store.annotations.count  # before anything is seen
            if is_whole:
                visible = store.whole
            else:
                visible = await store.views.visible_store(principal.visibility)
            base = _Base(
                store.directory.scratch,
                visible,
                await visible.checkpoints.take(),
                lambda: is_whole or annotations.count == count,
            )
            if self._current.open is not store:
                base.close()
                raise LogUnavailable("the node is starting or stopping")
        finally:
            self._beginning -= 1
        transaction = Transaction(self, base, principal)
        self._open[transaction.id] = transaction
        transaction.touch()
        if visible.view is not None:  # which may be given up, with its checkpoints, while this is open
            try:
                await transaction.reads()
            except BaseException:
                transaction.end()
                raise
        return transaction

    def find(self, transaction_id: str, principal: Principal) -> "Transaction":
        """See `serve.backend.Transactions.find`."""
        found = self._open.get(transaction_id)
        if found is not None and not found.is_still_of(principal):
            found.end()
            found = None
        if found is None or found.owner != principal.qualified_name:
            raise NotFound("transaction", f"{transaction_id[:64]}; it has ended, or was never begun here")
        return found

    def home_of(self, transaction_id: str) -> int | None:
        """See `serve.backend.Transactions.home_of`."""
        found = _PLACED.fullmatch(transaction_id)
        if self._node_id is None or found is None or int(found[1]) == self._node_id:
            return None
        return int(found[1])

    def ask_by(self, ask: Callable[[int, bytes], Awaitable[bytes]]) -> None:
        """How to reach other nodes."""
        self._ask = ask

    def serve_others(self, perform: Callable[[bytes], Awaitable[bytes]]) -> None:
        """See `serve.backend.Transactions.serve_others`."""
        self._perform = perform

    async def ask_other(self, node_id: int, request: bytes) -> bytes:
        """See `serve.backend.Transactions.ask_other`."""
        if self._ask is None:
            raise LogUnavailable("this node stands alone")
        return await self._ask(node_id, request)

    async def answer_other(self, request: bytes) -> bytes:
        """What this node answers another. Raises LogUnavailable while there is nothing that answers."""
        if self._perform is None:
            raise LogUnavailable("the node is starting or stopping")
        return await self._perform(request)

    def end_all(self) -> None:
        """Roll back all that are open: the store closes."""
        for transaction in list(self._open.values()):
            transaction.end()

    # of one transaction

    def new_id(self) -> str:
        """In a cluster, with the node on which it lives."""
        return token_hex(16) if self._node_id is None else f"{self._node_id}-{token_hex(16)}"

    def forget(self, transaction: "Transaction") -> None:
        """It has ended."""
        self._open.pop(transaction.id, None)

    def check_room(self, more: int) -> None:
        """Raises LimitExceeded where all of them would want too much, with so many quads more."""
        count = more + sum(one.quads_wanted for one in self._open.values())
        if count > self._limits.max_open_quads:
            raise LimitExceeded(
                "the number of quads of all open transactions (repository.max_open_quads)",
                count,
                self._limits.max_open_quads,
            )

    def wanted(self) -> Wanted:
        return Wanted(self._limits.max_transaction_quads)

    def reads_of(self, visible: Callable[[], VisibleStore], key: str) -> GraphReads:
        """Reading a store of a transaction."""

        async def again() -> GraphReads:  # no reference to itself: the store's files go with the last one
            return self.reads_of(visible, key)

        return GraphReads(visible, self._paths, again, view_key=key, is_whole=False)

    def checkpoints_of(self, scratch: Path, quads: QuadStore, applied: AppliedIndex) -> Checkpoints:
        return Checkpoints(scratch, quads, applied, self._release)

    async def planned(
        self, update: Update, state: RecordingOverlay, using: Dataset, scratch: Path
    ) -> ChangeSet:
        """See `UpdateRunner.planned`."""
        return await self._updates.planned(update, state, using, scratch)


class _Base:
    """The state at the begin of a transaction: a checkpoint that is held until it is let go. Nothing here
    keeps the store beyond that.
    """

    def __init__(
        self,
        scratch: Path,
        visible: VisibleStore,
        checkpoint: Checkpoint,
        is_shown: Callable[[], bool],
    ) -> None:
        """scratch: a directory on the file system of the store. is_shown: see the method."""
        self.scratch, self.index = scratch, checkpoint.index
        self.unites_graphs = visible.quads.unites_graphs
        self._is_shown = is_shown
        self._give_back: Callable[[], None] | None = partial(visible.checkpoints.give_back, checkpoint)
        self._path = checkpoint.path

    def is_shown(self) -> bool:
        """Whether the principal may still see it: nothing has been annotated since."""
        return self._is_shown()

    def copy_to(self, path: Path) -> None:
        """See `linked_copy`."""
        linked_copy(self._path, path)

    def let_go(self) -> None:
        """Of the checkpoint. Twice is allowed."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()

    def close(self) -> None:
        """Of everything. Twice is allowed."""
        self.let_go()
        self._is_shown = bool  # which is False


class _OwnStore:
    """A store of one transaction: the state at its begin with its changes. On the event loop."""

    def __init__(
        self, quads: QuadStore, schema: SchemaWatch, base: _Base, transactions: Transactions
    ) -> None:
        self.quads, self._schema, self._base = quads, schema, base
        self._transactions = transactions
        self._applied = AppliedIndex(lambda: base.index)
        self._applied.changing().__enter__()  # no log index is exactly that of this state
        self._checkpoints = self._new_checkpoints()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def visible(self) -> VisibleStore:
        """As a reader takes it."""
        holds = self._base.is_shown
        return VisibleStore(
            None,
            self.quads,
            self._schema,
            self._applied,
            self._checkpoints,
            holds,
            None,
            None,
            is_apart=True,
            why_apart="a transaction cannot search: what it has changed is in no index",
        )

    def changed(self) -> None:
        """Readers that come from here on get another checkpoint."""
        self._close_checkpoints()
        self._checkpoints = self._new_checkpoints()

    def close(self) -> None:
        """The files go when nobody reads them any more."""
        self._close_checkpoints()

    def _new_checkpoints(self) -> Checkpoints:
        scratch = self._base.scratch
        return self._transactions.checkpoints_of(scratch, self.quads, self._applied)

    def _close_checkpoints(self) -> None:
        task = asyncio.get_running_loop().create_task(self._checkpoints.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class Transaction:
    """See `serve.backend.Transaction`. One request at a time; others wait for it."""

    def __init__(self, transactions: Transactions, base: _Base, principal: Principal) -> None:
        self.id = transactions.new_id()
        self.owner = principal.qualified_name
        self._transactions, self._base = transactions, base
        self._visibility: Visibility = principal.visibility
        self._wanted, self._reads = transactions.wanted(), ReadSet()
        self._own: _OwnStore | None = None
        self._turn = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False
        self._refused: TransactionConflict | None = None

    @property
    def quads_wanted(self) -> int:
        return len(self._wanted.quads)

    def is_still_of(self, principal: Principal) -> bool:
        """Whether it may go on: it shows what its principal may see."""
        is_same = self.owner != principal.qualified_name or self._visibility == principal.visibility
        return is_same and (self._refused is not None or self._base.is_shown())

    def touch(self) -> None:
        """See `serve.backend.Transaction.touch`."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._has_ended:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._transactions.timeout_s, self._expire)

    async def reads(self) -> GraphReads:
        """See `serve.backend.Transaction.reads`."""
        async with self._request():
            own = await self._opened()
            return self._transactions.reads_of(lambda: own.visible, f"transaction {self.id}")

    def note_query(self, query: Query, *, has_dataset: bool) -> None:
        """See `serve.backend.Transaction.note_query`."""
        self._reads.note_query(query, has_dataset=has_dataset, unites_graphs=True)

    def note_pattern(self, pattern: ReadPattern) -> None:
        """See `serve.backend.Transaction.note_pattern`."""
        self._reads.note(pattern)

    async def add(self, quads: Callable[[], Iterable[Quad]]) -> None:
        """See `serve.backend.Transaction.add`."""
        async with self._request():
            await self._take(await self._read(quads, present=True))

    async def remove(self, patterns: Callable[[], Iterable[ReadPattern]]) -> None:
        """See `serve.backend.Transaction.remove`."""
        async with self._request():
            asked = await asyncio.to_thread(lambda: list(dict.fromkeys(patterns())))
            exact = [_quad(one) for one in asked if _is_exact(one)]
            open_ones = [one for one in asked if not _is_exact(one)]
            found: list[Quad] = []
            if open_ones:
                own = await self._opened()
                for pattern in open_ones:
                    self._reads.note(pattern)
                found = await on_thread(_found, own.quads, open_ones, self._wanted)
            await self._take(await self._read(lambda: [*exact, *found], present=False))

    async def update(self, update: Update, using: Dataset) -> None:
        """See `serve.backend.Transaction.update`."""
        check_targets(self._visibility, update)
        if any(isinstance(operation, Load) for operation in update.operations):
            raise InvalidParameter("update", "LOAD is not offered in a transaction")
        async with self._request():
            own = await self._opened()
            self._reads.note_update(update, has_dataset=bool(using), unites_graphs=self._base.unites_graphs)
            state = RecordingOverlay(own.quads)
            scratch = self._base.scratch
            change = await self._transactions.planned(update, state, using, scratch)
            wanted = self._transactions.wanted()

            def take() -> None:
                wanted.take_change(change, state.looked_at)
                self._check_graphs((*change.removed, *change.added))

            await on_thread(take)
            await self._take(wanted)

    async def commit(
        self, commit: Callable[[TransactionCommit, bytes], Awaitable[Confirmation]]
    ) -> Confirmation:
        """See `serve.backend.Transaction.commit`."""
        async with self._request():
            if not self._wanted:
                self.end()
                return Confirmation(self._base.index, 0)
            made = TransactionCommit(
                self._base.index, self._reads.patterns, self._wanted.quads, self._wanted.graphs
            )
            try:
                done = await commit(made, request_ids.keyed(self.id, "COMMIT", b"", (), ()))
            except TransactionConflict as error:
                self._refuse(error)
                raise
            self.end()
            return done

    async def rollback(self) -> None:
        """See `serve.backend.Transaction.rollback`."""
        self.end()

    def end(self) -> None:
        """It is no more, whatever it wanted. Twice is allowed."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._let_go()
        self._transactions.forget(self)

    def _refuse(self, error: TransactionConflict) -> None:
        """It takes nothing but a rollback, which clients send even after a commit that has failed."""
        self._refused = error
        self._let_go()

    def _let_go(self) -> None:
        self._wanted = self._transactions.wanted()
        own, self._own = self._own, None
        if own is not None:
            own.close()
        self._base.close()

    def _expire(self) -> None:
        if self._turn.locked():  # a request is under way
            self.touch()
        else:
            self.end()

    @asynccontextmanager
    async def _request(self) -> AsyncIterator[None]:
        async with self._turn:
            if self._has_ended:
                raise NotFound("transaction", f"{self.id}; it has ended")
            if self._refused is not None:
                raise TransactionConflict(*self._refused.args)
            try:
                yield
            finally:
                self.touch()

    async def _opened(self) -> _OwnStore:
        """The store of its own, opened when it is first needed."""
        if self._own is not None:
            return self._own
        base = self._base
        path = base.scratch / f"transaction-{self.id}"
        schema = SchemaWatch()

        def open_copy() -> QuadStore:
            base.copy_to(path)
            quads = QuadStore(
                Store(path),
                (schema,),
                scratch_directory=path.parent,
                union_default_graph=base.unites_graphs,
            )
            delete_after(quads, path)
            quads.apply(self._wanted.change_in(quads))
            return quads

        try:
            quads = await on_thread(open_copy)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        if self._has_ended:
            raise NotFound("transaction", f"{self.id}; it has ended")
        base.let_go()
        self._own = _OwnStore(quads, schema, base, self._transactions)
        return self._own

    async def _read(self, quads: Callable[[], Iterable[Quad]], *, present: bool) -> Wanted:
        """Raises Forbidden, LimitExceeded, and what quads raises."""
        wanted = self._transactions.wanted()

        def read() -> None:
            wanted.take(quads(), present=present)
            self._check_graphs(wanted.quads)

        await on_thread(read)
        return wanted

    async def _take(self, more: Wanted) -> None:
        """Want this too, or nothing of it if anything is raised: LimitExceeded, StorageFull."""
        both = self._transactions.wanted()
        both.quads = await asyncio.to_thread(or_, self._wanted.quads, more.quads)
        both.graphs = self._wanted.graphs | more.graphs
        both.check()
        self._transactions.check_room(len(both.quads) - len(self._wanted.quads))
        own = self._own
        if own is not None and more:
            await on_thread(lambda: own.quads.apply(more.change_in(own.quads)))
            own.changed()
        self._wanted = both

    def _check_graphs(self, quads: Iterable[Quad]) -> None:
        """Any thread. Raises Forbidden."""
        for name in dict.fromkeys(quad.graph_name for quad in quads):
            check_graph(self._visibility, name)


def _is_exact(pattern: ReadPattern) -> bool:
    return None not in (pattern.subject, pattern.predicate, pattern.object, pattern.graph)


def _quad(pattern: ReadPattern) -> Quad:
    subject, predicate, object_, graph = pattern.subject, pattern.predicate, pattern.object, pattern.graph
    assert subject is not None
    assert predicate is not None
    assert object_ is not None
    assert graph is not None
    return Quad(subject, predicate, object_, graph)


def _found(quads: QuadStore, patterns: Iterable[ReadPattern], wanted: Wanted) -> list[Quad]:
    """The quads of the patterns; no more than a transaction may want, and one."""
    found: dict[Quad, None] = {}
    for one in patterns:
        for quad in quads.quads_matching(one.subject, one.predicate, one.object, one.graph):
            found[quad] = None
            wanted.check_count(len(found))
    return list(found)
