"""A real HTTP server on loopback around an application, for as long as a test needs it."""

import functools
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.types import ASGIApp

from graphdb.config.service import Server
from serve.port.protocol import PortProtocol
from serve.port.watch import PortWatch
from serve.port.websocket import MESSAGE_BYTES_MAX, PortWebSocket
from tests.support.timing import HANG_S

__all__ = ["client_of", "serving"]


@contextmanager
def serving(
    app: ASGIApp, certificate: tuple[Path, Path] | None = None, limits: Server | None = None
) -> Iterator[str]:
    """Serve the application on a free port; the value is its base URL, without a slash at the end.

    certificate and its key are PEM files: with them it is HTTPS.
    """
    tls = {} if certificate is None else {"ssl_certfile": certificate[0], "ssl_keyfile": certificate[1]}
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=functools.partial(PortProtocol, watch=PortWatch(limits or Server())),  # type: ignore[arg-type]
                ws=PortWebSocket,
                ws_max_size=MESSAGE_BYTES_MAX,
                ws_per_message_deflate=False,
                proxy_headers=False,
                log_level="critical",
                access_log=False,
                timeout_graceful_shutdown=1,
                **tls,  # type: ignore[arg-type]
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def client_of(app: ASGIApp) -> Iterator[httpx.Client]:
    """A client of the application, `serving` meanwhile."""
    with serving(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client:
        yield client
