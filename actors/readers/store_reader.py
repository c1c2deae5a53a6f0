"""`StoreReader`: runs queries and validations in processes that can be killed. `ReaderServer`: its Unix
domain socket.

It is reached over a Unix domain socket (`ReaderClient`). One thread runs its event loop: the socket, the
queue, deadlines, memory, kills. It never evaluates anything itself, so it always answers.
"""

import asyncio
import os
from dataclasses import replace

from actors.egress.service_forwarder import ServiceForwarder, service_fetch
from actors.loop_thread import LoopThread
from actors.readers.evaluator_pool import EvaluatorEnded, EvaluatorPool, EvaluatorProcess
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
from actors.wire.server import Call, WireServer, private_directory
from graphdb.config import Settings
from graphdb.errors import GraphDBError, QueryTimeout

__all__ = ["StoreReader", "reader_server"]


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


class StoreReader:
    """The readers as a service. Methods block until done and may be called on any thread.

    Every query ends, by its answer, an error, its deadline, the memory limit or its client's leaving, and
    with it whatever it took: an evaluator that does not finish is killed and replaced. The evaluators end
    with this object, and with its process however that ends.
    """

    def __init__(self, settings: Settings, *, socket_directory: str | None = None) -> None:
        """Start the evaluators and begin to listen.

        socket_directory is for tests; by default a private one is made under the system's directory for
        temporary files.
        """
        self._pool = EvaluatorPool(settings.readers)
        self._forwarder = ServiceForwarder(
            service_fetch(settings.security), settings.server.query_timeout_seconds
        )
        self._server = reader_server(
            self._pool, self._forwarder, str(settings.server.data_dir), socket_directory
        )
        self._thread = LoopThread("readers")
        self._thread.run(self._start())

    def endpoint(self) -> str:
        """The path of the socket, for `ReaderClient`."""
        return self._server.path

    def close(self) -> None:
        """End what runs, stop listening, end the evaluators."""
        self._thread.run(self._close())
        self._thread.close()

    async def _start(self) -> None:
        self._pool.start()
        await self._forwarder.start()
        await self._server.start()

    async def _close(self) -> None:
        await self._server.close()
        await self._forwarder.close()
        await self._pool.close()
