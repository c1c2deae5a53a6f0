"""JSON behind a line with its format and a CRC-32: what the small files of search are."""

import zlib
from typing import Any

import orjson

from graphdb.errors import CorruptionError

__all__ = ["decode_checked", "encode_checked"]


def encode_checked(mark: str, value: object) -> bytes:
    """mark names the format and its version, without spaces."""
    body = orjson.dumps(value)
    return f"{mark} {zlib.crc32(body):08x}\n".encode() + body


def decode_checked(mark: str, data: bytes, what: str, where: str) -> Any:
    """Raises CorruptionError, which says what the file should be and where it lies."""
    head, _, body = data.partition(b"\n")
    found, _, checksum = head.decode("latin-1").partition(" ")
    if found != mark:
        raise CorruptionError(f"no {what}, or one of another format", where)
    if checksum != f"{zlib.crc32(body):08x}":
        raise CorruptionError(f"the checksum of the {what} does not fit", where)
    return orjson.loads(body)
