"""What lifecycles ask for is done; what is refused is not asked for all the time."""

import logging
from typing import Any

import pytest

from actors.search.lifecycle_keeper import LifecycleKeeper
from graphdb.errors import LogUnavailable
from graphdb.search.catalog.catalog_commands import (
    Command,
    CreateIndex,
    DeleteIndices,
    PutLifecycle,
    PutSettings,
)
from graphdb.search.errors import SearchError
from tests.support.memory_search import MemorySearch

pytestmark = pytest.mark.anyio

LOOK_S = 30


class Node:
    """One index, which a policy deletes. tried: at which seconds its deletion was."""

    def __init__(self) -> None:
        self.memory = MemorySearch()
        self.tried: list[int] = []
        self.error: Exception | None = None
        self._begun_ms = self.memory.clock_ms
        self._keeper = LifecycleKeeper(self.perform, self.memory.now_ms, LOOK_S)

    async def make(self) -> None:
        phases: dict[str, Any] = {"delete": {"actions": {"delete": {}}}}
        await self.memory.perform(PutLifecycle("p", {"phases": phases}))
        await self.memory.perform(CreateIndex("old", "u", {"settings": {"index.lifecycle.name": "p"}}))

    async def perform(self, command: Command) -> Any:
        if isinstance(command, DeleteIndices):
            self.tried.append((self.memory.clock_ms - self._begun_ms) // 1000)
        if self.error is not None:
            raise self.error
        return await self.memory.perform(command)

    async def look(self, times: int) -> None:
        for _ in range(times):
            self.memory.clock_ms += LOOK_S * 1000
            await self._keeper.look(self.memory.catalog.state)


async def test_what_is_refused_is_tried_after_longer_and_longer(caplog: pytest.LogCaptureFixture) -> None:
    node = Node()
    await node.make()
    await node.memory.perform(PutSettings(("u",), {"index.blocks.read_only": True}))
    with caplog.at_level(logging.WARNING):
        await node.look(100)
    assert node.tried == [30, 60, 120, 240, 480, 960, 1560, 2160, 2760]
    assert len(caplog.records) == 1
    assert "read-only" in caplog.text
    await node.memory.perform(PutSettings(("u",), {"index.blocks.read_only": None}))
    await node.look(20)
    assert node.tried[-1] == 3360
    assert node.memory.catalog.find("old") is None


async def test_what_cannot_be_reached_is_tried_each_time() -> None:
    node = Node()
    await node.make()
    node.error = LogUnavailable("no leader")
    await node.look(4)
    assert node.tried == [30, 60, 90, 120]
    node.error = None
    await node.look(1)
    assert node.memory.catalog.find("old") is None


async def test_a_step_that_was_asked_for_anew_begins_anew() -> None:
    node = Node()
    await node.make()
    node.error = SearchError("illegal_argument_exception", "no")
    await node.look(4)
    assert node.tried == [30, 60, 120]
    await node.memory.perform(PutSettings(("u",), {"index.lifecycle.name": None}))
    await node.look(1)
    await node.memory.perform(PutSettings(("u",), {"index.lifecycle.name": "p"}))
    await node.look(2)
    assert node.tried == [30, 60, 120, 180, 210]
