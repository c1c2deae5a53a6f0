"""Access tokens of an OpenID Connect provider (RFC 9068, and JWTs as providers made them before it)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError

from graphdb.access.keys import ALGORITHMS, MALFORMED, VerifyingKey, has_access_type, signed_claims
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.access.tokens import LEEWAY_S, check_claims, ends_at, listed, sids_of, subject
from graphdb.config.access import Oidc
from graphdb.errors import NotAuthenticated

__all__ = ["AccessTokens", "TokenHeader"]

_PROVIDER = "oidc"


@dataclass(frozen=True, slots=True)
class TokenHeader:
    """What a token says of its signature, not yet believed: by which key it is to be verified."""

    kid: str | None
    algorithm: str


class AccessTokens:
    """The tokens of one configuration."""

    def __init__(self, settings: Oidc, roles: Roles) -> None:
        self._settings, self._roles = settings, roles

    def header(self, token: str, now_s: float) -> TokenHeader:
        """Raises NotAuthenticated for what no key could make right, so that nobody is asked for keys."""
        try:
            found = jws.extract_compact(token.encode())
            claims = orjson.loads(found.payload or b"")
        except (JoseError, ValueError, TypeError, RecursionError):
            raise NotAuthenticated(MALFORMED, is_attempt=True) from None
        header: object = found.protected
        if not isinstance(header, dict) or not isinstance(claims, dict):
            raise NotAuthenticated(MALFORMED, is_attempt=True)
        kid, algorithm = header.get("kid"), header.get("alg")
        if (
            claims.get("iss") != self._settings.issuer_url
            or not isinstance(kid, str | None)
            or not isinstance(algorithm, str)
            or algorithm not in ALGORITHMS
            or not has_access_type(header)
        ):
            raise NotAuthenticated(MALFORMED, is_attempt=True)
        expires_at = claims.get("exp")
        if isinstance(expires_at, int | float) and expires_at + LEEWAY_S <= now_s:
            raise NotAuthenticated("the token has expired")  # its key may be gone as well
        return TokenHeader(kid, algorithm)

    def principal(self, token: str, header: TokenHeader, key: VerifyingKey, now_s: float) -> Principal:
        """Whom the token names; now_s is of the Unix epoch. Raises NotAuthenticated."""
        settings = self._settings
        claims = signed_claims(token, key, header.algorithm)
        check_claims(claims, settings.issuer_url, settings.audience, now_s)
        roles = self._mapped(_reached(claims, settings.roles_claim))
        sids = sids_of(_reached(claims, settings.sids_claim), settings.sids_claim)
        return Principal(
            subject(claims), _PROVIDER, roles, sids, self._roles.permission(roles), ends_at(claims)
        )

    def _mapped(self, found: Any) -> frozenset[str]:
        """Some providers write one role as a text."""
        settings = self._settings
        roles = listed([found] if isinstance(found, str) else found, settings.roles_claim)
        mapping = settings.role_mapping
        return frozenset(mapping[role] for role in roles if role in mapping) if mapping else roles


def _reached(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of this very name, which may be an IRI, else what a dotted path leads to; None without."""
    if path in claims:
        return claims[path]
    reached: Any = claims
    for name in path.split("."):
        if not isinstance(reached, dict) or name not in reached:
            return None
        reached = reached[name]
    return reached
