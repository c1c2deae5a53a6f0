"""The service as clients of Apache Jena see it: `RDFConnectionRemote`; RDF Patch, read and written."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.jena import run_program, why_no_jena
from tests.support.service import Service

pytestmark = pytest.mark.ray

EXPECTED = [
    'select: "1"^^xsd:integer',
    'select: "a"@en',
    "ask: true",
    "construct: 2",
    "describe: 2",
    "fetch graph: true",
    "size: 2",
    "deleted: true",
    "fetch default: 2",
    "loaded: true",
    "put: true",
    "header: true",
    "replayed: true",
    "posted: 200",
    "left: 1",
    "graphs left: 1",
]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose whole dataset the program may replace."""
    running = Service(tmp_path_factory.mktemp("jena") / "data")
    try:
        yield running.start()
    finally:
        running.close()


@pytest.mark.parametrize("endpoints", ["default", "named"])
def test_a_connection_and_patches(own: Service, endpoints: str) -> None:
    if (reason := why_no_jena()) is not None:
        pytest.skip(reason)
    assert httpx.delete(f"{own.url}/ds", trust_env=False).status_code == 200
    assert run_program("JenaClient", own.url, endpoints) == EXPECTED
