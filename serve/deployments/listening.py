"""Where a service listens, whether it can, and its listening sockets, which outlive the processes that serve.

`graphdb serve` binds the ports and keeps the sockets; the actor that serves a port is handed its socket
when it begins. While one that was killed is made again, whoever connects waits for it in the socket's queue.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Sequence

from graphdb.config import Settings
from graphdb.config.service import split_address
from graphdb.errors import UnavailableError
from serve.port.listen import BACKLOG, Listen, bind

__all__ = ["HeldSockets", "check_cluster_port", "graph_listen", "search_listen", "take_socket"]

_DOOR = "ports.sock"  # in a directory of this user only
_PATIENCE_S = 60.0  # of an actor that asks for its socket, on a machine that may be busy
_ASKING_S = 5.0  # that one who asks may keep the others
_PORT_BYTES = 2


def graph_listen(settings: Settings) -> Listen:
    """The graph port."""
    server = settings.server
    return Listen(server.host, server.port, server.tls_cert_file, server.tls_key_file, server)


def search_listen(settings: Settings) -> Listen:
    """The search port; whether it is opened is another setting."""
    server = settings.server
    return Listen(server.host, settings.search.port, server.tls_cert_file, server.tls_key_file, server)


def check_cluster_port(settings: Settings) -> None:
    """Raises UnavailableError where the port of the cluster, which the log binds, is another's."""
    if settings.cluster.enabled:
        _bound(Listen(*split_address(settings.cluster.address))).close()


class HeldSockets:
    """A service's sockets, by their ports. close() them at the stop: connections are refused from then on, by
    the last of the two that have a socket.
    """

    def __init__(self, listens: Sequence[Listen]) -> None:
        """Bind them. Raises UnavailableError where one is another's.

        Nobody listens yet, so connections are refused: a service that starts is nobody's to wait for.
        """
        self._door = socket.socket(socket.AF_UNIX)
        self._closed = threading.Event()
        self._held: dict[int, socket.socket] = {}
        try:
            for listen in listens:
                self._held[listen.port] = _bound(listen)
        except UnavailableError:
            self.close()
            raise

    def hand_out(self, directory: str) -> None:
        """From now on, hand a socket to each caller of `take_socket`."""
        self._door.bind(os.path.join(directory, _DOOR))
        self._door.listen()
        threading.Thread(target=self._hand_out, daemon=True).start()

    def _hand_out(self) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(OSError, KeyError):  # also of a caller that was killed meanwhile
                asking, _ = self._door.accept()
                with asking:
                    asking.settimeout(_ASKING_S)
                    held = self._held[int.from_bytes(asking.recv(_PORT_BYTES))]
                    socket.send_fds(asking, [b"\0"], [held.fileno()])

    def close(self) -> None:
        """Let go of the sockets, and hand out none any more."""
        self._closed.set()
        with contextlib.suppress(OSError):  # nobody has connected yet
            self._door.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._door.close()
        for held in self._held.values():
            held.close()


def take_socket(directory: str, listen: Listen) -> socket.socket:
    """The socket of a port, listening, from the service that has its door in the directory.

    Raises UnavailableError where the service is gone, or somebody else has come to listen there first.
    """
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(_PATIENCE_S)
            asking.connect(os.path.join(directory, _DOOR))
            asking.sendall(listen.port.to_bytes(_PORT_BYTES))
            _, descriptors, _, _ = socket.recv_fds(asking, 1, 1, socket.MSG_CMSG_CLOEXEC)
    except OSError as error:
        raise UnavailableError(f"the service's own process is gone: {error.strerror or error}") from error
    if not descriptors:
        raise UnavailableError("the service is stopping")
    taken = socket.socket(fileno=descriptors[0])
    taken.setblocking(False)
    try:
        taken.listen(BACKLOG)
    except OSError as error:
        taken.close()
        raise _cannot_listen(listen, error) from error
    return taken


def _bound(listen: Listen) -> socket.socket:
    try:
        return bind(listen)
    except OSError as error:
        raise _cannot_listen(listen, error) from error


def _cannot_listen(listen: Listen, error: OSError) -> UnavailableError:
    return UnavailableError(f"cannot listen on {listen.host}:{listen.port}: {error.strerror}")
