"""Checkpoints for readers: shared, fresh, told exact or not, and gone when nobody needs them."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Quad, Store

from actors.log.applied_index import AppliedIndex
from actors.readers import checkpoints as module
from actors.readers.checkpoints import Checkpoints
from graphdb.errors import LogUnavailable
from graphdb.store.quad_store import QuadStore
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


class Written:
    """A store on disk with a writer's view of how far it is."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "scratch"
        self.directory.mkdir()
        self.store = Store(directory / "store")
        self.index = 0
        self.applied = AppliedIndex(lambda: self.index)
        self.released: list[str] = []
        self.checkpoints = Checkpoints(self.directory, QuadStore(self.store), self.applied, self._release)

    async def _release(self, path: str) -> None:
        name = os.path.basename(path)
        assert name in os.listdir(self.directory), "readers let go before it is deleted"
        self.released.append(name)

    def write(self) -> None:
        with self.applied.changing():
            self.store.add(Quad(NamedNode(f"urn:{self.index + 1}"), NamedNode("urn:p"), NamedNode("urn:o")))
            self.index += 1

    def kept(self) -> int:
        return len(list(self.directory.iterdir()))


@pytest.fixture
async def written(tmp_path: Path) -> AsyncIterator[Written]:
    made = Written(tmp_path)
    yield made
    await made.checkpoints.close()
    assert made.kept() == 0


async def _settled(written: Written, kept: int) -> None:
    for _ in range(500):
        if written.kept() == kept:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{written.kept()} checkpoints are kept, not {kept}")


async def test_shared_while_current(written: Written) -> None:
    written.write()
    first, second = await asyncio.gather(written.checkpoints.take(), written.checkpoints.take())
    assert first is second
    assert (first.index, first.is_exact) == (1, True)
    assert len(Store.read_only(str(first.path))) == 1
    for checkpoint in (first, second):
        written.checkpoints.give_back(checkpoint)
    assert await written.checkpoints.take() is first
    written.checkpoints.give_back(first)


async def test_a_write_asks_for_a_fresh_one_and_the_old_one_goes_with_its_holder(
    written: Written,
) -> None:
    old = await written.checkpoints.take()
    written.write()
    fresh = await written.checkpoints.take()
    assert (fresh.index, len(Store.read_only(str(fresh.path)))) == (1, 1)
    assert len(Store.read_only(str(old.path))) == 0
    written.checkpoints.give_back(old)
    await _settled(written, 1)
    assert written.released == [old.path.name]
    written.checkpoints.give_back(fresh)


async def test_not_exact_while_a_change_is_applied(written: Written) -> None:
    written.write()
    with written.applied.changing():
        checkpoint = await written.checkpoints.take()
    assert (checkpoint.index, checkpoint.is_exact) == (1, False)
    written.checkpoints.give_back(checkpoint)


async def test_not_exact_when_a_change_comes_in_between(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = QuadStore.checkpoint

    def copy_late(quads: QuadStore, path: Path) -> None:
        written.write()
        copy(quads, path)

    monkeypatch.setattr(QuadStore, "checkpoint", copy_late)
    checkpoint = await written.checkpoints.take()
    assert (checkpoint.index, checkpoint.is_exact) == (0, False)
    written.checkpoints.give_back(checkpoint)


async def test_who_gives_up_waiting_leaves_nothing_behind(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, begun, go_on = QuadStore.checkpoint, threading.Event(), threading.Event()

    def copy_late(quads: QuadStore, path: Path) -> None:
        begun.set()
        assert go_on.wait(HANG_S)
        copy(quads, path)

    monkeypatch.setattr(QuadStore, "checkpoint", copy_late)
    leaving = asyncio.create_task(written.checkpoints.take())
    assert await asyncio.to_thread(begun.wait, 30)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    staying = asyncio.create_task(written.checkpoints.take())
    go_on.set()
    written.checkpoints.give_back(await staying)
    assert written.kept() == 1  # and none once it is closed: see the fixture


async def test_none_is_made_once_closed(written: Written) -> None:
    held = await written.checkpoints.take()
    await written.checkpoints.close()
    with pytest.raises(LogUnavailable):
        await written.checkpoints.take()
    written.checkpoints.give_back(held)


async def test_an_idle_one_goes_once_it_is_outdated(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_IDLE_S", 0.05)
    written.checkpoints.give_back(await written.checkpoints.take())
    await asyncio.sleep(0.2)
    assert written.kept() == 1, "it is current"
    written.write()
    await _settled(written, 0)


async def test_many_takers_amid_writes_see_what_was_there_when_they_asked(written: Written) -> None:
    async def take() -> None:
        asked = written.index
        checkpoint = await written.checkpoints.take()
        seen = len(Store.read_only(str(checkpoint.path)))
        assert asked <= checkpoint.index <= seen
        if checkpoint.is_exact:
            assert seen == checkpoint.index
        written.checkpoints.give_back(checkpoint)

    async def write() -> None:
        for _ in range(60):
            written.write()
            await asyncio.sleep(0.002)

    async def read() -> None:
        for _ in range(15):
            await take()

    await asyncio.gather(write(), *(read() for _ in range(4)))
