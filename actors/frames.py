"""Frames: how messages follow each other on a service's own Unix domain sockets. It knows nothing of sockets.

A frame is, little-endian: 4 bytes length of the body, 1 byte code, 4 bytes number, then the body. What a code
means is the protocol's business (`actors.log.protocol`, `actors.readers.protocol`). The number tells requests
under way on one connection apart; it is 0 where a connection carries one at a time. Nothing is pickled.
"""

import struct
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

__all__ = ["Frame", "FrameReader", "encode_frame", "read_frame", "read_frame_from"]

_HEAD = struct.Struct("<IBI")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    code: int
    number: int
    body: bytes


class ByteStream(Protocol):
    """What `read_frame` needs of an asyncio.StreamReader."""

    def readexactly(self, n: int) -> Awaitable[bytes]: ...


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Add bytes; yield the frames that are complete now."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            length, code, number = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            body = bytes(memoryview(self._buffer)[_HEAD.size : end])
            del self._buffer[:end]
            yield Frame(code, number, body)


def encode_frame(code: int, number: int, body: bytes) -> bytes:
    return _HEAD.pack(len(body), code, number) + body


async def read_frame(stream: ByteStream) -> Frame | None:
    """The next frame; None where the other end is gone, in the middle of a frame too."""
    try:
        length, code, number = _HEAD.unpack(await stream.readexactly(_HEAD.size))
        return Frame(code, number, await stream.readexactly(length))
    except (EOFError, ConnectionError):
        return None


def read_frame_from(stream: BinaryIO) -> Frame | None:
    """`read_frame` for who may block."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, code, number = _HEAD.unpack(head)
    body = stream.read(length)
    return Frame(code, number, body) if len(body) == length else None
