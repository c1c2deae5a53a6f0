"""How busy this node's machine and process are. The clock and the machine are read at each call."""

import os
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

__all__ = ["DiskUse", "HostLoad", "ProcessLoad", "disk_use", "host_load", "process_load"]


@dataclass(frozen=True, slots=True)
class HostLoad:
    """What Elasticsearch calls heap is the memory of this process here."""

    process_id: int
    process_bytes: int
    memory_bytes: int
    memory_used: int
    memory_percent: int
    cpu_percent: int
    load: tuple[float, float, float]  # over 1, 5 and 15 minutes

    @property
    def process_percent(self) -> int:
        """Of the machine's memory."""
        return round(100 * self.process_bytes / self.memory_bytes)


@dataclass(frozen=True, slots=True)
class ProcessLoad:
    """Of this process alone. cpu_ms: of processor time, since it was started."""

    open_files: int
    files_max: int
    threads: int
    virtual_bytes: int
    cpu_ms: int


@dataclass(frozen=True, slots=True)
class DiskUse:
    """In bytes. kind: the file system."""

    total: int
    used: int
    free: int
    kind: str


def host_load() -> HostLoad:
    memory, process = psutil.virtual_memory(), psutil.Process()
    return HostLoad(
        process_id=process.pid,
        process_bytes=process.memory_info().rss,
        memory_bytes=memory.total,
        memory_used=memory.used,
        memory_percent=round(memory.percent),
        cpu_percent=round(psutil.cpu_percent()),
        load=os.getloadavg(),
    )


def process_load() -> ProcessLoad:
    process = psutil.Process()
    with process.oneshot():
        times = process.cpu_times()
        return ProcessLoad(
            open_files=process.num_fds(),
            files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            threads=process.num_threads(),
            virtual_bytes=process.memory_info().vms,
            cpu_ms=int(1000 * (times.user + times.system)),
        )


def disk_use(directory: Path) -> DiskUse:
    """Of the disk that holds a directory, or will hold it."""
    while not directory.exists():
        directory = directory.parent
    total, used, free = shutil.disk_usage(directory)
    where = directory.resolve()
    holding = [one for one in psutil.disk_partitions(all=True) if where.is_relative_to(one.mountpoint)]
    nearest = max(holding, key=lambda one: len(one.mountpoint), default=None)
    return DiskUse(total, used, free, "unknown" if nearest is None else nearest.fstype)
