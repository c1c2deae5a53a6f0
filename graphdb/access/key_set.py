"""The public keys of a provider of tokens (JWK Set, RFC 7517), and which of them a token means."""

import warnings
from dataclasses import dataclass
from typing import Any

import orjson
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from graphdb.access.signatures import ALGORITHMS, VerifyingKey, why_unfit

__all__ = ["KeySet", "read_key_set"]

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
