"""`ClientThreads`: what clients do on threads of their own for as long as a `with` block lasts."""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Self

import httpx

from tests.support.service import Service
from tests.support.timing import HANG_S

__all__ = ["ClientThreads", "asked_while_killed"]


class ClientThreads:
    """Started by `with`, which waits in the end until all have returned: soon after `_ended` is set."""

    def __init__(self, runs: Iterable[Callable[[], None]]) -> None:
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=run) for run in runs]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


class Newcomers(ClientThreads):
    """Ask for a URL again and again, each time over a connection of its own."""

    def __init__(self, url: str, threads: int = 4) -> None:
        super().__init__([self._run] * threads)
        self._url = url
        self._became: list[tuple[float, int | Exception]] = []  # when asked, how it ended

    def _run(self) -> None:
        while not self._ended.is_set():
            asked_at = time.monotonic()
            outcome: int | Exception
            try:
                outcome = httpx.get(self._url, timeout=HANG_S, trust_env=False).status_code
            except httpx.TransportError as error:
                outcome = error
            self._became.append((asked_at, outcome))
            time.sleep(0.02)

    def outcomes(self, since: float) -> list[int | Exception]:
        """What became of each asked since then, by `time.monotonic`: its status, or why it has none."""
        return [outcome for asked_at, outcome in self._became if asked_at >= since]


def asked_while_killed(
    service: Service, url: str, process: str, await_back: Callable[[], object]
) -> tuple[list[int | Exception], list[int]]:
    """What becomes of newcomers who ask for a URL once a process of the service was killed, until it is back;
    and the ids of what was killed.
    """
    with Newcomers(url) as newcomers:
        time.sleep(0.5)
        killed = service.kill(process)
        time.sleep(0.1)
        killed_at = time.monotonic()
        await_back()
        time.sleep(0.5)
    return newcomers.outcomes(killed_at), killed
