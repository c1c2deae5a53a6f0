"""`ReadAhead` against the stream that it reads, with clients of any pace, and little room."""

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator

import pytest

from graphdb.errors import QueryMemoryExceeded
from serve.graph.reading_ahead import ReadAhead, SpoolRoom
from tests.support.timing import HANG_S


class Made:
    """An `AnswerStream` of pieces that are there at once."""

    query_id, where, is_exact, snapshot_index = "q", "reader 1", True, 1

    def __init__(self, pieces: list[bytes], failure: Exception | None = None) -> None:
        self.left, self.failure = list(pieces), failure
        self.closed = asyncio.Event()

    async def read(self) -> bytes | None:
        await asyncio.sleep(0)
        if self.left:
            return self.left.pop(0)
        if self.failure is not None:
            raise self.failure
        return None

    def close(self) -> None:
        self.closed.set()


def pieces_of(count: int, size: int = 1000) -> list[bytes]:
    return [bytes([number % 251]) * size for number in range(count)]


async def all_of(ahead: ReadAhead, choices: random.Random) -> bytes:
    found = b""
    while (piece := await ahead.read()) is not None:
        found += piece
        for _ in range(choices.choice((0, 0, 1, 30))):
            await asyncio.sleep(0)
    return found


async def up_to_failure(ahead: ReadAhead) -> AsyncIterator[bytes]:
    with contextlib.suppress(QueryMemoryExceeded):
        while (piece := await ahead.read()) is not None:
            yield piece
            await asyncio.sleep(0)


@pytest.mark.parametrize("seed", range(30))
def test_pieces_come_in_order_whatever_the_pace_and_the_room(seed: int) -> None:
    async def check() -> None:
        choices = random.Random(seed)
        pieces = pieces_of(choices.randrange(300), choices.choice((1, 700, 70_000)))
        room = SpoolRoom(choices.choice((0, 2_000, 1 << 30)), choices.choice((5_000, 1 << 30)))
        stream = Made(pieces)
        ahead = ReadAhead(stream, room, choices.choice((0.0, 60.0)))
        assert await all_of(ahead, choices) == b"".join(pieces)
        assert await ahead.read() is None
        ahead.close()
        assert stream.closed.is_set()
        assert room.used == 0

    asyncio.run(check())


def test_what_makes_an_answer_is_free_although_nobody_reads_it() -> None:
    async def check() -> None:
        room, pieces = SpoolRoom(), pieces_of(100)
        stream = Made(pieces)
        ahead = ReadAhead(stream, room, 0.0)
        assert await ahead.read() == pieces[0]
        async with asyncio.timeout(HANG_S):
            await stream.closed.wait()
        assert room.used == 99 * 1000
        ahead.close()
        assert room.used == 0

    asyncio.run(check())


def test_a_client_in_time_has_nothing_kept() -> None:
    async def check() -> None:
        room, pieces = SpoolRoom(), pieces_of(100)
        ahead = ReadAhead(Made(pieces), room, HANG_S)
        for piece in pieces:
            assert await ahead.read() == piece
            assert room.used == 0
        ahead.close()

    asyncio.run(check())


def test_more_than_the_room_waits_for_the_client() -> None:
    async def check() -> None:
        stream = Made(pieces_of(100))
        ahead = ReadAhead(stream, SpoolRoom(bytes_max=10_000), 0.0)
        await ahead.read()
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(stream.left) == 100 - 1 - 10
        ahead.close()

    asyncio.run(check())


def test_a_failure_comes_after_what_was_before_it() -> None:
    async def check() -> None:
        pieces = pieces_of(5)
        ahead = ReadAhead(Made(pieces, QueryMemoryExceeded("too much")), SpoolRoom(), 0.0)
        assert b"".join([piece async for piece in up_to_failure(ahead)]) == b"".join(pieces)
        with pytest.raises(QueryMemoryExceeded):
            await ahead.read()
        ahead.close()

    asyncio.run(check())


def test_a_full_disk_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    written = [0]

    def pwrite(fd: int, piece: bytes, offset: int) -> int:
        written[0] += 1
        if written[0] % 3 == 0:
            raise OSError(28, "No space left on device")
        return real(fd, piece if written[0] % 2 else piece[:10], offset)

    async def check() -> None:
        pieces = pieces_of(40)
        ahead = ReadAhead(Made(pieces), SpoolRoom(), 0.0)
        assert await all_of(ahead, random.Random(1)) == b"".join(pieces)
        ahead.close()

    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", pwrite)
    asyncio.run(check())
