"""Large loads, offline and over HTTP, against Store.bulk_load; and point queries while one runs."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

import httpx
from pyoxigraph import RdfFormat, Store

from benchmarks import fuseki
from benchmarks.generator import Request, generate
from benchmarks.report import Row, interleave
from benchmarks.service import (
    BenchmarkError,
    RunningService,
    flight_triples,
    graphdb,
    running_service,
    work_dir,
)

__all__ = ["run"]

TRIPLES = 1_000_000
BODY_TRIPLES = 400_000
SECONDS = 3.0
REQUEST_TIMEOUT_S = 600.0
OFFLINE_LEAST = 0.9
# 100,000 triples a second, where the engine's own bulk load takes in 260,000
ONLINE_LEAST = 100 / 260
LATENCY_MOST = 2.0
QUERY = "SELECT ?p ?o WHERE { <http://openflights.example/airport/1> ?p ?o }"


def run(rounds: int, scale: float, peer: str) -> list[Row]:
    """Triples per second, each command and request timed whole; milliseconds of a point query, the floor
    without a load beside it. peer "yes": Fuseki beside, where there is Java.
    """
    offline, body = (max(1000, int(triples * scale)) for triples in (TRIPLES, BODY_TRIPLES))
    with work_dir() as directory:
        million = flight_triples(directory, offline).rename(directory / "million.nt")
        triples = flight_triples(directory, body)
        rows = [
            _row(
                f"load of {offline:,} triples, offline",
                OFFLINE_LEAST,
                interleave(
                    rounds,
                    lambda: offline / _floor(directory, million),
                    lambda: offline / _offline(directory, million),
                ),
            )
        ]
        with running_service(directory) as service:
            rows += _online(directory, service, triples, body, rounds)
            seconds = _timed(lambda: graphdb("load", str(million), "--endpoint", service.url))
            floor = offline / _floor(directory, million)
            rows.append(
                Row(f"load of {offline:,} more, online (once)", "triples/s", floor, offline / seconds)
            )
            rows.append(_latency(service, triples, scale))
        if peer == "yes" and fuseki.is_installed():
            rows.append(_fuseki(directory, triples, body, rounds))
    return rows


def _row(work: str, least: float, measured: tuple[float, ...]) -> Row:
    floor, ours = measured
    return Row(work, "triples/s", floor, ours, "at least", least)


def _online(directory: Path, service: RunningService, triples: Path, body: int, rounds: int) -> Iterator[Row]:
    """A graph of its own is put each time; what is loaded into the default graph is deleted between."""
    numbers = count()
    floor = lambda: body / _floor(directory, triples)  # noqa: E731 handed on

    def put() -> float:
        return body / _timed(lambda: _send("PUT", f"{service.url}/data?graph=urn:g{next(numbers)}", triples))

    def post() -> float:
        _send("DELETE", f"{service.url}/data?default", None)
        return body / _timed(lambda: _send("POST", f"{service.url}/data?default", triples))

    def load() -> float:
        _send("DELETE", f"{service.url}/data?default", None)
        return body / _timed(lambda: graphdb("load", str(triples), "--endpoint", service.url))

    for work, ours in (
        (f"PUT of {body:,} triples, a new graph", put),
        (f"POST of {body:,} triples, the default graph", post),
        (f"load of {body:,} triples, online", load),
    ):
        yield _row(work, ONLINE_LEAST, interleave(rounds, floor, ours))


def _latency(service: RunningService, triples: Path, scale: float) -> Row:
    request = Request("/sparql", "application/sparql-query", "application/sparql-results+json", QUERY)

    def latency_ms() -> float:
        seconds = max(0.2, SECONDS * scale)
        load = generate(service.host, service.port, [request], connections=1, seconds=seconds)
        return load.latency_s * 1000

    latency_ms()  # warm
    before = latency_ms()
    with _putting(service, triples):
        during = latency_ms()
    return Row("point query while graphs are put, latency", "ms", before, during, "at most", LATENCY_MOST)


@contextmanager
def _putting(service: RunningService, triples: Path) -> Iterator[None]:
    """One PUT after the other."""
    is_over = Event()
    failures: list[Exception] = []

    def put() -> None:
        try:
            for number in count():
                _send("PUT", f"{service.url}/data?graph=urn:beside{number}", triples)
                if is_over.is_set():
                    return
        except Exception as error:  # noqa: BLE001 raised again below
            failures.append(error)

    thread = Thread(target=put)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    if failures:
        raise BenchmarkError(f"a PUT failed: {failures[0]}")


def _fuseki(directory: Path, triples: Path, body: int, rounds: int) -> Row:
    numbers = count()
    with fuseki.running_fuseki(directory) as running:

        def put() -> float:
            return body / _timed(lambda: _send("PUT", f"{running.url}?graph=urn:g{next(numbers)}", triples))

        put()  # warm
        floor, theirs = interleave(rounds, lambda: body / _floor(directory, triples), put)
    return Row(f"Fuseki: PUT of {body:,} triples", "triples/s", floor, theirs)


def _send(method: str, url: str, triples: Path | None) -> None:
    body = triples.read_bytes() if triples is not None else None
    headers = {"Content-Type": "application/n-triples"}
    answer = httpx.request(
        method, url, content=body, headers=headers, timeout=REQUEST_TIMEOUT_S, trust_env=False
    )
    if answer.is_error:
        raise BenchmarkError(f"{method} {url}: {answer.status_code} {answer.text[:300]}")


def _timed(perform: Callable[[], object]) -> float:
    started = perf_counter()
    perform()
    return perf_counter() - started


def _floor(directory: Path, triples: Path) -> float:
    place = directory / "floor"
    shutil.rmtree(place, ignore_errors=True)
    store = Store(place)
    return _timed(lambda: store.bulk_load(path=triples, format=RdfFormat.N_TRIPLES))


def _offline(directory: Path, triples: Path) -> float:
    place = directory / "offline"
    shutil.rmtree(place, ignore_errors=True)
    return _timed(lambda: graphdb("load", str(triples), "--data-dir", str(place)))
