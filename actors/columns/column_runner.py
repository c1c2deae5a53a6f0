"""`ColumnRunner`: the way of a query through the column view, where it may take it."""

from contextlib import ExitStack
from typing import Any

from actors.columns.client import ColumnAnswer, ColumnClient
from actors.columns.protocol import ColumnTask
from actors.readers.running_queries import QueryRun
from graphdb.errors import QueryCancelled, QueryTimeout, UnavailableError
from graphdb.node import QueryRequest

__all__ = ["ColumnRunner", "ColumnStream", "column_task", "may_use_columns"]


def may_use_columns(request: QueryRequest, *, union_default_graph: bool) -> bool:
    """Whether a query may be answered from the columns at all, whatever it says: the one place for this.

    The columns hold everything: who may see only a part of the data reads it through their own view.
    """
    return not (request.explain or union_default_graph or request.query.service_hosts)


def column_task(request: QueryRequest, min_index: int) -> ColumnTask:
    """What to send the view."""
    query, dataset = request.query, request.dataset
    return ColumnTask(
        query.text,
        query.base_iri,
        [graph.value for graph in dataset.default_graphs],
        [graph.value for graph in dataset.named_graphs],
        request.format.value,
        min_index,
        request.timeout_s,
    )


class ColumnRunner:
    """Owned by a `QueryRunner`, on its event loop."""

    def __init__(self, columns: ColumnClient) -> None:
        self._columns = columns

    async def start(self, run: QueryRun, request: QueryRequest, min_index: int) -> "ColumnStream | None":
        """The answer, of min_index or later, once it begins; None where a reader has to give it.

        Raises QueryTimeout, QueryCancelled.
        """
        with ExitStack() as held:
            try:
                answer = await run.unless_cancelled(
                    self._columns.ask(column_task(request, min_index)), ColumnAnswer.close
                )
                held.callback(answer.close)
                run.on_cancel = answer.close
                if await run.unless_cancelled(answer.begin()) is not None:
                    return None
            except (QueryTimeout, QueryCancelled):
                raise
            except UnavailableError:
                return None
            run.where = answer.taken.where
            return ColumnStream(run, answer, held.pop_all())

    async def explain(self, request: QueryRequest, min_index: int) -> dict[str, Any]:
        """Which way the query would take, and why."""
        try:
            return await self._columns.explain(column_task(request, min_index))
        except UnavailableError as error:
            return {"path": "reader", "reason": str(error), "plan": None}


class ColumnStream:
    """See `serve.backend.AnswerStream`."""

    is_exact = True

    def __init__(self, run: QueryRun, answer: ColumnAnswer, held: ExitStack) -> None:
        """held ends the query, if it is not over."""
        self.query_id = run.id
        self.snapshot_index, self.where = answer.taken.log_index, answer.taken.where
        self._run, self._answer, self._held = run, answer, held
        held.callback(run.end)

    async def read(self) -> bytes | None:
        """See `serve.backend.AnswerStream`."""
        return await self._run.unless_cancelled(self._answer.read())

    def close(self) -> None:
        """See `serve.backend.AnswerStream`."""
        self._held.close()
