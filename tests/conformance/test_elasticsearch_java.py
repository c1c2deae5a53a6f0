"""Elasticsearch's client for Java, over HTTP, on a node in memory: it refuses answers that lack a member."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.java_programs import run_java, why_no_java
from tests.support.memory_search import MemorySearch

PEER = Path(__file__).parents[1] / "support/ElasticsearchPeer.java"
ARTIFACTS = (
    "co.elastic.clients:elasticsearch-java:8.19.12",
    "com.fasterxml.jackson.core:jackson-databind:2.18.3",
    "org.slf4j:slf4j-nop:1.7.36",
)


@pytest.fixture
def url() -> Iterator[str]:
    with serving(build_search_app(MemorySearch(), Settings())) as url:
        yield url


def test_every_answer_can_be_read(url: str) -> None:
    reason = why_no_java(PEER, ARTIFACTS)
    if reason is not None:
        pytest.skip(reason)
    told = run_java(PEER, url).splitlines()
    assert told[-1] == "every answer could be read"
