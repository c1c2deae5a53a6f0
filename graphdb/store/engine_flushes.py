"""`EngineFlushes`: keeps a store's flushes from waiting for ever.

RocksDB can lose a request to flush that comes while an older one is about to begin, if it gathers several
memtables before it writes them (`min_write_buffer_number_to_merge`; Oxigraph sets it to 2). The memtable then
stays in memory, and the call that waits for it waits until something else flushes. A checkpoint flushes too,
and so does the end of a bulk load.
Source: https://github.com/facebook/rocksdb/issues/12094, and `PickMemtablesToFlush` in `db/memtable_list.cc`.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread

__all__ = ["EngineFlushes"]

logger = logging.getLogger(__name__)

_PATIENCE_S = 5.0  # a flush takes milliseconds, or seconds where much is to be written


class EngineFlushes:
    """For one store, on any threads. No thread of it holds the store once a call has ended."""

    def __init__(self, flush: Callable[[], None], patience_s: float = _PATIENCE_S) -> None:
        """flush has the engine write what it holds in memory, and waits for that."""
        self._flush, self._patience_s = flush, patience_s
        self._lock = Lock()

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Around a flush or a checkpoint: none of them begins while another one runs."""
        with self._lock, self.watched():
            yield

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Around what flushes by itself: where it takes long, the engine is told again to flush.

        The engine also flushes by itself when a memtable is full, which no lock of ours can prevent.
        """
        ended = Event()
        watching = Thread(target=self._watch, args=(ended,), name="flush-watch", daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()

    def _watch(self, ended: Event) -> None:
        """Flush now and then until the watched call has ended, and each of these flushes too: they may get
        lost as well.
        """
        flushing: list[Thread] = []
        while not ended.wait(self._patience_s):
            flushing.append(self._flushing())
        while flushing := [thread for thread in flushing if thread.is_alive()]:
            flushing[0].join(self._patience_s)
            if flushing[0].is_alive():
                flushing.append(self._flushing())

    def _flushing(self) -> Thread:
        thread = Thread(target=self._flush_quietly, name="flush-again", daemon=True)
        thread.start()
        return thread

    def _flush_quietly(self) -> None:
        try:
            self._flush()
        except Exception as error:  # noqa: BLE001 the watched call fails for the same reason, and is told
            logger.debug("flushing again failed: %s", error)
