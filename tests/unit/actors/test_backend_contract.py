"""The shard, over a real log and real readers, keeps what `serve.backend.GraphNode` promises."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.shards import Shard, open_shard
from tests.unit.serve.backend_contract import BackendContract


class TestStoreShard(BackendContract):
    @pytest.fixture
    def node(self, tmp_path: Path, loop: asyncio.Runner) -> Iterator[Shard]:
        stack = AsyncExitStack()
        shard = loop.run(stack.enter_async_context(open_shard(tmp_path)))
        try:
            yield shard
        finally:
            loop.run(stack.aclose())
