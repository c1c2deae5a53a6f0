"""A thread that looks after timers all the time, as Ray's do, is slowed down, and hears events as before."""

import ctypes
import os
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.ray_at_rest import late_timers, make_timers_late, make_timers_punctual, slow_down
from tests.support.timing import HANG_S

LIBRARY = ctypes.CDLL(None)
MARK = 7 << 32 | 5  # more than a descriptor


class Loop:
    """Waits for events, and for a timer that it sets anew each time that it goes off: every 10 ms."""

    def __init__(self) -> None:
        self.wakes: list[float] = []
        self.heard = threading.Event()
        self.tell, self.told = os.pipe()[::-1]
        self.timer = LIBRARY.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK)
        self.poller = LIBRARY.epoll_create1(0)
        for descriptor, mark in ((self.told, 1), (self.timer, MARK)):
            # the members of `struct epoll_event`, packed or not
            event = (ctypes.c_uint32 * 4)(select.EPOLLIN, *self._words(mark))
            LIBRARY.epoll_ctl(self.poller, 1, descriptor, ctypes.byref(event))
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _words(self, mark: int) -> list[int]:
        words = [mark & 0xFFFFFFFF, mark >> 32]
        return words if os.uname().machine == "x86_64" else [0, *words]

    def _work(self) -> None:
        events = (ctypes.c_uint32 * 4)()
        while not self.heard.is_set():
            LIBRARY.timerfd_settime(self.timer, 0, (ctypes.c_long * 4)(0, 0, 0, 10_000_000), None)
            LIBRARY.epoll_wait(self.poller, ctypes.byref(events), 1, -1)
            if list(events)[1:] == [*self._words(1), 0][:3]:
                self.heard.set()
            self.wakes.append(time.monotonic())

    def wakes_in(self, seconds: float) -> int:
        before = len(self.wakes)
        time.sleep(seconds)
        return len(self.wakes) - before


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    os.write(made.tell, b"x")
    made.thread.join(10)
    assert not made.thread.is_alive()


def slowed_down(loop: Loop) -> int:
    thread = loop.thread.native_id
    assert thread is not None
    while (counter := slow_down(thread)) is None:
        pass
    time.sleep(0.1)
    return counter


def test_a_loop_that_is_slowed_down_looks_around_when_it_is_told_to(loop: Loop) -> None:
    assert loop.wakes_in(0.5) > 10
    counter = slowed_down(loop)
    assert loop.wakes_in(0.5) == 0
    for _ in range(5):
        before = len(loop.wakes)
        os.eventfd_write(counter, 1)
        deadline = time.monotonic() + HANG_S
        while len(loop.wakes) == before and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(loop.wakes) == before + 1


def test_it_hears_events_at_once(loop: Loop) -> None:
    slowed_down(loop)
    os.write(loop.tell, b"x")
    assert loop.heard.wait(HANG_S)


def test_a_thread_that_waits_for_something_else_stays_as_it_is() -> None:
    is_over = threading.Event()
    thread = threading.Thread(target=is_over.wait)
    thread.start()
    assert thread.native_id is not None
    assert slow_down(thread.native_id) is None
    is_over.set()
    thread.join()


def test_only_threads_that_are_started_meanwhile_have_late_timers() -> None:
    slacks: list[str] = []

    def note() -> None:
        with open(f"/proc/{threading.get_native_id()}/timerslack_ns") as file:
            slacks.append(file.read().strip())

    def start() -> None:
        with late_timers():
            start_one()
        start_one()

    def start_one() -> None:
        inner = threading.Thread(target=note)
        inner.start()
        inner.join()

    outer = threading.Thread(target=start)
    outer.start()
    outer.join()
    assert slacks == ["1000000000", "50000"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the timers of other threads")
def test_the_timers_of_some_threads_are_made_late() -> None:
    end = threading.Event()
    named = {name: threading.Event() for name in ("late.one", "punctual")}
    threads = [threading.Thread(target=wait_named, args=(*one, end)) for one in named.items()]
    for thread in threads:
        thread.start()
    try:
        assert all(is_named.wait(HANG_S) for is_named in named.values())
        make_timers_late(os.getpid(), ("late.",))
        assert [slack_s(thread) for thread in threads] == [1.0, 50e-6]
        make_timers_punctual(os.getpid())
        assert [slack_s(thread) for thread in threads] == [50e-6, 50e-6]
    finally:
        end.set()
    make_timers_late(2**22 + 1)  # as a process that is gone


def wait_named(name: str, is_named: threading.Event, end: threading.Event) -> None:
    Path("/proc/thread-self/comm").write_text(name)
    is_named.set()
    end.wait(HANG_S)


def slack_s(thread: threading.Thread) -> float:
    return int(Path(f"/proc/{thread.native_id}/timerslack_ns").read_text()) / 1e9
