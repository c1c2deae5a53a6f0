"""Documents into an index over HTTP, durably, until all are found, against tantivy in process.

The floor makes its documents from the same fields and commits once, with threads of its own.
"""

import http.client
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from time import perf_counter

import httpx
import orjson

from benchmarks import tantivy_floor
from benchmarks.cranfield import MAPPING, Document, bulk_bodies, documents
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, running_service, work_dir

__all__ = ["DOCUMENTS", "TIMEOUT_S", "create_index", "run", "send_bulk"]

DOCUMENTS, BATCH = 100_000, 1000
CONNECTIONS = 4
TIMEOUT_S = 300


def run(rounds: int, scale: float) -> list[Row]:
    """Documents per second. scale is the part of the documents."""
    given = documents(max(BATCH, int(DOCUMENTS * scale)))
    bodies = list(bulk_bodies(given, BATCH))
    with work_dir() as directory, running_service(directory, searches=True) as service:
        names = (f"cranfield-{number}" for number in count())
        _index(service, next(names), bodies[:3])  # warm
        floor, ours = interleave(
            rounds,
            lambda: len(given) / _floor(directory / "floor", given),
            lambda: len(given) / _index(service, next(names), bodies),
        )
    work = f"bulk indexing, {len(given):,} documents, {CONNECTIONS} connections of {BATCH:,}"
    return [Row(work, "documents/s", floor, ours, "at least", 0.4)]


def _floor(directory: Path, given: Sequence[tuple[str, Document]]) -> float:
    """Seconds."""
    started = perf_counter()
    tantivy_floor.build(directory, given)
    seconds = perf_counter() - started
    shutil.rmtree(directory)
    return seconds


def _index(service: RunningService, name: str, bodies: Sequence[bytes]) -> float:
    """Seconds until all can be found. The index is gone afterwards."""
    create_index(service, name)
    started = perf_counter()
    send_bulk(service, name, bodies)
    httpx.post(f"{service.search_url}/{name}/_refresh", timeout=TIMEOUT_S, trust_env=False).raise_for_status()
    seconds = perf_counter() - started
    found = httpx.get(f"{service.search_url}/{name}/_count", timeout=TIMEOUT_S, trust_env=False).json()[
        "count"
    ]
    if found != sum(body.count(b'{"index"') for body in bodies):
        raise BenchmarkError(f"only {found} documents are found")
    httpx.delete(f"{service.search_url}/{name}", timeout=TIMEOUT_S, trust_env=False).raise_for_status()
    return seconds


def create_index(service: RunningService, name: str) -> None:
    """With the fields of the collection; it is refreshed as often as any other."""
    body = {"mappings": MAPPING}
    answer = httpx.put(f"{service.search_url}/{name}", json=body, timeout=TIMEOUT_S, trust_env=False)
    answer.raise_for_status()


def send_bulk(service: RunningService, name: str, bodies: Sequence[bytes]) -> None:
    """Several connections take the bodies in turn. Raises BenchmarkError for any error."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        shares = [bodies[number::CONNECTIONS] for number in range(CONNECTIONS)]
        list(pool.map(lambda share: _send(service, name, share), shares))


def _send(service: RunningService, name: str, bodies: Sequence[bytes]) -> None:
    connection = http.client.HTTPConnection(service.host, service.search_port, timeout=TIMEOUT_S)
    try:
        for body in bodies:
            connection.request("POST", f"/{name}/_bulk", body, {"Content-Type": "application/x-ndjson"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200 or orjson.loads(text)["errors"]:
                raise BenchmarkError(f"_bulk answered {answer.status}: {text[:300]!r}")
    finally:
        connection.close()
