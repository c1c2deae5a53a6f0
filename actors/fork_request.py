"""Asks a `ForkServer` for a process; what Ray's node runs in place of each worker: a file, not a module.

So it imports next to nothing. Where the server does not answer, it becomes the worker itself: that takes a
second more.
"""

import json
import os
import socket
import sys

__all__: list[str] = []


def _ask(path: str, command: list[str]) -> None:
    """Return when there is a process that has taken over the command. Raises OSError."""
    request = {"command": command, "environment": dict(os.environ), "directory": os.getcwd()}
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        socket.send_fds(asking, [b"\0"], [0, 1, 2])
        asking.sendall(json.dumps(request).encode())
        asking.shutdown(socket.SHUT_WR)
        if not asking.recv(1):
            raise ConnectionError("there is no process")


if __name__ == "__main__":
    _, path, *command = sys.argv
    try:
        _ask(path, command)
    except OSError:
        os.execv(command[0], command)
