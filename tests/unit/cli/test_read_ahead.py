"""`read_ahead`: the same bytes, the same errors, and no thread that is left behind."""

import threading
from io import BytesIO

import pytest

from serve.cli.read_ahead import read_ahead

CHUNK = 65_536


class Endless:
    """Zeros, counted."""

    def __init__(self, fails_after: int | None = None) -> None:
        self.reads, self._fails_after = 0, fails_after

    def read(self, size: int, /) -> bytes:
        if self.reads == self._fails_after:
            raise OSError("unreadable")
        self.reads += 1
        return bytes(size)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "read-ahead"]


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 20 * CHUNK + 7])
@pytest.mark.parametrize("piece", [2_039, CHUNK, 3 * CHUNK])
def test_has_what_the_source_has(size: int, piece: int) -> None:
    document = (bytes(range(251)) * (size // 251 + 1))[:size]
    parts = []
    with read_ahead(BytesIO(document)) as ahead:
        while part := ahead.read(piece):
            assert len(part) <= piece
            parts.append(part)
        assert ahead.read(piece) == b""
    assert b"".join(parts) == document
    assert not threads()


def test_an_error_comes_where_it_is() -> None:
    with read_ahead(Endless(fails_after=3)) as ahead:
        for _ in range(3):
            assert ahead.read(CHUNK) == bytes(CHUNK)
        with pytest.raises(OSError, match="unreadable"):
            ahead.read(CHUNK)
    assert not threads()


def test_a_reader_that_leaves_ends_the_thread() -> None:
    source = Endless()
    with read_ahead(source) as ahead:
        ahead.read(10)
    assert not threads()
    assert source.reads < 30  # what waits is bounded
