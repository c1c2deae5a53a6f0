"""Content codings and compressed files undone: gzip and zstd expand piece by piece, so that little input
cannot fill memory.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Protocol, cast

from backports import zstd

from graphdb.errors import InvalidParameter, UnsupportedMediaType

__all__ = ["DAMAGES", "ContentDecoder", "CountedReads", "content_decoder", "decompressed", "is_compressed"]

OUTPUT_BYTES = 65_536
# RFC 9659: the window that a zstd content coding may demand of its reader, 8 MiB.
ZSTD_WINDOW_LOG = 23
ENCODINGS = ("identity", "gzip", "zstd")
DAMAGES = (EOFError, gzip.BadGzipFile, zlib.error, zstd.ZstdError)  # what reading a damaged file raises

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_READ_BYTES = 1 << 20


class ContentDecoder(Protocol):
    """Raises InvalidParameter for what is damaged."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the next piece stands for, in pieces of bounded size; to be used up before the next call."""

    def check_complete(self) -> None:
        """Raise where what was fed is cut short."""


def content_decoder(encoding: str) -> ContentDecoder:
    """A decoder for one body with this Content-Encoding. Raises UnsupportedMediaType."""
    name = encoding.strip().lower() or "identity"
    if name == "identity":
        return _Identity()
    if name in ("gzip", "x-gzip"):
        return _Compressed(_Gzip, "gzip")
    if name == "zstd":
        return _Compressed(_Zstd, "zstd")
    raise UnsupportedMediaType(f"Content-Encoding {name}", ENCODINGS)


class _Identity:
    def feed(self, data: bytes) -> Iterator[bytes]:
        if data:
            yield data

    def check_complete(self) -> None:
        pass


class _Gzip:
    """One gzip member; expands piece by piece, so that little input cannot fill the memory."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._inflate.eof:
            yield self._inflate.decompress(data, OUTPUT_BYTES)
            data = self._inflate.unconsumed_tail

    @property
    def ended(self) -> bool:
        return self._inflate.eof

    @property
    def rest(self) -> bytes:
        """What follows the end of this member in the data last fed."""
        return self._inflate.unused_data


class _Zstd:
    """One zstd frame; expands as `_Gzip` does."""

    def __init__(self) -> None:
        self._inflate = zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}
        )

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._inflate.decompress(data, OUTPUT_BYTES)
        while not (self._inflate.eof or self._inflate.needs_input):
            yield self._inflate.decompress(b"", OUTPUT_BYTES)

    @property
    def ended(self) -> bool:
        return self._inflate.eof

    @property
    def rest(self) -> bytes:
        """What follows the end of this frame in the data last fed."""
        return self._inflate.unused_data


class _Compressed:
    """Members or frames one after another, as both formats allow; the body ends where one ends."""

    def __init__(self, new_member: type[_Gzip | _Zstd], name: str) -> None:
        self._new_member, self._name = new_member, name
        self._member = new_member()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.ended:
                self._member = self._new_member()
            self._begun = True
            try:
                yield from filter(None, self._member.feed(data))
            except (zlib.error, zstd.ZstdError) as error:
                raise InvalidParameter("body", f"is not {self._name}: {error}") from None
            data = self._member.rest if self._member.ended else b""

    def check_complete(self) -> None:
        if not (self._begun and self._member.ended):
            raise InvalidParameter("body", f"the {self._name} data are cut short")


class CountedReads(io.RawIOBase):
    """A raw stream; report is told of bytes as they are read from it."""

    def __init__(self, raw: IO[bytes], report: Callable[[int], None]) -> None:
        self._raw, self._report = raw, report

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # a buffer is a memoryview here
        chunk = self._raw.read(len(buffer))
        buffer[: len(chunk)] = chunk
        self._report(len(chunk))
        return len(chunk)


def is_compressed(beginning: bytes) -> bool:
    """Whether a file that begins so is compressed; its name does not tell."""
    return beginning.startswith((_GZIP_MAGIC, _ZSTD_MAGIC))


def decompressed(raw: io.RawIOBase) -> IO[bytes]:
    """A file's content, compressed or not. Reading raises DAMAGES."""
    buffered = io.BufferedReader(raw, _READ_BYTES)
    start = buffered.peek(4)[:4]
    if start.startswith(_GZIP_MAGIC):
        return cast(IO[bytes], gzip.GzipFile(fileobj=buffered))
    if start.startswith(_ZSTD_MAGIC):
        return cast(IO[bytes], zstd.ZstdFile(buffered))
    return buffered
