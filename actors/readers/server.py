"""The Unix domain socket that a `StoreReader` listens on: a connection for each query."""

import asyncio
import contextlib
import logging
import os
from dataclasses import replace
from typing import cast

from actors.egress.service_forwarder import ServiceCalls, ServiceForwarder
from actors.error_codec import decode_error, encode_error
from actors.frames import Frame, FrameReader, encode_frame
from actors.private_socket import private_directory
from actors.readers.evaluator_pool import EvaluatorPool
from actors.readers.evaluator_process import EvaluatorEnded, EvaluatorProcess
from actors.readers.protocol import FunctionTask, LeaseRequest, Message, ReaderTask, Task, ValidationTask
from graphdb.errors import GraphDBError, QueryTimeout

__all__ = ["ReaderServer"]

logger = logging.getLogger(__name__)
_OUTGOING_BYTES = 128 << 10  # of an answer that wait here for a slow client; then its evaluator waits


class ReaderServer:
    """Serves a pool of evaluators, on the event loop that the pool lives on.

    Only the same user can reach the socket: its directory has mode 0700.
    """

    def __init__(
        self,
        pool: EvaluatorPool,
        forwarder: ServiceForwarder,
        data_directory: str,
        socket_directory: str | None,
    ) -> None:
        self.path = os.path.join(socket_directory or private_directory(data_directory), "readers.sock")
        self._pool = pool
        self._forwarder = forwarder
        self._connections: set[_Connection] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Listen."""
        with contextlib.suppress(FileNotFoundError):  # left by a process that was killed
            os.unlink(self.path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(
            lambda: _Connection(self._pool, self._forwarder, self._connections), self.path
        )

    async def close(self) -> None:
        """Stop listening and end the connections, and with them the queries."""
        assert self._server is not None
        self._server.close()
        ending = tuple(self._connections)
        for connection in ending:
            connection.abort()
        await asyncio.gather(*(connection.ended.wait() for connection in ending))
        os.unlink(self.path)


class _Connection(asyncio.Protocol):
    """One request of a client, a query mostly. That the client goes away ends it."""

    def __init__(
        self, pool: EvaluatorPool, forwarder: ServiceForwarder, connections: "set[_Connection]"
    ) -> None:
        self._pool = pool
        self._forwarder = forwarder
        self._connections = connections
        self._reader = FrameReader()
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()
        self._writable = asyncio.Event()
        self._writable.set()
        self._has_sent_data = False
        self.ended = asyncio.Event()  # its evaluator is given back

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_OUTGOING_BYTES)
        self._connections.add(self)
        self._task = asyncio.create_task(self._serve())

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._task.cancel()
        self._task.add_done_callback(lambda _: self.ended.set())

    def data_received(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            self._frames.put_nowait(frame)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def abort(self) -> None:
        self._transport.abort()

    async def _serve(self) -> None:
        try:
            await self._perform(await self._frames.get())
        except GraphDBError as error:
            self._send(Message.ERROR, encode_error(error))
        except Exception as error:
            logger.exception("a request to the readers failed")
            self._send(Message.ERROR, encode_error(error))
        finally:
            self._transport.close()  # once all is sent

    async def _perform(self, frame: Frame) -> None:
        match frame.code:
            case Message.RELEASE:
                await self._pool.release_checkpoint(frame.body.decode())
                self._send(Message.END)
            case Message.STATUS:
                self._send(Message.STATUS, self._pool.status().encode())
            case _:
                await self._answer_in_time(LeaseRequest.decode(frame.body))

    async def _answer_in_time(self, request: LeaseRequest) -> None:
        """What waits to be sent at the end of the time is sent still, for as long as the client takes it."""
        try:
            async with asyncio.timeout(request.timeout_s - request.spent_s):
                last = await self._answer(request.query_id)
        except TimeoutError:
            raise QueryTimeout(f"the query took longer than {round(request.timeout_s, 2):g} s") from None
        self._send(Message(last.code), last.body)

    async def _answer(self, query_id: str) -> Frame:
        """All of the answer but its last frame: when that is sent, the evaluator is free already.

        A query whose evaluator was killed from outside before the client got anything is tried once more;
        and as often as it takes where the evaluator was killed before it had begun.
        """
        task, attempts = None, 0
        while True:
            async with self._pool.leased(query_id, again=task is not None) as evaluator:
                if task is None:
                    self._send(Message.GRANTED, evaluator.where.encode())
                    task = _task(await self._frames.get())
                try:
                    return await self._relay(evaluator, task)
                except EvaluatorEnded as ended:
                    attempts += ended.had_begun
                    if attempts == 2 or self._has_sent_data or not ended.by_kill:
                        raise ended.failure from None

    async def _relay(self, evaluator: EvaluatorProcess, task: Task) -> Frame:
        """Raises EvaluatorEnded."""
        services = task.services if isinstance(task, ReaderTask) else {}
        with self._forwarder.open(services) as calls:
            if isinstance(task, ReaderTask):
                task = replace(task, text=calls.text_for_engine(task.text), services={})
            evaluator.evaluate(task)
            while (frame := await evaluator.next_frame()).code == Message.DATA:
                await self._writable.wait()
                self._has_sent_data = True
                self._send(Message.DATA, frame.body)
            return _last_frame(frame, calls)

    def _send(self, message: Message, body: bytes = b"") -> None:
        if not self._transport.is_closing():  # the client has gone; connection_lost() comes soon
            self._transport.write(encode_frame(message, 0, body))


def _task(frame: Frame) -> Task:
    match frame.code:
        case Message.VALIDATE:
            return ValidationTask.decode(frame.body)
        case Message.CALL:
            return FunctionTask.decode(frame.body)
    return ReaderTask.decode(frame.body)


def _last_frame(frame: Frame, calls: ServiceCalls) -> Frame:
    """How an answer ends, in the light of what became of its SERVICE calls."""
    if frame.code == Message.ERROR:
        return Frame(Message.ERROR, 0, encode_error(calls.explained(decode_error(frame.body))))
    if calls.failure is not None:
        return Frame(Message.ERROR, 0, encode_error(calls.failure))
    return frame
