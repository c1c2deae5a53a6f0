"""The search application over memory, behind a real server."""

from collections.abc import Iterator

import httpx
import pytest

from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch

SETTINGS = Settings.model_validate({"server": {"max_body_bytes": 32_000_000}})


@pytest.fixture
def node() -> MemorySearch:
    return MemorySearch()


@pytest.fixture
def url(node: MemorySearch) -> Iterator[str]:
    with serving(build_search_app(node, SETTINGS)) as base_url:
        yield base_url


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        yield client


def reason_of(answer: httpx.Response) -> tuple[int, str, str]:
    """Status, type and reason of a failed request, whose envelope is checked."""
    body = answer.json()
    assert answer.headers["x-elastic-product"] == "Elasticsearch"
    assert body["status"] == answer.status_code
    assert body["error"]["root_cause"]
    return answer.status_code, body["error"]["type"], body["error"]["reason"]
