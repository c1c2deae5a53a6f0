"""`Gathering`: how long a batch of requests waits for the clients that the last one has answered."""

import asyncio
from time import perf_counter

__all__ = ["Gathering"]

_SHARE = 0.25  # of the time that the last batch took
_S_MIN = 0.001  # less is not worth a timer
_S_MAX = 0.01
_HALVED_MIN = 8  # clients


class Gathering:
    """For one event loop, and one queue of requests that are performed in batches, one batch at a time.

    Clients that have been answered mostly come again at once. Where a batch takes long (a commit in a
    cluster, a slow disk) and costs much the same however many requests it has, it pays to wait for them, for
    a fraction of that time: else two halves of the clients take turns, at twice the cost. Where a batch takes
    less than 4 ms, nothing is waited for.
    """

    def __init__(self) -> None:
        self._clients = 0
        self._wait_s = 0.0
        self._halves = False
        self._noted_at = 0.0
        self._came: asyncio.Future[None] | None = None

    def note(self, took_s: float, answered: int, waiting: int) -> None:
        """A batch of so many requests has taken so long, beside what there was to do meanwhile; so many more
        wait by now.
        """
        now = perf_counter()
        wait_s = _SHARE * took_s
        self._wait_s = min(wait_s, _S_MAX) if wait_s >= _S_MIN else 0.0
        self._clients = answered + waiting
        self._halves = self._clients >= _HALVED_MIN and 2 * took_s < now - self._noted_at
        self._noted_at = now

    def enough(self, requests_max: int) -> int:
        """With how many requests a batch need not wait for those that are being received.

        While one half of the clients has its batch performed, the next one of the other half is prepared,
        where preparing takes longer than what is waited for.
        """
        return min(self._clients // 2, requests_max) if self._halves else requests_max

    async def wait(self, waiting: int, enough: int) -> None:
        """Return when as many requests wait as there were clients lately, or `enough`, or after a while."""
        missing = min(self._clients, enough) - waiting
        if missing <= 0 or not self._wait_s:
            return
        loop = asyncio.get_running_loop()
        self._missing, self._came = missing, loop.create_future()
        giving_up = loop.call_later(self._wait_s, self._stop)
        try:
            await self._came
        finally:
            giving_up.cancel()
            self._came = None

    def note_request(self) -> None:
        """One more request waits."""
        if self._came is not None:
            self._missing -= 1
            if self._missing <= 0:
                self._stop()

    def _stop(self) -> None:
        if self._came is not None and not self._came.done():
            self._came.set_result(None)
