"""What a child process that may be killed at any moment does to itself when it starts.

It ends with its parent, and fills no more memory than its share. `bounded_process` is the parent's side.
"""

import ctypes
import resource
import signal
from contextlib import suppress
from pathlib import Path

__all__ = ["end_with_parent", "limit", "settle"]

_PR_SET_PDEATHSIG = 1
_BESIDE_THE_LIMIT_MB = 256  # address space that is reserved and never filled: stacks of an engine's threads


def end_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def settle(memory_limit_mb: int) -> None:
    """Once, on the main thread, before there are others.

    What the process has to itself is watched by the parent; the kernel's limit is for what grows too fast to
    be seen.
    """
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a terminal it is for the service, which ends in order
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first that the kernel takes
    limit(resource.RLIMIT_DATA, (memory_limit_mb + _BESIDE_THE_LIMIT_MB) << 20)


def limit(kind: int, wanted: int) -> None:
    """Set one of the kernel's limits, or what of it is allowed."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
