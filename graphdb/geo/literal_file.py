"""`LiteralFile`: geometry literals in a nameless file, for they may be long, and few are ever asked for."""

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from pyoxigraph import Literal, NamedNode

from graphdb.geo.vocabulary import LITERALS

__all__ = ["LiteralFile", "Place"]

Place: TypeAlias = tuple[int, int]
"""Where a literal begins in the file, and how many bytes it has."""

_DATATYPES: Final = tuple(map(NamedNode, LITERALS))


class LiteralFile:
    """One thread appends, any may read. Of each literal the number of its datatype, a byte, and its value."""

    def __init__(self, directory: Path | None = None) -> None:
        """directory is where the file is made; None: where temporary files are."""
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            self._fd = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._fd)  # with the last query that looks into it
        self._size = 0

    def append(self, literals: Iterable[Literal]) -> list[Place]:
        """Where each is then. Raises OSError where there is no room."""
        written = [
            bytes((LITERALS.index(literal.datatype.value),)) + literal.value.encode() for literal in literals
        ]
        places, begin = [], self._size
        for each in written:
            places.append((begin, len(each)))
            begin += len(each)
        data = memoryview(b"".join(written))
        while data:
            done = os.pwrite(self._fd, data, self._size)
            self._size, data = self._size + done, data[done:]
        return places

    def read(self, places: Iterable[Place]) -> Iterator[Literal]:
        """The literals that are there."""
        for begin, size in places:
            data = os.pread(self._fd, size, begin)
            yield Literal(data[1:].decode(), datatype=_DATATYPES[data[0]])
