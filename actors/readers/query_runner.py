"""`QueryRunner`: the read path of a `StoreShard` for queries that are not cheap: a reader, a checkpoint, an
answer.
"""

import secrets
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from pyoxigraph import NamedNode

from actors.readers.checkpoints import Checkpoint, Checkpoints
from actors.readers.client import Lease, ReaderClient
from actors.readers.protocol import ReaderTask
from actors.readers.running_queries import QueryRun, RunningQueries
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset, own_dataset
from graphdb.sparql.engine_text import engine_text_and_services
from graphdb.sparql.explain import scans_of
from graphdb.sparql.results import ResultFormat

__all__ = ["QueryRunner", "ReaderAnswer", "query_task"]


class QueryRunner:
    """Owned by a `StoreShard`, on its event loop."""

    def __init__(self, readers: ReaderClient, *, union_default_graph: bool) -> None:
        self.running = RunningQueries()
        self._readers = readers
        self._union_default_graph = union_default_graph

    async def start(self, request: QueryRequest, checkpoints: Checkpoints) -> "ReaderAnswer":
        """See `Backend.start_query`.

        The checkpoint comes after the reader, so that however many wait, no more than there are readers are
        kept on disk.
        """
        with ExitStack() as held:
            run = self.running.begin(request.query.text, request.query.form, request.principal)
            held.callback(run.end)
            lease = await run.unless_cancelled(self._readers.lease(run.id, request.timeout_s), Lease.close)
            held.callback(lease.close)
            run.where = lease.where
            checkpoint = await run.unless_cancelled(checkpoints.take(), checkpoints.give_back)
            held.callback(checkpoints.give_back, checkpoint)
            run.on_cancel = lease.close  # also while nobody reads
            lease.evaluate(self._task(request, checkpoint))
            return ReaderAnswer(run, lease, checkpoint, held.pop_all())

    def _task(self, request: QueryRequest, checkpoint: Checkpoint) -> ReaderTask:
        query = request.query
        text, services = engine_text_and_services(query, secrets.token_hex(16))
        task = query_task(
            text,
            query.base_iri,
            request.dataset or own_dataset(query),
            str(checkpoint.path),
            format=request.format,
            services=services,
            union_default_graph=self._union_default_graph,
        )
        if not request.explain:
            return task
        return replace(
            task, operation="explain", count_queries=[scan.count_query for scan in scans_of(query)]
        )


def query_task(
    text: str,
    base_iri: str | None,
    dataset: Dataset,
    checkpoint: str,
    *,
    format: ResultFormat,
    services: Mapping[str, str],
    union_default_graph: bool,
    default_graph: NamedNode | None = None,
) -> ReaderTask:
    """What to send a reader. default_graph stands in for the store's where the dataset names no graph."""
    default_graphs = dataset.default_graphs if dataset else (default_graph,) if default_graph else None
    return ReaderTask(
        operation="query",
        text=text,
        base_iri=base_iri,
        default_graphs=_iris(default_graphs),
        named_graphs=_iris(dataset.named_graphs if dataset else None),
        union_default_graph=union_default_graph,
        format=format.value,
        checkpoint=checkpoint,
        services=services,
    )


class ReaderAnswer:
    """See `serve.backend.AnswerStream`."""

    def __init__(self, run: QueryRun, lease: Lease, checkpoint: Checkpoint, held: ExitStack) -> None:
        """held gives back what the answer is made of."""
        self.query_id = run.id
        self.snapshot_index, self.is_exact = checkpoint.index, checkpoint.is_exact
        self.where = lease.where
        self._run, self._lease, self._held = run, lease, held

    async def read(self) -> bytes | None:
        """See `serve.backend.AnswerStream`."""
        return await self._run.unless_cancelled(self._lease.read())

    def close(self) -> None:
        """See `serve.backend.AnswerStream`."""
        self._held.close()


def _iris(graphs: Iterable[NamedNode] | None) -> list[str] | None:
    return None if graphs is None else [graph.value for graph in graphs]
