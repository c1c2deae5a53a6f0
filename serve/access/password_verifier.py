"""`PasswordVerifier`: verifies passwords beside the event loop, few at a time, and remembers for a while
whose were right.
"""

import asyncio
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from graphdb.access.credentials import PasswordGiven
from graphdb.access.passwords import Passwords
from graphdb.access.principal import Principal
from graphdb.errors import NotAuthenticated, Overloaded, UnavailableError
from serve.access.backend import Directory

__all__ = ["PasswordVerifier"]

_THREADS = 2  # each takes a core and, by the usual parameters, 64 MiB
_WAITING_MAX = 64
_KEPT_S = 60.0
_KEPT_MAX = 4_096


class PasswordVerifier:
    """For one event loop. Equal credentials that come at once are verified once."""

    def __init__(self, passwords: Passwords, directory: Directory | None = None) -> None:
        """Whom the file does not know by this password, the directory is asked for."""
        self._passwords, self._directory = passwords, directory
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="password")
        self._turns = asyncio.Semaphore(_THREADS)
        # Passwords are not kept, but what they hash to with a key that nobody else has.
        self._secret = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()  # until when
        self._running: dict[bytes, asyncio.Task[Principal]] = {}

    async def principal(self, given: PasswordGiven, check: Callable[[], Awaitable[None]]) -> Principal:
        """Whose password it is; check raises where it is not even to be verified.

        Raises NotAuthenticated, UnavailableError, what check raises.
        """
        digest = self._digest(given)
        kept = self._right.get(digest)
        if kept is not None and kept[1] > time.monotonic():
            return kept[0]
        running = self._running.get(digest)
        if running is None:
            if len(self._running) >= _WAITING_MAX:
                raise Overloaded("too many passwords are being verified", 1)
            running = asyncio.ensure_future(self._verify(digest, given, check))
            self._running[digest] = running
            running.add_done_callback(lambda task: self._done(digest, task))
        # Others may wait for the same, so it goes on when one of them leaves.
        return await asyncio.shield(running)

    async def _verify(
        self, digest: bytes, given: PasswordGiven, check: Callable[[], Awaitable[None]]
    ) -> Principal:
        principal = await self._verified(given, check)
        self._right[digest] = principal, time.monotonic() + _KEPT_S
        self._right.move_to_end(digest)
        if len(self._right) > _KEPT_MAX:
            self._right.popitem(last=False)
        return principal

    async def _verified(self, given: PasswordGiven, check: Callable[[], Awaitable[None]]) -> Principal:
        if self._directory is None:
            return await self._of_file(given, check)
        if not self._passwords.has_users:
            return await self._directory.principal(given, check)
        try:
            return await self._of_file(given, check)
        except NotAuthenticated as wrong:
            # The directory is asked for a user of the file too, so that time does not tell who is one.
            try:
                return await self._directory.principal(given, check)
            except UnavailableError:
                if self._passwords.has_user(given.user):
                    raise wrong from None  # else passwords could be tried, uncounted, while it is away
                raise

    async def _of_file(self, given: PasswordGiven, check: Callable[[], Awaitable[None]]) -> Principal:
        async with self._turns:
            await check()
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._threads, self._passwords.principal, given.user, given.password
            )

    def _done(self, digest: bytes, task: "asyncio.Task[Principal]") -> None:
        del self._running[digest]
        if not task.cancelled():
            task.exception()  # whoever asked may have left

    def _digest(self, given: PasswordGiven) -> bytes:
        text = f"{len(given.user)}:{given.user}{given.password}"
        return hmac.digest(self._secret, text.encode(), "sha256")

    def stop(self) -> None:
        """Give back the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._directory is not None:
            self._directory.stop()
