"""How busy this node's machine and process are. The clock and the machine are read at each call."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

__all__ = ["DiskUse", "HostLoad", "disk_use", "host_load"]


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
    started_ms: int  # this process, Unix epoch

    @property
    def process_percent(self) -> int:
        """Of the machine's memory."""
        return round(100 * self.process_bytes / self.memory_bytes)


@dataclass(frozen=True, slots=True)
class DiskUse:
    total: int
    used: int
    free: int


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
        started_ms=int(process.create_time() * 1000),
    )


def disk_use(directory: Path) -> DiskUse:
    """Of the disk that holds a directory, or will hold it."""
    while not directory.exists():
        directory = directory.parent
    total, used, free = shutil.disk_usage(directory)
    return DiskUse(total, used, free)
