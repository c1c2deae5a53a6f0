"""A borrower in a process of its own, which kills itself at a place of its answer to DEATH.

`python -m tests.support.mortal_borrower CHANNEL MEMORY PLACE`: two file numbers; see `serve.port.ledger`.
"""

import os
import signal
import socket
import sys
from typing import Any

from actors.search.search_processes import SharedMemory
from serve.port.application import Answering, WholeAnswer
from serve.port.borrowing import Borrower
from serve.port.ledger import Ledger

__all__ = ["DEATH", "LONG_DEATH"]

DEATH = b"death"
LONG_DEATH = b"long death"  # answered with more than a socket takes at once
_LONG_BYTES = 40 << 20


class _Mortal:
    """Of one borrower."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._answers = False

    def come_to(self, place: str) -> None:
        if self._answers and place == self._place:
            os.kill(os.getpid(), signal.SIGKILL)

    def may_answer(self, method: bytes, target: bytes, body_bytes: int) -> bool:
        return method == b"POST"

    def understood(self, method: bytes, target: bytes, scheme: str, headers: Any) -> Answering:
        return self._answer

    def _answer(self, body: bytes) -> WholeAnswer:
        self._answers = body in (DEATH, LONG_DEATH)
        self.come_to("answered")
        text = b"x" * _LONG_BYTES if body == LONG_DEATH else b"borrower:" + body
        return WholeAnswer([(b"content-type", b"text/plain")], text)


class _Ledger(Ledger):
    mortal: _Mortal

    def begin(self, number: int, answer_bytes: int, request_bytes: int) -> None:
        super().begin(number, answer_bytes, request_bytes)
        self.mortal.come_to("begun")

    def end(self, number: int) -> None:
        self.mortal.come_to("taken")
        super().end(number)
        self.mortal.come_to("ended")


class _Borrower(Borrower):
    mortal: _Mortal

    def _sent(self, one: Any, data: bytes) -> int:
        sent = super()._sent(one, data)
        self.mortal.come_to("sent")
        return sent


def _main() -> None:
    channel, memory, place = sys.argv[1:]
    _Ledger.mortal = _Borrower.mortal = _Mortal(place)
    ledger = _Ledger(SharedMemory(int(memory)).view)
    beat = memoryview(bytearray(8)).cast("Q")
    _Borrower(socket.socket(fileno=int(channel)), ledger, beat, _Borrower.mortal, lambda: [], []).run()


if __name__ == "__main__":
    _main()
