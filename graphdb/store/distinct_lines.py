"""Lines of quads without those that come twice, whatever their number, in bounded memory.

Lines are told apart by numbers of 64 bits; only of those that share one the text is compared.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from graphdb.rdf.quad_lines import line_blocks
from graphdb.store.line_rewriting import Unusual

__all__ = ["DistinctLines"]

_SORTED_MAX = 16_000_000  # numbers that are in memory at once, of 8 bytes, and as many again
_REPEATED_MAX = 1_000_000  # numbers of lines that come twice, which are held in memory with their lines


class DistinctLines:
    """Writes lines to a new file; finish() takes out of it what came twice. Use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = path.open("wb")
        # numbers differ from process to process, so nobody makes lines up that share one
        self._numbers: IO[bytes] = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115 closed by __exit__
        self.count = 0

    def __enter__(self) -> "DistinctLines":
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._numbers.close()

    def add(self, lines: bytes) -> None:
        """Whole lines."""
        self._lines.write(lines)
        numbers = np.fromiter(map(hash, lines.splitlines()), np.int64)
        self._numbers.write(numbers.data)
        self.count += len(numbers)

    def finish(self) -> None:
        """The file is whole, and count says how many lines it has. Raises Unusual where very many come
        twice.
        """
        self._lines.close()
        repeated = set[int]()
        parts = self.count // _SORTED_MAX + 1
        for part in range(parts):
            repeated.update(self._repeated(part, parts))
            if len(repeated) > _REPEATED_MAX:
                raise Unusual("many quads come twice")
        if repeated:
            self._drop(repeated)

    def _repeated(self, part: int, parts: int) -> Iterator[int]:
        """The numbers of one part that more than one line has."""
        self._numbers.seek(0)
        found = []
        while piece := self._numbers.read(8 * _SORTED_MAX):
            numbers: NDArray[np.int64] = np.frombuffer(piece, np.int64)
            found.append(numbers if parts == 1 else numbers[numbers.view(np.uint64) % parts == part])
        numbers = np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)
        yield from numbers[1:][numbers[1:] == numbers[:-1]].tolist()

    def _drop(self, repeated: set[int]) -> None:
        whole = self._path.with_name(f"{self._path.name}.all")
        self._path.rename(whole)
        before = set[bytes]()
        self.count = 0
        with whole.open("rb") as lines, self._path.open("wb") as target:
            for block in line_blocks(lines):
                kept = [line for line in block.splitlines(keepends=True) if _is_first(line, repeated, before)]
                self.count += len(kept)
                target.write(b"".join(kept))
        whole.unlink()


def _is_first(line: bytes, repeated: set[int], before: set[bytes]) -> bool:
    text = line.removesuffix(b"\n")
    if hash(text) not in repeated:
        return True
    if text in before:
        return False
    before.add(text)
    return True
