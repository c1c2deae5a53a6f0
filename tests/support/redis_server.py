"""`RedisServer`: a real Redis on a loopback port of its own."""

import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.server_process import ServerProcess
from tests.support.service import free_port

__all__ = ["RedisServer", "needs_redis"]

COMMAND = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(
    COMMAND is None, reason="redis-server is missing: apt-get install redis-server"
)


class RedisServer(ServerProcess):
    """Started when made; what it held is gone when it is started again."""

    def __init__(self, directory: Path, password: str) -> None:
        assert COMMAND is not None
        port = free_port()
        self.url = f"redis://:{quote(password)}@127.0.0.1:{port}/0"
        options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory)]
        options += ["--save", "", "--appendonly", "no", "--requirepass", password]
        super().__init__([COMMAND, *options], port)
        self.start()
