"""What is measured: a real service in processes of its own, and the flight data that it is filled with."""

import contextlib
import fcntl
import gzip
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import httpx

__all__ = [
    "PROJECT",
    "STOP_TIMEOUT_S",
    "BenchmarkError",
    "RunningService",
    "flight_triples",
    "free_port",
    "graphdb",
    "running_service",
    "stop",
    "work_dir",
]

PROJECT = Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 120  # several may start at once
STOP_TIMEOUT_S = 20

_CLAIMS: list[IO[bytes]] = []  # the ports of this process
_RANDOM = random.SystemRandom()  # what tests make of random numbers is the same in several processes


class BenchmarkError(Exception):
    """A benchmark that cannot be run; str() of it says why."""


@dataclass(frozen=True, slots=True)
class RunningService:
    """Where the service that is measured listens, and what it owns."""

    host: str
    port: int
    search_port: int
    data_dir: Path

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def search_url(self) -> str:
        return f"http://{self.host}:{self.search_port}"


@contextmanager
def work_dir() -> Iterator[Path]:
    """A directory for one benchmark, removed at the end, and when the process is told to end too."""
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until it would be removed
    directory = Path(tempfile.mkdtemp(prefix="graphdb-benchmark-"))
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def flight_triples(directory: Path, count: int) -> Path:
    """An N-Triples file of so many triples: the flight data, and from there on the same with other names.

    Raises BenchmarkError where the data is not there.
    """
    shared = Path(os.environ.get("GRAPHDB_SHARED", PROJECT.parent / "shared"))
    source = shared / "data" / "openflights.nt.gz"
    if not source.exists():
        raise BenchmarkError(
            "the flight data is not there: ../shared/data/openflights.nt.gz (or $GRAPHDB_SHARED)"
        )
    path = directory / "flights.nt"
    written = copies = 0
    with path.open("wb") as target:
        while written < count:
            with gzip.open(source) as lines:
                for line in lines:
                    renamed = line.replace(b"<http://", b"<http://copy%d." % copies) if copies else line
                    target.write(renamed)
                    written += 1
                    if written == count:
                        break
            copies += 1
    return path


def graphdb(*arguments: str) -> None:
    """Run the command to its end. Raises BenchmarkError with what it said."""
    _run_to_end("serve.cli", *arguments)


def _run_to_end(module: str, *arguments: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{' '.join([module, *arguments[:1]])} failed: {done.stderr.strip()}")


@cache
def _precompile() -> None:
    """Compile what searches run, as an installation does: else a service does it beside what is measured.

    Raises BenchmarkError.
    """
    _run_to_end("serve.deployments.precompile")


@contextmanager
def running_service(
    directory: Path,
    *,
    load: Path | None = None,
    environment: Mapping[str, str] | None = None,
    searches: bool = False,
) -> Iterator[RunningService]:
    """A service on free ports with its data below directory, filled offline with a file if one is given.

    environment is added to that of this process; it may hold settings. searches: the search port is measured.
    """
    if searches:
        _precompile()
    service = RunningService("127.0.0.1", free_port(), free_port(), directory / "data")
    if load is not None:
        graphdb("load", str(load), "--data-dir", str(service.data_dir))
    settings = [
        "--port",
        str(service.port),
        "--search-port",
        str(service.search_port),
        "--data-dir",
        str(service.data_dir),
    ]
    with (directory / "service.log").open("wb") as log:
        process = subprocess.Popen(
            _command("serve", *settings),
            cwd=directory,
            env=os.environ | (environment or {}),
            stdout=log,
            stderr=log,
        )
        try:
            _wait_until_healthy(service, process, directory / "service.log")
            yield service
        finally:
            stop(process, STOP_TIMEOUT_S)


def stop(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    """End a process: in order, or else by force after so many seconds."""
    process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody listens on, between the ranges that Ray and the kernel give ports out of. No other
    process gets it here as long as this one lives: a service may start on it late, and more than once.
    """
    claims = Path(tempfile.gettempdir()) / f"graphdb-ports-{os.getuid()}"
    claims.mkdir(mode=0o700, exist_ok=True)
    while True:
        port = _RANDOM.randrange(20_000, 32_768)
        claim = (claims / str(port)).open("wb")
        with contextlib.suppress(OSError), socket.socket() as probe:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            probe.bind(("127.0.0.1", port))
            _CLAIMS.append(claim)
            return port
        claim.close()


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "serve.cli", *arguments]


def _wait_until_healthy(service: RunningService, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise BenchmarkError(f"the service ended: {log.read_text(errors='replace').strip()[-500:]}")
        try:
            healthy = httpx.get(f"{service.url}/health", trust_env=False).json()["status"] == "healthy"
            if healthy and httpx.get(f"{service.search_url}/_search", trust_env=False).status_code in (
                200,
                401,
            ):
                return
        except (httpx.HTTPError, ValueError, KeyError):
            pass
        time.sleep(0.1)
    raise BenchmarkError("the service did not become healthy in time")
