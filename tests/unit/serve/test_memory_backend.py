"""The backend in memory keeps the promises of the real one."""

import pytest

from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.backend_contract import BackendContract


class TestMemoryBackend(BackendContract):
    @pytest.fixture
    def node(self) -> MemoryBackend:
        return MemoryBackend()
