"""`ColumnClient`: the column view as seen from the port's process, over `ColumnView`'s Unix domain socket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from actors.columns.protocol import ColumnStatus, ColumnTask, Load, Message, Taken
from actors.frame_calls import FramePeer, checked
from actors.frames import encode_frame, read_frame
from graphdb.errors import UnavailableError

__all__ = ["ColumnAnswer", "ColumnClient"]

_CALL_S = 5.0
_SOON_S = 0.2  # after which a reader is asked instead


class ColumnAnswer:
    """The answer of one query. Made by `ColumnClient.ask`; whoever gets it closes it."""

    def __init__(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self.taken = Taken(0, "")  # once the view has begun
        self.is_unsuited = False  # whether a reader has to answer as long as the view is as it is
        self._incoming, self._outgoing = incoming, outgoing

    async def begin(self) -> str | None:
        """Wait for the beginning: None; or why a reader has to answer. Raises as read() does."""
        frame = await read_frame(self._incoming)
        if frame is None:
            return "the column view went away"
        if checked(frame, Message.ERROR).code in (Message.NOT_TAKEN, Message.UNSUITED):
            self.is_unsuited = frame.code == Message.UNSUITED
            return frame.body.decode()
        self.taken = Taken.decode(frame.body)
        return None

    async def read(self) -> bytes | None:
        """The next piece of the answer; None at its end, which alone says that it is whole.

        Raises EvaluationFailed, QueryTimeout, QueryMemoryExceeded, UnavailableError.
        """
        frame = await read_frame(self._incoming)
        if frame is None:
            raise UnavailableError("the column view went away in the midst of the query")
        if checked(frame, Message.ERROR).code == Message.NOT_TAKEN:
            raise UnavailableError(frame.body.decode())
        return None if frame.code == Message.END else frame.body

    def close(self) -> None:
        """If it is not finished, the query is interrupted. Twice is allowed."""
        self._outgoing.transport.abort()


class ColumnClient:
    """For one event loop. Where the view is away, whoever asks has another way."""

    def __init__(self, find_endpoint: Callable[[], Awaitable[str]]) -> None:
        """find_endpoint answers the path of the socket, or raises UnavailableError."""
        self._peer = FramePeer("the column view does", Message.ERROR, find_endpoint)

    async def ask(self, task: ColumnTask) -> ColumnAnswer:
        """Hand over a query. Raises UnavailableError, soon where the view is being started again."""
        try:
            async with asyncio.timeout(_SOON_S):
                incoming, outgoing = await self._peer.connect()
        except TimeoutError:
            raise UnavailableError("the column view is starting") from None
        outgoing.write(encode_frame(Message.QUERY, 0, task.encode()))
        return ColumnAnswer(incoming, outgoing)

    async def explain(self, task: ColumnTask) -> dict[str, Any]:
        """Which way the query would take, and why: `ColumnQuery.explained`. Raises UnavailableError."""
        frame = await self._peer.call(Message.EXPLAIN, task.encode(), _CALL_S)
        if frame.code == Message.NOT_TAKEN:
            return {"path": "reader", "reason": frame.body.decode(), "plan": None}
        document: dict[str, Any] = json.loads(frame.body)
        return document

    async def wait_wanted(self) -> None:
        """Return when the view has to be made anew of the store. Raises UnavailableError."""
        await self._peer.call(Message.FEED, b"", None)

    async def load(self, load: Load) -> None:
        """Return when the view has taken in a copy of the store, or failed to. Raises UnavailableError."""
        await self._peer.call(Message.LOAD, load.encode(), None)

    async def status(self) -> ColumnStatus:
        """Raises UnavailableError."""
        return ColumnStatus.decode((await self._peer.call(Message.STATUS, b"", _CALL_S)).body)
