"""`PortProtocol`: HTTP/1.1 as uvicorn speaks it, its own refusals in the shape of every other error."""

import asyncio
from typing import cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from serve.errors import error_response

__all__ = ["PortProtocol"]

_FRAMING = (b"content-length", b"transfer-encoding")


class _Body:
    """What a parser calls for the body of a request, and nothing of what comes before it."""

    def __init__(self, protocol: "PortProtocol") -> None:
        self.on_body = protocol.on_body
        self.on_message_complete = protocol.on_message_complete


class PortProtocol(HttpToolsProtocol):
    """One connection. What is no HTTP, or ends before it is whole, is answered with 400 and closed.

    A request to upgrade (Java's client sends one with each first request) is answered as if it were none,
    unless it begins a WebSocket and the port speaks that.
    """

    _leaves = False

    def leave(self) -> None:
        """The next answer that begins shall be the last on this connection, and say so."""
        self._leaves = True
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def on_headers_complete(self) -> None:
        """A request begins; what answers it is a task that runs later."""
        super().on_headers_complete()
        if self._leaves and self.cycle is not None:
            self.cycle.keep_alive = False

    def data_received(self, data: bytes) -> None:
        """What the connection has brought."""
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self._become_websocket(data[upgrade.args[0] :])
            else:
                self._read_body_after_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")

    def _should_upgrade(self) -> bool:
        """Whether this is the beginning of a WebSocket (RFC 6455, 4.1), which has no body."""
        has_key = any(name == b"sec-websocket-key" for name, _ in self.headers)
        return has_key and self.parser.get_method() == b"GET" and bool(super()._should_upgrade())

    def _become_websocket(self, rest: bytes) -> None:
        self.handle_websocket_upgrade()
        if rest:
            cast(asyncio.Protocol, self.transport.get_protocol()).data_received(rest)

    def on_message_complete(self) -> None:
        """Called too where an upgrade is asked for, before the body: then there is more to come."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _read_body_after_upgrade(self, rest: bytes) -> None:
        """The parser takes what follows for another protocol; we speak none, so it is the request's body.

        A parser of bodies alone reads it, and the connection closes behind the answer.
        """
        self.cycle.keep_alive = False
        framing = (header for header in self.headers if header[0] in _FRAMING)
        head = b"POST / HTTP/1.1\r\n" + b"".join(b"%s: %s\r\n" % header for header in framing) + b"\r\n"
        self.parser = httptools.HttpRequestParser(_Body(self))
        self.data_received(head + rest)

    def send_400_response(self, msg: str) -> None:
        """Refuse and close; called where the bytes of a request are malformed.

        An application that has `malformed(message)` says so in its own shape.
        """
        malformed = getattr(self.app, "malformed", None)
        answer = error_response(400, msg) if malformed is None else malformed(msg)
        answer.headers["Connection"] = "close"
        head = b"".join(b"%s: %s\r\n" % header for header in answer.raw_headers)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + bytes(answer.body))
        self.transport.close()

    def eof_received(self) -> None:
        """The client sends no more, but may still listen: tell it if the body was not whole."""
        cycle = self.cycle
        if cycle is not None and cycle.more_body and not cycle.response_started:
            cycle.disconnected = True  # the application hears that the client has gone, and stores nothing
            cycle.message_event.set()
            self.send_400_response("the request body is cut short")
