"""A client that goes away in the middle of its request, at a moment that the test chooses."""

import contextlib
import http.client
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from tests.support.timing import HANG_S, wait_until

__all__ = ["leave"]


def leave(url: str, once: Callable[[], object], *, json: bytes | None = None, **parameters: str) -> None:
    """Ask for url, read what comes, and close the connection as soon as once() is true.

    Of a body of JSON it is a POST, else a GET. A time limit of a client's own will not do in its place: on a
    busy machine it passes before the server has begun.
    """
    address = urlsplit(url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=HANG_S)
    query = "&".join(part for part in (address.query, urlencode(parameters)) if part)
    target = f"{address.path}?{query}" if query else address.path
    try:
        if json is None:
            connection.request("GET", target)
        else:
            connection.request("POST", target, json, {"Content-Type": "application/json"})
        connection.sock.setblocking(False)

        def is_time() -> object:
            with contextlib.suppress(BlockingIOError):
                connection.sock.recv(1 << 20)
            return once()

        wait_until(is_time)
    finally:
        connection.close()
