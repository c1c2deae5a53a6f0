"""`Ledger`: what a borrower writes down while it answers, so that the port can go on wherever it is killed.

A borrower sends an answer, and takes the request that it is for from the socket only then. The kernel counts
all that passes through a TCP socket, so the port sees afterwards how far the borrower has come:

    nothing sent                 the request is still in the socket, and the port answers it
    sent, the request not taken  the port takes the request and throws it away
    sent, the request taken      all is done
    a part sent                  nobody else has the rest: the connection is closed
"""

import fcntl
import socket
import struct
import sys
import termios
from dataclasses import dataclass

__all__ = ["BYTES_EACH", "Ledger", "Passed"]

BYTES_EACH = 32  # for a connection
_ANSWER, _REQUEST, _SENT, _TAKEN = range(4)  # answer: the bytes of the one under way, or 0
_WORDS = BYTES_EACH // 8
_INFO = struct.Struct("QQ")  # of `tcp_info`, from Linux 4.1 on: bytes that were acknowledged, and received
_INFO_AT = 120
_LOOKS = 10


@dataclass(frozen=True, slots=True)
class Passed:
    """Bytes that were ever written to a socket, and read from it; some more in both by a constant."""

    sent: int
    taken: int

    @classmethod
    def through(cls, connection: socket.socket) -> "Passed | None":
        """While nobody writes and reads. None where that cannot be known."""
        try:
            acknowledged, received = _counts(connection)
            for _ in range(_LOOKS):
                unacknowledged = _number(connection, termios.TIOCOUTQ)
                untaken = _number(connection, termios.FIONREAD)
                seen = acknowledged, received
                acknowledged, received = _counts(connection)
                if (acknowledged, received) == seen:
                    return cls(acknowledged + unacknowledged, received - untaken) if received else None
        except (OSError, struct.error):
            pass
        return None


def _counts(connection: socket.socket) -> tuple[int, int]:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_AT + _INFO.size)
    acknowledged, received = _INFO.unpack_from(info, _INFO_AT)
    return acknowledged, received


def _number(connection: socket.socket, request: int) -> int:
    return int.from_bytes(fcntl.ioctl(connection, request, bytes(4)), sys.byteorder)


class Ledger:
    """In memory that the port shares with one borrower."""

    def __init__(self, memory: memoryview) -> None:
        """memory: of zeros, BYTES_EACH for each connection that may be lent at a time."""
        self._words = memory.cast("B").cast("Q")

    def __len__(self) -> int:
        """Connections that may be lent at a time."""
        return len(self._words) // _WORDS

    # By the borrower. A word is written in one piece, and the words in this order.

    def begin(self, number: int, answer_bytes: int, request_bytes: int) -> None:
        """Before the first byte is sent."""
        at = number * _WORDS
        self._words[at + _REQUEST] = request_bytes
        self._words[at + _ANSWER] = answer_bytes

    def end(self, number: int) -> None:
        """When the answer is sent and the request taken."""
        words, at = self._words, number * _WORDS
        words[at + _SENT] += words[at + _ANSWER]
        words[at + _TAKEN] += words[at + _REQUEST]
        words[at + _ANSWER] = 0

    # By the port.

    def open(self, number: int) -> None:
        """Before a connection is lent."""
        at = number * _WORDS
        self._words[at : at + _WORDS] = _CLEAN

    def settle(self, number: int, connection: socket.socket, before: Passed | None) -> bool:
        """Whether the port may go on with a connection after the borrower is gone; it has to be closed
        otherwise. before: what had passed through it when it was lent.
        """
        at = number * _WORDS
        answer, request, sent_before, taken_before = self._words[at : at + _WORDS]
        if not answer:
            return True
        now = Passed.through(connection)
        if before is None or now is None:
            return False
        sent = now.sent - before.sent - sent_before
        if sent == 0:  # or written down already
            return True
        if sent != answer:
            return False
        if (
            now.taken - before.taken - taken_before < request
        ):  # the end of what a client sends counts as a byte
            connection.recv(request, socket.MSG_DONTWAIT)
        return True


_CLEAN = memoryview(bytes(BYTES_EACH)).cast("Q")
