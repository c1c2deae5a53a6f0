"""Which signatures of tokens are looked at: asymmetric ones, each by a key that can do nothing else.

Neither `none` nor a public key taken for a secret gets through (RFC 8725, sections 3.1 and 3.2), nor a token
that was signed for something else than access (section 3.11).
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, get_args

from joserfc import jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from graphdb.config.access import SigningAlgorithm
from graphdb.errors import NotAuthenticated

__all__ = [
    "ALGORITHMS",
    "MALFORMED",
    "VerifyingKey",
    "has_access_type",
    "key_kind",
    "signed_claims",
    "why_unfit",
]

VerifyingKey: TypeAlias = RSAKey | ECKey | OKPKey

ALGORITHMS: Final = frozenset(get_args(SigningAlgorithm))
MALFORMED: Final = "the token is malformed, or not of its issuer"
_ACCESS_TYPES = frozenset({"jwt", "at+jwt"})
_KINDS: Mapping[str, type[VerifyingKey]] = {"RS": RSAKey, "PS": RSAKey, "ES": ECKey, "Ed": OKPKey}
_CURVES = {"ES256": "P-256", "ES384": "P-384", "EdDSA": "Ed25519"}
_RSA_BITS_MIN = 2_048


def key_kind(algorithm: str) -> type[VerifyingKey]:
    """The class of the keys of one of ALGORITHMS."""
    return _KINDS[algorithm[:2]]


def why_unfit(key: VerifyingKey, algorithm: str) -> str | None:
    """The reason why a key cannot verify what one of ALGORITHMS has signed; None where it can."""
    if not isinstance(key, key_kind(algorithm)):
        return f"{algorithm} needs another kind of key"
    if isinstance(key, RSAKey):
        return (
            None
            if key.raw_value.key_size >= _RSA_BITS_MIN
            else f"an RSA key has {_RSA_BITS_MIN} bits at least"
        )
    if key.as_dict().get("crv") != _CURVES[algorithm]:
        return f"{algorithm} needs a key on {_CURVES[algorithm]}"
    return None


def has_access_type(header: Mapping[str, object]) -> bool:
    """Whether the `typ` of a token's header lets it be an access token.

    The names are compared as RFC 7515, section 4.1.9, says. Many providers write no `typ`, or `JWT`, as was
    usual before RFC 9068.
    """
    media_type = header.get("typ", "JWT")
    return isinstance(media_type, str) and media_type.lower().removeprefix("application/") in _ACCESS_TYPES


def signed_claims(token: str, key: VerifyingKey, algorithm: str) -> dict[str, Any]:
    """What an access token says that this key has signed by this algorithm. Raises NotAuthenticated, which is
    no attempt where another kind of token was signed.
    """
    # What headers beside `alg` and `crit` say is not looked at: no key is fetched from where a token points.
    registry = _OneAlgorithm(algorithms=[algorithm], strict_check_header=False)
    try:
        found = jwt.decode(token.encode(), key, registry=registry)
    except (JoseError, ValueError, TypeError, RecursionError):  # TypeError: a header that is a list
        raise NotAuthenticated(MALFORMED, is_attempt=True) from None
    # A logout token, or another security event (RFC 8417, section 4.6), may have no `typ` to tell it by.
    if not has_access_type(found.header) or isinstance(found.claims.get("events"), dict):
        raise NotAuthenticated("the token is no access token, but of another kind")
    return found.claims


class _OneAlgorithm(JWSRegistry):
    """Knows the algorithm that is allowed and none besides; says nothing about its age, as joserfc does."""

    def get_alg(self, name: str) -> Any:
        if not self.allowed or name not in self.allowed:
            raise UnsupportedAlgorithmError
        return self.algorithms[name]
