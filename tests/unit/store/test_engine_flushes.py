"""A flush that the engine has lost is repeated, and no two of ours run at once."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread, active_count

import pytest
from pyoxigraph import Store

from graphdb.model import ChangeSet
from graphdb.store.engine_flushes import EngineFlushes
from graphdb.store.quad_store import QuadStore
from tests.support.timing import HANG_S

_SOON_S = 0.2


class LosingEngine:
    """Loses the first flushes, as RocksDB may: they end when a later one does."""

    def __init__(self, lost: int) -> None:
        self.flushes = 0
        self._lost = lost
        self._lock = Lock()
        self._flushed = Event()

    def flush(self) -> None:
        with self._lock:
            self.flushes += 1
            if self.flushes > self._lost:
                self._flushed.set()
        assert self._flushed.wait(HANG_S)


@pytest.mark.parametrize("lost", [1, 2, 5])
def test_a_lost_flush_is_repeated_until_it_ends(lost: int) -> None:
    engine, threads = LosingEngine(lost), active_count()
    flushes = EngineFlushes(engine.flush, 1.0)  # on a busy machine the end may be noticed late
    with flushes.one_at_a_time():
        engine.flush()
    assert engine.flushes == lost + 1
    assert active_count() <= threads, "one of its threads still has the engine"


def test_a_repeated_flush_that_is_lost_itself_is_not_left_behind() -> None:
    engine, threads = LosingEngine(2), active_count()
    with EngineFlushes(engine.flush, _SOON_S).watched():
        time.sleep(_SOON_S * 5)  # ends by itself
    assert active_count() == threads


def test_a_quick_flush_is_not_repeated() -> None:
    engine = LosingEngine(0)
    with EngineFlushes(engine.flush, 5).one_at_a_time():
        engine.flush()
    assert engine.flushes == 1


def test_failures_of_repeated_flushes_are_left_to_the_watched_call() -> None:
    def fail() -> None:
        raise OSError("No space left on device")

    with EngineFlushes(fail, _SOON_S).watched():
        time.sleep(_SOON_S * 3)


def test_no_two_flushes_run_at_once(tmp_path: Path) -> None:
    """Also of checkpoints, whatever threads ask for them."""
    running, most = 0, 0
    flushes = EngineFlushes(lambda: None)

    def work() -> None:
        nonlocal running, most
        for _ in range(20):
            with flushes.one_at_a_time():
                running += 1
                most = max(most, running)
                time.sleep(0.001)
                running -= 1

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


@pytest.mark.parametrize(
    "write",
    [lambda quads, path: quads.checkpoint(path), lambda quads, _: quads.flush()],
    ids=["copy", "flush"],
)
def test_flushes_of_a_store_wait_for_each_other(
    tmp_path: Path, write: Callable[[QuadStore, Path], None]
) -> None:
    quads = QuadStore(Store(tmp_path / "store"))
    quads.apply(ChangeSet())
    ended = Event()

    def run() -> None:
        write(quads, tmp_path / "copy")
        ended.set()

    with quads._flushes.one_at_a_time():
        thread = Thread(target=run)
        thread.start()
        assert not ended.wait(0.2)
    thread.join()
    assert ended.is_set()
