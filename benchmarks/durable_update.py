"""Single-triple updates that are on the disk when answered: latency alone, throughput in a crowd."""

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.generator import Load, Request, generate
from benchmarks.report import Row, interleave
from benchmarks.service import RunningService, running_service, work_dir

__all__ = ["CLIENTS", "REQUEST", "run", "update_load"]

CLIENTS = 64
SECONDS = 3.0
APPENDS = 500
BLOCK = bytes(4096)
UPDATE = "INSERT DATA { <http://example.org/s%d> <http://example.org/p> <http://example.org/o> }"
REQUEST = Request("/update", "application/sparql-update", "application/json", UPDATE)


def run(rounds: int, scale: float) -> list[Row]:
    """Milliseconds of one client against append and fsync; updates a second of 64 clients against 1."""
    measure = update_load(scale)
    with work_dir() as directory, running_service(directory) as service:
        measure(service, 1)  # warm
        alone: list[float] = []

        def one_client() -> float:
            load = measure(service, 1)
            alone.append(load.requests_per_second)
            return load.latency_s * 1000

        appends = max(20, int(APPENDS * scale))
        floor, latency, crowd = interleave(
            rounds,
            lambda: _append(directory, appends) * 1000,
            one_client,
            lambda: measure(service, CLIENTS).requests_per_second,
        )
    return [
        Row("durable update, 1 client, latency", "ms", floor, latency, "at most", 2),
        Row(
            f"durable updates, {CLIENTS} clients against 1", "updates/s", median(alone), crowd, "at least", 8
        ),
    ]


def update_load(scale: float) -> Callable[[RunningService, int], Load]:
    """What has so many clients of a service update for a while; each time with triples of its own."""
    numbers = count(0, 1_000_000)

    def measure(service: RunningService, clients: int) -> Load:
        return generate(
            service.host,
            service.port,
            [REQUEST],
            connections=clients,
            seconds=max(0.3, SECONDS * scale),
            first_number=next(numbers),
        )

    return measure


def _append(directory: Path, times: int) -> float:
    """Median seconds of one 4 kB append with fsync, on the disk that the service writes to."""
    latencies = []
    descriptor = os.open(directory / "appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for _ in range(times):
            started = perf_counter()
            os.write(descriptor, BLOCK)
            os.fsync(descriptor)
            latencies.append(perf_counter() - started)
    finally:
        os.close(descriptor)
    return median(latencies)
