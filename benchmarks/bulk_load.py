"""`graphdb load` of a million triples, against Store.bulk_load; the command is timed whole."""

import shutil
from pathlib import Path
from time import perf_counter

from pyoxigraph import RdfFormat, Store

from benchmarks.report import Row, interleave
from benchmarks.service import flight_triples, graphdb, running_service, work_dir

__all__ = ["run"]

TRIPLES = 1_000_000


def run(rounds: int, scale: float) -> list[Row]:
    """Triples per second, offline into a data directory (the row with a target) and online over HTTP."""
    count = max(1000, int(TRIPLES * scale))
    with work_dir() as directory:
        triples = flight_triples(directory, count)
        floor, ours = interleave(
            rounds, lambda: count / _floor(directory, triples), lambda: count / _offline(directory, triples)
        )
        online = count / _online(directory, triples)
    return [
        Row(f"load of {count:,} triples, offline", "triples/s", floor, ours, "at least", 0.8),
        Row(f"load of {count:,} triples, online (once)", "triples/s", floor, online),
    ]


def _floor(directory: Path, triples: Path) -> float:
    place = directory / "floor"
    shutil.rmtree(place, ignore_errors=True)
    store = Store(place)
    started = perf_counter()
    store.bulk_load(path=triples, format=RdfFormat.N_TRIPLES)
    return perf_counter() - started


def _offline(directory: Path, triples: Path) -> float:
    place = directory / "offline"
    shutil.rmtree(place, ignore_errors=True)
    started = perf_counter()
    graphdb("load", str(triples), "--data-dir", str(place))
    return perf_counter() - started


def _online(directory: Path, triples: Path) -> float:
    with running_service(directory) as service:
        started = perf_counter()
        graphdb("load", str(triples), "--endpoint", service.url)
        return perf_counter() - started
