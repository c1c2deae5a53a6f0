"""The best ten by BM25 over HTTP, 100,000 documents, against the same questions to tantivy in process.

Both answer with the stored fields and count nothing. The floor is one caller in a loop, on one thread.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import httpx
import orjson

from benchmarks import tantivy_floor
from benchmarks.bulk_index import DOCUMENTS, TIMEOUT_S, create_index, send_bulk
from benchmarks.cranfield import bulk_bodies, documents, queries
from benchmarks.generator import Request, generate
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, running_service, work_dir

__all__ = ["run"]

CONNECTIONS = 16
SECONDS = 5.0
SIZE = 10
ALIKE = 0.9  # part of the questions whose best hit must be the same text: the engines cut words differently
INDEX = "cranfield"


def run(rounds: int, scale: float) -> list[Row]:
    """Queries per second. scale shortens the data and each measurement."""
    given = documents(max(2_000, int(DOCUMENTS * scale)))
    asked = queries()
    seconds = max(0.5, SECONDS * scale)
    with work_dir() as directory, running_service(directory, searches=True) as service:
        create_index(service, INDEX)
        send_bulk(service, INDEX, list(bulk_bodies(given, 1000)))
        _settle(service)
        floor = tantivy_floor.build(directory / "floor", given)
        _check_alike(floor, service, asked)

        def ours(connections: int) -> float:
            requests = [_request(query) for query in asked]
            load = generate(
                service.host, service.search_port, requests, connections=connections, seconds=seconds
            )
            return load.requests_per_second

        ours(CONNECTIONS)  # warm
        in_process, several, one = interleave(
            rounds, lambda: _floor_rate(floor, asked, seconds), lambda: ours(CONNECTIONS), lambda: ours(1)
        )
    return [
        Row(
            f"BM25 top-10 over HTTP, {CONNECTIONS} connections",
            "queries/s",
            in_process,
            several,
            "at least",
            0.5,
        ),
        Row("the same, 1 connection", "queries/s", in_process, one),
    ]


def _settle(service: RunningService) -> None:
    """What was written can be found; merges that are under way end."""
    path = f"{service.search_url}/{INDEX}"
    for action in ("_refresh", "_forcemerge?max_num_segments=2"):  # as many as tantivy is left with
        httpx.post(f"{path}/{action}", timeout=TIMEOUT_S, trust_env=False).raise_for_status()


def _body(query: str) -> dict[str, Any]:
    return {"query": {"match": {"text": query}}, "size": SIZE, "track_total_hits": False}


def _request(query: str) -> Request:
    body = orjson.dumps(_body(query)).decode()
    return Request(f"/{INDEX}/_search", "application/json", "application/json", body)


def _floor_rate(floor: Any, asked: Sequence[str], seconds: float) -> float:
    """Whole passes over the questions, for about so long."""
    started, done = perf_counter(), 0
    while perf_counter() - started < seconds:
        for query in asked:
            tantivy_floor.top(floor, query, SIZE)
        done += len(asked)
    return done / (perf_counter() - started)


def _check_alike(floor: Any, service: RunningService, asked: Sequence[str]) -> None:
    """A ratio between different answers would mean nothing."""
    alike = sum(
        tantivy_floor.top(floor, query, 1)[0]["text"] == [_best_text(service, query)] for query in asked
    )
    if alike < ALIKE * len(asked):
        raise BenchmarkError(f"only {alike} of {len(asked)} questions have the same best hit")


def _best_text(service: RunningService, query: str) -> str:
    url = f"{service.search_url}/{INDEX}/_search"
    answer = httpx.post(url, json=_body(query), timeout=TIMEOUT_S, trust_env=False).raise_for_status()
    text: str = answer.json()["hits"]["hits"][0]["_source"]["text"]
    return text
