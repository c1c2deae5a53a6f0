"""How long the history is kept: which of its files may go."""

from collections.abc import Sequence
from typing import NamedTuple

from graphdb.config.service import History
from graphdb.history.archive import ArchiveName

__all__ = ["KeptFile", "excess_bytes", "expired_count", "is_needed"]

_DAY_MS = 86_400_000


class KeptFile(NamedTuple):
    """One compressed file of the history."""

    name: ArchiveName
    size_bytes: int
    last_ms: int  # the newest timestamp in it; 0 where no entry has one, as those of Raft itself


def expired_count(
    files: Sequence[KeptFile], config: History, now_ms: int, last_index: int, kept_from: int | None
) -> int:
    """How many of these files may go: the oldest ones. files are in order.

    last_index: the newest entry of the log. kept_from: an entry that has to be kept, with all after it,
    whatever its age and its size; None for none. Where nothing is to be kept ("off") there will be a gap
    behind it.
    """
    files = _with_times(files, now_ms)
    excess = excess_bytes(files, config)
    count = 0
    for file in files:
        is_expired = excess > 0 or _is_old(file, config.keep, now_ms, last_index)
        if is_needed(file.name, config, kept_from) or not is_expired:
            break
        excess -= file.size_bytes
        count += 1
    return count


def excess_bytes(files: Sequence[KeptFile], config: History) -> int:
    """By how many bytes these files exceed the bound on their size; 0 and less where they do not."""
    return sum(file.size_bytes for file in files) - (config.max_gb << 30)


def _with_times(files: Sequence[KeptFile], now_ms: int) -> list[KeptFile]:
    """A file without a time is as old as the next one."""
    timed = list[KeptFile]()
    for file in reversed(files):
        last_ms = file.last_ms or (timed[-1].last_ms if timed else now_ms)
        timed.append(file._replace(last_ms=last_ms))
    return timed[::-1]


def is_needed(name: ArchiveName, config: History, kept_from: int | None) -> bool:
    """Whether a file has entries that a named state needs; see `expired_count`."""
    return config.keep != "off" and kept_from is not None and name.last_index >= kept_from


def _is_old(file: KeptFile, keep: str, now_ms: int, last_index: int) -> bool:
    if keep in ("forever", "off"):
        return keep == "off"
    if keep.endswith("d"):
        return file.last_ms < now_ms - int(keep[:-1]) * _DAY_MS
    return file.name.last_index <= last_index - int(keep)
