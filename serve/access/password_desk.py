"""`PasswordDesk`: verifies passwords beside the event loop, few at a time, and remembers for a while whose
were right.
"""

import asyncio
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from graphdb.access.credentials import PasswordGiven
from graphdb.access.passwords import Passwords
from graphdb.access.principal import Principal
from graphdb.errors import Overloaded

__all__ = ["PasswordDesk"]

_THREADS = 2  # each takes a core and, by the usual parameters, 64 MiB
_WAITING_MAX = 64
_KEPT_S = 60.0
_KEPT_MAX = 4_096


class PasswordDesk:
    """For one event loop. Equal credentials that come at once are verified once."""

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="password")
        # Passwords are not kept, but what they hash to with a key that nobody else has.
        self._secret = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()  # until when
        self._running: dict[bytes, asyncio.Task[Principal]] = {}

    async def principal(self, given: PasswordGiven, check: Callable[[], None]) -> Principal:
        """Whose password it is; check raises where it is not even to be verified.

        Raises NotAuthenticated, Overloaded, what check raises.
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

    async def _verify(self, digest: bytes, given: PasswordGiven, check: Callable[[], None]) -> Principal:
        def verified() -> Principal:
            check()
            return self._passwords.principal(given.user, given.password)

        principal = await asyncio.get_running_loop().run_in_executor(self._threads, verified)
        self._right[digest] = principal, time.monotonic() + _KEPT_S
        self._right.move_to_end(digest)
        if len(self._right) > _KEPT_MAX:
            self._right.popitem(last=False)
        return principal

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
