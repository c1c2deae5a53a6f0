"""`Doorman`: finds out who asks, on both ports; counts failed attempts, and locks out."""

import math
import time
from collections.abc import Sequence
from typing import Protocol

from starlette.types import Scope

from graphdb.access.api_keys import ApiKeys
from graphdb.access.client_address import TrustedProxies
from graphdb.access.credentials import Credentials, KeyGiven, TokenGiven, credentials_of_headers
from graphdb.access.lockout import Lockout
from graphdb.access.passwords import Passwords
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.access.tokens import SignedTokens
from graphdb.config import Settings
from graphdb.errors import LockedOut, NotAuthenticated
from serve.access.password_desk import PasswordDesk

__all__ = ["Doorman", "Failures"]

_KEY, _AUTHORIZATION, _FORWARDED = b"x-api-key", b"authorization", b"x-forwarded-for"


class Failures(Protocol):
    """Failed attempts by address, as `Lockout` counts them; times are those of time.monotonic."""

    def wait_s(self, address: str, now_s: float) -> float: ...
    def note_failure(self, address: str, now_s: float) -> bool: ...


class Doorman:
    """One for each application. For one event loop; stop it at last."""

    def __init__(self, settings: Settings, failures: Failures | None = None) -> None:
        """failures are counted for this application alone unless given. Raises ConfigError, OSError."""
        configured, roles = settings.authentication, Roles(settings.authorization)
        self._keys = ApiKeys(configured.api_keys, roles)
        self._tokens = None
        if configured.jwt is not None:
            self._tokens = SignedTokens(configured.jwt, configured.jwt.public_key_file.read_bytes(), roles)
        basic = configured.basic
        users = basic.users if basic is not None and basic.enabled else ()
        self._passwords = PasswordDesk(Passwords(users, roles))
        self._failures: Failures = failures or Lockout(configured.rate_limiting)
        self._proxies = TrustedProxies(settings.server.trusted_proxies)

    async def admit(self, scope: Scope) -> Principal | None:
        """Whom the headers of a request name; None where they hold no credentials.

        Raises NotAuthenticated, LockedOut, Overloaded.
        """
        address = self.address(scope)
        self.check_lockout(address)
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        keys = [value for name, value in headers if name == _KEY]
        given = credentials_of_headers(keys, [value for name, value in headers if name == _AUTHORIZATION])
        return None if given is None else await self.verify(given, address)

    async def verify(self, credentials: Credentials, address: str) -> Principal:
        """Whose credentials these are. Raises NotAuthenticated, LockedOut, Overloaded."""
        try:
            match credentials:
                case KeyGiven(key):
                    return self._keys.principal(key, time.time())
                case TokenGiven(token):
                    return self._token(token)
            # Others may have failed while this waited for its turn: it counts as made when it has that.
            return await self._passwords.principal(credentials, lambda: self.check_lockout(address))
        except NotAuthenticated as error:
            if error.is_attempt:
                self._failures.note_failure(address, time.monotonic())
            raise

    def address(self, scope: Scope) -> str:
        """Of whom failures are counted."""
        client = scope.get("client")
        peer = str(client[0]) if client else ""
        forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
        return self._proxies.client(peer, forwarded)

    def check_lockout(self, address: str) -> None:
        """Raises LockedOut."""
        wait_s = self._failures.wait_s(address, time.monotonic())
        if wait_s > 0:
            raise LockedOut(math.ceil(wait_s))

    def stop(self) -> None:
        """Give back the threads."""
        self._passwords.stop()

    def _token(self, token: str) -> Principal:
        if self._tokens is None:
            raise NotAuthenticated("bearer tokens are not taken here", is_attempt=True)
        return self._tokens.principal(token, time.time())
