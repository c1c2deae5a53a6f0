"""The memory and the processor time that all processes of a service use together."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from actors.processes import marked_processes
from actors.service_files import ServiceFiles

__all__ = [
    "Usage",
    "peak_memory_mb",
    "processor_seconds",
    "processor_seconds_of",
    "spent",
    "usage",
    "wait_until_back",
]

# What counts as back: the allocators and Python keep a little, and an idle service does a little.
SLACK_MB, SLACK_CORES = 100.0, 0.25
WINDOW_S = 0.5


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory that no other process shares, and processor seconds a second."""

    memory_mb: float
    cores: float


def usage(data_dir: Path, window_s: float = WINDOW_S) -> Usage:
    """Look at the processes of the service on a data directory for so long."""
    before, began = processor_seconds(data_dir), time.monotonic()
    time.sleep(window_s)
    after, seconds = processor_seconds(data_dir), time.monotonic() - began
    return Usage(sum(map(_own_memory, after)) / 1e6, spent(before, after) / seconds)


@contextlib.contextmanager
def peak_memory_mb(pid: int, found: list[float]) -> Iterator[None]:
    """Add what a process has in memory at its peak meanwhile, files that it maps included; nothing if it is
    gone.
    """
    process = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        (process / "clear_refs").write_text("5")  # the peak begins anew
    yield
    with contextlib.suppress(OSError, IndexError):
        status = (process / "status").read_text()
        found.append(int(status.partition("VmHWM:")[2].split()[0]) / 1e3)


def wait_until_back(data_dir: Path, before: Usage, within_s: float) -> tuple[float | None, Usage]:
    """Seconds until the service uses no more than before, None if it takes longer; and what it uses then."""
    began = time.monotonic()
    while True:
        now = usage(data_dir)
        elapsed = time.monotonic() - began
        is_back = now.memory_mb <= before.memory_mb + SLACK_MB and now.cores <= before.cores + SLACK_CORES
        if is_back or elapsed > within_s:
            return (elapsed if is_back and elapsed <= within_s + WINDOW_S else None), now


def processor_seconds(data_dir: Path) -> dict[int, float]:
    """What each process of the service on a data directory has used since it began."""
    return processor_seconds_of(marked_processes(ServiceFiles(data_dir).name))


def processor_seconds_of(pids: Iterable[int]) -> dict[int, float]:
    """The same of these processes, but for those that have ended."""
    found = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            found[pid] = times.user + times.system
    return found


def spent(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Seconds between two looks at processes, of those that were there at the second."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def _own_memory(pid: int) -> int:
    with contextlib.suppress(psutil.Error):
        memory: int = psutil.Process(pid).memory_full_info().uss
        return memory
    return 0
