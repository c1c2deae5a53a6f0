"""What a child process that may be killed at any moment does to itself when it starts.

It ends with its parent, and fills no more memory than its share. `bounded_process` is the parent's side.
"""

import ctypes
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

from actors.processes import STOPPING

__all__ = ["NICENESS", "end_with_parent", "give_way", "limit", "settle"]

# Measured with four runaway queries on two cores: at 0 point queries take three times as long, at 10 about as
# long as without; at 19 a query would get next to nothing where others keep the processors busy.
NICENESS = 10

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
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)  # it is for the service, which ends in order
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # the first that the kernel takes
    limit(resource.RLIMIT_DATA, (memory_limit_mb + _BESIDE_THE_LIMIT_MB) << 20)


def give_way() -> None:
    """Have all threads of this process wait for those of others, and the threads that they start."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, int(thread.name), NICENESS)


def limit(kind: int, wanted: int) -> None:
    """Set one of the kernel's limits, or what of it is allowed."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
