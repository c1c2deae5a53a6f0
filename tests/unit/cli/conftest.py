"""The command in this process, against a real HTTP server over the in-memory backend."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphdb.config import Settings
from graphdb.config.service import Server
from serve.cli.main import main
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.oidc_provider import provider as provider


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    exit_code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(autouse=True)
def own_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands of a test keep profiles; not where those of whoever runs it are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "graphdb"


@pytest.fixture
def graphdb(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run the command with arguments."""

    def run(*arguments: object) -> Done:
        exit_code = main([str(argument) for argument in arguments])
        captured = capfdbinary.readouterr()
        return Done(exit_code, captured.out.decode(), captured.err.decode())

    return run


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def endpoint(backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A service with an empty store, whose address the commands find in the environment."""
    with serving(build_app(backend, Settings())) as url:
        monkeypatch.setenv("GRAPHDB_ENDPOINT", url)
        yield url


@pytest.fixture
def small_endpoint(backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same, but bodies are limited to 2,000 bytes."""
    settings = Settings(server=Server(max_body_bytes=2000))
    with serving(build_app(backend, settings)) as url:
        monkeypatch.setenv("GRAPHDB_ENDPOINT", url)
        yield url
