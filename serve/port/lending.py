"""`Lender`: connections of a port that another process of the machine serves for a while.

The port stops reading a connection and sends its socket to the process, which looks at what comes in without
taking it (`serve.port.borrowing`). What it can answer, it takes and answers. With anything else, and when
nothing comes any more, it gives the connection back: the bytes are still in the socket, and the port goes on
as if nothing had happened. So it does when the process has been killed (`serve.port.ledger`).

    port -> process: L number + the socket, lent; R number, wanted back
    process -> port: B number, given back; X number, its client does not read; C ..., what was done
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from serve.port.ledger import Ledger, Passed

__all__ = ["MESSAGE_BYTES_MAX", "NUMBERED", "Borrowable", "Lender"]

MESSAGE_BYTES_MAX = 4_096
NUMBERED = struct.Struct("=cI")


class Borrowable(Protocol):
    """A connection of a port."""

    def borrowed_fd(self) -> int | None:
        """Its socket, if it may be lent now: nothing is being read or written."""

    def lend(self, lender: "Lender") -> None:
        """Stop reading."""

    def take_back(self) -> None:
        """Go on reading."""

    def give_up(self) -> None:
        """Close it at once: its client has been sent a part of an answer, or nobody knows what."""


@dataclass(slots=True)
class _Lent:
    """before: what had passed through its socket, fd, when it was lent."""

    connection: Borrowable | None  # None: it is gone, and was not given back yet
    fd: int
    before: Passed | None


class Lender:
    """To one process. For the port's event loop."""

    def __init__(
        self,
        channel: socket.socket,
        ledger: Ledger,
        note: Callable[[bytes], None],
        note_count: Callable[[int], None],
    ) -> None:
        """channel: the port's end, of type SOCK_SEQPACKET, which is closed with this. ledger: shared with the
        process. note: is told what was done, note_count how many connections are lent, when that changes.
        """
        channel.setblocking(False)
        self._channel, self._ledger, self._note, self._note_count = channel, ledger, note, note_count
        self._lent: dict[int, _Lent] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(channel, self._hear)
        self.is_closed = False

    def __len__(self) -> int:
        """Connections that are lent now."""
        return len(self._lent)

    def lend(self, connection: Borrowable) -> bool:
        """Whether the process has it now."""
        fd = connection.borrowed_fd()
        if fd is None or self.is_closed or len(self._lent) >= len(self._ledger):
            return False
        number = next(number for number in range(len(self._lent) + 1) if number not in self._lent)
        connection.lend(self)
        self._ledger.open(number)
        with _socket(fd) as its:
            lent = _Lent(connection, fd, Passed.through(its))
        try:
            socket.send_fds(self._channel, [NUMBERED.pack(b"L", number)], [fd])
        except OSError:  # it has much to hear, or is gone
            connection.take_back()
            return False
        self._lent[number] = lent
        self._note_count(len(self._lent))
        return True

    def recall(self, connection: Borrowable) -> None:
        """Have it given back soon."""
        for number, lent in self._lent.items():
            if lent.connection is connection:
                try:
                    self._channel.send(NUMBERED.pack(b"R", number))
                except BlockingIOError:
                    self._loop.call_later(0.05, self.recall, connection)
                except OSError:
                    self.close()
                return

    def forget(self, connection: Borrowable) -> None:
        """It is closed."""
        for lent in self._lent.values():
            if lent.connection is connection:
                lent.connection = None

    def close(self) -> None:
        """The process is gone: take back what was lent."""
        if self.is_closed:
            return
        self.is_closed = True
        self._loop.remove_reader(self._channel)
        self._channel.close()
        lent, self._lent = self._lent, {}
        self._note_count(0)
        for number, one in lent.items():
            if one.connection is None:
                continue
            with _socket(one.fd) as its:
                is_settled = self._ledger.settle(number, its, one.before)
            if is_settled:
                one.connection.take_back()
            else:
                one.connection.give_up()

    def _hear(self) -> None:
        for _ in range(100):
            try:
                message = self._channel.recv(MESSAGE_BYTES_MAX)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self.close()
                return
            self._take(message)

    def _take(self, message: bytes) -> None:
        if message[:1] == b"C":
            self._note(message[1:])
            return
        kind, number = NUMBERED.unpack(message)
        lent = self._lent.pop(number, None)
        self._note_count(len(self._lent))
        if lent is None or lent.connection is None:
            return
        if kind == b"X":
            lent.connection.give_up()
        else:
            lent.connection.take_back()


def _socket(fd: int) -> socket.socket:
    """Of a connection that somebody else keeps open."""
    return socket.socket(fileno=os.dup(fd))
