"""What was freed, back to the operating system: the C library keeps it, a pool for every few threads."""

import ctypes
from collections.abc import Callable

__all__ = ["give_back"]


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
