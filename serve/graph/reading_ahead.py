"""`ReadAhead`: an answer that is made further than its client has read it, and kept in a file meanwhile.

What makes answers is scarce (`readers.count`). It is not to wait for clients that read slowly.
"""

import asyncio
import os
import tempfile
from typing import IO

from serve.backend import AnswerStream

__all__ = ["ReadAhead", "SpoolRoom"]

_PATIENCE_S = 1.0  # that the client may let an answer wait, altogether, before it is read ahead
_ANSWER_BYTES_MAX = 256 << 20
_BYTES_MAX = 1 << 30
_PIECE_BYTES = 1 << 16


class SpoolRoom:
    """Bytes on the disk that the answers of a port may take, one and all together. At most a piece more."""

    def __init__(self, bytes_max: int = _BYTES_MAX, answer_bytes_max: int = _ANSWER_BYTES_MAX) -> None:
        self._bytes_max, self._answer_bytes_max = bytes_max, answer_bytes_max
        self.used = 0

    def has_left(self, of_answer: int) -> bool:
        """For one that has so many bytes there."""
        return of_answer < self._answer_bytes_max and self.used < self._bytes_max


class ReadAhead:
    """The pieces of one `AnswerStream`, in its order. Used on one event loop."""

    def __init__(self, stream: AnswerStream, room: SpoolRoom, patience_s: float = _PATIENCE_S) -> None:
        """Whoever makes one closes it, and that closes the stream."""
        self._stream, self._room, self._patience_s = stream, room, patience_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._handed_at = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._more = asyncio.Event()  # something is kept, or nothing more will be
        self._file: IO[bytes] | None = None
        self._start = self._end = 0  # of what is kept in the file, and was not read yet
        self._unkept = b""  # what comes after that: the disk is full
        self._is_over = False
        self._failure: Exception | None = None

    async def read(self) -> bytes | None:
        """See `AnswerStream`."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._patience_s -= self._loop.time() - self._handed_at
        while self._start == self._end and self._reading is not None:
            self._more.clear()
            await self._more.wait()
        if self._start < self._end:
            return self._from_file()
        if self._unkept:
            piece, self._unkept = self._unkept, b""
            return piece
        if self._failure is not None:
            raise self._failure
        return None if self._is_over else await self._from_stream()

    def close(self) -> None:
        """See `AnswerStream`."""
        if self._timer is not None:
            self._timer.cancel()
        if self._reading is not None:
            self._reading.cancel()
        self._stream.close()
        self._empty()

    async def _from_stream(self) -> bytes | None:
        piece = await self._stream.read()
        if piece is None:
            self._is_over = True
            return None
        self._handed_at = self._loop.time()
        self._timer = self._loop.call_later(max(self._patience_s, 0), self._go_ahead)
        return piece

    def _go_ahead(self) -> None:
        """The client has not come for the next piece."""
        self._reading = self._loop.create_task(self._read_ahead())

    async def _read_ahead(self) -> None:
        try:
            while not self._unkept and self._room.has_left(self._end):
                piece = await self._stream.read()
                if piece is None:
                    self._is_over = True
                    self._stream.close()
                    return
                self._keep(piece)
                self._more.set()
        except Exception as error:  # noqa: BLE001 whoever reads gets it
            self._failure = error
        finally:
            self._reading = None
            self._more.set()

    def _keep(self, piece: bytes) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 closed with this
            if os.pwrite(self._file.fileno(), piece, self._end) < len(piece):
                self._unkept = piece
                return
        except OSError:
            self._unkept = piece
            return
        self._end += len(piece)
        self._room.used += len(piece)

    def _from_file(self) -> bytes:
        assert self._file is not None
        piece = os.pread(self._file.fileno(), min(_PIECE_BYTES, self._end - self._start), self._start)
        self._start += len(piece)
        if self._start == self._end and self._reading is None:
            self._empty()
        return piece

    def _empty(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._room.used -= self._end
        self._start = self._end = 0
