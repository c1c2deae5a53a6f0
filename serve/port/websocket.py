"""`PortWebSocket`: uvicorn's WebSocket, with many small messages sent at once.

An application that finds `FRAMES` among the extensions of its scope may send
`{"type": FRAMES, "frames": bytes}`, whole frames that `text_frame` has made, and `{"type": ABORT}`, which
ends the connection although its reader takes nothing.
"""

import urllib.parse
from typing import Any

import httptools
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from serve.port.watch import PortWatch

__all__ = [
    "ABORT",
    "FRAMES",
    "HANDSHAKE_LINE_BYTES_MAX",
    "MESSAGE_BYTES_MAX",
    "PortWebSocket",
    "concerns_handshake",
    "text_frame",
]

FRAMES, ABORT = "graphdb.frames", "graphdb.abort"
MESSAGE_BYTES_MAX = 1 << 20  # largest message of a client
HANDSHAKE_LINE_BYTES_MAX = 8_000  # of a header that the library parses; its own limit is 8,192
_CLOSING_S = 30.0  # how long a client may take to read the last messages
_HANDSHAKE = frozenset({b"host", b"connection", b"upgrade", b"origin"})
_TEXT = 0x81  # a text message in one frame, as a server sends it: without a mask


def text_frame(payload_bytes: int) -> bytes:
    """The frame header of a text message of this length (RFC 6455, 5.2)."""
    if payload_bytes < 126:
        return bytes((_TEXT, payload_bytes))
    if payload_bytes < 1 << 16:
        return bytes((_TEXT, 126)) + payload_bytes.to_bytes(2, "big")
    return bytes((_TEXT, 127)) + payload_bytes.to_bytes(8, "big")


def concerns_handshake(name: bytes) -> bool:
    """Whether the library reads this header."""
    return name in _HANDSHAKE or name.startswith(b"sec-websocket-")


class PortWebSocket(WebSocketsSansIOProtocol):
    """One connection, whose handshake `PortProtocol` has read."""

    watch: PortWatch
    look_at = 0.0  # see `PortWatch`
    _target: bytes
    _headers: list[tuple[bytes, bytes]]
    _was_closing = False

    def begin(self, target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        """Shake hands. The library is given what concerns it and nothing else: it has limits of its own,
        beyond which it does not answer.
        """
        self._target, self._headers = target, headers
        lines = [b"%s: %s\r\n" % header for header in headers if concerns_handshake(header[0])]
        self.data_received(b"GET / HTTP/1.1\r\n" + b"".join(lines) + b"\r\n")

    def handle_connect(self, event: Request) -> None:
        """A handshake. The task that runs the application for it starts later."""
        super().handle_connect(event)
        if self.handshake_initiated and not self.close_sent:
            url = httptools.parse_url(self._target)
            self.scope["path"] = self.root_path + urllib.parse.unquote(url.path.decode("ascii"))
            self.scope["raw_path"] = self.root_path.encode("ascii") + url.path
            self.scope["query_string"] = url.query or b""
            self.scope["headers"] = self._headers
            self.scope["extensions"] = {**(self.scope.get("extensions") or {}), FRAMES: {}}

    def handle_ping(self) -> None:
        """Answer a ping, unless the client does not read, or the handshake is not complete."""
        output = self.conn.data_to_send()
        if self.handshake_complete and self.writable.is_set():
            self.transport.write(b"".join(output))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self.watch.leave(self)
        super().connection_lost(exc)

    def look(self) -> None:
        """See `PortWatch`. Pings detect clients that have gone; a client that reads nothing is cut off."""
        if self._was_closing:
            self.transport.abort()
        self._was_closing = self.transport.is_closing()
        self.look_at = self.watch.now + _CLOSING_S

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
