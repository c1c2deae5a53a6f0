"""Lets Ray's threads sleep where nothing happens. Ray has no settings for this, Linux has.

Two threads of each worker look around ten and a hundred times a second (`look_less_often`), and each
connection of gRPC wakes four times a second to see that nothing has come (`late_timers`, and for threads that
are there already `make_timers_late`).
"""

import ctypes
import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = [
    "GRPC_THREADS",
    "late_timers",
    "look_less_often",
    "make_timers_late",
    "make_timers_punctual",
    "slow_down",
]

_PR_SET_TIMERSLACK = 29
_LATE_S, _PUNCTUAL_S = 1.0, 50e-6  # the latter is what Linux begins with
# how the names of threads begin that gRPC starts, and Ray for gRPC
GRPC_THREADS = ("client.poll", "server.poll", "nexting_", "timer_manager", "grpc_global_tim", "event_engine")
_MESSAGES = "worker.io"  # the thread of each of Ray's processes that sends and receives
_PERIOD_S = 0.5  # between two looks
_AGAIN_S, _ATTEMPTS = 0.5, 240  # until the worker waits for its first task
_CTL_ADD, _CTL_DEL = 1, 2  # of epoll_ctl


class _Event(ctypes.Structure):
    """`struct epoll_event`, which is packed on x86-64 alone."""

    if os.uname().machine == "x86_64":
        _pack_ = 1
    _fields_ = [("events", ctypes.c_uint32), ("data", ctypes.c_uint64)]


@contextmanager
def late_timers() -> Iterator[None]:
    """Let the timers of threads that this one starts meanwhile, and its own, go off up to a second late.

    So that several wake a processor together. Events that come from outside still wake a thread at once.
    """
    _set_slack(_LATE_S)
    try:
        yield
    finally:
        _set_slack(_PUNCTUAL_S)


def _set_slack(seconds: float) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(round(seconds * 1e9)), 0, 0, 0)


def make_timers_late(pid: int, names: tuple[str, ...] = ("",)) -> None:
    """The same, for threads that a process has, if their names begin so; later ones have it from these.

    For another thread than the own, Linux allows it with CAP_SYS_NICE only, which root has; else all stays.
    """
    _set_slack_of(pid, names, _LATE_S)


def make_timers_punctual(pid: int) -> None:
    """Undo `make_timers_late`, for a stop that would wait for them. A timer that runs already stays late."""
    _set_slack_of(pid, ("",), _PUNCTUAL_S)


def _set_slack_of(pid: int, names: tuple[str, ...], seconds: float) -> None:
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # also of a thread that ends meanwhile
                if (thread / "comm").read_text().startswith(names):
                    Path(f"/proc/{thread.name}/timerslack_ns").write_text(f"{seconds * 1e9:.0f}")


def look_less_often(*, also_main: bool = True) -> None:
    """Have the threads of this process that look around by themselves do so twice a second, once they wait.

    The main thread looks for signals a hundred times a second, the one for messages (`worker.io`) sees to its
    timers ten times. Each waits in `epoll_wait`, for work and for a timer that its loop, of Boost.Asio, sets.
    That timer is taken out, and a counter (eventfd) put in its place, under the same mark, to which a thread
    here adds. Work wakes a loop at once, as before. Where one does not wait like this, as with another Ray,
    it stays as it is. also_main: the main thread is a worker's.
    """
    threading.Thread(target=_tick, args=(also_main,), daemon=True).start()


def _tick(also_main: bool) -> None:
    counters: dict[int, int] = {}  # by thread
    for _ in range(_ATTEMPTS):
        time.sleep(_AGAIN_S)
        threads = _looking_around(also_main=also_main)
        for thread in threads.difference(counters):
            if (counter := slow_down(thread)) is not None:
                counters[thread] = counter
        if counters.keys() == threads:
            break
    make_timers_late(os.getpid(), GRPC_THREADS)
    while counters:
        time.sleep(_PERIOD_S - time.monotonic() % _PERIOD_S)  # with those of other processes
        for counter in counters.values():
            os.eventfd_write(counter, 1)


def _looking_around(*, also_main: bool) -> set[int]:
    """The threads of this process that wake often though there is nothing to do."""
    found = {os.getpid()} if also_main else set[int]()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            if (thread / "comm").read_text().strip() == _MESSAGES:
                found.add(int(thread.name))
    return found


def slow_down(thread: int) -> int | None:
    """See `look_less_often`, of one thread of this process. The counter: the loop looks around each time that
    something is added to it; None where it does not wait as described.
    """
    try:
        _, first, *_ = Path(f"/proc/self/task/{thread}/syscall").read_text().split()
        poller = int(first, 16)
        if not _is_a(poller, "eventpoll"):
            return None
        for line in Path(f"/proc/self/fdinfo/{poller}").read_text().splitlines():
            match line.split():
                case ["tfd:", waited_for, "events:", _, "data:", mark, *_] if _is_a(
                    int(waited_for), "timerfd"
                ):
                    return _replaced(poller, int(waited_for), int(mark, 16))
    except (OSError, ValueError):  # it does something
        pass
    return None


def _is_a(descriptor: int, kind: str) -> bool:
    return os.readlink(f"/proc/self/fd/{descriptor}") == f"anon_inode:[{kind}]"


def _replaced(poller: int, timer: int, mark: int) -> int:
    library = ctypes.CDLL(None)
    counter = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    # nobody reads it, so each time that something is added has to count as an event of its own; a timer
    # (timerfd) that nobody reads goes off once only
    event = _Event(select.EPOLLIN | select.EPOLLET, mark)
    library.epoll_ctl(poller, _CTL_ADD, counter, ctypes.byref(event))
    library.epoll_ctl(poller, _CTL_DEL, timer, ctypes.byref(event))
    return counter
