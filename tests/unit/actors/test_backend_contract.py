"""The shard, over a real log in this process, keeps what `serve.backend.Backend` promises."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.log_client import LogClient
from actors.store_shard import StoreShard
from actors.update_log import UpdateLog
from graphdb.config import Settings
from graphdb.log.file_log import FileLogConfig
from tests.unit.serve.backend_contract import BackendContract


class TestStoreShard(BackendContract):
    @pytest.fixture
    def node(self, tmp_path: Path, loop: asyncio.Runner) -> Iterator[StoreShard]:
        log = UpdateLog(str(tmp_path / "log"), FileLogConfig(segment_bytes=65_536, reserve_bytes=65_536))

        async def endpoint() -> str:
            return log.endpoint()

        shard = StoreShard(Settings.model_validate({"server": {"data_dir": tmp_path}}), LogClient(endpoint))
        loop.run(shard.start())
        try:
            yield shard
        finally:
            loop.run(shard.close())
            log.close()
