"""The keys that tokens are signed with: signatures, sets of keys, the ring of several issuers."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args

import orjson
from joserfc import jwt
from joserfc.errors import JoseError, SecurityWarning, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from graphdb.config.access import SigningAlgorithm
from graphdb.errors import NotAuthenticated

__all__ = [
    "ALGORITHMS",
    "MALFORMED",
    "KeyRing",
    "KeySet",
    "VerifyingKey",
    "has_access_type",
    "key_kind",
    "read_key_set",
    "signed_claims",
    "why_unfit",
]

# Which signatures of tokens are looked at: asymmetric ones, each by a key that can do nothing else.
#
# Neither `none` nor a public key taken for a secret gets through (RFC 8725, sections 3.1 and 3.2), nor a
# token that was signed for something else than access (section 3.11).

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


# The public keys of a provider of tokens (JWK Set, RFC 7517), and which of them a token means.

_KEYS_MAX = 100
_TYPES: dict[str, type[VerifyingKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}


@dataclass(frozen=True, slots=True)
class _Key:
    kid: str | None
    algorithms: frozenset[str]  # that it may verify
    key: VerifyingKey


@dataclass(frozen=True, slots=True)
class KeySet:
    """What verifies signatures, of all that a provider publishes."""

    keys: tuple[_Key, ...]

    def find(self, kid: str | None, algorithm: str) -> VerifyingKey | None:
        """The key of a token's header; None where there is none, or more than one.

        A token without `kid` means the only key of its algorithm (OpenID Connect Core 1.0, section 10.1).
        """
        fitting = [
            one.key for one in self.keys if algorithm in one.algorithms and (kid is None or one.kid == kid)
        ]
        return fitting[0] if len(fitting) == 1 else None


def read_key_set(document: bytes) -> KeySet:
    """Keys that verify nothing we look at are left out. Raises ValueError, a sentence, where none is left."""
    try:
        listed = orjson.loads(document)["keys"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        listed = None
    if not isinstance(listed, list):
        raise ValueError("its keys are no JWK Set")
    if len(listed) > _KEYS_MAX:
        raise ValueError(f"it has more than {_KEYS_MAX} keys")
    keys = tuple(key for one in listed if (key := _read_key(one)) is not None)
    if not keys:
        raise ValueError("none of its keys verifies signatures")
    return KeySet(keys)


def _read_key(jwk: Any) -> _Key | None:
    """None for what is for encryption, secret, too short, or of an unknown kind (RFC 7517, section 5)."""
    if not isinstance(jwk, dict) or "d" in jwk:
        return None
    kind = _TYPES.get(str(jwk.get("kty")))
    kid, use, operations, algorithm = (jwk.get(name) for name in ("kid", "use", "key_ops", "alg"))
    if kind is None or not isinstance(kid, str | None) or use not in (None, "sig"):
        return None
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # what it warns of is left out
            key = kind.import_key(jwk)
            named = ALGORITHMS if algorithm is None else ALGORITHMS & {algorithm}
            algorithms = frozenset(one for one in named if why_unfit(key, one) is None)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return _Key(kid, algorithms, key) if algorithms else None


# `KeyRing`: the keys of a provider as they are known now, and when it is to be asked for them again.
#
# It asks nobody itself; times are those of a clock that only goes on, in seconds.

_ASKED_EVERY_S = 10.0  # at most, whatever tokens say
_STALE_S = 3_600.0  # how long keys that could not be fetched again are used yet


class KeyRing:
    """Of one provider. Tell it of each attempt to fetch the keys: `learn`, or `fail`."""

    def __init__(self, refresh_s: float) -> None:
        """refresh_s: the age at which keys are to be fetched again."""
        self._refresh_s = refresh_s
        self._asked_every_s = min(_ASKED_EVERY_S, refresh_s)
        self._keys: KeySet | None = None
        self._learned_s = 0.0
        self._asked_s: float | None = None
        self.has_failed = False  # the last attempt

    def find(self, kid: str | None, algorithm: str, now_s: float) -> VerifyingKey | None:
        """The key that a token's header means, if it is known and not too old."""
        if self._keys is None or now_s - self._learned_s >= self._refresh_s + _STALE_S:
            return None
        return self._keys.find(kid, algorithm)

    def is_old(self, now_s: float) -> bool:
        """Whether the keys are to be fetched again, though they are used meanwhile."""
        return now_s - self._learned_s >= self._refresh_s

    def wait_s(self, now_s: float) -> float:
        """How long the provider is not to be asked yet; 0 where it may be asked now."""
        if self._asked_s is None:
            return 0.0
        return max(0.0, self._asked_s + self._asked_every_s - now_s)

    def learn(self, keys: KeySet, now_s: float) -> None:
        """What the provider has answered."""
        self._keys, self._learned_s = keys, now_s
        self._asked_s, self.has_failed = now_s, False

    def fail(self, now_s: float) -> None:
        """It has answered nothing that could be used."""
        self._asked_s, self.has_failed = now_s, True
