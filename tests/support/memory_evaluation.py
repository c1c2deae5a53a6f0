"""`MemoryEvaluation`: live queries evaluated anew in memory, for a hub without readers."""

import asyncio
from typing import Any

from pyoxigraph import QueryResultsFormat, Store

from graphdb.live.sparql_queries import WholeQuery
from graphdb.store.engine_query import engine_query
from graphdb.store.quad_store import QuadStore

__all__ = ["MemoryEvaluation"]


class MemoryEvaluation:
    """States are copies in memory; pause_s is how long each evaluation takes, failure what it meets."""

    def __init__(self, *, union_default_graph: bool = False) -> None:
        self.pause_s = 0.0
        self.failure: Exception | None = None
        self.held = 0  # states that nobody has let go of
        self.evaluated = 0
        self._union_default_graph = union_default_graph

    def freeze(self, quads: QuadStore) -> Store:
        self.held += 1
        store = Store()
        store.extend(quads.dataset_quads())
        for graph in quads.named_graphs():
            store.add_graph(graph)
        return store

    async def answer(self, query: WholeQuery, frozen: Store) -> bytes:
        await asyncio.sleep(self.pause_s)
        self.evaluated += 1
        if self.failure is not None:
            raise self.failure
        dataset = query.dataset
        answer: Any = engine_query(
            frozen,
            query.engine_text,
            base_iri=None,
            default_graph=dataset.default_graphs if dataset else None,
            named_graphs=dataset.named_graphs if dataset else None,
            union_default_graph=self._union_default_graph,
            calls_geometry=query.calls_geometry,
        )
        return bytes(answer.serialize(format=QueryResultsFormat.TSV))

    async def release(self, frozen: Store) -> None:
        self.held -= 1
