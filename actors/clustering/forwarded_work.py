"""`ForwardedWork`: what other nodes ask of this one, taken from its log and performed: their clients' writes
where it leads, requests about transactions that live here, copies of its search indexes and history.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.forwarded_writes import (
    BATCH,
    AlertChange,
    GraphDeletion,
    NamedStateChange,
    NamespaceChange,
    PurgeChange,
    QuadPatchWrite,
    ResourceEdits,
    SavedQueryChange,
    SparqlUpdate,
    TransactionWrite,
    decode_write,
    encode_confirmation,
    encode_outcomes,
)
from actors.clustering.history_files import HISTORY_FILE, HistoryFiles
from actors.clustering.search_copies import SearchCopies
from actors.node.admin import AlertLog
from actors.node.named_states import OwnNamedStates
from actors.node.namespaces import OwnNamespaces
from actors.node.purges import OwnPurges
from actors.node.saved_queries import OwnSavedQueries
from actors.node.store_writes import StoreWriting
from actors.raft.log_requests import ForwardedRequest, RequestQueue, decode_requests
from actors.raft.raft_log_client import QueueWorker, RaftLogClient
from actors.wire.messages import encode_error
from actors.worker_thread import on_thread
from graphdb.config.limits import GateLimits
from graphdb.errors import NotLeader, OutcomeUnknown
from graphdb.model import Confirmation
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS, read_plain_update, read_update
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import Update

__all__ = ["APPLIED_INDEX", "TRANSACTION_REQUEST", "ForwardedWork"]

_SHORT_BYTES = 64 << 10  # of a write; decoding a longer one could make the loop stand still
APPLIED_INDEX = "applied_index"  # the operation that asks a leader how far its store is
TRANSACTION_REQUEST = "transaction_request"  # that asks a node about a transaction which lives there


class ForwardedWork:
    """Owned by a clustered node, on its event loop."""

    def __init__(
        self,
        log: RaftLogClient,
        cluster: ClusterFollower,
        applied_index: Callable[[], int],
        writing: StoreWriting,
        alerts: AlertLog,
        saved_queries: OwnSavedQueries,
        namespaces: OwnNamespaces,
        named_states: OwnNamedStates,
        purges: OwnPurges,
        limits: GateLimits,
        copies: SearchCopies,
        history: HistoryFiles,
        answer_about_transaction: Callable[[bytes], Awaitable[bytes]],
    ) -> None:
        """applied_index raises LogUnavailable; writing, alerts, saved_queries, namespaces, named_states
        and purges are those of this node, for where it leads. copies and history belong to this from here on.
        answer_about_transaction answers for the transactions that live here.
        """
        self._copies, self._history = copies, history
        self._answer_about_transaction = answer_about_transaction
        self._cluster = cluster
        self._applied_index, self._writing, self._alerts = applied_index, writing, alerts
        self._saved_queries, self._namespaces = saved_queries, namespaces
        self._named_states, self._purges, self._limits = named_states, purges, limits
        self._worker = QueueWorker(log, RequestQueue.GRAPH, self._answer)

    def start(self) -> None:
        """Begin to take requests."""
        self._worker.start()

    async def close(self) -> None:
        """Finish what was taken; see `QueueWorker.close`."""
        await self._worker.close()
        self._copies.close()
        self._history.close()

    async def _answer(self, request: ForwardedRequest) -> bytes:
        if self._copies.is_asked(request.operation):
            return await self._copies.answer(request.operation, request.body)
        if request.operation == HISTORY_FILE:
            return await self._history.answer(request.body)
        if request.operation == TRANSACTION_REQUEST:
            return await self._answer_about_transaction(request.body)
        if not self._cluster.leads:
            view = self._cluster.view
            raise NotLeader("another node leads", 1, view.leader_id if view is not None else None)
        if request.operation == BATCH:
            return await self._answer_batch(decode_requests(request.body))
        if request.operation == APPLIED_INDEX:
            return b"%d" % self._applied_index()
        return encode_confirmation(await self._write(request))

    async def _answer_batch(self, requests: list[ForwardedRequest]) -> bytes:
        """The plain ones share a turn of the writer without a task for each."""
        begun = [self._begin(request) for request in requests]
        others = (self._worker.outcome(r) for r, one in zip(requests, begun, strict=True) if one is None)
        outcomes = iter(await asyncio.gather(*others))
        return encode_outcomes([next(outcomes) if one is None else await self._outcome(one) for one in begun])

    def _begin(self, request: ForwardedRequest) -> "asyncio.Future[Confirmation] | None":
        """A plain update that is on its way, None for what needs a task."""
        if request.operation != SparqlUpdate.operation:
            return None
        answer: asyncio.Future[Confirmation] = asyncio.get_running_loop().create_future()
        try:
            write = SparqlUpdate.decode(request.body)
            if not write.writer.visibility.is_whole or write.using != Dataset():
                return None
            if len(write.text) > SHORT_TEXT_CHARACTERS:
                return None
            update = read_plain_update(write.text, write.base_iri, self._limits)
            request_id = bytes.fromhex(request.request_id)
            author = write.writer.author
            if update is None or not self._writing.begin_update(
                update, answer, author, request_id, write.since
            ):
                return None
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            answer.set_exception(error)
        return answer

    async def _outcome(self, begun: "asyncio.Future[Confirmation]") -> tuple[bool, bytes]:
        try:
            return True, encode_confirmation(await begun)
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            return False, encode_error(error, OutcomeUnknown)

    async def _read(self, write: SparqlUpdate) -> Update:
        if len(write.text) <= SHORT_TEXT_CHARACTERS:
            return read_update(write.text, write.base_iri, self._limits)
        return await asyncio.to_thread(read_update, write.text, write.base_iri, self._limits)

    async def _write(self, request: ForwardedRequest) -> Confirmation:
        if len(request.body) <= _SHORT_BYTES:
            write = decode_write(request.operation, request.body)
        else:
            write = await on_thread(decode_write, request.operation, request.body)
        request_id = bytes.fromhex(request.request_id)
        if isinstance(write, AlertChange):
            return await self._alerts.change_alerts(write.command, request_id, write.since)
        if isinstance(write, SavedQueryChange):
            return await self._saved_queries.change(write.command, request_id, write.since)
        if isinstance(write, NamespaceChange):
            return await self._namespaces.change(write.command, request_id, write.since)
        if isinstance(write, NamedStateChange):
            return await self._named_states.change(write.command, request_id, write.since)
        if isinstance(write, PurgeChange):
            return await self._purges.change(write.command, request_id, write.since)
        writes = self._writing.writes(write.writer.visibility, write.writer.author)
        if isinstance(write, SparqlUpdate):
            update = await self._read(write)
            return await writes.update(update, write.using, request_id, write.since)
        if isinstance(write, GraphDeletion):
            return await writes.delete_graph(write.graph, request_id, write.since)
        if isinstance(write, QuadPatchWrite):
            return await writes.patch(write.patch, request_id, write.since)
        if isinstance(write, ResourceEdits):
            return await writes.edit(write.edits, request_id, write.since)
        if isinstance(write, TransactionWrite):
            return await writes.commit(write.commit, request_id, write.since)
        return await writes.write_graph(
            _once(write.document),
            write.syntax,
            graph=write.graph,
            whole_dataset=write.whole_dataset,
            replace=write.replace,
            base_iri=write.base_iri,
            clear=write.clear,
            keep_blank_nodes=write.keep_blank_nodes,
            request_id=request_id,
            since=write.since,
        )


async def _once(document: bytes) -> AsyncIterator[bytes]:
    yield document
