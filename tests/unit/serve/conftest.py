"""The application over memory, behind a real server: what a test of the edges talks to."""

from collections.abc import Iterator

import httpx
import pytest

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.oidc_provider import provider as provider
from tests.support.timing import HANG_S

# Clients give up after 5 s unless they are told: too soon beside other tests. It is the object that each of
# httpx's functions has as its default.
httpx._config.DEFAULT_TIMEOUT_CONFIG.read = HANG_S

SETTINGS = Settings.model_validate({"server": {"max_body_bytes": 1_000_000, "cors": ["http://app.example"]}})


@pytest.fixture(scope="module")
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture(scope="module")
def base_url(backend: MemoryBackend) -> Iterator[str]:
    with serving(build_app(backend, SETTINGS)) as url:
        yield url


@pytest.fixture
def client(base_url: str) -> Iterator[httpx.Client]:
    """A client of an empty dataset."""
    with httpx.Client(base_url=base_url, trust_env=False, headers={"Accept": "*/*"}, timeout=HANG_S) as http:
        update(http, "DROP ALL")
        yield http


def update(http: httpx.Client, text: str) -> httpx.Response:
    """Apply an update that has to succeed."""
    answer = http.post("/update", content=text, headers={"Content-Type": "application/sparql-update"})
    assert answer.status_code == 200, answer.text
    return answer


def dump(http: httpx.Client) -> list[str]:
    """Everything that is stored, as sorted N-Quads lines."""
    return sorted(http.get("/data?dataset=all&format=nquads").text.splitlines())


def error_of(answer: httpx.Response) -> str:
    """The message of an answer that has the one shape of an error."""
    body = answer.json()
    assert set(body) == {"error", "status"}
    assert body["status"] == answer.status_code
    assert answer.headers["content-type"] == "application/json"
    message: str = body["error"]
    assert message
    assert "Traceback" not in message
    return message
