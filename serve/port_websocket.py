"""`PortWebSocket`: a WebSocket as uvicorn speaks it, and many small messages to it at once.

An application that finds `FRAMES` among the extensions of its scope may send
`{"type": FRAMES, "frames": bytes}`, whole frames that `text_frame` has made, and `{"type": ABORT}`, which
ends the connection although its reader takes nothing.
"""

from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

__all__ = ["ABORT", "FRAMES", "MESSAGE_BYTES_MAX", "PortWebSocket", "text_frame"]

FRAMES, ABORT = "graphdb.frames", "graphdb.abort"
MESSAGE_BYTES_MAX = 1 << 20  # that a client may send
_TEXT = 0x81  # a text message in one frame, as a server sends it: without a mask


def text_frame(payload_bytes: int) -> bytes:
    """What stands in front of a text message of that length (RFC 6455, 5.2)."""
    if payload_bytes < 126:
        return bytes((_TEXT, payload_bytes))
    if payload_bytes < 1 << 16:
        return bytes((_TEXT, 126)) + payload_bytes.to_bytes(2, "big")
    return bytes((_TEXT, 127)) + payload_bytes.to_bytes(8, "big")


class PortWebSocket(WebSocketsSansIOProtocol):
    """One connection."""

    def handle_connect(self, event: Request) -> None:
        """A handshake; the application is told of it in a task that runs later."""
        super().handle_connect(event)
        if self.handshake_initiated and not self.close_sent:
            self.scope["extensions"] = {**(self.scope.get("extensions") or {}), FRAMES: {}}

    async def send(self, message: Any) -> None:
        """See the head of this file."""
        if message["type"] == ABORT:
            self.transport.abort()
        elif message["type"] == FRAMES:
            await self.writable.wait()
            if self.disconnected or self.close_sent:
                raise ClientDisconnected
            self.transport.write(message["frames"])
        else:
            await super().send(message)
