"""Reading and writing small binary records with bounds; it knows nothing of what they mean.

All integers are little-endian and unsigned. Text and bytes carry their length, 4 bytes, before them.
"""

import struct

__all__ = ["Malformed", "WireReader", "pack_bytes"]

_LENGTH = struct.Struct("<I")


class Malformed(ValueError):
    """Bytes that are not what they should be. They come from outside: an answer to them, not a fault here."""


def pack_bytes(data: bytes) -> bytes:
    """Bytes with their length before them."""
    return _LENGTH.pack(len(data)) + data


class WireReader:
    """Takes values off the front of a buffer. Methods raise Malformed where the bytes do not suffice."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """The integers of a fixed layout."""
        try:
            values = layout.unpack_from(self._data, self._offset)
        except struct.error as error:
            raise Malformed("cut short") from error
        self._offset += layout.size
        return values

    def take_bytes(self, length_max: int) -> bytes:
        """Bytes with their length before them."""
        (length,) = self.unpack(_LENGTH)
        if length > length_max or length > len(self._data) - self._offset:
            raise Malformed(f"{length} bytes announced")
        start, self._offset = self._offset, self._offset + length
        return self._data[start : self._offset]

    def take_text(self, length_max: int) -> str:
        """Text in UTF-8, length_max in bytes."""
        try:
            return self.take_bytes(length_max).decode()
        except UnicodeDecodeError as error:
            raise Malformed("text that is not UTF-8") from error

    def take_flag(self, value: int) -> bool:
        """A byte that must be 0 or 1."""
        if value not in (0, 1):
            raise Malformed(f"{value} where 0 or 1 belongs")
        return bool(value)

    def finish(self) -> None:
        """Nothing may be left."""
        if self._offset != len(self._data):
            raise Malformed(f"{len(self._data) - self._offset} bytes too many")
