"""Memory that is not needed now: what was freed and the C library keeps, and pages of files."""

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["give_back", "keep_freed", "unmap_file_pages"]

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_BYTES = 64 << 20  # free at the end of a pool
_POOLED_BYTES = 16 << 20  # what is larger is mapped by itself, and unmapped once it is freed
_MADV_DONTNEED = 4  # of mman.h


def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library than GNU's
        return None
    return trim


_TRIM = _trim()


def give_back() -> None:
    """Takes a tenth of a second for a few hundred megabytes, without the interpreter's lock, but whoever
    allocates waits meanwhile. Does nothing where the C library has no such call.
    """
    if _TRIM is not None:
        _TRIM(0)


def keep_freed() -> None:
    """From now on keep up to 64 MB of it until `give_back`, for arrays that come and go with each query.

    Otherwise an array of a few megabytes is returned as soon as it is freed, and each page of the next one is
    a fault: adding up 222,448 weights took 8.3 ms, and takes 0.7 without these. Whether it is returned hangs
    on what else the C library holds: one search of all of 50,000 documents took 0.25 ms at times and 1.4 at
    others. Does nothing where the C library has no such call.
    """
    try:
        mallopt: Callable[[int, int], int] = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _POOLED_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def unmap_file_pages() -> None:
    """Take pages of files from this process's memory that it can only read, which are libraries mostly.

    The page cache keeps them, as it keeps any file's, until the kernel needs the room; what is used again
    costs a minor fault for every 16 pages.
    """
    advise = ctypes.CDLL(None).madvise
    for start, end in _read_only_mappings():
        advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)


def _read_only_mappings() -> Iterator[tuple[int, int]]:
    """Where mappings of files begin and end that cannot be written to, and have no page of the process's own:
    the loader has written to some before it has made them so.
    """
    start = end = 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *fields = line.split()
        if not first.endswith(":"):  # the line that a mapping begins with
            permissions, inode = fields[0], fields[3]
            start, end = (int(address, 16) for address in first.split("-"))
            if inode == "0" or "w" in permissions:
                end = start
        elif first == "Anonymous:" and fields[0] == "0" and end > start:
            yield start, end
