"""`Principal`: who asks, as authentication has found out; it goes with the request."""

import json
from dataclasses import dataclass

from graphdb.access.permissions import Permission
from graphdb.errors import Forbidden

__all__ = ["ANYONE", "EVERYONE", "NOBODY", "NODE", "Principal"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, or a program; permission is what its roles give.

    expires_at: when the credentials end, seconds of the Unix epoch; None where they do not.
    """

    name: str
    provider: str  # which one knew the credentials: api_key, jwt, basic
    roles: frozenset[str] = frozenset()
    sids: frozenset[str] = frozenset()
    permission: Permission = Permission.NONE
    expires_at: float | None = None

    def require(self, permission: Permission) -> None:
        """Raises Forbidden where the roles do not give it."""
        if self.permission < permission:
            raise Forbidden(self.name, permission.word)

    def to_json(self) -> str:
        """For another process of the service; `from_json` reads it."""
        return json.dumps(
            [
                self.name,
                self.provider,
                sorted(self.roles),
                sorted(self.sids),
                self.permission.name,
                self.expires_at,
            ]
        )

    @classmethod
    def from_json(cls, text: str) -> "Principal":
        """Raises ValueError for what `to_json` has not written."""
        match json.loads(text):
            case [str(name), str(provider), [*roles], [*sids], str(permission), expires_at] if (
                permission in Permission.__members__
            ):
                found = Permission[permission]
                return cls(name, provider, frozenset(roles), frozenset(sids), found, expires_at)
        raise ValueError("no principal")


# Whoever asks while authentication is off.
EVERYONE = Principal("everyone", "none", frozenset({"admin"}), permission=Permission.ADMIN)
# The node itself, where it asks for no one: an index that follows the graph, for one.
NODE = Principal("node", "node", frozenset({"admin"}), permission=Permission.ADMIN)
# Who may read what is public: without credentials.
ANYONE = Principal("anyone", "none", permission=Permission.READ)
# A socket before it signs in.
NOBODY = Principal("nobody", "none")
