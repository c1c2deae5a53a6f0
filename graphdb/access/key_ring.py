"""`KeyRing`: the keys of a provider as they are known now, and when it is to be asked for them again.

It asks nobody itself; times are those of a clock that only goes on, in seconds.
"""

from graphdb.access.key_set import KeySet
from graphdb.access.signatures import VerifyingKey

__all__ = ["KeyRing"]

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
