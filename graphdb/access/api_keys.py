"""API keys, of which the configuration has the digests."""

from collections.abc import Sequence
from hashlib import sha256

from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.config.access import ApiKey
from graphdb.errors import ConfigError, NotAuthenticated

__all__ = ["ApiKeys", "key_digest"]

_PROVIDER = "api_key"


def key_digest(key: str) -> str:
    """As `key_sha256` has it. A key is as random as its digest, so nothing slower is needed."""
    return sha256(key.encode()).hexdigest()


class ApiKeys:
    """The keys of one configuration. Raises ConfigError where two have one digest."""

    def __init__(self, keys: Sequence[ApiKey], roles: Roles) -> None:
        self._roles = roles
        # Found by digest: how far two digests agree tells nothing of the keys.
        self._keys = {key.key_sha256: key for key in keys}
        if len(self._keys) < len(keys):
            raise ConfigError("authentication.api_keys: two of them have the same key_sha256")

    def principal(self, key: str, now_s: float) -> Principal:
        """Whose key it is; now_s is of the Unix epoch. Raises NotAuthenticated."""
        found = self._keys.get(key_digest(key))
        if found is None:
            raise NotAuthenticated("the API key is not known", is_attempt=True)
        expires_at = None if found.expires_at is None else found.expires_at.timestamp()
        if expires_at is not None and expires_at <= now_s:
            raise NotAuthenticated("the API key has expired")
        return Principal(
            found.name,
            _PROVIDER,
            frozenset(found.roles),
            frozenset(found.sids),
            self._roles.permission(found.roles),
            expires_at,
        )
