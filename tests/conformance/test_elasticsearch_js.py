"""Elasticsearch's client for JavaScript and its helpers, over HTTP, on a node in memory."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.npm_packages import npm_directory, why_not_installed

PEER = Path(__file__).parents[1] / "support/elasticsearch_peer.mjs"
NPM, PACKAGES = "elasticsearch-js", ("@elastic/elasticsearch@8.19.2",)


@pytest.fixture
def url() -> Iterator[str]:
    with serving(build_search_app(MemorySearch(), Settings())) as url:
        yield url


def test_the_helpers(url: str) -> None:
    reason = why_not_installed(NPM, PACKAGES)
    if reason is not None:
        pytest.skip(reason)
    script = shutil.copy(PEER, npm_directory(NPM))  # beside what it imports
    done = subprocess.run(["node", script, url], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.splitlines()[-1] == "what is not offered says so"
