"""A real HTTP server on loopback around an application, for as long as a test needs it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from serve.port_protocol import PortProtocol
from serve.port_websocket import MESSAGE_BYTES_MAX, PortWebSocket

__all__ = ["serving"]


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Serve the application on a free port; the value is its base URL, without a slash at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=PortProtocol,
                ws=PortWebSocket,
                ws_max_size=MESSAGE_BYTES_MAX,
                ws_per_message_deflate=False,
                proxy_headers=False,
                log_level="critical",
                access_log=False,
                timeout_graceful_shutdown=1,
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
