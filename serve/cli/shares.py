"""`shared_out`: a document read, decompressed and checked here, while threads load shares of it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from fcntl import F_SETPIPE_SZ, fcntl, ioctl
from pathlib import Path
from struct import unpack
from termios import FIONREAD
from threading import Thread

from graphdb.store.line_documents import Load

__all__ = ["LOADERS", "shared_out"]

# More would hold more in memory, up to a million quads each, and wait for the one thread that reads.
LOADERS = min(4, len(os.sched_getaffinity(0)))
# A document of less is one share: what another would cost, files of its own, is more than it would save.
_FIRST_BYTES = 4 << 20
_PIPE_BYTES = 1 << 20  # that wait for a loader; the most that Linux gives without privileges


def shared_out(pieces: Iterator[bytes], load: Load, loaders: int = LOADERS) -> None:
    """Have each piece loaded once, in one of as many shares as loaders, each on a thread of its own.

    Pieces with blank nodes are all in the first share (see `Sharing`). The engine reads a share from a pipe,
    without the interpreter: of a Python object it would ask for 2 kB at a time. All threads have ended on
    return.
    """
    shares = [_Share(load, number) for number in range(loaders)]
    try:
        if not _fill(shares, pieces):
            _spoil(shares)
    except BaseException:  # Ctrl-C is one
        _spoil(shares)
        raise
    finally:
        for share in shares:
            share.finish()
        for share in shares:  # one that has not begun may wait for another to end
            share.join()
    for share in shares:
        if share.failure is not None:
            raise share.failure


def _fill(shares: list["_Share"], pieces: Iterator[bytes]) -> bool:
    """Hand out all pieces; whether no load failed meanwhile."""
    read = 0
    for piece in pieces:
        read += len(piece)
        is_for_first = read <= _FIRST_BYTES or b"_:" in piece
        share = shares[0] if is_for_first else min(shares, key=_Share.waiting_bytes)
        if not share.write(piece):
            return False
    return True


def _spoil(shares: list["_Share"]) -> None:
    for share in shares:
        share.spoil()


class _Share:
    """Pieces on their way to a thread that loads them."""

    def __init__(self, load: Load, number: int) -> None:
        self.failure: BaseException | None = None
        """What the load raised by itself, known when it has ended."""

        self._is_spoilt = False
        self._reading, self._place = os.pipe()
        with suppress(PermissionError):  # a pipe of the usual size does too
            fcntl(self._place, F_SETPIPE_SZ, _PIPE_BYTES)
        self._thread = Thread(target=self._load, args=(load,), name=f"load-{number}", daemon=True)
        self._thread.start()

    def write(self, piece: bytes) -> bool:
        """Hand over a piece, when there is room for it; False if the load has failed."""
        rest = memoryview(piece)
        try:
            while rest:
                rest = rest[os.write(self._place, rest) :]
        except BrokenPipeError:
            return False
        return True

    def waiting_bytes(self) -> int:
        """That are handed over, but not read yet."""
        (size,) = unpack("i", ioctl(self._place, FIONREAD, bytes(4)))
        return int(size)

    def spoil(self) -> None:
        """Let the load add nothing: no document goes on like this."""
        self._is_spoilt = self.write(b"\n<\n")

    def finish(self) -> None:
        """There is no more."""
        os.close(self._place)

    def join(self) -> None:
        """Wait for the load to end."""
        self._thread.join()
        if self._is_spoilt:
            self.failure = None

    def _load(self, load: Load) -> None:
        try:
            load(Path(f"/dev/fd/{self._reading}"))
        except BaseException as error:  # noqa: BLE001 the caller gets it
            self.failure = error
        finally:
            os.close(self._reading)
