"""The processes of one service: found by a marker in their environment, ended by their ids.

Every process that a service starts inherits its marker, those that Ray starts for it included. So what a
killed service leaves behind is found without trusting a list of ids, and nobody else's process is touched.

`python -m actors.processes MARKER` is the service's keeper: it waits until its standard input ends, as it
does when the service's own process is gone, then ends what is left of the service.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "MARKER_VARIABLE",
    "STOPPING",
    "deaf_to_stops",
    "end_processes",
    "mark_forks",
    "marked_processes",
    "start_keeper",
]

MARKER_VARIABLE = "GDB_SERVICE_MARKER"  # not GRAPHDB_...: those are settings
STOPPING = frozenset({signal.SIGTERM, signal.SIGINT})  # by which a person or a supervisor ends a service
_keepers: list[subprocess.Popen[bytes]] = []  # their pipes end with this process, not before
_KEEPER_PATIENCE_S = 1.0  # Ray's processes mostly notice by themselves that their parent is gone


def marked_processes(marker: str) -> list[int]:
    """Ids of the living processes whose marker begins with this one; never this process."""
    wanted = f"\0{MARKER_VARIABLE}={marker}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in b"\0" + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return sorted(found)


def mark_forks(marker: str) -> bool:
    """Have the processes that this one forks be found: they show the environment that it began with.

    `/proc/PID/environ` shows the memory that the kernel has put the environment in at the start of a program.
    The marker is written there; the variables are copied elsewhere first. False where it does not fit.
    """
    begin, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[47:49])
    text = f"{MARKER_VARIABLE}={marker}".encode() + b"\0"
    if len(text) > end - begin:
        return False
    for name, value in os.environ.items():
        os.putenv(name, value)
    ctypes.memset(begin, 0, end - begin)
    ctypes.memmove(begin, text, len(text))
    return True


def end_processes(marker: str, timeout_s: float = 5.0) -> list[int]:
    """Kill every process with this marker and wait until they are gone; the ids of those that are not."""
    deadline = time.monotonic() + timeout_s
    while (left := marked_processes(marker)) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return left


@contextlib.contextmanager
def deaf_to_stops() -> Iterator[None]:
    """Have the processes that this thread starts meanwhile, and all that they start, not hear `STOPPING`.

    Ctrl-C reaches all processes of a terminal, and systemd by default all of a service. Only the service's
    first process is to hear it: it ends the others in order, and would wait for what has ended by itself.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_keeper(marker: str) -> None:
    """Start the keeper; it lasts as long as this process."""
    with deaf_to_stops():
        keeper = subprocess.Popen(
            [sys.executable, "-S", "-m", "actors.processes", marker],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).resolve().parent.parent,
        )
    _keepers.append(keeper)


def _keep(marker: str) -> None:
    sys.stdin.buffer.read()
    time.sleep(_KEEPER_PATIENCE_S)
    end_processes(marker)


if __name__ == "__main__":
    _keep(sys.argv[1])
