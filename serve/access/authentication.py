"""`Authenticator`: verifies credentials of both ports, counts failed attempts, locks out addresses."""

import asyncio
import hmac
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from starlette.types import Scope

from graphdb.access.api_keys import ApiKeys
from graphdb.access.credentials import (
    Credentials,
    KeyGiven,
    PasswordGiven,
    TokenGiven,
    credentials_of_headers,
)
from graphdb.access.lockout import Lockout, TrustedProxies
from graphdb.access.oidc import AccessTokens
from graphdb.access.passwords import Passwords
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.access.tokens import SignedTokens, VerifiedTokens
from graphdb.access.visibility import Contexts
from graphdb.config import Settings
from graphdb.config.access import Authentication
from graphdb.errors import LockedOut, NotAuthenticated, Overloaded, UnavailableError
from serve.access.access_backend import AccessBackend, Directory, Failures
from serve.access.provider_keys import ProviderKeys
from serve.access.request_scope import address_of

__all__ = ["Authenticator"]

_KEY, _AUTHORIZATION = b"x-api-key", b"authorization"

_THREADS = 2  # each uses a core and, with the usual parameters, 64 MiB
_WAITING_MAX = 64
_KEPT_S = 60.0
_KEPT_MAX = 4_096


class Authenticator:
    """One for each application, used on one event loop. The owner calls `stop` at the end."""

    def __init__(self, settings: Settings, backend: AccessBackend | None = None) -> None:
        """Raises ConfigError, OSError."""
        backend = backend or AccessBackend()
        configured, roles = settings.authentication, Roles(settings.authorization)
        self._keys = ApiKeys(configured.api_keys, roles)
        self._tokens = TokenVerifier(configured, roles)
        basic = configured.basic
        users = basic.users if basic is not None and basic.enabled else ()
        self._passwords = PasswordVerifier(Passwords(users, roles), backend.directory)
        self._failures: Failures = backend.failures or Lockout(configured.rate_limiting)
        self._shared_failures = backend.shared_failures
        self._proxies = TrustedProxies(settings.server.trusted_proxies)
        self._contexts = Contexts(settings.acl)

    async def admit(self, scope: Scope) -> Principal | None:
        """The principal of the credentials in a request's headers; None without credentials.

        Raises NotAuthenticated, LockedOut, UnavailableError.
        """
        address = self.address(scope)
        await self.check_lockout(address)
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        keys = [value for name, value in headers if name == _KEY]
        given = credentials_of_headers(keys, [value for name, value in headers if name == _AUTHORIZATION])
        return None if given is None else await self.verify(given, address)

    async def verify(self, credentials: Credentials, address: str) -> Principal:
        """The principal of these credentials, and what it may see.

        Raises NotAuthenticated, LockedOut, UnavailableError.
        """
        found = await self._known(credentials, address)
        who = (found.name, found.roles, found.sids, found.permission)
        visibility, index_visibility = (
            self._contexts.visibility_of(*who),
            self._contexts.index_visibility_of(*who),
        )
        return replace(found, visibility=visibility, index_visibility=index_visibility)

    async def _known(self, credentials: Credentials, address: str) -> Principal:
        try:
            match credentials:
                case KeyGiven(key):
                    return self._keys.principal(key, time.time())
                case TokenGiven(token):
                    return await self._tokens.principal(token)
            # Other attempts may fail while this one waits, so the lockout is checked again when it runs.
            return await self._passwords.principal(credentials, lambda: self.check_lockout(address))
        except NotAuthenticated as error:
            if error.is_attempt:
                await self._note_failure(address)
            raise

    def address(self, scope: Scope) -> str:
        """The address whose failures are counted."""
        return address_of(scope, self._proxies)

    async def check_lockout(self, address: str) -> None:
        """Raises LockedOut."""
        wait_s = self._failures.wait_s(address, time.monotonic())
        if wait_s <= 0 and self._shared_failures is not None:
            wait_s = await self._shared_failures.wait_s(address)
        if wait_s > 0:
            raise LockedOut(math.ceil(wait_s))

    async def _note_failure(self, address: str) -> None:
        """Count here as well as in the shared store, because that may be unreachable."""
        is_counted = self._failures.note_failure(address, time.monotonic())
        if is_counted and self._shared_failures is not None:
            await self._shared_failures.note_failure(address)

    async def stop(self) -> None:
        """Stop threads, close connections, and cancel fetches."""
        self._passwords.stop()
        self._tokens.stop()
        if self._shared_failures is not None:
            await self._shared_failures.close()


class PasswordVerifier:
    """Verifies passwords on threads, few at a time, and caches correct ones for a minute.

    Used on one event loop. Equal credentials that arrive together are verified once.
    """

    def __init__(self, passwords: Passwords, directory: Directory | None = None) -> None:
        """The directory is asked for users whom the file does not have with this password."""
        self._passwords, self._directory = passwords, directory
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="password")
        self._turns = asyncio.Semaphore(_THREADS)
        # Passwords are not kept, only their hashes with a key of this process.
        self._secret = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, tuple[Principal, float]] = OrderedDict()  # until when
        self._running: dict[bytes, asyncio.Task[Principal]] = {}

    async def principal(self, given: PasswordGiven, check: Callable[[], Awaitable[None]]) -> Principal:
        """The user of this password. check raises if the password must not be verified.

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
        # Other requests may wait for the same result, so it continues when one of them is cancelled.
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
            # The directory is asked also for users of the file, so that the duration does not disclose them.
            try:
                return await self._directory.principal(given, check)
            except UnavailableError:
                if self._passwords.has_user(given.user):
                    raise wrong from None  # otherwise guesses would not be counted while it is unavailable
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
            task.exception()  # the request may have been cancelled

    def _digest(self, given: PasswordGiven) -> bytes:
        text = f"{len(given.user)}:{given.user}{given.password}"
        return hmac.digest(self._secret, text.encode(), "sha256")

    def stop(self) -> None:
        """Stop the threads and the directory."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._directory is not None:
            self._directory.stop()


class TokenVerifier:
    """Verifies bearer tokens, of the configured issuer or of the OpenID Connect provider.

    Used on one event loop. The owner calls `stop` at the end.
    """

    def __init__(self, configured: Authentication, roles: Roles) -> None:
        """Raises ConfigError, OSError."""
        self._signed = None
        if configured.jwt is not None:
            self._signed = SignedTokens(configured.jwt, configured.jwt.public_key_file.read_bytes(), roles)
        self._access, self._keys = None, None
        if configured.oidc is not None:
            self._access, self._keys = AccessTokens(configured.oidc, roles), ProviderKeys(configured.oidc)
        self._verified = VerifiedTokens()

    async def principal(self, token: str) -> Principal:
        """The principal of a token. Raises NotAuthenticated, ProviderUnavailable."""
        found = self._verified.principal(token, time.time())
        if found is None:
            found = await self._verify(token)
            self._verified.keep(token, found, time.time())
        return found

    async def _verify(self, token: str) -> Principal:
        if self._signed is not None:
            try:
                return self._signed.principal(token, time.time())
            except NotAuthenticated as error:
                # A token that our issuer signed is not the provider's, even if it is invalid; others may be.
                if self._access is None or not error.is_attempt:
                    raise
        if self._access is None or self._keys is None:
            raise NotAuthenticated("bearer tokens are not taken here", is_attempt=True)
        header = self._access.header(token, time.time())
        return self._access.principal(token, header, await self._keys.key(header), time.time())

    def stop(self) -> None:
        """Cancel fetches."""
        if self._keys is not None:
            self._keys.stop()
