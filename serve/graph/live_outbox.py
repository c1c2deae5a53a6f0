"""`LiveOutbox`: the messages that wait to be sent on one WebSocket, within a limit."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.types import Scope, Send

from graphdb.live.notifications import Notification
from serve.port.websocket import ABORT, FRAMES, text_frame

__all__ = ["LiveOutbox", "SocketCounts", "converse"]

logger = logging.getLogger(__name__)

_AT_ONCE_BYTES = 262_144
_REASON_BYTES_MAX = 120  # RFC 6455, 5.5.1 allows 123


class LiveOutbox:
    """Used on one event loop. Adding a message never waits. If the limit is exceeded, the connection is cut:
    its client has missed nothing so far, and can resume.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._frames: list[bytes] = []
        self._bytes = 0
        self._filled = asyncio.Event()
        self._close: tuple[int, str] | None = None  # after the waiting messages
        self.overflowed = asyncio.Event()  # nothing more is accepted, and the connection has to be cut

    def put_reply(self, request_id: Any, result: Any, **members: Any) -> None:
        """Add the answer to a request."""
        self.put(orjson.dumps({"id": request_id, "result": result, **members}))

    def put_error(self, request_id: Any, code: str, message: str) -> None:
        """Add the error of a request, or of the subscription with this id, which has ended."""
        self.put(orjson.dumps({"id": request_id, "error": {"code": code, "message": message}}))

    def put_notification(self, subscriptions: Sequence[str], notification: Notification) -> None:
        """Add one notification for each of these subscriptions, whose ids have the same length."""
        tail = notification.tail
        head = text_frame(len(b'{"id":"",') + len(subscriptions[0]) + len(tail)) + b'{"id":"'
        tail = b'",' + tail
        self._add(b"".join([part for one in subscriptions for part in (head, one.encode(), tail)]))

    def put(self, payload: bytes) -> None:
        """Add a message."""
        self._add(text_frame(len(payload)) + payload)

    def put_close(self, code: int, reason: str) -> None:
        """Close the connection after the waiting messages, and accept nothing more."""
        if self._close is None:
            self._close = code, reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore")
            self._filled.set()

    def _add(self, frames: bytes) -> None:
        if self.overflowed.is_set() or self._close is not None:
            return
        self._frames.append(frames)
        self._bytes += len(frames)
        self._filled.set()
        if self._bytes > self._bytes_max:
            self._frames.clear()
            self.overflowed.set()

    async def run(self, scope: Scope, send: Send) -> None:
        """Send messages until the connection has to be closed.

        Raises what `send` raises when the connection has ended.
        """
        assert FRAMES in scope["extensions"], "the server of this port frames messages"
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._frames:
                taken, size = 0, 0
                while taken < len(self._frames) and size < _AT_ONCE_BYTES:
                    size += len(self._frames[taken])
                    taken += 1
                frames = b"".join(self._frames[:taken])
                del self._frames[:taken]
                await send({"type": FRAMES, "frames": frames})
                self._bytes -= size
            if self._close is not None:
                code, reason = self._close
                return await send({"type": "websocket.close", "code": code, "reason": reason})


@dataclass(slots=True)
class SocketCounts:
    """Counters of the WebSockets of live queries and subscriptions."""

    open: int = 0
    cut_off: int = 0  # cut since the start because the client read too slowly


async def converse(
    outbox: LiveOutbox, counts: SocketCounts, scope: Scope, send: Send, *parts: Coroutine[Any, Any, None]
) -> None:
    """Send the messages of the outbox while all parts run; when one of them ends, cancel the others."""
    tasks = [
        asyncio.create_task(one) for one in (outbox.run(scope, send), _wait_for(outbox.overflowed), *parts)
    ]
    counts.open += 1
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if outbox.overflowed.is_set():
            counts.cut_off += 1
            logger.info("a WebSocket that reads too slowly is cut off")
            await send({"type": ABORT})
    finally:
        counts.open -= 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()
