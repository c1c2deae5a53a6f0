"""`Doorman`: finds out who asks, on both ports; counts failed attempts, and locks out."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from starlette.types import Scope

from graphdb.access.api_keys import ApiKeys
from graphdb.access.credentials import Credentials, KeyGiven, TokenGiven, credentials_of_headers
from graphdb.access.lockout import Lockout, TrustedProxies
from graphdb.access.passwords import Passwords
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.access.visibility import Contexts
from graphdb.config import Settings
from graphdb.errors import LockedOut, NotAuthenticated
from serve.access.backend import AccessBackend, Failures
from serve.access.clients import address_of
from serve.access.password_verifier import PasswordVerifier
from serve.access.token_verifier import TokenVerifier

__all__ = ["Doorman"]

_KEY, _AUTHORIZATION = b"x-api-key", b"authorization"


class Doorman:
    """One for each application. For one event loop; stop it at last."""

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
        """Whom the headers of a request name; None where they hold no credentials.

        Raises NotAuthenticated, LockedOut, UnavailableError.
        """
        address = self.address(scope)
        await self.check_lockout(address)
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        keys = [value for name, value in headers if name == _KEY]
        given = credentials_of_headers(keys, [value for name, value in headers if name == _AUTHORIZATION])
        return None if given is None else await self.verify(given, address)

    async def verify(self, credentials: Credentials, address: str) -> Principal:
        """Whose credentials these are, and what they may see.

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
            # Others may have failed while this waited for its turn: it counts as made when it has that.
            return await self._passwords.principal(credentials, lambda: self.check_lockout(address))
        except NotAuthenticated as error:
            if error.is_attempt:
                await self._note_failure(address)
            raise

    def address(self, scope: Scope) -> str:
        """Of whom failures are counted."""
        return address_of(scope, self._proxies)

    async def check_lockout(self, address: str) -> None:
        """Raises LockedOut."""
        wait_s = self._failures.wait_s(address, time.monotonic())
        if wait_s <= 0 and self._shared_failures is not None:
            wait_s = await self._shared_failures.wait_s(address)
        if wait_s > 0:
            raise LockedOut(math.ceil(wait_s))

    async def _note_failure(self, address: str) -> None:
        """Counted here too where it is counted elsewhere: what is elsewhere may be out of reach."""
        is_counted = self._failures.note_failure(address, time.monotonic())
        if is_counted and self._shared_failures is not None:
            await self._shared_failures.note_failure(address)

    async def stop(self) -> None:
        """Give back threads and connections; end what is being fetched."""
        self._passwords.stop()
        self._tokens.stop()
        if self._shared_failures is not None:
            await self._shared_failures.close()
