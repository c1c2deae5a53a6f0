"""`Borrower`: serves the connections that a port has lent to this process: see `serve.port.lending`."""

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from email.utils import formatdate

import httptools

from serve.port.application import Answering, QuickAnswers, WholeAnswer
from serve.port.bounded_protocol import head_of, lines_of
from serve.port.known_heads import KnownHead, KnownHeads
from serve.port.ledger import Ledger
from serve.port.lending import MESSAGE_BYTES_MAX, NUMBERED
from serve.port.request_heads import Refused, body_bytes_at_once, check_head, check_header, origin_form

__all__ = ["Borrower"]

_READ_BYTES = 64 << 10  # with more a request is the port's
_IDLE_S = 1.0  # without a request, until a connection is given back
_UNREAD_S = 5.0  # that a client may leave an answer unread
_LOOK_S = 0.25
_HEAD_END = b"\r\n\r\n"


@dataclass(slots=True)
class _Borrowed:
    number: int
    connection: socket.socket
    used_at: float
    unsent: bytes = b""  # of an answer
    request_bytes: int = 0  # of the request that it is for, until that is taken
    is_wanted: bool = field(default=False)  # by the port


class Borrower:
    """On a thread of its own: run()."""

    def __init__(
        self,
        channel: socket.socket,
        ledger: Ledger,
        beat: memoryview,
        quick: QuickAnswers,
        done: Callable[[], Iterable[bytes]],
        headers: Iterable[tuple[bytes, bytes]],
    ) -> None:
        """channel, ledger: see `Lender`. beat: one number, shared with the port, which grows as long as
        nothing here hangs. quick: answers what it can, at once. done: what the port is to be told now
        and then. headers: of every answer, beside its date.
        """
        self._channel, self._ledger, self._beat = channel, ledger, beat
        self._quick, self._done = quick, done
        self._borrowed: dict[int, _Borrowed] = {}  # by file number
        self._heads = KnownHeads()
        self._epoll = select.epoll()
        self._fixed = lines_of(headers)
        self._common, self._common_until = b"", 0.0
        self._look_at = 0.0
        channel.setblocking(False)
        self._epoll.register(channel, select.EPOLLIN)

    def run(self) -> None:
        """Until the port is gone."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # of the channel: it has gone
            self._go_on()

    def _go_on(self) -> None:
        while True:
            self._beat[0] += 1
            events = self._epoll.poll(_LOOK_S)
            now = time.monotonic()
            for fd, _ in events:
                if fd == self._channel.fileno():
                    if not self._hear(now):
                        return
                elif (one := self._borrowed.get(fd)) is not None:
                    self._serve(one, now)
            if now >= self._look_at:
                self._look_at = now + _LOOK_S
                self._look(now)

    def close(self) -> None:
        """After run()."""
        self._epoll.close()
        for one in self._borrowed.values():
            one.connection.close()

    def _hear(self, now: float) -> bool:
        """Whether the port is there."""
        while True:
            try:
                message, fds, _, _ = socket.recv_fds(self._channel, MESSAGE_BYTES_MAX, 1)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not message:
                return False
            kind, number = NUMBERED.unpack(message)
            if kind == b"L" and not fds:  # this process has as many files open as it may
                self._tell(NUMBERED.pack(b"B", number))
            elif kind == b"L":
                one = _Borrowed(number, socket.socket(fileno=fds[0]), now)
                self._borrowed[fds[0]] = one
                self._epoll.register(fds[0], select.EPOLLIN)
            elif kind == b"R":
                for one in [one for one in self._borrowed.values() if one.number == number]:
                    one.is_wanted = True
                    if not one.unsent:
                        self._give_back(one)

    def _look(self, now: float) -> None:
        for one in list(self._borrowed.values()):
            if one.unsent and now - one.used_at > _UNREAD_S:
                self._give_back(one, b"X")
            elif not one.unsent and now - one.used_at > _IDLE_S:
                self._give_back(one)
        for message in self._done():
            self._tell(b"C" + message)

    def _tell(self, message: bytes) -> None:
        self._channel.setblocking(True)  # it hears it, or this process ends with it
        try:
            self._channel.send(message)
        finally:
            self._channel.setblocking(False)

    def _give_back(self, one: _Borrowed, kind: bytes = b"B") -> None:
        self._epoll.unregister(one.connection)
        del self._borrowed[one.connection.fileno()]
        one.connection.close()
        self._tell(NUMBERED.pack(kind, one.number))

    def _serve(self, one: _Borrowed, now: float) -> None:
        if one.unsent:
            self._send(one, one.unsent)
            return
        try:
            request = one.connection.recv(_READ_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            request = b""
        answer = self._answer(request)
        if answer is None:
            self._give_back(one)
            return
        one.used_at = now
        data = self._head_of(answer, now) + answer.body
        self._ledger.begin(one.number, len(data), len(request))
        one.request_bytes = len(request)
        self._send(one, data)

    def _send(self, one: _Borrowed, data: bytes) -> None:
        """Send it, or what can be sent of it; take the request when that is begun."""
        try:
            sent = self._sent(one, data)
            if sent and one.request_bytes:
                one.connection.recv(one.request_bytes)  # it is there
                one.request_bytes = 0
        except OSError:  # the client is gone
            self._give_back(one, b"X")
            return
        if sent < len(data):
            if not one.unsent:
                self._epoll.modify(one.connection, select.EPOLLOUT)
            one.unsent = data[sent:]
            return
        if one.unsent:
            one.unsent = b""
            self._epoll.modify(one.connection, select.EPOLLIN)
        self._ledger.end(one.number)
        if one.is_wanted:
            self._give_back(one)

    def _sent(self, one: _Borrowed, data: bytes) -> int:
        try:
            return one.connection.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0

    def _answer(self, request: bytes) -> WholeAnswer | None:
        """None where the request is the port's."""
        end = request.find(_HEAD_END)
        if end < 0:
            return None
        head, body = request[:end], request[end + len(_HEAD_END) :]
        known = self._heads.find(head)
        if known is None:
            known = self._read(head)
            if known is None:
                return None
            self._heads.add(head, known)
        if len(body) != known.body_bytes:
            return None
        answer = known.answering(body)
        return answer if isinstance(answer, WholeAnswer) else None

    def _read(self, head: bytes) -> KnownHead | None:
        """As `PortProtocol` does; None for what it would not answer at once, or would refuse."""
        read = _Head()
        parser = httptools.HttpRequestParser(read)
        try:
            parser.feed_data(head + _HEAD_END)
            check_head(parser.get_http_version(), read.headers)
            for name, value in read.headers:
                if name == b"host":
                    check_header(name, value)
            target = origin_form(parser.get_method(), read.target, read.headers)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Refused):
            return None
        body_bytes = body_bytes_at_once(parser, read.headers) if read.is_whole else None
        method = parser.get_method()
        if body_bytes is None or not self._quick.may_answer(method, target, body_bytes):
            return None
        answering: Answering | None = self._quick.understood(method, target, "http", read.headers)
        return None if answering is None else KnownHead(answering, body_bytes)

    def _head_of(self, answer: WholeAnswer, now: float) -> bytes:
        if now >= self._common_until:
            second = time.time()
            self._common = b"date: %s\r\n%s" % (formatdate(second, usegmt=True).encode(), self._fixed)
            self._common_until = now + 1 - second % 1
        return head_of(answer, self._common)


class _Head:
    """What the parser finds in the head of a request."""

    def __init__(self) -> None:
        self.target, self.headers, self.is_whole = b"", list[tuple[bytes, bytes]](), False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.is_whole = True
