"""Signed tokens (JWT, RFC 7519) of one issuer, whose public key the configuration names."""

import warnings

from joserfc.errors import JoseError, SecurityWarning

from graphdb.access.claims import LEEWAY_S, check_claims, ends_at, listed, sids_of, subject
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.access.signatures import VerifyingKey, key_kind, signed_claims, why_unfit
from graphdb.config.access import Jwt
from graphdb.errors import ConfigError

__all__ = ["LEEWAY_S", "SignedTokens"]

_PROVIDER = "jwt"


class SignedTokens:
    """The tokens of one configuration. Raises ConfigError for a key that is none for its algorithm."""

    def __init__(self, settings: Jwt, public_key: bytes, roles: Roles) -> None:
        """public_key is PEM."""
        self._settings, self._roles = settings, roles
        self._key = _read_key(settings, public_key)

    def principal(self, token: str, now_s: float) -> Principal:
        """Whom the token names; now_s is of the Unix epoch. Raises NotAuthenticated."""
        settings = self._settings
        claims = signed_claims(token, self._key, settings.algorithm)
        check_claims(claims, settings.issuer, settings.audience, now_s)
        name = subject(claims)
        roles = listed(claims.get(settings.roles_claim), settings.roles_claim)
        sids = sids_of(claims.get(settings.sids_claim), settings.sids_claim)
        return Principal(name, _PROVIDER, roles, sids, self._roles.permission(roles), ends_at(claims))


def _read_key(settings: Jwt, public_key: bytes) -> VerifyingKey:
    key = "authentication.jwt.public_key_file"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # what it warns of is refused below
            found = key_kind(settings.algorithm).import_key(public_key)
    except (JoseError, ValueError, TypeError):
        raise ConfigError(f"{key}: no PEM public key for {settings.algorithm}") from None
    if found.is_private:
        raise ConfigError(f"{key}: a private key; give only the public one to whoever verifies")
    reason = why_unfit(found, settings.algorithm)
    if reason is not None:
        raise ConfigError(f"{key}: {reason}")
    return found
