"""The column view from the port's side: `ColumnClient`, over its Unix domain socket; `ColumnRunner`, the way
of a query through it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

from actors.columns.protocol import (
    COLUMN_MESSAGES,
    Answered,
    AskStatus,
    ColumnStatus,
    ColumnTask,
    Explain,
    Explanation,
    Feed,
    Load,
    NotTaken,
    Taken,
    Wanted,
)
from actors.readers.running_queries import QueryRun, RunAnswer
from actors.wire.client import WireClient
from actors.wire.connection import Stream
from actors.wire.messages import Done, Piece, expect
from graphdb.errors import QueryCancelled, QueryTimeout, UnavailableError
from graphdb.node import QueryRequest
from graphdb.planning.costs import Factors, LearntCosts, Work
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS
from graphdb.public_text import public_text
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.packing import packed
from graphdb.sparql.results import is_of_lines
from graphdb.sparql.translation import searches_of

__all__ = [
    "ColumnAnswer",
    "ColumnClient",
    "ColumnRunner",
    "ColumnStream",
    "LeftToReader",
    "column_task",
    "may_use_columns",
    "readers_alone",
]

_CALL_S = 5.0
_SOON_S = 0.2  # after which a reader is asked instead


class ColumnAnswer:
    """The answer of one query. Made by `ColumnClient.ask`; whoever gets it closes it."""

    def __init__(self, stream: Stream, keep: Callable[[Stream], None]) -> None:
        """keep takes the stream back once the answer is over."""
        self.taken = Taken(0, "", None, 0.0)  # once the view has begun
        self.not_taken = NotTaken("the column view went away", False, None)  # where a reader has to answer
        self._stream: Stream | None = stream
        self._keep = keep
        self._short: bytes | None = None  # all of the answer, until it is read

    async def begin(self) -> bool:
        """Wait for the beginning; False where a reader has to answer. Raises as read() does."""
        message = await self._read()
        if message is None:
            return False
        if isinstance(message, NotTaken):
            self._over()
            self.not_taken = message
            return False
        if isinstance(message, Answered):
            self._short = self._all_of(message)
            return True
        self.taken = expect(Taken, message)
        return True

    def once_heard(self, call: Callable[[], None]) -> None:
        """Have something called as soon as the first of the answer has come, or will never come."""
        assert self._stream is not None
        self._stream.once_heard(call)

    def whole(self) -> bytes | None:
        """All of a short answer that has come at once, before begin(); None of any other, which is read as
        ever. Raises UnavailableError.
        """
        assert self._stream is not None
        messages = self._stream.all_with(Answered)
        if messages is not None:
            return self._all_of(expect(Answered, messages[0]))
        messages = self._stream.all_with(Done)
        if messages is None:
            return None
        self.taken = expect(Taken, messages[0])
        self._over()
        return b"".join([expect(Piece, message).data for message in messages[1:-1]])

    async def read(self) -> bytes | None:
        """The next piece of the answer; None at its end, which alone says that it is whole.

        Raises EvaluationFailed, QueryTimeout, QueryMemoryExceeded, UnavailableError.
        """
        if self._stream is None:  # it is over
            data, self._short = self._short, None
            return data
        message = await self._read()
        if message is None:
            raise UnavailableError("the column view went away in the midst of the query")
        if isinstance(message, NotTaken):
            raise UnavailableError(message.reason)
        if isinstance(message, Done):
            self._over()
            return None
        return expect(Piece, message).data

    def close(self) -> None:
        """If it is not finished, the query is interrupted. Twice is allowed."""
        if self._stream is not None:
            self._stream.close()

    async def _read(self) -> Any | None:
        return None if self._stream is None else await self._stream.read()

    def _all_of(self, message: Answered) -> bytes:
        self.taken = Taken(message.log_index, message.where, None, 0.0)
        self._over()
        return message.data

    def _over(self) -> None:
        """The last message has come: the connection is free for another query."""
        stream, self._stream = self._stream, None
        assert stream is not None
        self._keep(stream)


class ColumnClient:
    """For one event loop. Where the view is away, whoever asks has another way."""

    def __init__(self, find_endpoint: Callable[[], Awaitable[str]]) -> None:
        """find_endpoint answers the path of the socket, or raises UnavailableError."""
        self._wire = WireClient(COLUMN_MESSAGES, "the column view does", find_endpoint)

    def ask_at_once(self, task: ColumnTask) -> ColumnAnswer | None:
        """As `ask`, over a connection that an answer before has left; None where there is none."""
        stream = self._wire.kept()
        return None if stream is None else self._asked(stream, task)

    async def ask(self, task: ColumnTask) -> ColumnAnswer:
        """Hand over a query. Raises UnavailableError, soon where the view is being started again."""
        try:
            async with asyncio.timeout(_SOON_S):
                stream = await self._wire.open()
        except TimeoutError:
            raise UnavailableError("the column view is starting") from None
        return self._asked(stream, task)

    def _asked(self, stream: Stream, task: ColumnTask) -> ColumnAnswer:
        stream.send(task)
        return ColumnAnswer(stream, self._wire.keep)

    async def explain(self, task: ColumnTask) -> dict[str, Any]:
        """Which way the query would take, and why: `ColumnQuery.explained`. Raises UnavailableError."""
        return (await self._wire.call(Explain(task), Explanation, _CALL_S)).document

    async def wait_wanted(self) -> None:
        """Return when the view has to be made anew of the store. Raises UnavailableError."""
        await self._wire.call(Feed(), Wanted, None)

    async def load(self, load: Load) -> None:
        """Return when the view has taken in a copy of the store, or failed to. Raises UnavailableError."""
        await self._wire.call(load, Done, None)

    async def status(self) -> ColumnStatus:
        """Raises UnavailableError."""
        return await self._wire.call(AskStatus(), ColumnStatus, _CALL_S)


_UNSUITED_S = 10.0  # the view may take its statistics meanwhile, and decide otherwise
_UNSUITED_MAX = 1024  # short queries that are remembered


def may_use_columns(request: QueryRequest) -> bool:
    """Whether a query may be answered from the columns at all, whatever it says: the one place for this.

    The columns hold everything: who may see only a part of the data reads it through their own view.
    """
    return not (request.explain or request.query.service_hosts or searches_of(request.query))


def column_task(
    request: QueryRequest,
    min_index: int,
    *,
    unites_graphs: bool = False,
    factors: Factors | None = None,
    as_of: int | None = None,
) -> ColumnTask:
    """What to send the view. unites_graphs: the default graph of queries is the union of all graphs. factors:
    and as_of: see `ColumnTask`.

    Raises RecursionError where the query nests too deeply for it.
    """
    dataset = request.dataset
    return ColumnTask(
        packed(request.query),
        None if request.own is None else request.own.columns,
        () if request.own is None else request.own.literals,
        [graph.value for graph in dataset.default_graphs],
        [graph.value for graph in dataset.named_graphs],
        request.format.value,
        min_index,
        request.timeout_s,
        factors,
        unites_graphs,
        as_of,
    )


def readers_alone(reason: str) -> dict[str, Any]:
    """As `ColumnQuery.explained`, of a query that the view is not asked."""
    return {"path": "reader", "reason": reason, "plan": None}


# text, base, dataset, whether graphs are united, whether triples are written line by line, the past state,
# whether there is another way
_Asked: TypeAlias = tuple[str, str | None, Dataset, bool, bool, int | None, bool]


def _key(
    request: QueryRequest, unites_graphs: bool, as_of: int | None = None, *, is_choice: bool = True
) -> _Asked:
    by_lines = is_of_lines(request.format)  # triples are collected in other formats
    return request.text, request.query.base_iri, request.dataset, unites_graphs, by_lines, as_of, is_choice


@dataclass(frozen=True, slots=True)
class LeftToReader:
    """The view has not answered. work is what there is to do, where the view has estimated it. is_for_now:
    it may answer the next time, of the same state.
    """

    work: Work | None
    is_for_now: bool = False


class ColumnRunner:
    """Owned by a `QueryRunner`, on its event loop. What the view leaves to a reader it is not asked again in
    the same state of the store.
    """

    def __init__(self, columns: ColumnClient, costs: LearntCosts | None = None) -> None:
        """costs decide between the columns and a reader; None: fixed limits alone do."""
        self._columns, self._costs = columns, costs
        self._unsuited: dict[_Asked, tuple[int, float, Work | None]] = {}

    def begin(
        self,
        request: QueryRequest,
        min_index: int,
        *,
        unites_graphs: bool,
        as_of: int | None = None,
        is_choice: bool = True,
    ) -> ColumnAnswer | None:
        """Ask within this call; None where that is not possible, or a reader has to answer. See `start`.

        Raises RecursionError.
        """
        key = _key(request, unites_graphs, as_of, is_choice=is_choice)
        if self._left(key, min_index, asyncio.get_running_loop().time()) is not None:
            return None
        task = self._task(request, min_index, unites_graphs=unites_graphs, as_of=as_of, is_choice=is_choice)
        return self._columns.ask_at_once(task)

    async def start(
        self,
        run: QueryRun,
        request: QueryRequest,
        min_index: int,
        *,
        unites_graphs: bool,
        begun: ColumnAnswer | None = None,
        as_of: int | None = None,
        is_choice: bool = True,
    ) -> "ColumnStream | LeftToReader":
        """The answer, of min_index or later, once it begins, unless a reader has to give it. See
        `column_task` for unites_graphs and as_of. begun: what `begin` has begun of it. is_choice: whether
        that a reader is estimated to be faster counts.

        Raises QueryTimeout, QueryCancelled.
        """
        key = _key(request, unites_graphs, as_of, is_choice=is_choice)
        left = None if begun is not None else self._left(key, min_index, run.loop.time())
        if left is not None:
            return left
        with ExitStack() as held:
            try:
                answer = begun
                if answer is None:
                    task = self._task(
                        request, min_index, unites_graphs=unites_graphs, as_of=as_of, is_choice=is_choice
                    )
                    answer = self._columns.ask_at_once(task)
                if answer is None:
                    answer = await run.unless_cancelled(self._columns.ask(task), ColumnAnswer.close)
                held.callback(answer.close)
                run.on_cancel = answer.close
                if not await run.unless_cancelled(answer.begin()):
                    why = answer.not_taken
                    if why.is_unsuited:
                        self._remember(key, (min_index, run.loop.time() + _UNSUITED_S, why.work))
                    return LeftToReader(why.work, is_for_now=not why.is_unsuited)
            except (QueryTimeout, QueryCancelled):
                raise
            except (UnavailableError, RecursionError) as error:
                return LeftToReader(None, is_for_now=isinstance(error, UnavailableError))
            run.where = answer.taken.where
            return ColumnStream(run, answer, held.pop_all())

    def _task(
        self,
        request: QueryRequest,
        min_index: int,
        *,
        unites_graphs: bool,
        as_of: int | None = None,
        is_choice: bool = True,
    ) -> ColumnTask:
        costs = self._costs if is_choice else None
        factors = None if costs is None else costs.factors(request.query.text)
        return column_task(request, min_index, unites_graphs=unites_graphs, factors=factors, as_of=as_of)

    def _left(self, key: "_Asked", min_index: int, now: float) -> "LeftToReader | None":
        """What the view has said before, in the same state of the store."""
        known_index, until, work = self._unsuited.get(key, (0, 0.0, None))
        return LeftToReader(work) if known_index == min_index and now < until else None

    def _remember(self, key: "_Asked", found: tuple[int, float, Work | None]) -> None:
        if len(self._unsuited) >= _UNSUITED_MAX:
            self._unsuited.clear()
        if len(key[0]) <= SHORT_TEXT_CHARACTERS:
            self._unsuited[key] = found

    async def explain(
        self, request: QueryRequest, min_index: int, *, unites_graphs: bool, as_of: int | None = None
    ) -> dict[str, Any]:
        """Which way the query would take, and why."""
        try:
            task = self._task(request, min_index, unites_graphs=unites_graphs, as_of=as_of)
            return await self._columns.explain(task)
        except UnavailableError as error:
            return readers_alone(public_text(error))
        except RecursionError:
            return readers_alone("the query nests too deeply")


class ColumnStream(RunAnswer):
    """See `serve.backend.AnswerStream`. work is what there is to do, where the view has estimated it; seconds
    is what it has taken so far.
    """

    def __init__(self, run: QueryRun, answer: ColumnAnswer, held: ExitStack) -> None:
        """held ends the query, if it is not over."""
        super().__init__(run, answer.read, held)
        taken = answer.taken
        self.snapshot_index, self.where = taken.log_index, taken.where
        self.work, self.seconds = taken.work, taken.seconds
        held.callback(run.end)
