"""`ColumnClient`: the column view as seen from the port's process, over `ColumnView`'s Unix domain socket."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from actors.columns.protocol import (
    COLUMN_MESSAGES,
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
from actors.wire.client import WireClient
from actors.wire.connection import Stream
from actors.wire.messages import Done, Piece, expect
from graphdb.errors import UnavailableError

__all__ = ["ColumnAnswer", "ColumnClient"]

_CALL_S = 5.0
_SOON_S = 0.2  # after which a reader is asked instead


class ColumnAnswer:
    """The answer of one query. Made by `ColumnClient.ask`; whoever gets it closes it."""

    def __init__(self, stream: Stream) -> None:
        self.taken = Taken(0, "")  # once the view has begun
        self.is_unsuited = False  # whether a reader has to answer as long as the view is as it is
        self._stream = stream

    async def begin(self) -> str | None:
        """Wait for the beginning: None; or why a reader has to answer. Raises as read() does."""
        message = await self._stream.read()
        if message is None:
            return "the column view went away"
        if isinstance(message, NotTaken):
            self.is_unsuited = message.is_unsuited
            return message.reason
        self.taken = expect(Taken, message)
        return None

    async def read(self) -> bytes | None:
        """The next piece of the answer; None at its end, which alone says that it is whole.

        Raises EvaluationFailed, QueryTimeout, QueryMemoryExceeded, UnavailableError.
        """
        message = await self._stream.read()
        if message is None:
            raise UnavailableError("the column view went away in the midst of the query")
        if isinstance(message, NotTaken):
            raise UnavailableError(message.reason)
        return None if isinstance(message, Done) else expect(Piece, message).data

    def close(self) -> None:
        """If it is not finished, the query is interrupted. Twice is allowed."""
        self._stream.close()


class ColumnClient:
    """For one event loop. Where the view is away, whoever asks has another way."""

    def __init__(self, find_endpoint: Callable[[], Awaitable[str]]) -> None:
        """find_endpoint answers the path of the socket, or raises UnavailableError."""
        self._wire = WireClient(COLUMN_MESSAGES, "the column view does", find_endpoint)

    async def ask(self, task: ColumnTask) -> ColumnAnswer:
        """Hand over a query. Raises UnavailableError, soon where the view is being started again."""
        try:
            async with asyncio.timeout(_SOON_S):
                stream = await self._wire.open()
        except TimeoutError:
            raise UnavailableError("the column view is starting") from None
        stream.send(task)
        return ColumnAnswer(stream)

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
