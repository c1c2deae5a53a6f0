"""What tests of the nodes' ends of port 7002 share."""

import logging
from collections.abc import Iterator

import pytest

from tests.support.peer_ends import Network


@pytest.fixture
def network(caplog: pytest.LogCaptureFixture) -> Iterator[Network]:
    """Closed in the end; what its nodes warn of is kept."""
    caplog.set_level(logging.WARNING)
    network = Network()
    yield network
    network.close()
