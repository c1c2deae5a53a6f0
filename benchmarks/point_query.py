"""A point query over HTTP, 16 connections, against bare uvicorn with pyoxigraph returning the same bytes."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from pyoxigraph import RdfFormat, Store

from benchmarks.generator import Request, generate
from benchmarks.report import Row, interleave
from benchmarks.service import (
    PROJECT,
    STOP_TIMEOUT_S,
    BenchmarkError,
    flight_triples,
    free_port,
    running_service,
    stop,
    work_dir,
)

__all__ = ["run"]

CONNECTIONS = 16
QUERIES = 100
SECONDS = 3.0
TRIPLES = 648_564  # the flight data


def run(rounds: int, scale: float) -> list[Row]:
    """Requests per second. scale shortens the data and each measurement."""
    with work_dir() as directory:
        triples = flight_triples(directory, max(1000, int(TRIPLES * scale)))
        requests = [_request(subject) for subject in _subjects(triples)]
        with _floor(directory, triples) as floor_port, running_service(directory, load=triples) as service:
            _check_same_answer(floor_port, service.port, requests[0])

            def measure(port: int) -> float:
                load = generate(
                    service.host, port, requests, connections=CONNECTIONS, seconds=max(0.2, SECONDS * scale)
                )
                return load.requests_per_second

            measure(floor_port), measure(service.port)  # warm both
            floor, ours = interleave(rounds, lambda: measure(floor_port), lambda: measure(service.port))
    return [Row("point query over HTTP, 16 connections", "requests/s", floor, ours, "at least", 0.6)]


def _request(subject: str) -> Request:
    query = f"SELECT ?p ?o WHERE {{ {subject} ?p ?o }}"
    return Request("/sparql", "application/sparql-query", "application/sparql-results+json", query)


def _subjects(triples: Path) -> list[str]:
    """Subjects spread over the whole file."""
    with triples.open() as lines:
        subjects = list(dict.fromkeys(line.split(" ", 1)[0] for line in lines if line.startswith("<")))
    return subjects[:: max(1, len(subjects) // QUERIES)][:QUERIES]


@contextmanager
def _floor(directory: Path, triples: Path) -> Iterator[int]:
    """The floor's server, filled; its port."""
    store = Store(directory / "floor")
    store.bulk_load(path=triples, format=RdfFormat.N_TRIPLES)
    del store
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.floor_server", str(directory / "floor"), str(port)]
    process = subprocess.Popen(command, cwd=PROJECT)
    try:
        _wait_for(port)
        yield port
    finally:
        stop(process, STOP_TIMEOUT_S)


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            httpx.post(f"http://127.0.0.1:{port}/", content="SELECT * {}", trust_env=False)
        except httpx.ConnectError:
            time.sleep(0.1)
        else:
            return
    raise BenchmarkError("the floor's server does not start")


def _check_same_answer(floor_port: int, port: int, request: Request) -> None:
    """A ratio between different answers would mean nothing."""
    headers = {"Content-Type": request.content_type, "Accept": request.accept}
    answers = [
        httpx.post(
            f"http://127.0.0.1:{at}{request.path}", content=request.body, headers=headers, trust_env=False
        )
        for at in (floor_port, port)
    ]
    if answers[0].json() != answers[1].json():
        raise BenchmarkError("the floor and the service answer differently")
