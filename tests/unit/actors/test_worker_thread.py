"""When a node is closed, nothing writes into its store any more, however late a thread has its next turn."""

import asyncio
import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.shards import Shard, stand_alone

pytestmark = pytest.mark.anyio


class _SlowThreads(ThreadPoolExecutor):
    """After a call, its threads keep what they have called, as those do that wait for their turn."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self._kept.append((fn, args, kwargs))
        return super().submit(fn, *args, **kwargs)


def open_files(directory: Path) -> list[str]:
    """Of this process."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:  # the one that this has listed them by
            continue
    return [path for path in found if path.startswith(f"{directory}/")]


async def test_a_closed_node_has_closed_its_store(tmp_path: Path) -> None:
    asyncio.get_running_loop().set_default_executor(_SlowThreads())
    async with stand_alone(tmp_path) as node:
        await node.writes(FULL_VISIBILITY).update(
            parse_update("INSERT DATA { <urn:s> <urn:p> <urn:o> }"), Dataset()
        )
        await use_threads(node)
        assert open_files(tmp_path / "store")
    assert open_files(tmp_path / "store") == []


async def use_threads(node: Shard) -> None:
    """Whatever works on the store beside its writer."""
    store = node.opened()
    await store.checkpointer.checkpoint()
    store.checkpoints.give_back(await store.checkpoints.take())
