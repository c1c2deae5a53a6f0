"""One running service for all the tests that only need one; each start takes seconds."""

from collections.abc import Iterator

import pytest

from tests.support.oidc_provider import provider as provider
from tests.support.service import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running service that tests share: use names of your own, and leave it running."""
    running = Service(tmp_path_factory.mktemp("service") / "data")
    try:
        yield running.start()
    finally:
        running.close()
