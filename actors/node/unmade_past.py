"""`UnmadePast`: a state of the past that has no store yet, for queries that the column view may answer."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from actors.columns.client import ColumnStream
from actors.node.graph_reads import GraphReads, QueryOutcome, united_key
from actors.node.query_paths import BegunQuery, QueryPaths
from actors.node.searching import JoinedAnswer
from actors.readers.query_runner import ReaderAnswer
from graphdb.node import QueryRequest

__all__ = ["UnmadePast"]

_AGAIN_S = 0.5  # until the columns are asked again


class UnmadePast:
    """See `serve.backend.QueriedState`. All of the state is to be seen. Its store is made only where the
    columns leave a query to a reader.
    """

    def __init__(
        self,
        paths: QueryPaths,
        index: int,
        known_by: tuple[str, int],
        made: Callable[[float], Coroutine[Any, Any, GraphReads]],
        *,
        unites_graphs: bool,
        is_united: bool = False,
    ) -> None:
        """index: of the state, which the history leads back to; known_by: see `PastStates.known_by`. made
        waits up to so many seconds for what reads the store. unites_graphs: the default graph of queries is
        the union of all graphs; is_united: by uniting_graphs().
        """
        self._paths, self._index, self._known_by, self._made = paths, index, known_by, made
        self._unites_graphs, self._is_united = unites_graphs, is_united

    @property
    def view_key(self) -> str:
        """See `serve.backend.QueriedState.view_key`."""
        return united_key(self._known_by[0]) if self._is_united else self._known_by[0]

    def uniting_graphs(self) -> "UnmadePast":
        """See `serve.backend.QueriedState.uniting_graphs`."""
        return UnmadePast(
            self._paths, self._index, self._known_by, self._made, unites_graphs=True, is_united=True
        )

    def exact_index(self) -> int:
        """See `serve.backend.QueriedState.exact_index`."""
        return self._index

    snapshot_index = exact_index

    async def start_query(self, request: QueryRequest) -> ReaderAnswer | ColumnStream | JoinedAnswer:
        """See `serve.backend.QueriedState.start_query`. Raises what `PastStates.visible_store` does."""
        self._paths.check(request.query)
        return await self._started(request)

    def begin_query(self, request: QueryRequest, outcome: QueryOutcome) -> Callable[[], None] | None:
        """See `serve.backend.QueriedState.begin_query`."""
        self._paths.check(request.query)

        def heard(begun: BegunQuery) -> None:
            body = self._paths.whole(request, begun)
            if body is None:
                outcome.goes_on(partial(self._started, request, begun))
            else:
                outcome.answered(begun, body)

        begun = self._paths.begin(
            request,
            self._known_by[1],
            heard,
            unites_graphs=self._unites_graphs,
            as_of=self._index,
            is_choice=False,
        )
        return None if begun is None else begun.end

    async def _started(
        self, request: QueryRequest, begun: BegunQuery | None = None
    ) -> ReaderAnswer | ColumnStream | JoinedAnswer:
        loop = asyncio.get_running_loop()
        ends = loop.time() + request.timeout_s
        making: asyncio.Task[GraphReads] | None = None
        try:
            while True:
                answer = await self._paths.start_in_columns(
                    replace(request, timeout_s=max(0.0, ends - loop.time())),
                    self._index,
                    self._known_by[1],
                    begun,
                    unites_graphs=self._unites_graphs,
                )
                if isinstance(answer, ColumnStream):
                    return answer
                begun = None
                if making is None:
                    making = loop.create_task(self._made(max(0.0, ends - loop.time())))
                    making.add_done_callback(lambda made: made.cancelled() or made.exception())
                # what is made in minutes is not waited for where the view is only busy for a moment
                is_worth = answer.is_for_now and ends - loop.time() > 2 * _AGAIN_S
                await asyncio.wait({making}, timeout=_AGAIN_S if is_worth else None)
                if making.done():
                    break
            reads = making.result()
        finally:
            if making is not None:
                making.cancel()
        if self._is_united:
            reads = reads.uniting_graphs()
        return await reads.start_query(replace(request, timeout_s=max(0.0, ends - loop.time())))
