"""`Gathering`: how long a batch of requests waits for the clients that the last one has answered."""

import asyncio

__all__ = ["Gathering"]

_SHARE = 0.25  # of the time that the last batch took
_S_MIN = 0.001  # less is not worth a timer
_S_MAX = 0.01


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
        self._came: asyncio.Future[None] | None = None

    def note(self, took_s: float, answered: int, waiting: int) -> None:
        """A batch of so many requests has taken so long; so many more wait by now."""
        wait_s = _SHARE * took_s
        self._wait_s = min(wait_s, _S_MAX) if wait_s >= _S_MIN else 0.0
        self._clients = answered + waiting

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
