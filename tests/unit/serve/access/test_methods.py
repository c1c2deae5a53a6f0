"""Methods that no route has."""

from pathlib import Path

import httpx
import pytest

from serve.graph_app import build_app
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_graph import MemoryGraph
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import key, settings_of


@pytest.mark.parametrize("port", ["graph", "search"])
def test_nobody_may_use_them(tmp_path: Path, port: str) -> None:
    settings = settings_of(tmp_path)
    app = build_search_app(MemorySearch(MemoryGraph("")), settings)
    with (
        serving(build_app(MemoryBackend(), settings) if port == "graph" else app) as url,
        httpx.Client(base_url=url, headers=key("admin"), trust_env=False, timeout=HANG_S) as client,
    ):
        for method in ("TRACE", "PATCH", "PROPFIND"):
            answer = client.request(method, "/sparql" if port == "graph" else "/_search")
            assert answer.status_code == 405, method
            assert "GET" in answer.headers["allow"]
            assert key("admin")["X-API-Key"] not in answer.text
