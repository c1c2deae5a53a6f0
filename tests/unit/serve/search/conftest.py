"""The search application over memory, behind a real server."""

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from graphdb.config import Settings
from graphdb.search.catalog.index_settings import KNOWN
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S

SETTINGS = Settings.model_validate({"server": {"max_body_bytes": 32_000_000}})


# For tests of what is not about searching, and of what the number of shards changes: counts of shards,
# sequence numbers, the order of equal hits, documents that are read without the routing that they have.
one_shard = pytest.mark.one_shard


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """shards: of indexes whose makers do not say how many they are to have."""
    if "shards" in metafunc.fixturenames:
        counts = [1] if metafunc.definition.get_closest_marker("one_shard") else [1, 3]
        metafunc.parametrize("shards", counts, ids="{}_shards".format)


@pytest.fixture
def node(shards: int, monkeypatch: pytest.MonkeyPatch) -> MemorySearch:
    setting = replace(KNOWN["number_of_shards"], default=str(shards))
    monkeypatch.setitem(KNOWN, "number_of_shards", setting)
    return MemorySearch()


@pytest.fixture
def url(node: MemorySearch) -> Iterator[str]:
    with serving(build_search_app(node, SETTINGS)) as base_url:
        yield base_url


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client:
        yield client


def reason_of(answer: httpx.Response) -> tuple[int, str, str]:
    """Status, type and reason of a failed request, whose envelope is checked."""
    body = answer.json()
    assert answer.headers["x-elastic-product"] == "Elasticsearch"
    assert body["status"] == answer.status_code
    assert body["error"]["root_cause"]
    return answer.status_code, body["error"]["type"], body["error"]["reason"]
