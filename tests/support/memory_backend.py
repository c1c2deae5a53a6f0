"""`MemoryBackend`: the promises of `serve.backend.Backend` kept in memory, without a log.

Planning, staging and applying are the real ones; what is missing is durability.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from secrets import token_hex

from pyoxigraph import BlankNode, NamedNode, Quad, Store

from graphdb.errors import HostNotAllowed
from graphdb.model import ChangeSet, Confirmation, NamedGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.sparql import gate
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import Query
from graphdb.sparql.syntax import Update
from graphdb.sparql.terms import Iri
from graphdb.sparql.update import UpdateContext, plan_update
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.staging import StagedBody, graph_deletion
from serve.backend import ClusterMember, Evaluated, NodeStatus

__all__ = ["MemoryBackend"]


class MemoryBackend:
    """A node that stands alone and forgets everything at its end."""

    def __init__(self, *, union_default_graph: bool = False, limits: gate.GateLimits | None = None) -> None:
        self._limits = limits or gate.GateLimits()
        self.store = QuadStore(Store(), union_default_graph=union_default_graph)
        self.status_word = "healthy"
        self._index = 0
        self._writing = threading.Lock()

    def query(self, query: Query, dataset: Dataset) -> Evaluated:
        gate.check(query, self._limits)
        for endpoint in query.service_hosts:
            raise HostNotAllowed("SERVICE", endpoint.value if isinstance(endpoint, Iri) else "any host")
        return Evaluated(self.store.query(query, dataset), self._index)

    async def update(self, update: Update, using: Dataset) -> Confirmation:
        gate.check(update, self._limits)
        return await asyncio.to_thread(self._update, update, using)

    def _update(self, update: Update, using: Dataset) -> Confirmation:
        with self._writing:
            context = UpdateContext(fresh_blank_node=lambda: BlankNode(token_hex(16)))
            return self._apply([plan_update(update, Overlay(self.store), using, context)])

    def _apply(self, parts: Iterable[ChangeSet]) -> Confirmation:
        changes = [part for part in parts if part]
        if changes:
            self.store.apply_many(changes)
            self._index += 1
        return Confirmation(self._index, sum(part.affected_triples for part in changes))

    def graph_exists(self, graph: NamedGraph) -> bool:
        return self.store.graph_exists(graph)

    def graph_quads(self, graph: NamedGraph | None) -> Iterator[Quad]:
        return self.store.graph_quads(graph)

    def dataset_quads(self) -> Iterator[Quad]:
        return self.store.dataset_quads()

    def snapshot_index(self) -> int:
        return self._index

    async def write_graph(
        self,
        body: AsyncIterator[bytes],
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        replace: bool,
        base_iri: str | None,
    ) -> Confirmation:
        document = b"".join([chunk async for chunk in body])

        def write() -> Confirmation:
            quads = read_quads(document, syntax, base_iri=base_iri)
            with (
                StagedBody(quads, graph=graph, whole_dataset=whole_dataset, directory=None) as staged,
                self._writing,
            ):
                return self._apply(staged.parts(self.store, replace=replace))

        return await asyncio.to_thread(write)

    async def delete_graph(self, graph: NamedNode | None) -> Confirmation:
        with self._writing:
            return self._apply(graph_deletion(self.store, graph))

    def status(self) -> NodeStatus:
        return NodeStatus(
            status=self.status_word,
            role="standalone",
            node_id=1,
            snapshot_index=self._index,
            current_term=0,
            cluster_members=(ClusterMember(1, "127.0.0.1:7002", "standalone", True),),
            replication_lag=None,
            index_loaded=True,
            uptime_seconds=0,
        )
