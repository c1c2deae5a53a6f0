"""The Unix domain socket that a `StoreReader` listens on: a connection for each query."""

import asyncio
import os
from dataclasses import replace

from actors.egress.service_forwarder import ServiceForwarder
from actors.readers.evaluator_pool import EvaluatorPool
from actors.readers.evaluator_process import EvaluatorEnded, EvaluatorProcess
from actors.readers.protocol import (
    READER_MESSAGES,
    AskStatus,
    Granted,
    LeaseRequest,
    ReaderTask,
    ReleaseCheckpoint,
    Task,
)
from actors.wire.messages import Done, Piece, expect
from actors.wire.private_socket import private_directory
from actors.wire.server import Call, WireServer
from graphdb.errors import GraphDBError, QueryTimeout

__all__ = ["reader_server"]


def reader_server(
    pool: EvaluatorPool, forwarder: ServiceForwarder, data_directory: str, socket_directory: str | None
) -> WireServer:
    """Serves a pool of evaluators, on the event loop that the pool lives on."""
    path = os.path.join(socket_directory or private_directory(data_directory), "readers.sock")
    return WireServer(
        READER_MESSAGES, "the readers", path, lambda call: call.run(_Request(pool, forwarder, call).perform())
    )


class _Request:
    """One request of a client, a query mostly. That the client goes away ends it."""

    def __init__(self, pool: EvaluatorPool, forwarder: ServiceForwarder, call: Call) -> None:
        self._pool, self._forwarder, self._call = pool, forwarder, call
        self._has_sent_data = False

    async def perform(self) -> None:
        """See to the answer, or raise it."""
        match self._call.request:
            case ReleaseCheckpoint(path):
                await self._pool.release_checkpoint(path)
                self._call.answer(Done())
            case AskStatus():
                self._call.answer(self._pool.status())
            case request:
                await self._answer_in_time(expect(LeaseRequest, request))

    async def _answer_in_time(self, request: LeaseRequest) -> None:
        """What waits to be sent at the end of the time is sent still, for as long as the client takes it."""
        try:
            async with asyncio.timeout(request.timeout_s - request.spent_s):
                await self._answer(request.query_id)
        except TimeoutError:
            raise QueryTimeout(f"the query took longer than {round(request.timeout_s, 2):g} s") from None
        self._call.answer(Done())

    async def _answer(self, query_id: str) -> None:
        """All of the answer but its last message: when that is sent, the evaluator is free already.

        A query whose evaluator was killed from outside before the client got anything is tried once more;
        and as often as it takes where the evaluator was killed before it had begun.
        """
        task: Task | None = None
        attempts = 0
        while True:
            async with self._pool.leased(query_id, again=task is not None) as evaluator:
                if task is None:
                    await self._call.send(Granted(evaluator.where))
                    task = await self._call.receive()
                try:
                    return await self._relay(evaluator, task)
                except EvaluatorEnded as ended:
                    attempts += ended.had_begun
                    if attempts == 2 or self._has_sent_data or not ended.by_kill:
                        raise ended.failure from None

    async def _relay(self, evaluator: EvaluatorProcess, task: Task) -> None:
        """Raises EvaluatorEnded, and how else the answer ends, in the light of what became of its SERVICE
        calls.
        """
        services = task.services if isinstance(task, ReaderTask) else {}
        with self._forwarder.open(services) as calls:
            if isinstance(task, ReaderTask):
                task = replace(task, text=calls.text_for_engine(task.text), services={})
            evaluator.evaluate(task)
            try:
                while isinstance(message := await evaluator.next_message(), Piece):
                    await self._call.send(message)
                    self._has_sent_data = True
            except GraphDBError as error:
                raise calls.explained(error) from None
            if calls.failure is not None:
                raise calls.failure
