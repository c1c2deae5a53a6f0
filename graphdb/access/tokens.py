"""Tokens that the service issues itself, claims that every token makes, and a memory of verified tokens."""

import re
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError, SecurityWarning

from graphdb.access.keys import VerifyingKey, key_kind, signed_claims, why_unfit
from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.config.access import Jwt
from graphdb.errors import ConfigError, NotAuthenticated

__all__ = [
    "LEEWAY_S",
    "SignedTokens",
    "VerifiedTokens",
    "check_claims",
    "ends_at",
    "listed",
    "sids_of",
    "subject",
]

# What a token claims, once its signature is known to be right: whether it holds here and now, for whom.

LEEWAY_S = 30  # by which the clocks of issuer and node may differ
_NAME_MAX = 512
_LISTED_MAX = 1_000  # roles, or SIDs, of one token
_SID = re.compile(r"S-\d+(-\d+){2,}", re.ASCII)


def check_claims(claims: dict[str, Any], issuer: str, audience: str, now_s: float) -> None:
    """iss, aud, sub and exp have to be there; now_s is of the Unix epoch. Raises NotAuthenticated.

    A token of the issuer that does not hold here or now is no guess.
    """
    registry = jwt.JWTClaimsRegistry(
        now=int(now_s),
        leeway=LEEWAY_S,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": audience},
        sub={"essential": True},
        exp={"essential": True},
    )
    try:
        registry.validate(claims)
    except ExpiredTokenError:
        raise NotAuthenticated("the token has expired") from None
    except JoseError as error:
        raise NotAuthenticated(f"the token does not hold here: {error.description}") from None


def ends_at(claims: Mapping[str, Any]) -> float:
    """When the token ends, of the Unix epoch. Raises NotAuthenticated."""
    try:
        return float(claims["exp"])
    except OverflowError:
        raise NotAuthenticated("the token does not hold here: its exp is no time") from None


def subject(claims: Mapping[str, Any]) -> str:
    """Whom the token is about. Raises NotAuthenticated."""
    name: str = claims["sub"]
    if not name or len(name) > _NAME_MAX:
        raise NotAuthenticated(f"the token's sub is empty, or longer than {_NAME_MAX} characters")
    return name


def sids_of(found: Any, name: str) -> frozenset[str]:
    """As `listed`; each is a SID."""
    sids = listed(found, name)
    if not all(_SID.fullmatch(sid) for sid in sids):
        raise NotAuthenticated(f"the token's {name} has what is no SID")
    return sids


def listed(found: Any, name: str) -> frozenset[str]:
    """The claim of this name: a list of texts; empty where found is None. Raises NotAuthenticated."""
    if found is None:
        return frozenset()
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise NotAuthenticated(f"the token's {name} is no list of texts")
    if len(found) > _LISTED_MAX:
        raise NotAuthenticated(f"the token's {name} lists more than {_LISTED_MAX}")
    return frozenset(found)


# Signed tokens (JWT, RFC 7519) of one issuer, whose public key the configuration names.

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


# `VerifiedTokens`: tokens whose signatures were right a moment ago.

_KEPT_S = 60.0
_KEPT_MAX = 4_096


class VerifiedTokens:
    """Whom tokens name, by their digests: for a minute, never past their end. Times are of the Unix epoch."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[Principal, float, float]] = (
            OrderedDict()
        )  # from when, until when

    def principal(self, token: str, now_s: float) -> Principal | None:
        """None where it is not kept, or not any more."""
        digest = _digest(token)
        kept = self._kept.get(digest)
        if kept is None:
            return None
        principal, since_s, until_s = kept
        if since_s <= now_s < until_s:
            return principal
        del self._kept[digest]  # also where the clock has been set back
        return None

    def keep(self, token: str, principal: Principal, now_s: float) -> None:
        """The token has been verified just now."""
        until_s = now_s + _KEPT_S
        if principal.expires_at is not None:
            until_s = min(until_s, principal.expires_at)
        digest = _digest(token)
        self._kept[digest] = principal, now_s, until_s
        self._kept.move_to_end(digest)
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
