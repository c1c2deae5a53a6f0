"""Signed tokens (JWT, RFC 7519) of one issuer, whose public key the configuration names.

The algorithm is the configured one and no other, whatever a token says of itself, and the key can do nothing
else: so neither `none` nor a public key taken for a secret gets through (RFC 8725, section 3.1).
"""

import re
import warnings
from collections.abc import Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError, SecurityWarning, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.config.access import Jwt
from graphdb.errors import ConfigError, NotAuthenticated

__all__ = ["LEEWAY_S", "SignedTokens"]

LEEWAY_S = 30  # by which the clocks of issuer and node may differ
_PROVIDER = "jwt"
_NAME_MAX = 512
_LISTED_MAX = 1_000  # roles, or SIDs, of one token
_KEYS: Mapping[str, type[RSAKey] | type[ECKey] | type[OKPKey]] = {
    "RS": RSAKey,
    "PS": RSAKey,
    "ES": ECKey,
    "Ed": OKPKey,
}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "EdDSA": "Ed25519"}
_RSA_BITS_MIN = 2_048
_SID = re.compile(r"S-\d+(-\d+){2,}", re.ASCII)


class SignedTokens:
    """The tokens of one configuration. Raises ConfigError for a key that is none for its algorithm."""

    def __init__(self, settings: Jwt, public_key: bytes, roles: Roles) -> None:
        """public_key is PEM."""
        self._settings, self._roles = settings, roles
        self._key = _read_key(settings, public_key)
        # What headers beside `alg` and `crit` say is not looked at: no key is fetched, or chosen by `kid`.
        self._registry = _OneAlgorithm(algorithms=[settings.algorithm], strict_check_header=False)

    def principal(self, token: str, now_s: float) -> Principal:
        """Whom the token names; now_s is of the Unix epoch. Raises NotAuthenticated."""
        try:
            claims = jwt.decode(token.encode(), self._key, registry=self._registry).claims
        except (JoseError, ValueError, RecursionError):
            raise NotAuthenticated("the token is malformed, or not of its issuer", is_attempt=True) from None
        self._check(claims, now_s)
        name = claims["sub"]
        if not name or len(name) > _NAME_MAX:
            raise NotAuthenticated(f"the token's sub is empty, or longer than {_NAME_MAX} characters")
        roles = _listed(claims, self._settings.roles_claim)
        sids = _listed(claims, self._settings.sids_claim)
        if not all(_SID.fullmatch(sid) for sid in sids):
            raise NotAuthenticated(f"the token's {self._settings.sids_claim} has what is no SID")
        return Principal(name, _PROVIDER, roles, sids, self._roles.permission(roles), float(claims["exp"]))

    def _check(self, claims: dict[str, Any], now_s: float) -> None:
        """A token of the issuer that does not hold here or now is no guess."""
        registry = jwt.JWTClaimsRegistry(
            now=int(now_s),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.audience},
            sub={"essential": True},
            exp={"essential": True},
        )
        try:
            registry.validate(claims)
        except ExpiredTokenError:
            raise NotAuthenticated("the token has expired") from None
        except JoseError as error:
            raise NotAuthenticated(f"the token does not hold here: {error.description}") from None


class _OneAlgorithm(JWSRegistry):
    """Knows the algorithm that is allowed and none besides; says nothing about its age, as joserfc does."""

    def get_alg(self, name: str) -> Any:
        if not self.allowed or name not in self.allowed:
            raise UnsupportedAlgorithmError
        return self.algorithms[name]


def _listed(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """A claim that is a list of texts; empty where it is not there."""
    found = claims.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise NotAuthenticated(f"the token's {name} is no list of texts")
    if len(found) > _LISTED_MAX:
        raise NotAuthenticated(f"the token's {name} lists more than {_LISTED_MAX}")
    return frozenset(found)


def _read_key(settings: Jwt, public_key: bytes) -> RSAKey | ECKey | OKPKey:
    key = "authentication.jwt.public_key_file"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # what it warns of is refused below
            found = _KEYS[settings.algorithm[:2]].import_key(public_key)
    except (JoseError, ValueError, TypeError):
        raise ConfigError(f"{key}: no PEM public key for {settings.algorithm}") from None
    if found.is_private:
        raise ConfigError(f"{key}: a private key; give only the public one to whoever verifies")
    if isinstance(found, RSAKey):
        if found.raw_value.key_size < _RSA_BITS_MIN:
            raise ConfigError(f"{key}: an RSA key has {_RSA_BITS_MIN} bits at least")
    elif found.as_dict().get("crv") != _CURVES[settings.algorithm]:
        raise ConfigError(f"{key}: {settings.algorithm} needs a key on {_CURVES[settings.algorithm]}")
    return found
