"""Content codings undone: gzip and zstd expand piece by piece, so that little input cannot fill memory."""

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

from graphdb.errors import InvalidParameter, UnsupportedMediaType

__all__ = ["ContentDecoder", "content_decoder"]

OUTPUT_BYTES = 65_536
# A zstd block of 4 bytes can stand for 128 KiB, and one call expands all it is given: so it is given little.
ZSTD_INPUT_BYTES = 256
# RFC 9659: what a zstd content coding may demand of its reader.
ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
ENCODINGS = ("identity", "gzip", "zstd")


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
    """One zstd frame."""

    def __init__(self) -> None:
        self._inflate = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).decompressobj()
        self._left = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), ZSTD_INPUT_BYTES):
            yield self._inflate.decompress(data[start : start + ZSTD_INPUT_BYTES])
            if self._inflate.eof:
                self._left = self._inflate.unused_data + data[start + ZSTD_INPUT_BYTES :]
                return

    @property
    def ended(self) -> bool:
        return self._inflate.eof

    @property
    def rest(self) -> bytes:
        return self._left


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
            except (zlib.error, zstandard.ZstdError) as error:
                raise InvalidParameter("body", f"is not {self._name}: {error}") from None
            data = self._member.rest if self._member.ended else b""

    def check_complete(self) -> None:
        if not (self._begun and self._member.ended):
            raise InvalidParameter("body", f"the {self._name} data are cut short")
