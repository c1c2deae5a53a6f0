"""`BlockingStream`: a connection's end in a process that does one thing at a time and has no event loop.

It imports no asyncio, which would take a third of such a process's start.
"""

import socket

from actors.wire.messages import Frame, Messages

__all__ = ["BlockingStream"]


class BlockingStream:
    """The other end is a `Stream`. Failures are sent to it, never received."""

    def __init__(self, messages: Messages, connection: socket.socket) -> None:
        self._messages, self._connection = messages, connection
        self._reader = messages.reader(failures=False)
        self._frames: list[Frame] = []  # received, the next one last

    def read(self) -> object | None:
        """Wait for the next message; None when the other end is gone."""
        while not self._frames:
            try:
                count = self._connection.recv_into(self._reader.room())
            except ConnectionResetError:  # it had not read all that was sent
                return None
            if count == 0:
                return None
            self._frames = self._reader.received(count)[::-1]
        message: object = self._messages.decode(self._frames.pop())
        return message

    def send(self, message: object) -> None:
        """Return when the kernel has it. Raises OSError when the other end is gone."""
        self._connection.sendall(self._messages.encode(message))

    def fail(self, error: BaseException) -> None:
        """Have the other end raise this. Raises OSError when it is gone."""
        self._connection.sendall(self._messages.encode_failure(error))
