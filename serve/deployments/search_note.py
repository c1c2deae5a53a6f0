"""How the search port is, as `/health` of the graph port hears it: a file that the search port keeps locked.

The two ports are processes of their own, either of which may be killed; the kernel unlocks what a killed one
had locked. So the graph port never takes a search port for well that is gone.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Callable

from graphdb.timestamps import until_whole

__all__ = ["SearchNote", "search_word"]

_FILE = "search"  # in a directory that each start of the service creates
_WIDTH = 16  # each word is written over the last
_AGAIN_S = 0.05
_TELL_S = 0.5


class SearchNote:
    """The search port's end. close() it when searches are answered no more."""

    def __init__(self, directory: str, is_starting: Callable[[], bool], is_well: Callable[[], bool]) -> None:
        """directory: the running service's own. is_starting: whether a search port that has not been well yet
        needs nothing but time.
        """
        self._path = os.path.join(directory, _FILE)
        self._is_starting, self._is_well = is_starting, is_well
        self._file = -1
        self._was_well = False  # at any time since the service began
        self._telling: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Report from now on, after the previous process has ended.

        In a file of our own, which has its word before it takes the place of the one before: whoever reads
        meets what is told, or what nobody has locked, but never an old word with a new lock.
        """
        before = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # only a blocking call notices when a lock is released; a shared one is none to those who read
            while not _lock(before, fcntl.LOCK_SH):  # noqa: ASYNC110
                await asyncio.sleep(_AGAIN_S)
            self._was_well = _read(before) not in ("", "starting")
            own = f"{self._path}-{os.getpid()}"
            self._file = os.open(own, os.O_RDWR | os.O_CREAT, 0o600)
            _lock(self._file, fcntl.LOCK_EX)
            self.tell()
            os.replace(own, self._path)
        finally:
            os.close(before)
        self._telling = asyncio.get_running_loop().create_task(self._tell_for_ever())

    def tell(self) -> None:
        """Report the present state, which is also done every half second."""
        self._was_well = self._was_well or self._is_well()
        if not self._was_well and self._is_starting():
            word = "starting"
        else:
            word = "healthy" if self._is_well() else "degraded"
        with contextlib.suppress(OSError):  # on a full disk the last word stays
            os.pwrite(self._file, word.ljust(_WIDTH).encode(), 0)

    async def _tell_for_ever(self) -> None:
        while True:
            await asyncio.sleep(until_whole(_TELL_S, time.monotonic()))
            self.tell()

    async def close(self) -> None:
        """Unlock the file."""
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)
        if self._file >= 0:
            os.close(self._file)


def search_word(directory: str) -> str:
    """What the search port does to the status of its node: healthy, nothing; starting, until it answers for
    the first time since the service began; degraded, while it does not or not all, after that.
    """
    try:
        file = os.open(os.path.join(directory, _FILE), os.O_RDONLY)
    except FileNotFoundError:
        return "starting"
    try:
        word = _read(file) or "starting"
        is_told = not _lock(file, fcntl.LOCK_SH)
    finally:
        os.close(file)
    return word if is_told or word == "starting" else "degraded"


def _lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: int) -> str:
    return os.pread(file, _WIDTH, 0).decode().strip()
