"""`LiveOutbox`: what waits to be sent on one WebSocket, within a bound."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
from starlette.types import Scope, Send

from graphdb.live.notifications import Notification
from serve.port_websocket import FRAMES, text_frame

__all__ = ["LiveOutbox"]

_AT_ONCE_BYTES = 262_144


class LiveOutbox:
    """For one event loop. Whoever puts something in never waits: where the bound is passed, the connection
    is cut, for its reader has missed nothing yet and can resume.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._frames: list[bytes] = []
        self._bytes = 0
        self._filled = asyncio.Event()
        self.overflowed = asyncio.Event()  # nothing more is taken, and the connection is to be cut

    def put_reply(self, request_id: Any, result: Any, **members: Any) -> None:
        """The answer to a request."""
        self._put(orjson.dumps({"id": request_id, "result": result, **members}))

    def put_error(self, request_id: Any, code: str, message: str) -> None:
        """The answer to a request that failed, or the end of the subscription with this id."""
        self._put(orjson.dumps({"id": request_id, "error": {"code": code, "message": message}}))

    def put_notification(self, subscriptions: Sequence[str], notification: Notification) -> None:
        """The same for each of these; ids are all of one length."""
        tail = notification.tail
        head = text_frame(len(b'{"id":"",') + len(subscriptions[0]) + len(tail)) + b'{"id":"'
        tail = b'",' + tail
        self._add(b"".join([part for one in subscriptions for part in (head, one.encode(), tail)]))

    def _put(self, payload: bytes) -> None:
        self._add(text_frame(len(payload)) + payload)

    def _add(self, frames: bytes) -> None:
        if self.overflowed.is_set():
            return
        self._frames.append(frames)
        self._bytes += len(frames)
        self._filled.set()
        if self._bytes > self._bytes_max:
            self._frames.clear()
            self.overflowed.set()

    async def run(self, scope: Scope, send: Send) -> None:
        """Send what comes, for ever. Raises what sending raises when the connection has ended."""
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
