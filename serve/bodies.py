"""Request bodies: streamed, decompressed, and counted against the limit while they come in."""

import zlib
from collections.abc import AsyncIterator, Iterator

import zstandard
from starlette.requests import ClientDisconnect, Request

from graphdb.errors import BodyTooLarge, InvalidParameter, UnsupportedMediaType
from serve.negotiation import MediaType, parse_media_type

__all__ = ["body_chunks", "content_type", "read_body", "read_text"]

OUTPUT_BYTES = 65_536
# A zstd block of 4 bytes can stand for 128 KiB, and one call expands all it is given: so it is given little.
ZSTD_INPUT_BYTES = 256
# RFC 9659: what a zstd content coding may demand of its reader.
ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
ENCODINGS = ("identity", "gzip", "zstd")


def content_type(request: Request, accepted: tuple[str, ...]) -> MediaType:
    """The body's media type; the text has to be UTF-8. Raises UnsupportedMediaType, which tells accepted."""
    header = request.headers.get("content-type", "")
    try:
        media_type = parse_media_type(header)
    except ValueError:
        raise UnsupportedMediaType(header, accepted) from None
    if media_type.parameter("charset") not in (None, "utf-8"):
        raise UnsupportedMediaType(header, tuple(f"{name}; charset=utf-8" for name in accepted))
    return media_type


async def body_chunks(request: Request, bytes_max: int) -> AsyncIterator[bytes]:
    """The body, decompressed, in pieces of bounded size.

    Raises UnsupportedMediaType for a Content-Encoding that is not known, BodyTooLarge as soon as the limit is
    passed, InvalidParameter for compressed bytes that are damaged or cut short, and Starlette's
    ClientDisconnect.
    """
    _check_announced_length(request, bytes_max)
    decoder = _decoder(request)
    seen = 0
    async for received in request.stream():
        for chunk in decoder.feed(received):
            seen += len(chunk)
            if seen > bytes_max:
                raise BodyTooLarge(bytes_max)
            yield chunk
    decoder.check_complete()


async def read_body(request: Request, bytes_max: int) -> bytes:
    """The whole body; for what has to be in memory at once. Raises as body_chunks."""
    if "content-encoding" in request.headers:
        return b"".join([chunk async for chunk in body_chunks(request, bytes_max)])
    return await _read_plain(request, bytes_max)


async def _read_plain(request: Request, bytes_max: int) -> bytes:
    """The usual short body, at half the cost of the general way."""
    _check_announced_length(request, bytes_max)
    body, more = b"", True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > bytes_max:
            raise BodyTooLarge(bytes_max)
    return body


async def read_text(request: Request, bytes_max: int) -> str:
    """The whole body as text. Raises as body_chunks, and InvalidParameter for what is not UTF-8."""
    try:
        return (await read_body(request, bytes_max)).decode()
    except UnicodeDecodeError as error:
        raise InvalidParameter("body", f"is not UTF-8 ({error.reason} at byte {error.start})") from None


def _check_announced_length(request: Request, bytes_max: int) -> None:
    """Refuse at once what is already too long before decompression."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > bytes_max:
        raise BodyTooLarge(bytes_max)


def _decoder(request: Request) -> "_Identity | _Compressed":
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return _Identity()
    if encoding in ("gzip", "x-gzip"):
        return _Compressed(_Gzip, "gzip")
    if encoding == "zstd":
        return _Compressed(_Zstd, "zstd")
    raise UnsupportedMediaType(f"Content-Encoding {encoding}", ENCODINGS)


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
