"""A host for the node to call: HTTP on a loopback address, as well or as badly behaved as a test wants."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["Answer", "RemoteHost", "answering", "remote_host"]

Answer = Callable[[socket.socket], None]  # sends what it likes; the connection is closed behind it


class RemoteHost:
    """Accepts on one address, notes every request, and lets `answer` answer it."""

    def __init__(self, address: str, answer: Answer, tls: ssl.SSLContext | None) -> None:
        self.requests: list[bytes] = []  # head and body of each
        self.answer = answer
        self._tls = tls
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, 0), family=family)
        self.port: int = self._socket.getsockname()[1]
        host = f"[{address}]" if ":" in address else address
        self.url = f"{'https' if tls else 'http'}://{host}:{self.port}/"
        self._threads = [threading.Thread(target=self._accept)]
        self._open: set[socket.socket] = set()
        self._threads[0].start()

    def close(self) -> None:
        """Ends what is under way."""
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._socket.close()
        self._threads[0].join()
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.add(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), self._secured(connection) as stream:
            self.requests.append(_read(stream))
            self.answer(stream)
        self._open.discard(connection)

    def _secured(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        with connection:
            return self._tls.wrap_socket(connection, server_side=True)


@contextmanager
def remote_host(
    answer: Answer, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[RemoteHost]:
    """A host for as long as the block runs."""
    host = RemoteHost(address, answer, tls)
    try:
        yield host
    finally:
        host.close()


def answering(
    body: bytes = b"",
    content_type: str = "text/plain",
    status: int = 200,
    headers: tuple[str, ...] = (),
) -> Answer:
    """A host that always answers the same, as it should."""
    lines = [
        f"HTTP/1.1 {status} X",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    whole = "\r\n".join([*lines, "", ""]).encode() + body
    return lambda connection: connection.sendall(whole)


def _read(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [
        line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    ]
    while lengths and len(body) < int(lengths[0]):
        body += _some(connection)
    return head + b"\r\n\r\n" + body


def _some(connection: socket.socket) -> bytes:
    piece = connection.recv(65_536)
    if not piece:
        raise ConnectionResetError
    return piece
