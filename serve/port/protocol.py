"""`PortProtocol`: one connection of a port: requests answered without a task, and upgrades to WebSockets."""

import asyncio
from typing import Any, cast

from starlette.responses import Response
from starlette.types import ASGIApp, Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.server import ServerState

from serve.port.application import Answering, LaterAnswer, QuickAnswers, WholeAnswer
from serve.port.bounded_protocol import BoundedProtocol
from serve.port.known_heads import KnownFields, KnownHead, read_line
from serve.port.lending import Lender
from serve.port.request_heads import FRAMING, body_bytes_at_once
from serve.port.watch import NEVER, PortWatch
from serve.port.websocket import HANDSHAKE_LINE_BYTES_MAX, concerns_handshake

__all__ = ["PortProtocol"]

_METHODS, _HEAD_END = (b"POST ", b"PUT "), b"\r\n\r\n"  # requests of others are answered quickly without


class PortProtocol(BoundedProtocol):
    """`BoundedProtocol` for an application that may have `QuickAnswers`, and may support WebSockets."""

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
        super().__init__(config, server_state, app_state, _loop, watch=watch)
        self._quick: QuickAnswers | None = getattr(self.app, "quick", None)
        # The body of a request that waits for its end, to be answered at once; None while none does.
        self._quick_body: bytes | None = None
        self._may_be_quick = True  # one request of each piece of input, then others have their turn
        self._answered_by: Answering | None = None  # what has answered that one
        self._may_know_head = False  # whether more such requests are likely to come
        self._known_heads = self._watch.known_heads
        self._lender: Lender | None = None  # where another process serves this connection
        self._is_shut = False  # the port stops

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed. Requests are given up."""
        self._quick_body = None
        if self._lender is not None:
            self._lender.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, unless they are a whole request whose head is known."""
        if not data.startswith(_METHODS) or not self._awaits_request():
            self._may_be_quick = True
            super().data_received(data)
            return
        end = data.find(_HEAD_END)
        known = self._known_heads.find(data[:end])
        if (
            known is not None
            and len(data) == end + len(_HEAD_END) + known.body_bytes
            and self._see_to(known.answering, data[end + len(_HEAD_END) :])
        ):
            return
        if known is None and self._see_to_known_fields(data, end):
            return
        self._may_be_quick, self._answered_by = True, None
        super().data_received(data)
        body_bytes = len(data) - end - len(_HEAD_END)
        if self._answered_by is None or end < 0 or body_bytes != self._content:
            return  # else it was this request alone
        if self._may_know_head:
            self._known_heads.add(data[:end], KnownHead(self._answered_by, body_bytes))
        elif (line := read_line(data)) is not None:
            self._known_heads.add_fields(data[line[2] : end], KnownFields(list(self.headers), body_bytes))

    def _see_to_known_fields(self, data: bytes, end: int) -> bool:
        """Whether a request, of which the head ends there, is answered by what is known of its fields."""
        line = read_line(data)
        if line is None or self._quick is None:
            return False
        method, target, begin = line
        fields = self._known_heads.find_fields(data[begin:end])
        if fields is None or len(data) != end + len(_HEAD_END) + fields.body_bytes:
            return False
        if len(target) > self._uri_max or not self._quick.may_answer(method, target, fields.body_bytes):
            return False
        answering = self._quick.understood(method, target, self.scheme or "http", fields.headers)
        return answering is not None and self._see_to(answering, data[end + len(_HEAD_END) :])

    def _awaits_request(self) -> bool:
        """Whether a request may begin, and be answered here."""
        return (
            self._quick is not None
            and self._is_idle()
            and not (self._in_head or self._in_body or self._is_deaf or self._leaves)
            and not self.flow.write_paused
        )

    # What is answered without the application

    def _take_head(self) -> None:
        if self._is_for_quick():
            self._quick_body = b""
        else:
            self._begin()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._quick_body is None:
            super().on_body(body)
        else:
            self._count_content(body)
            self._quick_body += body

    def _take_whole(self) -> bool:
        if self._quick_body is None:
            return False
        if self._answer_quickly(self._quick_body):
            return True
        self._hand_over()
        return False

    def _is_for_quick(self) -> bool:
        """Whether a request, whose head is complete, may be answered when its body is."""
        quick = self._quick
        if quick is None or not self._may_be_quick or self._leaves:
            return False
        if not self._is_idle() or self.flow.write_paused:
            return False
        body_bytes = body_bytes_at_once(self.parser, self.headers)
        return body_bytes is not None and quick.may_answer(self.parser.get_method(), self.url, body_bytes)

    def _answer_quickly(self, body: bytes) -> bool:
        """See to the answer to a request that has come whole, if that can be done here."""
        if self._quick is None or self._leaves or self.flow.write_paused:
            return False
        method, scheme = self.parser.get_method(), self.scheme or "http"
        answering = self._quick.understood(method, self.url, scheme, self.headers)
        if answering is None or not self._see_to(answering, body):
            return False
        self._quick_body, self._may_be_quick = None, False
        self._answered_by = answering
        return True

    def _see_to(self, answering: Answering, body: bytes) -> bool:
        answer = answering(body)
        if answer is None:
            return False
        if isinstance(answer, LaterAnswer):
            answer.connection = self
            self._may_know_head = answer.repeats_head
            self.cycle = self._answered = answer  # type: ignore[assignment] # it has what is read of one
            self._await_answer()
        else:
            self._may_know_head = True
            self._raw.write(self._head_of(answer) + answer.body)
            self.server_state.total_requests += 1
            self.look_at = self._watch.now + self._watch.idle_s
            if isinstance(answer, WholeAnswer) and answer.offer is not None:
                answer.offer(self)
        return True

    # Lending: see `serve.port.lending`

    def borrowed_fd(self) -> int | None:
        """See `Borrowable`."""
        raw = self._raw
        if not self._awaits_request() or self._quick_body is not None or self._lender is not None:
            return None
        if raw.is_closing() or raw.get_write_buffer_size() or raw.get_extra_info("sslcontext") is not None:
            return None
        fd: int = raw.get_extra_info("socket").fileno()
        return fd

    def lend(self, lender: Lender) -> None:
        """See `Borrowable`."""
        self._lender, self.look_at = lender, NEVER
        self._raw.pause_reading()

    def take_back(self) -> None:
        """See `Borrowable`."""
        self._lender, self.look_at = None, self._watch.now + self._watch.idle_s
        if self._raw.is_closing():
            return
        if self._is_shut:
            super().shutdown()
        else:
            self._raw.resume_reading()

    def give_up(self) -> None:
        """See `Borrowable`."""
        self._lender = None
        self._raw.abort()

    def leave(self) -> None:
        """See `BoundedProtocol.leave`: the port answers the last request."""
        super().leave()
        if self._lender is not None:
            self._lender.recall(self)

    def shutdown(self) -> None:
        """See `BoundedProtocol.shutdown`."""
        if self._lender is None:
            super().shutdown()
        else:
            self._is_shut = True
            self._lender.recall(self)

    def success_of(self, lines: bytes, body: bytes) -> bytes:
        """What is sent for a success with these header lines, on a connection that is kept."""
        return b"%s%s%s\r\n%s" % (STATUS_LINE[200], self._lines_of_all(), lines, body)

    def write_prepared(self, request: LaterAnswer, answer: bytes) -> None:
        """See `LaterAnswer.reply_prepared`."""
        request.response_started = request.response_complete = True
        if request.disconnected or self._raw.is_closing():
            return
        self._raw.write(answer)
        self.on_response_complete()

    def write_later(self, request: LaterAnswer, answer: Response) -> None:
        """See `LaterAnswer.reply`."""
        request.response_started = request.response_complete = True
        if request.disconnected or self._raw.is_closing():
            return
        if not request.keep_alive:
            answer.headers["Connection"] = "close"
        self._raw.write(self._head_of(answer) + bytes(answer.body))
        if not request.keep_alive:
            self.end()
        self.on_response_complete()

    def deliver_later(self, request: LaterAnswer, scope: Scope, app: ASGIApp) -> None:
        """See `LaterAnswer.deliver`."""
        request.response_started = request.response_complete = True
        if request.disconnected or self._raw.is_closing():
            return
        cycle = RequestResponseCycle(
            cast(Any, scope),
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            False,  # as for answers without a task
            self.server_state.default_headers,
            asyncio.Event(),
            expect_100_continue=False,
            keep_alive=request.keep_alive,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        if cast(Any, self.cycle) is request:  # else the client has sent another meanwhile
            self.cycle = cycle
        self._start_asgi_task(cycle, app)

    def _hand_over(self) -> None:
        """Give a request that waited to be answered here to the application, with what has come of it."""
        if self._quick_body is None:
            return
        body, self._quick_body = self._quick_body, None
        self._begin()
        if body:
            super().on_body(body)

    # WebSockets

    def _upgrade(self, rest: bytes) -> None:
        if self._should_upgrade():
            self._become_websocket(rest)
        else:
            super()._upgrade(rest)

    def _should_upgrade(self) -> bool:
        """Whether this starts a WebSocket (RFC 6455, 4.1): without a body, and not while an earlier request
        waits for its answer.
        """
        if not super()._should_upgrade() or self.parser.get_method() != b"GET" or not self._is_idle():
            return False
        names = {name for name, value in self.headers if name not in FRAMING or value != b"0"}
        is_whole = self.parser.get_http_version() == "1.1" and names.isdisjoint(FRAMING)
        return is_whole and b"sec-websocket-key" in names

    def _become_websocket(self, rest: bytes) -> None:
        if any(
            len(name) + len(value) > HANDSHAKE_LINE_BYTES_MAX
            for name, value in self.headers
            if concerns_handshake(name)
        ):
            self._in_body = False
            self._refuse(431, f"a header of the handshake is over {HANDSHAKE_LINE_BYTES_MAX} bytes")
            return
        self.connections.discard(self)
        for let_go in self._let_go:
            let_go()
        made: Any = self.ws_protocol_class
        protocol = made(config=self.config, server_state=self.server_state, app_state=self.app_state)
        self._watch.replace(self, protocol)
        protocol.watch = self._watch
        protocol.connection_made(self._raw)
        self._raw.set_protocol(protocol)
        protocol.begin(self.url, self.headers)
        if rest:
            protocol.data_received(rest)
