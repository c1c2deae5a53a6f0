"""`QueryPaths`: which way a query takes that may take long: the column view, or a reader."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from actors.columns.column_runner import ColumnRunner, ColumnStream, may_use_columns
from actors.egress.rules import HostRules
from actors.readers.checkpoints import Checkpoints
from actors.readers.query_runner import QueryRunner, ReaderAnswer
from actors.readers.running_queries import RunningQueries
from graphdb.config import Settings
from graphdb.node import QueryRequest, ValidationRequest
from graphdb.planning import gate
from graphdb.sparql.parser import Query
from graphdb.store.quad_store import QuadStore

__all__ = ["QueryPaths"]


class QueryPaths:
    """Owned by a node's `Queries`, on its event loop, but for check(), which any thread may call."""

    def __init__(
        self,
        settings: Settings,
        readers: QueryRunner,
        running: RunningQueries,
        columns: ColumnRunner | None,
    ) -> None:
        """running is the list of the readers' queries too. columns: None where there is no column view."""
        self._readers, self._running, self._columns = readers, running, columns
        self._limits = settings.security
        self._union_default_graph = settings.server.union_default_graph
        self._service_allowed: Callable[..., bool] = HostRules(
            "SERVICE", settings.security.service_allow
        ).allows

    def check(self, query: Query) -> None:
        """See `serve.backend.Queries.check_query`."""
        gate.check(query, self._limits)
        gate.check_services(query, self._service_allowed)

    async def start(
        self, request: QueryRequest, checkpoints: Checkpoints, quads: QuadStore, applied_index: int | None
    ) -> ReaderAnswer | ColumnStream:
        """See `serve.backend.GraphReads.start_query`. quads is what the checkpoints are of; the answer is of
        applied_index or later. None: of what the columns hold, something is not to be seen.
        """
        run = self._running.begin(request.query.text, request.query.form, request.principal)
        if self._columns is not None and applied_index is not None and self._may_use_columns(request):
            began = run.loop.time()
            try:
                answer = await self._columns.start(run, request, applied_index)
            except BaseException:
                run.end()
                raise
            if answer is not None:
                return answer
            left_s = request.timeout_s - (run.loop.time() - began)
            request = replace(request, timeout_s=max(0.0, left_s))
        return await self._readers.start(run, request, checkpoints, quads)

    def _may_use_columns(self, request: QueryRequest) -> bool:
        return may_use_columns(request, union_default_graph=self._union_default_graph)

    async def explain_columns(self, request: QueryRequest, applied_index: int) -> dict[str, Any]:
        """See `serve.backend.GraphReads.explain_columns`."""
        if self._columns is None:
            return {"path": "reader", "reason": "there is no column view (columns.enabled)", "plan": None}
        whole = replace(request, explain=False)
        if not self._may_use_columns(whole):
            return {"path": "reader", "reason": "such queries do not use the columns", "plan": None}
        return await self._columns.explain(whole, applied_index)

    async def validate(self, request: ValidationRequest, checkpoints: Checkpoints) -> ReaderAnswer:
        """See `serve.backend.GraphReads.start_validation`."""
        return await self._readers.validate(request, checkpoints)
