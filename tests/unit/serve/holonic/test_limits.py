"""Answers that do not come in time, and clients that do not wait for them."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import QueryMemoryExceeded
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.scripted_backend import HANG, ScriptedBackend, ScriptedStream
from tests.support.timing import HANG_S
from tests.unit.serve.conftest import dump
from tests.unit.serve.holonic.conftest import A, B, Holons, confirmed, refused

CONSTRUCT = "CONSTRUCT { ?s <urn:seen> ?o } WHERE { ?s <urn:p> ?o }"


@pytest.fixture
def scripted() -> ScriptedBackend:
    return ScriptedBackend()


@contextmanager
def service(scripted: ScriptedBackend, limit_s: float) -> Iterator[Holons]:
    """A client of a service that gives queries so long; a portal leads from a to b."""
    server = {"query_timeout_seconds": limit_s}
    settings = Settings.model_validate({"holonic": {"enabled": True}, "server": server})
    with (
        serving(build_app(scripted, settings)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as http,
    ):
        holons = Holons(http)
        confirmed(holons.declare(A))
        confirmed(holons.declare(B))
        confirmed(holons.connect("urn:p", A, B, CONSTRUCT))
        yield holons


@pytest.fixture
def impatient(scripted: ScriptedBackend) -> Iterator[Holons]:
    with service(scripted, 0.1) as holons:
        yield holons


@pytest.mark.parametrize("path", ["holons", "portals"])
def test_a_list_that_takes_too_long(impatient: Holons, scripted: ScriptedBackend, path: str) -> None:
    stream = ScriptedStream(b'{"results": ', HANG)
    scripted.answer_with(stream)
    answer = impatient.http.get(f"/holonic/{path}")
    assert "longer than 0.1 s" in refused(answer, 503)
    assert answer.headers["Retry-After"] == "1"
    assert stream.is_closed


@pytest.mark.parametrize(
    "steps", [(b"<urn:a> <urn:b> <urn:c> .\n", HANG), (b"<urn:a> <urn:b>", QueryMemoryExceeded("too much"))]
)
def test_a_run_that_breaks_off_stores_nothing(
    impatient: Holons, scripted: ScriptedBackend, steps: tuple[bytes, Exception]
) -> None:
    before = dump(impatient.http)
    stream = ScriptedStream(*steps)
    scripted.answer_with(stream)
    refused(impatient.run("urn:p", store="true"), 503)
    assert stream.is_closed
    assert dump(impatient.http) == before


def test_a_list_that_nobody_waits_for_is_not_made(scripted: ScriptedBackend) -> None:
    stream = ScriptedStream(b"{", HANG)
    with service(scripted, 300) as holons:
        scripted.answer_with(stream)
        address = holons.http.base_url
        with socket.create_connection((address.host, address.port or 80)) as connection:
            connection.sendall(b"GET /holonic/holons HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_until(lambda: bool(scripted.requests))
        wait_until(lambda: stream.is_closed)


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not holds() and time.monotonic() < ends:
        time.sleep(0.005)
    assert holds()
