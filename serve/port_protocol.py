"""`PortProtocol`: HTTP/1.1 as uvicorn speaks it, its own refusals in the shape of every other error."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from serve.errors import error_response

__all__ = ["PortProtocol"]


class PortProtocol(HttpToolsProtocol):
    """One connection. What is no HTTP, or ends before it is whole, is answered with 400 and closed."""

    def send_400_response(self, msg: str) -> None:
        """Refuse and close; called where the bytes of a request are malformed."""
        answer = error_response(400, msg, {"Connection": "close"})
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
