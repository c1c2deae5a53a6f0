"""What a token claims, once its signature is known to be right: whether it holds here and now, for whom."""

import re
from collections.abc import Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError

from graphdb.errors import NotAuthenticated

__all__ = ["LEEWAY_S", "check_claims", "ends_at", "listed", "sids_of", "subject"]

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
