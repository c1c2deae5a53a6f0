"""`Directory`: who has which password, by asking a directory (LDAP) beside the event loop.

A bounded number of threads with a connection each, which is bound as the service; who finds none free waits
for it, for a bounded time.
"""

import asyncio
import contextlib
import logging
import queue
import random
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from actors.access.directory_connection import (
    BindRefused,
    DirectoryConnection,
    DirectoryServer,
    LostConnection,
    RefusedOperation,
)
from graphdb.access.credentials import PasswordGiven
from graphdb.access.directory_users import DirectoryUsers, UserEntry, user_filter
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.config.access import Ldap
from graphdb.errors import NotAuthenticated, Overloaded, UnavailableError

__all__ = ["Directory"]

T = TypeVar("T")

_AGAIN_S = 5
_PAUSE_S = 10.0  # after the service's own password was refused: more attempts would lock its account
_REFERRALS_MAX = 4
_GROUPS_MAX = 1_000  # of one user, whose SIDs are asked for
_GROUP_KEPT_S = 300.0
_GROUPS_KEPT_MAX = 10_000
_BINDS_KEPT = 64

log = logging.getLogger(__name__)


class Directory:
    """See `serve.access.access_backend.Directory`. For one event loop."""

    def __init__(self, configured: Ldap, roles: Roles) -> None:
        """Nothing is connected before the first password comes."""
        self._configured = configured
        self._users = DirectoryUsers(configured, roles)
        self._server = DirectoryServer.of_url(configured.server_url)
        self._threads = ThreadPoolExecutor(configured.pool_size, thread_name_prefix="directory")
        self._turns = asyncio.Semaphore(configured.pool_size)
        self._kept: queue.LifoQueue[DirectoryConnection] = queue.LifoQueue()
        self._paused_until = 0.0  # time.monotonic
        # How long it took lately to have the password of a user who exists checked.
        self._bind_s: deque[float] = deque(maxlen=_BINDS_KEPT)
        self._group_sids: OrderedDict[str, tuple[frozenset[str], float]] = OrderedDict()  # until when
        self._lock = threading.Lock()  # of what the threads share
        self._is_away = False

    async def principal(self, given: PasswordGiven, check: Callable[[], Awaitable[None]]) -> Principal:
        """Whose password it is; check is awaited once it is its turn, and raises where it is not to be tried.

        Raises NotAuthenticated; Overloaded where no connection gets free in time; UnavailableError where the
        directory does not answer, or not as it has to; what check raises.
        """
        try:
            async with asyncio.timeout(self._configured.timeout_seconds):
                await self._turns.acquire()
        except TimeoutError:
            raise Overloaded("all connections to the directory are busy", 1) from None
        try:
            await check()
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._verified, given.user, given.password)
        finally:
            self._turns.release()

    def stop(self) -> None:
        """Give back threads and connections."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while True:
            try:
                self._kept.get_nowait().close()
            except queue.Empty:
                return

    def _verified(self, name: str, password: str) -> Principal:
        if not password:  # a bind without one is anonymous, and succeeds for every name (RFC 4513, 5.1.2)
            raise _wrong()
        try:
            principal = self._principal(name, password)
        except (LostConnection, RefusedOperation) as error:
            self._note_away(str(error))
            raise UnavailableError("the directory cannot be asked at the moment", _AGAIN_S) from None
        except NotAuthenticated:
            self._note_back()
            raise
        self._note_back()
        return principal

    def _principal(self, name: str, password: str) -> Principal:
        found = self._found(name)
        if found is None:
            self._pretend(password)
            raise _wrong()
        server, user = found
        if not self._has_password(server, user.dn, password):
            raise _wrong()
        sids: set[str] = set()
        for group in self._users.groups(user)[:_GROUPS_MAX]:
            sids |= self._sids_of_group(group)
        try:
            return self._users.principal(name, user, sids)
        except ValueError as error:
            log.warning("%s has a SID that cannot be read: %s", user.dn, error)
            raise UnavailableError("what the directory holds of this user cannot be read", _AGAIN_S) from None

    def _found(self, name: str) -> tuple[DirectoryServer, UserEntry] | None:
        """The one entry of a name, and which server has it; None where there is none, or more than one."""
        configured = self._configured
        text = user_filter(configured.user_search_filter, name)
        attributes = self._users.attributes

        def search(connection: DirectoryConnection, base: str) -> tuple[list[UserEntry], list[str]]:
            found = connection.search(base, text, attributes, entries_max=1)
            return list(found.entries), list(found.referrals)

        entries, referrals = self._ask(lambda connection: search(connection, configured.user_search_base))
        places = [(self._server, entry) for entry in entries]
        if configured.follow_referrals:
            for url in referrals[:_REFERRALS_MAX]:
                target = DirectoryServer.of_referral(url, self._server.is_tls)
                if target is None:
                    log.warning("a referral of the directory is not followed: %s", url)
                    continue
                server, base = target
                connection = self._open(server)
                try:
                    there, _ = search(connection, base or configured.user_search_base)
                finally:
                    connection.close()
                places += [(server, entry) for entry in there]
        if len(places) > 1:
            log.warning("%d entries of the directory are named %r: nobody is let in by it", len(places), name)
        return places[0] if len(places) == 1 else None

    def _has_password(self, server: DirectoryServer, dn: str, password: str) -> bool:
        began = time.monotonic()
        try:
            DirectoryConnection(server, self._configured, dn, password).close()
            is_right = True
        except BindRefused:
            is_right = False
        self._bind_s.append(time.monotonic() - began)
        return is_right

    def _pretend(self, password: str) -> None:
        """What takes as long as with a user who exists: a bind, and the time that the hash takes there."""
        began = time.monotonic()
        nobody = f"cn={secrets.token_hex(8)},{self._configured.user_search_base}"
        with contextlib.suppress(BindRefused):
            DirectoryConnection(self._server, self._configured, nobody, password).close()
        usual_s = random.choice(list(self._bind_s) or [0.0])
        time.sleep(max(0.0, usual_s - (time.monotonic() - began)))

    def _sids_of_group(self, dn: str) -> frozenset[str]:
        """The group's own; none where it cannot be seen, or holds what is none."""
        with self._lock:
            kept = self._group_sids.get(dn)
        if kept is not None and kept[1] > time.monotonic():
            return kept[0]
        attributes = (self._configured.sid_attribute,)
        group = self._ask(lambda connection: connection.entry(dn, attributes))
        sids: frozenset[str] = frozenset()
        if group is not None:
            try:
                sids = self._users.sids(group)
            except ValueError as error:
                log.warning("the group %s has a SID that cannot be read: %s", dn, error)
        with self._lock:
            self._group_sids[dn] = sids, time.monotonic() + _GROUP_KEPT_S
            self._group_sids.move_to_end(dn)
            if len(self._group_sids) > _GROUPS_KEPT_MAX:
                self._group_sids.popitem(last=False)
        return sids

    def _ask(self, question: Callable[[DirectoryConnection], T]) -> T:
        """Over a connection that is kept; anew over a fresh one where that is gone."""
        try:
            kept = self._kept.get_nowait()
        except queue.Empty:
            pass
        else:
            try:
                return self._asked(kept, question)
            except LostConnection:
                log.debug("a connection to the directory was gone")
        return self._asked(self._open(self._server), question)

    def _asked(self, connection: DirectoryConnection, question: Callable[[DirectoryConnection], T]) -> T:
        try:
            answer = question(connection)
        except BaseException:
            connection.close()
            raise
        self._kept.put(connection)
        return answer

    def _open(self, server: DirectoryServer) -> DirectoryConnection:
        """A connection bound as the service."""
        configured = self._configured
        if time.monotonic() < self._paused_until:
            raise RefusedOperation("it refused the service's own name or password (bind_dn, bind_password)")
        password = configured.bind_password.get_secret_value()
        try:
            return DirectoryConnection(server, configured, configured.bind_dn, password)
        except BindRefused as error:
            self._paused_until = time.monotonic() + _PAUSE_S
            raise RefusedOperation(f"it refuses bind_dn and bind_password: {error}") from None

    def _note_away(self, why: str) -> None:
        with self._lock:
            was_away, self._is_away = self._is_away, True
        if not was_away:
            log.error("the directory cannot be asked, its users get 503: %s", why)

    def _note_back(self) -> None:
        with self._lock:
            was_away, self._is_away = self._is_away, False
        if was_away:
            log.warning("the directory answers again")


def _wrong() -> NotAuthenticated:
    return NotAuthenticated("the user name or the password is wrong", is_attempt=True)
