"""`read_ahead`: a document read, decompressed and checked on a thread, while the engine parses."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from threading import Event, Thread

from graphdb.rdf.reading import ByteSource

__all__ = ["read_ahead"]

_CHUNK_BYTES = 65_536
_CHUNKS_MAX = 8  # that wait for the reader; then the thread waits


@contextmanager
def read_ahead(source: ByteSource) -> Iterator[ByteSource]:
    """What source has, in the same order. What it raises is raised where the reader comes to that place.

    source is used on the thread alone, which has ended when the block has.
    """
    reading = _ReadAhead(source)
    try:
        yield reading
    finally:
        reading.close()


class _ReadAhead:
    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._chunks: Queue[bytes | BaseException] = Queue(_CHUNKS_MAX)  # the last one is empty, or an error
        self._is_left = Event()
        self._chunk, self._place, self._has_ended = b"", 0, False
        self._thread = Thread(target=self._read_all, name="read-ahead", daemon=True)
        self._thread.start()

    def read(self, size: int, /) -> bytes:
        """At most size bytes, none only at the end."""
        if self._place == len(self._chunk) and not self._has_ended:
            self._chunk, self._place = self._next(), 0
        piece = self._chunk[self._place : self._place + size]
        self._place += len(piece)
        return piece

    def close(self) -> None:
        """Let the thread end."""
        self._is_left.set()
        while not self._has_ended:
            self._take()
        self._thread.join()

    def _next(self) -> bytes:
        chunk = self._take()
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk

    def _take(self) -> bytes | BaseException:
        chunk = self._chunks.get()
        self._has_ended = isinstance(chunk, BaseException) or not chunk
        return chunk

    def _read_all(self) -> None:
        try:
            while not self._is_left.is_set() and (chunk := self._source.read(_CHUNK_BYTES)):
                self._chunks.put(chunk)
            self._chunks.put(b"")
        except BaseException as error:  # noqa: BLE001 the reader gets it
            self._chunks.put(error)
