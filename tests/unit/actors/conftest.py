"""What the tests of actors without Ray share."""

from pathlib import Path

import pytest

from tests.support.reader_tasks import make_checkpoint


@pytest.fixture
def anyio_backend() -> str:
    """Coroutines marked `anyio` run on asyncio, as the actors do."""
    return "asyncio"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `make_checkpoint`."""
    return make_checkpoint(tmp_path_factory.mktemp("readers"))
