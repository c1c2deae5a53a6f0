"""`VerifiedTokens`: tokens whose signatures were right a moment ago."""

from collections import OrderedDict
from hashlib import sha256

from graphdb.access.principal import Principal

__all__ = ["VerifiedTokens"]

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
