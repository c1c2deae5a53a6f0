"""`TokenVerifier`: whose a bearer token is, one of our own issuer or one of the OpenID Connect provider."""

import time

from graphdb.access.oidc import AccessTokens
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.access.tokens import SignedTokens, VerifiedTokens
from graphdb.config.access import Authentication
from graphdb.errors import NotAuthenticated
from serve.access.provider_keys import ProviderKeys

__all__ = ["TokenVerifier"]


class TokenVerifier:
    """For one event loop; stop it at last."""

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
        """Whose token it is. Raises NotAuthenticated, ProviderUnavailable."""
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
                # What our issuer has signed is its own, though it may not hold; others may be the provider's.
                if self._access is None or not error.is_attempt:
                    raise
        if self._access is None or self._keys is None:
            raise NotAuthenticated("bearer tokens are not taken here", is_attempt=True)
        header = self._access.header(token, time.time())
        return self._access.principal(token, header, await self._keys.key(header), time.time())

    def stop(self) -> None:
        """End what is being fetched."""
        if self._keys is not None:
            self._keys.stop()
