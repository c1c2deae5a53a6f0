"""`KeptValues`: how much of what was read of documents is kept, beside their texts, until they are stored."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["KeptValues"]


class KeptValues:
    """For one event loop. A value may take ten times the room of its text."""

    def __init__(self, bytes_max: int) -> None:
        """bytes_max: of texts, of all requests at once."""
        self._free_bytes = bytes_max

    @contextmanager
    def room(self, size_bytes: int) -> Iterator[bool]:
        """Whether there is room for the values of so much text; it is free again afterwards."""
        has_room = size_bytes <= self._free_bytes
        taken_bytes = size_bytes if has_room else 0
        self._free_bytes -= taken_bytes
        try:
            yield has_room
        finally:
            self._free_bytes += taken_bytes
