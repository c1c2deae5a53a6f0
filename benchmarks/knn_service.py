"""The index of `knn` in a running service: the same vectors, filters and questions over HTTP."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import httpx
import orjson

from benchmarks.bulk_index import TIMEOUT_S, send_bulk
from benchmarks.generator import Request, generate
from benchmarks.service import RunningService, running_service, work_dir
from graphdb.search.leaf_reader import Floats, Longs

__all__ = ["CONNECTIONS", "Rate", "served"]

CONNECTIONS = 16
BATCH = 1_000
INDEX = "vectors"

Rate: TypeAlias = Callable[[Sequence[Mapping[str, Any]], float], float]
"""(the `knn` of each search, seconds) -> searches per second."""


@contextmanager
def served(mapping: Mapping[str, Any], vectors: Floats, parts: Longs) -> Iterator[Rate]:
    """A service that has the rows in one segment, with its graph."""
    with work_dir() as directory, running_service(directory, searches=True) as service:
        url = f"{service.search_url}/{INDEX}"
        with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client:
            client.put(url, json={"mappings": mapping}).raise_for_status()
            send_bulk(service, INDEX, list(_bulk_bodies(vectors, parts)))
            # What is merged has its graph before it is searched.
            for action in ("_refresh", "_forcemerge?max_num_segments=1"):
                client.post(f"{url}/{action}").raise_for_status()
        yield lambda bodies, seconds: _rate(service, bodies, seconds)


def _bulk_bodies(vectors: Floats, parts: Longs) -> Iterator[bytes]:
    for start in range(0, len(vectors), BATCH):
        lines = []
        for number in range(start, min(start + BATCH, len(vectors))):
            lines.append(b'{"index":{"_id":"%d"}}' % number)
            lines.append(orjson.dumps({"vector": vectors[number].tolist(), "part": int(parts[number])}))
        yield b"\n".join(lines) + b"\n"


def _rate(service: RunningService, bodies: Sequence[Mapping[str, Any]], seconds: float) -> float:
    """Without sources: they would be of the vectors themselves."""
    requests = [
        Request(
            f"/{INDEX}/_search",
            "application/json",
            "application/json",
            orjson.dumps({"knn": body, "_source": False}).decode(),
        )
        for body in bodies
    ]
    load = generate(service.host, service.search_port, requests, connections=CONNECTIONS, seconds=seconds)
    return load.requests_per_second
