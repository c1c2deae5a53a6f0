"""What a service weighs: installed, at its start, at rest, at its stop; and Fuseki, where it is."""

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import httpx
import psutil  # type: ignore[import-untyped]

from benchmarks import fuseki
from benchmarks.report import Figure
from benchmarks.service import (
    PROJECT,
    BenchmarkError,
    RunningService,
    flight_triples,
    free_port,
    running_service,
    stop,
    work_dir,
)

__all__ = ["run"]

_TRIPLES = 1_000_000
_SETTLE_S, _REST_S = 30.0, 20.0  # what a start leaves to do; how long the rest is looked at
_LOOK_S = 0.01
_BUSY_A_CORE = 4
_BACK_S, _FRESH_S = 60.0, 900.0  # no longer than that
# each figure, its unit, and what it shall be at most
_ASKED = {
    "fresh clone to the first answer": ("s", 75),
    "installed for the service": ("MB", 900),
    "start to healthy, both ports": ("s", 5),
    "processor time of a start": ("s", 8),
    "start beside four busy processes a core": ("s", 60),
    "memory at rest, empty": ("MB", 600),
    "memory at rest, 1 M triples": ("MB", 1000),
    "processor at rest": ("% of a core", 1),
    "back after kill -9 of the graph port": ("s", 1.5),
    "stop": ("s", 2),
}


def run(rounds: int, scale: float, peer: str, fresh: str) -> list[Figure]:
    """Medians over the rounds of what an empty service shows; the rest once.

    scale also shortens how long the rest is looked at. peer "yes": Fuseki beside, where there is Java. fresh
    "yes": also an installation in a clone of this repository, which needs the package registry.
    """
    scale = min(scale, 1.0)
    beside = _fuseki(scale) if peer == "yes" and fuseki.is_installed() else {}
    taken = [_empty(scale) for _ in range(rounds)]
    figures = {work: median(one[work] for one in taken) for work in taken[0]}
    figures["start beside four busy processes a core"] = _busy_start_s()
    figures["memory at rest, 1 M triples"] = _filled_mb(scale)
    figures["installed for the service"] = _installed_mb()
    if fresh == "yes":
        figures["fresh clone to the first answer"] = _fresh_clone_s()
    return [
        Figure(work, unit, figures[work], "at most", most, beside.get(work))
        for work, (unit, most) in _ASKED.items()
        if work in figures
    ]


def _empty(scale: float) -> dict[str, float]:
    """One start of an empty service, its rest, a killed port, its stop."""
    figures = {}
    with work_dir() as directory, ExitStack() as stack:
        began = time.monotonic()
        service = stack.enter_context(running_service(directory))
        figures["start to healthy, both ports"] = time.monotonic() - began
        figures["processor time of a start"] = sum(map(_processor_s, _processes()))
        time.sleep(_SETTLE_S * scale)
        figures |= _rest(_processes(), scale)
        figures["back after kill -9 of the graph port"] = _back_s(service)
        began = time.monotonic()
        stack.close()
        figures["stop"] = time.monotonic() - began
    return figures


def _busy_start_s() -> float:
    """Raises BenchmarkError where the service does not start."""
    with work_dir() as directory, _busy_machine(), ExitStack() as stack:
        began = time.monotonic()
        stack.enter_context(running_service(directory))
        return time.monotonic() - began


@contextmanager
def _busy_machine() -> Iterator[None]:
    """Four processes a core that compute without a pause."""
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(_BUSY_A_CORE * len(os.sched_getaffinity(0)))
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _filled_mb(scale: float) -> float:
    with work_dir() as directory:
        load = flight_triples(directory, int(_TRIPLES * scale))
        with running_service(directory, load=load):
            time.sleep(_SETTLE_S * scale)
            return sum(map(_memory_mb, _processes()))


def _fuseki(scale: float) -> dict[str, float]:
    with work_dir() as directory, fuseki.running_fuseki(directory) as running:
        process = psutil.Process(running.pid)
        figures = {
            "start to healthy, both ports": running.start_s,
            "processor time of a start": _processor_s(process),
        }
        time.sleep(_SETTLE_S * scale)
        return figures | _rest([process], scale)


def _rest(processes: Sequence[psutil.Process], scale: float) -> dict[str, float]:
    before = {process: _processor_s(process) for process in processes}
    time.sleep(_REST_S * scale)
    spent = sum(max(0.0, _processor_s(process) - before[process]) for process in processes)
    return {
        "memory at rest, empty": sum(map(_memory_mb, processes)),
        "processor at rest": 100 * spent / (_REST_S * scale),
    }


def _back_s(service: RunningService) -> float:
    """Seconds from the end of the graph port's process to the next answer."""
    (port,) = (process for process in _processes() if "GraphPort" in " ".join(process.cmdline()))
    os.kill(port.pid, signal.SIGKILL)
    return _answered_s(service.url, _BACK_S)


def _installed_mb() -> float:
    """What the packages of the service's lock file have on the disk, their bytecode too."""
    # a set, because a package may stand there in several versions, for several versions of Python
    names = set(re.findall(r"^([\w.-]+)==", (PROJECT / "requirements.lock").read_text(), re.MULTILINE))
    return sum(map(_files_bytes, names)) / 1e6


def _files_bytes(package: str) -> int:
    try:
        files = importlib.metadata.files(package) or ()
    except importlib.metadata.PackageNotFoundError:  # of another platform
        return 0
    paths = {Path(str(file.locate())).resolve() for file in files}
    paths |= {Path(importlib.util.cache_from_source(str(path))) for path in paths if path.suffix == ".py"}
    return sum(path.stat().st_size for path in paths if path.is_file())


def _fresh_clone_s() -> float:
    """Seconds from a clone of this repository to the demo's first answer."""
    with work_dir() as directory:
        clone, port = directory / "clone", free_port()
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True)
        began = time.monotonic()
        options = [
            "--port",
            str(port),
            "--search-port",
            str(free_port()),
            "--data-dir",
            str(directory / "data"),
        ]
        with (directory / "demo.log").open("wb") as log:
            demo = subprocess.Popen(
                [str(clone / "scripts" / "serve"), "--demo", *options],
                cwd=directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                _answered_s(f"http://127.0.0.1:{port}", _FRESH_S)
                return time.monotonic() - began
            finally:
                stop(demo, _BACK_S)


def _answered_s(url: str, within_s: float) -> float:
    """Seconds until a query is answered. Raises BenchmarkError."""
    began = time.monotonic()
    while (waited_s := time.monotonic() - began) < within_s:
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(f"{url}/sparql", params={"query": "ASK {}"}, trust_env=False, timeout=within_s)
            if answer.status_code == 200:
                return time.monotonic() - began
        time.sleep(_LOOK_S)
    raise BenchmarkError(f"{url} has not answered for {waited_s:.0f} s")


def _processes() -> list[psutil.Process]:
    """Of the service that this process has started: all below it."""
    found: Iterator[psutil.Process] = iter(psutil.Process().children(recursive=True))
    return list(found)


def _processor_s(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def _memory_mb(process: psutil.Process) -> float:
    """Its own, and its share of what it shares."""
    with contextlib.suppress(psutil.Error):
        return float(process.memory_full_info().pss / 1e6)
    return 0.0
