"""`BoundedProtocol`: uvicorn's HTTP/1.1 with limits on input. Refusals have the format of all errors."""

import contextlib
import fcntl
import termios
from array import array
from collections.abc import Iterable
from typing import Any

import httptools
from starlette.responses import Response
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from graphdb.config.service import Server
from serve.errors import unread_response
from serve.port.connection_parts import BodyOnly, Flow, LentTransport
from serve.port.request_heads import CHECKED, FRAMING, Refused, check_head, check_header, origin_form
from serve.port.watch import NEVER, PortWatch

__all__ = ["BoundedProtocol", "head_of", "lines_of"]

_NO_HTTP = "Invalid HTTP request received."
_LINGER_S = 5.0  # how long input is read after the last answer, so that the client can read the answer
_CLOSING_S = 10.0  # how long a client may take to read the end of an answer
_PIPELINED_MAX = 100  # requests that wait after the one being answered
_FRAMING_BYTES = 65_536  # framing of a chunked body: at most this ...
_FRAMING_FACTOR = 8  # ... plus this times the content; a chunk of one byte has five bytes of framing
_SPACES_BYTES = 1_024  # of a head that do not belong to its fields


def head_of(answer: Response, common: bytes) -> bytes:
    """Of an answer in HTTP/1.1, with its empty line. common: the lines that all answers have."""
    return b"%s%s%s\r\n" % (STATUS_LINE[answer.status_code], common, lines_of(answer.raw_headers))


def lines_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Headers as they are sent."""
    return b"".join([b"%s: %s\r\n" % header for header in headers])


class _Enough(Exception):
    """Too many pipelined requests: the rest is not read."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Input that is invalid, truncated, too large or too slow is answered, and the connection
    closed.

    The head of a request is limited while it is read, so its memory is limited too. `PortWatch` measures the
    duration of each part of a request and of its answer, and calls `look` when one takes too long.

    A request to upgrade (Java's client sends one with each first request) is answered as a normal request.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: Any = None,
        *,
        watch: PortWatch | None = None,
    ) -> None:
        """watch: of the port; without one the connection has its own, with the default limits."""
        super().__init__(config, server_state, app_state, _loop)
        self._watch = watch or PortWatch(Server())
        limits = self._watch.server
        self._uri_max, self._header_bytes_max = limits.max_uri_bytes, limits.max_header_bytes
        self._headers_max = limits.max_headers
        self._unread_max = self._header_bytes_max + _SPACES_BYTES  # and the address
        self._raw: Any = None  # the connection's transport
        self.url = b""
        self.look_at = NEVER  # see `PortWatch`
        self.has_ended = False  # nothing more is written
        self._leaves = False  # the next answer is the last
        self._is_deaf = False  # further input is discarded
        self._refusal: Response | None = None  # to be written after the answers that are due
        # the request that is being answered
        self._answered: RequestResponseCycle | None = None
        self._common: list[tuple[bytes, bytes]] | None = None  # headers of every answer
        self._common_lines = b""
        self._in_head = self._in_body = False
        self._fed = 0  # bytes since the head began, or since the last content of a body
        self._header_bytes_left = 0
        # Bytes of a body: as sent; without the framing of chunks; and the latter at the start of the present
        # timeout.
        self._framed = self._content = self._content_before = 0
        self._unsent, self._unsent_at = 0, 0.0  # bytes that wait to be sent, and when they were counted

    # The connection

    def connection_made(self, transport: Any) -> None:
        """The connection is open; with TLS, after the handshake."""
        super().connection_made(transport)
        self._raw = transport
        self.flow = flow = Flow(self, transport)
        self.transport = lent = LentTransport(self, transport)  # type: ignore[assignment]
        self._let_go = (flow.let_go, lent.let_go)
        self.look_at = self._watch.now + self._watch.head_s
        if not self._watch.enter(self, self.client[0] if self.client else None):
            self._turn_away()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed. Requests are given up."""
        self.has_ended = self._is_deaf = True
        self._watch.leave(self)
        self._give_up(self._answered)
        self.pipeline.clear()
        super().connection_lost(exc)
        for let_go in self._let_go:
            let_go()

    def _turn_away(self) -> None:
        self._is_deaf = True
        if not self._watch.refuse(self):
            self._raw.abort()
            return
        answer = self._shaped(503, "too many connections are open (server.max_connections)")
        answer.headers["Retry-After"] = "1"
        self._write(answer)

    def leave(self) -> None:
        """Make the next answer the last on this connection, with `Connection: close`."""
        self._leaves = True
        if self.cycle is not None and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """The port stops: close an idle connection, and others after their answer."""
        self._hand_over()
        if self.has_ended or self._is_idle():
            self._raw.close()
        else:
            self.cycle.keep_alive = False

    def end(self) -> None:
        """Close the connection after the bytes that were written.

        If the client may still be sending, input is read for a while: an immediate close would reset the
        connection, and the client might lose its answer (RFC 9112, section 9.6).
        """
        if self.has_ended:
            return
        self.has_ended = True
        if not (self._is_deaf or self._in_head or self._in_body or self.flow.read_paused):
            self.look_at = self._watch.now + _CLOSING_S
            self._raw.close()
            return
        self._is_deaf = True
        self.pipeline.clear()
        self.flow.resume_reading()
        self.look_at = self._watch.now + _LINGER_S
        if self._raw.can_write_eof() and not self._raw.is_closing():
            self._raw.write_eof()

    # What comes in

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._is_deaf:
            return
        self._fed += len(data)
        self._framed += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError as error:
            self._refuse_unparsed(error)
            return
        if self._fed > self._unread_max + len(self.url) or (
            self._in_body and self._framed > _FRAMING_BYTES + _FRAMING_FACTOR * self._content
        ):
            self._refuse_unfinished()

    def _refuse_unparsed(self, error: httptools.HttpParserError) -> None:
        """error: the parser's own, or the one whose context was raised in our callbacks."""
        found = error.__context__
        if isinstance(found, _Enough):
            self._is_deaf = True
            self.cycle.keep_alive = False  # of the last request that is answered
        elif isinstance(found, Refused):
            self._refuse(found.status, found.message)
        elif str(error) == "Invalid HTTP version":
            self._refuse(505, "HTTP/1.1 and HTTP/1.0 are spoken here")
        else:
            self._refuse(400, _NO_HTTP)

    def _refuse_unfinished(self) -> None:
        if self._in_body:
            self._refuse(400, "the body has too much between its chunks, or behind them")
        else:
            self._refuse(431, self._too_large())

    def _too_large(self) -> str:
        return f"the headers are over {self._header_bytes_max} bytes (server.max_header_bytes)"

    # The head

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        if len(self.pipeline) >= _PIPELINED_MAX:
            raise _Enough
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._in_head = True
        self._header_bytes_left = self._header_bytes_max
        self.look_at = self._watch.now + self._watch.head_s

    def on_url(self, url: bytes) -> None:
        """A piece of the request target."""
        self.url += url
        if len(self.url) > self._uri_max:
            bound = f"{self._uri_max} bytes (server.max_uri_bytes)"
            raise Refused(414, f"the address is over {bound}: send a long query by POST")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header line. Trailers of a chunked body are discarded (RFC 9112, section 7.1.2)."""
        self._header_bytes_left -= len(name) + len(value) + 4
        if self._header_bytes_left < 0:
            raise Refused(431, self._too_large())
        if self._in_body:
            return
        if len(self.headers) >= self._headers_max:
            raise Refused(431, f"there are more than {self._headers_max} headers (server.max_headers)")
        name = name.lower()
        self.headers.append((name, value))
        if name in CHECKED:
            check_header(name, value)
        elif name == b"expect":
            self.expect_100_continue = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        """The head is complete. The task that answers it runs later."""
        check_head(self.parser.get_http_version(), self.headers)
        self.url = origin_form(self.parser.get_method(), self.url, self.headers)
        self._in_head = False
        self._fed = self._framed = self._content = self._content_before = 0
        self._take_head()
        self._in_body = True
        self._header_bytes_left = self._header_bytes_max  # for trailers
        self.look_at = self._watch.now + self._watch.body_s

    def _take_head(self) -> None:
        """See to an answer to the request whose head is complete, or wait for its body."""
        self._begin()

    def _begin(self) -> None:
        """Have the application answer the request, or let it wait for those before it."""
        head = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()  # which makes the scope
        self.url, self.headers, self.expect_100_continue = head
        self.scope["headers"] = self.headers
        super().on_headers_complete()
        if self._leaves and self.cycle is not None:
            self.cycle.keep_alive = False

    def _hand_over(self) -> None:
        """Have the application answer a request that was to be answered without it, if one was."""

    # The body

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._count_content(body)
        super().on_body(body)

    def _count_content(self, body: bytes) -> None:
        self._fed = 0
        self._content += len(body)

    def on_message_complete(self) -> None:
        """The request is complete. With a request to upgrade it is also called before the body."""
        if self.parser.should_upgrade():
            return
        self._in_body = False
        self._fed = 0
        if self._take_whole():
            return
        if self.cycle.response_complete:
            self.look_at = self._watch.now + self._watch.idle_s
        else:
            self._await_answer()
        super().on_message_complete()

    def _take_whole(self) -> bool:
        """Whether the request that is complete is seen to, without the application."""
        return False

    def on_last_message_complete(self) -> None:
        """The same, and further input is not read."""
        self.on_message_complete()
        self._is_deaf = True

    def _await_answer(self) -> None:
        """The client only has to read its answer."""
        self.look_at = self._unsent_at + self._watch.write_s if self.flow.write_paused else NEVER

    def note_resumed(self) -> None:
        """Reading was paused by us, so the client's timeout begins now."""
        self._content_before = self._content
        if self._in_head or self._in_body:
            watch = self._watch
            self.look_at = watch.now + (watch.head_s if self._in_head else watch.body_s)

    # Other protocols

    def _upgrade(self, rest: bytes) -> None:
        """The parser expects another protocol after the head; rest: what follows the head."""
        self._read_body_after_upgrade(rest)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _read_body_after_upgrade(self, rest: bytes) -> None:
        """Here the body of the request follows the head.

        A second parser reads the body, and the connection is closed after the answer.
        """
        self.cycle.keep_alive = False
        framing = (header for header in self.headers if header[0] in FRAMING)
        head = b"POST / HTTP/1.1\r\n" + b"".join(b"%s: %s\r\n" % header for header in framing) + b"\r\n"
        self.parser = httptools.HttpRequestParser(BodyOnly(self))
        self.data_received(head + rest)

    # Answers

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """An answer is written: start the next request, or the idle time."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._refusal is not None:
            self._write(self._refusal)
            return
        elif not (self._in_head or self._in_body):
            self.look_at = self._watch.now + self._watch.idle_s
        self.flow.resume_reading()

    def _refuse(self, status: int, message: str) -> None:
        """Answer and close, after the answers to earlier requests."""
        self._hand_over()
        self._is_deaf = True
        answer = self._shaped(status, message)
        due = self._answered is not None and not self._answered.response_complete
        if self._in_body and self.pipeline:
            self.pipeline.popleft()  # the last one
        elif self._in_body:
            if self.cycle.response_started:
                self._give_up(self.cycle)
                self.end()
                return
            self._give_up(self.cycle)  # the application sees a disconnected client, and stores nothing
            due = False
        if due:
            self._refusal = answer
            self._await_answer()
        else:
            self._write(answer)

    def _give_up(self, cycle: RequestResponseCycle | None) -> None:
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def _shaped(self, status: int, message: str) -> Response:
        answer = unread_response(self.app, status, message)
        answer.headers["Connection"] = "close"
        return answer

    def _write(self, answer: Response) -> None:
        self._raw.write(self._head_of(answer) + answer.body)
        self.end()

    def _head_of(self, answer: Response) -> bytes:
        return head_of(answer, self._lines_of_all())

    def _lines_of_all(self) -> bytes:
        """The header lines that all answers have."""
        common = self.server_state.default_headers
        if common is not self._common:  # made anew each second
            self._common, self._common_lines = common, lines_of(common)
        return self._common_lines

    def eof_received(self) -> None:
        """The client sends no more, but may still read: answer an incomplete request."""
        if self._is_deaf:
            return
        self._hand_over()
        if self._in_body:
            self._refuse(400, "the request body is cut short")
        elif self._in_head:
            self._refuse(400, "the head of the request is cut short")
        # The transport closes when the client has read what was written.
        self.has_ended = self._is_deaf = True
        self.look_at = self._watch.now + _CLOSING_S

    # What takes too long

    def pause_writing(self) -> None:
        """The client reads more slowly than the answer is written."""
        super().pause_writing()
        self._unsent, self._unsent_at = self._count_unsent(), self._watch.now
        self.look_at = min(self.look_at, self._watch.now + self._watch.write_s)

    def look(self) -> None:
        """See `PortWatch`."""
        watch = self._watch
        self._hand_over()
        if self.has_ended:
            self._raw.abort()
        elif self.flow.write_paused:
            self._look_at_unsent()
        elif self.flow.read_paused:
            self.look_at = watch.now + watch.body_s  # we paused reading, so the client is not late
        elif self._in_head:
            self._refuse(408, "the head of the request took too long (server.head_timeout_seconds)")
        elif self._in_body:
            self._look_at_body()
        elif self._is_idle():
            self.end()
        else:
            self._await_answer()

    def _look_at_unsent(self) -> None:
        watch, unsent = self._watch, self._count_unsent()
        if watch.now - self._unsent_at >= watch.write_s:
            if unsent >= self._unsent:
                self._raw.abort()
                return
            self._unsent, self._unsent_at = unsent, watch.now
        self.look_at = self._unsent_at + watch.write_s

    def _count_unsent(self) -> int:
        """Bytes that the client has not acknowledged, including megabytes in the system's send queue."""
        queued = array("i", [0])
        connection = self._raw.get_extra_info("socket")
        with contextlib.suppress(OSError):  # it is closed
            fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, queued)
        return int(self._raw.get_write_buffer_size()) + queued[0]

    def _look_at_body(self) -> None:
        limits = self._watch.server
        enough = limits.min_body_bytes_per_second * limits.body_timeout_seconds
        waits = not self._is_idle() and self.cycle.waiting_for_100_continue
        if waits or self._content - self._content_before >= enough:
            self._content_before = self._content
            self.look_at = self._watch.now + self._watch.body_s
        elif self._is_idle():  # it was answered before it was complete
            self.end()
        else:
            self._refuse(408, "the body of the request came too slowly (server.body_timeout_seconds)")
