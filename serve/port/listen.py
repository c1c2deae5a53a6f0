"""Where a port listens: its address, its socket, and whether it answers there.

Apart from what serves it, because `graphdb serve` itself only binds the ports and looks whether they answer.
"""

import contextlib
import http.client
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from graphdb.config.service import Server

__all__ = ["BACKLOG", "Listen", "answers", "bind"]

BACKLOG = 2048  # connections that wait to be accepted
# Of every connection: a client whose machine has failed is detected within two minutes of silence.
_PROBED = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
if hasattr(socket, "TCP_KEEPIDLE"):
    _PROBED += [
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    ]


@dataclass(frozen=True, slots=True)
class Listen:
    """Where and how to listen. The two files are given together; without them the port serves plain HTTP."""

    host: str
    port: int
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    limits: Server = field(default_factory=Server)  # of connections and heads of requests

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert_file else 'http'}://{host}:{self.port}"


def bind(listen: Listen) -> socket.socket:
    """A bound socket that does not listen yet. Raises OSError."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for level, option, value in _PROBED:
            bound.setsockopt(level, option, value)
        bound.bind((listen.host, listen.port))
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def answers(listen: Listen, timeout_s: float) -> bool:
    """Whether the port answers a request, with any answer."""
    if listen.tls_cert_file is None:
        connection = http.client.HTTPConnection(listen.host, listen.port, timeout=timeout_s)
    else:
        # The certificate is ours, for another name; here only an answer counts.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(listen.host, listen.port, timeout=timeout_s, context=context)
    with contextlib.closing(connection):
        try:
            connection.request("OPTIONS", "*")
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
    return True
